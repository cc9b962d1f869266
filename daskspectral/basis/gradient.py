"""The gradient of a function in the span of kernel functions, without a tensor (p, c, d)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daskspectral.basis.base import Array
from daskspectral.basis.landmark import LandmarkBasis
from daskspectral.kernels import DotKernel, Mahalanobis, RadialKernel
from daskspectral.kernels.base import unit_index


@dataclass(frozen=True, eq=False)
class SpanGradient:
    """x -> ∇f_j(x) of f_j = Σ_i a_ij k(., y_i), for coefficients a (p, m), in O(c p m d).

    Radial kernels, T = q'(r)/r (equation (23)): ∇f_j(x) = x Σ_i a_ij T_i(x) - Σ_i T_i(x) a_ij y_i; dot-product
    kernels (equation (24)): Σ_i q'(x.y_i) a_ij y_i; other kernels by their partial derivatives.
    """

    basis: LandmarkBasis
    coefficients: Array

    def __call__(self, x: Array) -> Array:
        """The gradients at points x (c, d), (c, m, d)."""
        kernel, a = self.basis.kernel, self.coefficients
        if isinstance(kernel, Mahalanobis):
            found: Array = SpanGradient(self.basis.embedded, a)(kernel.embedded(x)) @ kernel.root.T
            return found
        if isinstance(kernel, RadialKernel):
            x, y = x - self.basis.centre, self.basis.centred
            t = 2 * kernel.profiled(kernel.argument(x, y), 1)
            return x[:, None] * (t.T @ a)[:, :, None] - _pulled(t, a, y)
        if isinstance(kernel, DotKernel):
            y = self.basis.landmarks
            return _pulled(kernel.profiled(kernel.argument(x, y), 1), a, y)
        d = self.basis.dimension
        partials = (kernel.partial(x, self.basis.landmarks, unit_index(axis, d)) for axis in range(d))
        return np.stack([partial.T @ a for partial in partials], axis=2)


def _pulled(t: Array, a: Array, y: Array) -> Array:
    """sum_i t_ik a_ij y_i in one product, (c, m, d)."""
    together = (a[:, :, None] * y[:, None]).reshape(len(a), -1)
    found: Array = (t.T @ together).reshape(-1, a.shape[1], y.shape[1])
    return found
