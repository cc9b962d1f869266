"""Kernels k(x, y): functions of |x - y| (radial) or of x.y (dot product), with closed-form derivatives.

    kernel                              k(x, y), with r = |x - y|                            name
    Gaussian(scale)                     exp(-r² / (2 scale²))                                gaussian:1.0
    Exponential(scale)                  exp(-r / scale)                                      exponential:0.5
    Matern(nu, scale)                   Matern, nu = 1/2, 3/2, ..., of √(2 nu) r / scale     matern:2.5:1.0
    Polynomial(degree, offset, scale)   (offset + x.y / scale²)^degree                       polynomial:3
    Linear()                            x.y                                                  linear
    Radial(q, derivatives)              q(r²), a function with its derivatives
    Dot(q, derivatives)                 q(x.y), a function with its derivatives
    FunctionKernel(function, gradient)  function(x (c, d), y (p, d)) -> (p, c), gradient(x, y, axis)
    Periodic(kernel, periods)           periodic columns, such as angles; None for other columns
    Mahalanobis(kernel, matrix)         kernel(x A, y A), a metric with a scale for each direction

Kernels add and multiply: `Gaussian(1.0) + Polynomial(2)`. A `scale` is a length in the units of the data, or "median",
the median distance between rows. Names are accepted instead of kernels; + joins terms, as in gaussian:median+linear.

    >>> import numpy as np
    >>> from daskspectral.kernels import Gaussian, Linear
    >>> kernel = Gaussian(scale=2.0) + Linear()
    >>> x, y = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 1.0]])
    >>> kernel.values(x, y).round(3)  # (p, c) for p points y and c points x
    array([[0.779, 3.   ]])

A radial kernel is defined by its profile q(s), s = |x - y|². `profile` writes q or one of its derivatives elementwise
into `out`; `smoothness` is the number of derivatives that are bounded at s = 0. Fields of the dataclass are the
parameters. Kernels of x.y have `geometry = DOT`.

    >>> import math
    >>> from dataclasses import dataclass
    >>> from daskspectral.kernels import DISTANCE, ProfileKernel
    >>> @dataclass
    ... class Cauchy(ProfileKernel):
    ...     geometry = DISTANCE
    ...     scale: float = 1.0
    ...     smoothness = math.inf
    ...     def check(self):
    ...         if self.scale <= 0:
    ...             raise ValueError(f"scale must be positive, got {self.scale!r}")
    ...     def profile(self, s, order, out):  # q(s) = 1 / (1 + s / scale^2)
    ...         rate = 1 / self.scale**2
    ...         out[...] = math.factorial(order) * (-rate) ** order / (1 + rate * s) ** (order + 1)
    ...         return out
    >>> from daskspectral.testing import check_kernel
    >>> check_kernel(Cauchy(0.7))
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> basis = dsp.basis.Landmarks(Cauchy(1.0), 50)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
    >>> est.eigenvalues_.round(1) + 0.0  # k^2 on an interval of length pi
    array([0., 1., 4., 9.])

To load a model with such a kernel, name its class: `dsp.load(path, trusted=["module.Cauchy"])`.

Points and landmarks are centered at the mean of the landmarks. The gradient of the exponential kernel is set to 0 at
landmarks; points coincide if r² ≤ 64 eps (|x|² + |y|²).
"""

from daskspectral.kernels.base import (
    FunctionKernel,
    Kernel,
    Product,
    ProfileKernel,
    Scaled,
    Sum,
    of_distances,
    of_products,
)
from daskspectral.kernels.dot import Dot, Linear, Polynomial
from daskspectral.kernels.embedded import Mahalanobis, Periodic
from daskspectral.kernels.geometry import DISTANCE, DOT
from daskspectral.kernels.names import parse
from daskspectral.kernels.radial import Exponential, Gaussian, Matern, Radial

__all__ = [
    "DISTANCE",
    "DOT",
    "Dot",
    "Exponential",
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "Linear",
    "Mahalanobis",
    "Matern",
    "Periodic",
    "Polynomial",
    "Product",
    "ProfileKernel",
    "Radial",
    "Scaled",
    "Sum",
    "of_distances",
    "of_products",
    "parse",
]
