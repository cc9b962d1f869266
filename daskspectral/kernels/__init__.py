"""Kernels k(x, y): functions of |x - y| (radial) or of x.y (dot product), with closed-form derivatives.

The basis functions of a fit are k(., y_i) at p landmarks y_i; see `daskspectral.landmarks`. Kernels add and multiply:
`Gaussian(1.0) + Polynomial(2)`; a composition of kernels of one geometry (|x - y| or x.y) has that geometry and is as
fast. The `scale` of a radial kernel is a length in the units of the data, or "median", the median distance between
rows.

    kernel                              k(x, y), with r = |x - y|                            its name
    Gaussian(scale)                     exp(-r² / (2 scale²))                                gaussian:1.0
    Exponential(scale)                  exp(-r / scale)                                      exponential:0.5
    Matern(nu, scale)                   Matern, nu = 1/2, 3/2, ..., of √(2 nu) r / scale     matern:2.5:1.0
    Polynomial(degree, offset, scale)   (offset + x.y / scale²)^degree                       polynomial:3
    Linear()                            x.y                                                  linear
    Radial(q, derivatives)              q(r²), your function with its derivatives
    Dot(q, derivatives)                 q(x.y), likewise
    FunctionKernel(function, gradient)  any function(x (c, d), y (p, d)) -> (p, c); gradient(x, y, axis) likewise
    Periodic(kernel, periods)           a kernel on columns with a period each, or None: angles, periodic boxes
    Mahalanobis(kernel, matrix)         kernel(x A, y A), with a scale for each direction

A name stands for a kernel in a shell and in Python, as in `basis.Landmarks("gaussian:0.5")`; terms join by +, as in
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
A radial kernel is its profile q(s), s = |x - y|², with as many derivatives in s as it has; the basis, the forms and
the estimators need no more. `profile` writes q or its derivative of an order into `out`, elementwise, and `smoothness`
counts the derivatives that are bounded at s = 0. Fields of the dataclass are the parameters: they are checked by
`check`, copied by `clone`, searched as `basis__kernel__scale`, and saved with a model.

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
    ...             raise ValueError(f"Cauchy needs a positive scale; it got {self.scale!r}")
    ...     def profile(self, s, order, out):  # q(s) = 1 / (1 + s / scale^2)
    ...         rate = 1 / self.scale**2
    ...         out[...] = math.factorial(order) * (-rate) ** order / (1 + rate * s) ** (order + 1)
    ...         return out

`check_kernel` compares values, derivatives, copies and saved state with what they should be, and raises AssertionError
with what is wrong; then the kernel goes wherever another does:

    >>> from daskspectral.testing import check_kernel
    >>> check_kernel(Cauchy(0.7))
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> basis = dsp.basis.Landmarks(Cauchy(1.0), 50)
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
    >>> est.eigenvalues_.round(1) + 0.0  # k^2 on an interval of length pi
    array([0., 1., 4., 9.])

A kernel of x.y has `geometry = DOT`; a function without a class is `Radial(q, derivatives)` or `Dot(q, derivatives)`;
a function of x and y that is neither is `FunctionKernel(function, gradient)`, which costs more.
A saved model with a kernel of yours loads where you name its class: `dsp.load(path, trusted=["module.Cauchy"])`.

Radial kernels in a fit
-----------------------
- Points and landmarks are centred at the landmarks' mean first, because distances lose digits far from the origin.
- The exponential kernel has no gradient at a landmark itself; the gradient counts as 0 there. Two points coincide when
  rounding cannot tell them apart: r² ≤ 64 eps (|x|² + |y|²) after centring, eps the machine epsilon of the dtype.
- A row that became a landmark sees a zero gradient at itself, which alone makes spurious small eigenvalues when the
  kernel is narrow. Kernels with a kink, such as the exponential one, leave such rows out, and all kernels do with
  `Landmarks(drop_landmark_rows=True)`, as long as nine tenths of the rows remain. Rows that coincide with landmarks
  are such rows, whether these were drawn or given.
- With `solvers.Cut`, a basis function that rests on fewer than `min_support=10` effective points, (sum φ)² / sum φ², is
  left out, with a `RankWarning`: its eigenvalue would be an accident of these points. Widen the kernel, or use more
  rows. A row of weight 2 counts as two rows here too. Weights that sum to less than their effective number of rows,
  (sum w)² / sum w², such as probabilities, are scaled up to it.
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
