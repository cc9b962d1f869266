"""Kernels k(x, y): functions of |x - y| (radial) or of x.y (dot product), with closed-form derivatives.

The basis functions of a fit are k(., y_i) at p landmarks y_i; see `daskspectral.landmarks`. Kernels add and multiply:
`Gaussian(1.0) + Polynomial(2)`; a composition of kernels of one geometry (|x - y| or x.y) is as fast as one kernel.
The `scale` of a radial kernel is a length in the units of the data, or "median", the median distance between rows.

    kernel                              k(x, y), with r = |x - y|                            name
    Gaussian(scale)                     exp(-r² / (2 scale²))                                gaussian:1.0
    Exponential(scale)                  exp(-r / scale)                                      exponential:0.5
    Matern(nu, scale)                   Matern, nu = 1/2, 3/2, ..., of √(2 nu) r / scale     matern:2.5:1.0
    Polynomial(degree, offset, scale)   (offset + x.y / scale²)^degree                       polynomial:3
    Linear()                            x.y                                                  linear
    Radial(q, derivatives)              q(r²), a function with its derivatives
    Dot(q, derivatives)                 q(x.y), a function with its derivatives
    FunctionKernel(function, gradient)  any function(x (c, d), y (p, d)) -> (p, c), and gradient(x, y, axis)
    Periodic(kernel, periods)           periodic columns, such as angles; None for other columns
    Mahalanobis(kernel, matrix)         kernel(x A, y A), a metric with a scale for each direction

Names are accepted by the command and in Python, as in `basis.Landmarks("gaussian:0.5")`; + joins terms, as in
gaussian:median+linear. To add a kernel, write a subclass of `ProfileKernel`; `daskspectral.testing.check_kernel` tests
it.

    >>> import numpy as np
    >>> from daskspectral.kernels import Gaussian, Linear
    >>> kernel = Gaussian(scale=2.0) + Linear()
    >>> x, y = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 1.0]])
    >>> kernel.values(x, y).round(3)  # (p, c) for p points y and c points x
    array([[0.779, 3.   ]])

Writing a kernel
----------------
A radial kernel is defined by its profile q(s), s = |x - y|², and the derivatives of q. `profile` writes q or one of its
derivatives elementwise into `out`; `smoothness` is the number of derivatives that are bounded at s = 0. Fields of the
dataclass are the parameters: they are validated by `check`, copied by `clone`, searched as `basis__kernel__scale`, and
saved with a model.

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

`check_kernel` tests values, derivatives, copies and saved state, and raises AssertionError if one is wrong. The kernel
can then be used like any other:

    >>> from daskspectral.testing import check_kernel
    >>> check_kernel(Cauchy(0.7))
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> basis = dsp.basis.Landmarks(Cauchy(1.0), 50)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
    >>> est.eigenvalues_.round(1) + 0.0  # k^2 on an interval of length pi
    array([0., 1., 4., 9.])

A kernel of x.y has `geometry = DOT`; a function without a class is `Radial(q, derivatives)` or `Dot(q, derivatives)`;
any other function of x and y is a `FunctionKernel(function, gradient)`, which is slower. To load a model with such a
kernel, name its class: `dsp.load(path, trusted=["module.Cauchy"])`.

Radial kernels in a fit
-----------------------
- Points and landmarks are centered at the mean of the landmarks, because distances lose digits far from the origin.
- The exponential kernel has no gradient at a landmark; it is set to 0 there. Two points coincide if
  r² ≤ 64 eps (|x|² + |y|²) after centering, with eps the machine epsilon of the dtype.
- A row that is a landmark has a zero gradient of its basis function, which causes spurious small eigenvalues of narrow
  kernels. Kernels with a kink, such as the exponential one, exclude rows that coincide with landmarks; all kernels do
  with `Landmarks(drop_landmark_rows=True)`, if nine tenths of the rows remain.
- With `solvers.Truncated`, basis functions supported by fewer than `min_support=10` effective points,
  (sum φ)² / sum φ², are excluded with a `RankWarning`. Use a wider kernel or more rows. A row of weight 2 counts as two
  rows. Weights whose sum is below their effective number of rows, (sum w)² / sum w², such as probabilities, are scaled
  up to it.
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
