"""Kernel functions at landmarks (Nystrom), phi_i = k(., y_i), by matrix products without tensors (p, c, d)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis.accumulators import GradientSum
from daskspectral.basis.base import Array, Basis, Translation
from daskspectral.basis.evaluation import Block, Evaluation, cached
from daskspectral.devices import HOST, Device, filled, largest
from daskspectral.forms import Atom
from daskspectral.kernels import Kernel, Linear, Mahalanobis, ProfileKernel
from daskspectral.kernels.base import MultiIndex, of_distances, of_products, unit_index
from daskspectral.kernels.embedded import EmbeddedKernel
from daskspectral.kernels.geometry import clean_distances
from daskspectral.validation import check_type
from daskspectral.workspace import ProductSum, Workspace

RIDGE = 1e-10  # ridge, in k(x, x), of Gram matrices of kernels, which are singular to rounding


TILE = 64, 256
FAR = 4.0  # distance of the origin, relative to the farthest landmark from their mean
PANEL_BYTES = 1 << 18  # of one buffer; fastest of 64 kB to 256 kB with an L2 cache of 512 kB
MANY_COLUMNS = 64  # of points, for which products with landmarks cost more than writing them
ACCELERATOR_PANEL_BYTES = 1 << 26  # each panel costs some kernel launches there


@dataclass(frozen=True, eq=False)
class LandmarkBasis(Basis):
    """Basis of kernel functions phi_i(x) = k(x, y_i) at landmarks y.

    Parameters
    ----------
    kernel : Kernel
        Kernel k.
    landmarks : array of shape (p, d)
        Landmarks y.
    centered : bool
        True to evaluate sums and products of radial and dot-product kernels about the landmarks' mean, so that their
        span does not depend on the origin.

    See Also
    --------
    Landmarks : Construction from the data.
    daskspectral.kernels : Kernels.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian
    >>> basis = LandmarkBasis(Gaussian(1.0), np.array([[0.0], [1.0]]))
    >>> basis.values(np.array([[1.0]])).round(3)
    array([[0.607],
           [1.   ]])
    """

    expects: ClassVar = {"kernel": Kernel}
    dimension_names: ClassVar = {"landmarks": ("landmark", "column")}

    kernel: Kernel
    landmarks: Array
    centered: bool = False

    def __post_init__(self) -> None:
        check_type("kernel", self.kernel, Kernel, "one of daskspectral.kernels, such as Gaussian(1.0)")
        landmarks = np.ascontiguousarray(self.landmarks, dtype=float)
        if landmarks.ndim != 2:
            raise ValueError(f"landmarks must have shape (p, d), got {landmarks.shape}.")
        valid = np.isfinite(landmarks).all(axis=1)
        if not valid.all():
            raise ValueError(f"landmarks must be finite, got NaN or infinity in row {int(np.argmin(valid))}.")
        self.kernel.embedded(landmarks[:1])  # raises ValueError if the numbers of columns and periods differ
        object.__setattr__(self, "landmarks", landmarks)

    @property
    def size(self) -> int:
        return len(self.landmarks)

    @property
    def dimension(self) -> int:
        return int(self.landmarks.shape[1])

    @property
    def order(self) -> float:
        return self.kernel.order

    @property
    def description(self) -> str:
        return f"the kernel {self.kernel}"

    def remedy(self, order: int) -> str:
        smoother = "Gaussian(scale)" if order > 37 else f"Gaussian(scale) or Matern(nu={order // 2 + 1.5})"
        return f"Use a smoother kernel, such as {smoother}."

    @property
    def portable(self) -> bool:
        return self.kernel.portable

    @property
    def local(self) -> NDArray[np.bool_]:
        return np.full(self.size, of_distances(self.kernel.inner))

    @property
    def periodic(self) -> bool:
        return self.kernel.flat is not self.kernel

    @property
    def landmark_parts(self) -> tuple[LandmarkBasis, ...]:
        return (self,)

    def translated(self, delta: Array) -> Translation | None:
        kernel = self.kernel
        if type(kernel) is Linear:
            return Translation(self, np.eye(self.size), self.landmarks @ delta)
        if kernel.stationary or (self.centered and kernel.mixes_origin):
            return Translation.identity(replace(self, landmarks=self.landmarks + delta))
        return None

    def norm(self, gram: Array) -> Array:
        return self.kernel.values(self.centered_landmarks, self.centered_landmarks)

    def reach(self, gram: Array) -> float:
        """Return tr(K_YY^-1 G) / k(x, x), the mean share of |k(., x)|² in the span, for a radial kernel."""
        norm = self.norm(gram)
        size = float(norm[0, 0])
        norm = norm + RIDGE * size * np.eye(self.size)
        return float(np.trace(scipy.linalg.solve(norm, gram, assume_a="pos"))) / size

    @property
    def slope_norm(self) -> float | None:
        kernel = self.kernel.inner
        if not of_distances(kernel) or kernel.smoothness < 1 or isinstance(self.kernel, Mahalanobis):
            return None
        return -2.0 * float(kernel.profile(np.zeros(1), 1, np.empty(1))[0])

    @cached_property
    def center(self) -> Array:
        """Landmarks' mean, subtracted from points and landmarks, or 0 for kernels that depend on the origin.

        Dot-product kernels, and sums and products with these, are centered if the origin is far from all landmarks.
        """
        kernel = self.kernel
        found: Array = self.landmarks.mean(axis=0)
        about = kernel.stationary or (self.centered and kernel.mixes_origin)
        if not about and len(self.landmarks) > 1 and type(kernel) is not Linear:
            spread = np.abs(self.landmarks - found).max(axis=0)
            far = bool((np.abs(found) > FAR * spread).any())
            about = far and (of_products(kernel) or kernel.mixes_origin)
        return found if about else np.zeros_like(found)

    @cached_property
    def centered_landmarks(self) -> Array:
        """Landmarks minus the center, (p, d)."""
        found: Array = self.landmarks - self.center if self.center.any() else self.landmarks
        return found

    @cached_property
    def augmented(self) -> Array:
        """Matrix [-2 y, |y|^2, 1], (p, d + 2): one GEMM with [x, 1, |x|^2] computes squared distances."""
        y = self.centered_landmarks
        return np.column_stack([-2 * y, np.einsum("id,id->i", y, y), filled(len(y), 1, y)])

    @property
    def rate(self) -> float:
        """Factor of squared distances in the GEMM of `augmented`; a Gaussian's are its exponents."""
        return 0.5 * (self.kernel.proportional or 2.0)

    def distance_factors(self, points: Array, dtype: Any) -> tuple[Array, Array]:
        """Return factors (p, d + 2) and (d + 2, c) of |x - y|², for centered points (c, d).

        The last row of the second is |x|², the second to last column of the first |y|².
        """
        right = np.empty((len(points), points.shape[1] + 2), dtype, like=points)
        right[:, :-2], right[:, -2] = points, 1
        right[:, -1] = np.einsum("kd,kd->k", points, points)
        return self.augmented.astype(dtype, copy=False), right.T

    @cached_property
    def embedded(self) -> LandmarkBasis:
        """Inner kernel at the embedded landmarks, minus the center."""
        return self._of(self.kernel.inner, self.kernel.embedded(self.centered_landmarks))

    @cached_property
    def metric(self) -> LandmarkBasis:
        """Basis at landmarks y A Aᵀ, for gradients of a kernel in a metric."""
        kernel: Any = self.kernel
        return self._of(kernel.inner, self.embedded.landmarks @ np.asarray(kernel.rotated, like=self.landmarks))

    def _of(self, kernel: Kernel, landmarks: Array) -> LandmarkBasis:
        unchecked = object.__new__(LandmarkBasis)  # checked landmarks, possibly on a device
        return unchecked._set(kernel=kernel, landmarks=landmarks, centered=self.centered)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return _family(self.kernel)(self, block, any(a.kind == "gradient" or a.kind == "along" for a in atoms))

    def gradient_sum(self, out: Array, dtype: Any, workspace: Workspace) -> GradientSum | None:
        if of_distances(self.kernel):
            return RadialGradientSum(self.kernel, self.centered_landmarks, out, dtype, workspace)
        if of_products(self.kernel):
            return DotGradientSum(self.kernel, self.centered_landmarks, out, dtype, workspace)
        if isinstance(self.kernel, Mahalanobis) and of_distances(self.kernel.inner):
            return RadialGradientSum(self.kernel.inner, self.metric.centered_landmarks, out, dtype, workspace)
        return None

    def span_gradient(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array]:
        device = device if self.portable else HOST
        basis, there = device.moved(self), device.put(coefficients)
        return lambda x: np.asarray(device.get(_gradients(basis, there, device.put(x))))

    def condensed(self, coefficients: Array) -> tuple[Basis, Array]:
        if type(self.kernel) is not Linear or np.iscomplexobj(coefficients):
            return self, coefficients
        return self._of(self.kernel, coefficients.T @ self.landmarks), np.eye(coefficients.shape[1])


class _LandmarkEvaluation(Evaluation):
    """Values and partial derivatives of any kernel."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        self.basis, self.block = basis, block

    feature = cached(Evaluation.feature)

    @property
    def _pairs(self) -> tuple[Array, Array]:
        return self.block.x.astype(float, copy=False) - self.basis.center, self.basis.centered_landmarks

    @property
    def value(self) -> Array:
        return self.block.weighted(self.basis.kernel.values(*self._pairs))

    def along(self, direction: Array) -> Array:
        return self.block.weighted(self.basis.kernel.along(*self._pairs, direction))

    def partial(self, alpha: MultiIndex) -> Array:
        return self.block.weighted(self.basis.kernel.partial(*self._pairs, alpha))

    @cached
    def second(self, atom: Atom, block: Block) -> Array:
        matrix = None if atom.direction is None else block.field(atom.direction).astype(float, copy=False)
        return self.block.weighted(self.basis.kernel.second(*self._pairs, matrix))


class _ProfileEvaluation(_LandmarkEvaluation):
    """Kernel q(s) of one number s of two points, in panels that fit the cache."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool, slopes: bool):
        super().__init__(basis, block, gradient)
        self.shape = basis.size, len(block.x)
        self.s, self.q = block.buffer("s", self.shape), block.buffer("q", self.shape)
        self.t = block.buffer("t", self.shape) if slopes else None
        self.gradient, self._directions = gradient, 0

    @property
    def value(self) -> Array:
        return self.q

    def _panels(self) -> list[slice]:
        p, c = self.shape
        size = ACCELERATOR_PANEL_BYTES if self.block.workspace.device.accelerated else PANEL_BYTES
        rows = max(1, size // (max(c, 1) * self.block.dtype.itemsize))
        return [slice(i, min(i + rows, p)) for i in range(0, p, rows)]

    def _products(self, left: Array, right: Array) -> Iterator[slice]:
        """Yield the panels of s = left right."""
        wide = left.shape[1] > MANY_COLUMNS
        if wide:
            np.matmul(left, right, out=self.s)
        for panel in self._panels():
            if not wide:
                np.matmul(left[panel], right, out=self.s[panel])
            yield panel

    def _weigh(self, panel: slice) -> None:
        if self.block.scale is not None:
            scale = self.block.scale.astype(self.block.dtype, copy=False)
            self.q[panel] *= scale
            if self.t is not None:
                self.t[panel] *= scale

    def _along(self, y: Array, v: Array, offset: Array | None, t: Array) -> Array:
        """Return (y v + offset) o t for y (p, d), v (c, d) and offset (c,)."""
        out = self.block.buffer(f"along {self._directions}", self.shape)
        self._directions += 1
        np.matmul(y, np.ascontiguousarray(v.T, like=v), out=out)
        for panel in self._panels():
            part = out[panel]
            if offset is not None:
                part += offset
            part *= t[panel]
        return out


class _RadialEvaluation(_ProfileEvaluation):
    """Radial kernel: q and T = q'(r)/r."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        kernel = basis.kernel
        assert of_distances(kernel)
        ratio = kernel.proportional
        super().__init__(basis, block, gradient, slopes=gradient and ratio is None)
        self.kernel, self.points = kernel, block.x - basis.center
        left, right = basis.distance_factors(self.points, block.dtype)
        squares, norms, rate = right[-1], left[:, -2], basis.rate
        rounding = abs(rate) * float(np.finfo(block.dtype).eps) * (largest(squares) + largest(norms))
        exact, shared = kernel.smoothness < math.inf, block.shared
        if shared is not None and id(basis.landmarks) not in shared:
            shared[id(basis.landmarks)] = np.matmul(left, right, out=block.buffer("squares", self.shape))
        for panel in self._products(rate * left, right) if shared is None else self._panels():
            s, q = self.s[panel], self.q[panel]
            if shared is not None:
                np.multiply(shared[id(basis.landmarks)][panel], rate, out=s)
            if ratio is not None:  # s is the exponent
                if rounding > 1e-6:  # smaller excesses over 0 do no harm
                    np.minimum(s, 0, out=s)
                np.exp(s, out=q)
            else:
                touching = clean_distances(s, squares, norms[panel], exact=exact)
                if self.t is None:
                    kernel.profile(s, 0, q)
                else:
                    kernel.pair(s, q, self.t[panel], touching=touching)
            self._weigh(panel)
            if gradient:
                s *= q if self.t is None else self.t[panel]

    def weighted_distances(self) -> Array:
        """Return s o T / slope; for a Gaussian, exponent o q."""
        return self.s

    def along(self, direction: Array) -> Array:
        if not self.gradient:
            return super().along(direction)
        # T (x - y).v ; T is a multiple of q for the Gaussian
        dtype, kernel = self.block.dtype, self.kernel
        v = direction.astype(dtype, copy=False)
        t, slope = (self.q, kernel.proportional or 1.0) if self.t is None else (self.t, kernel.slope)
        offset = slope * np.einsum("kd,kd->k", self.points, v).astype(dtype, copy=False)
        return self._along(-slope * self.basis.centered_landmarks.astype(dtype, copy=False), v, offset, t)


class _DotEvaluation(_ProfileEvaluation):
    """Dot-product kernel: q(s) and q'(s) / slope, s = x.y."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        super().__init__(basis, block, gradient, slopes=gradient)
        kernel = basis.kernel
        assert of_products(kernel)
        self.kernel, dtype = kernel, block.dtype
        rate, offset = kernel.affine if gradient else (1.0, 0.0)
        points = block.x - basis.center if basis.center.any() else block.x
        left = basis.centered_landmarks if rate == 1 else rate * basis.centered_landmarks
        if offset:
            points = np.column_stack([points, filled(len(points), 1, points)])
            left = np.column_stack([left, filled(basis.size, offset, left)])
        points, left = (part.astype(dtype, copy=False) for part in (points, left))
        for panel in self._products(left, points.T):
            if self.t is None:
                kernel.profile(self.s[panel], 0, self.q[panel])
            else:
                kernel.pair(self.s[panel], self.q[panel], self.t[panel])
            self._weigh(panel)

    def along(self, direction: Array) -> Array:
        if self.t is None:
            return super().along(direction)
        y = (self.kernel.slope * self.basis.centered_landmarks).astype(self.block.dtype, copy=False)
        return self._along(y, direction.astype(self.block.dtype, copy=False), None, self.t)


class _EmbeddedEvaluation(_LandmarkEvaluation):
    """Kernel at embedded points; directions are mapped by the derivative of the embedding."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        super().__init__(basis, block, gradient)
        kernel: Any = basis.kernel
        self.kernel, self.points = kernel, kernel.embedded(block.x - basis.center)
        there = replace(block, fields={block.points: self.points})
        self.there = _family(kernel.inner)(basis.embedded, there, gradient)
        self.q, self.t, self.s = (getattr(self.there, name, None) for name in ("q", "t", "s"))

    def weighted_distances(self) -> Array:
        """Return s o T for s = |(x - y) A Aᵀ|²; for a Gaussian, times its rate."""
        basis, there = self.basis.metric, cast(_RadialEvaluation, self.there)
        points = self.points @ np.asarray(self.kernel.rotated, like=self.points) - basis.center
        left, right = basis.distance_factors(points, self.block.dtype)
        left, t = basis.rate * left, there.q if there.t is None else there.t
        for panel in there._panels():
            np.matmul(left[panel], right, out=there.s[panel])
            there.s[panel] *= t[panel]
        return there.s

    @property
    def value(self) -> Array:
        return self.there.value

    def along(self, direction: Array) -> Array:
        return self.there.along(self.kernel.pushforward(self.block.x - self.basis.center, direction))

    def partial(self, alpha: MultiIndex) -> Array:
        return Evaluation.partial(self, alpha) if sum(alpha) == 1 else super().partial(alpha)


def _family(kernel: Kernel) -> type[_LandmarkEvaluation]:
    if isinstance(kernel, EmbeddedKernel):
        return _EmbeddedEvaluation
    if of_distances(kernel):
        return _RadialEvaluation
    return _DotEvaluation if of_products(kernel) else _LandmarkEvaluation


class RadialGradientSum:
    """L = (M + Mᵀ)/2 - (Δ o G)/2 with M = (s o T) Tᵀ and G = T Tᵀ (Algorithm 3 by polarization)."""

    def __init__(self, kernel: ProfileKernel, landmarks: Array, out: Array, dtype: Any, workspace: Workspace):
        self.landmarks, self.ratio, self.slope = landmarks, kernel.proportional, kernel.slope
        self.m = ProductSum(workspace, out, dtype)  # replaced by L at the end
        self.g = None if self.ratio is not None else ProductSum(workspace, np.empty_like(out), dtype)

    def add(self, evaluation: Any) -> None:
        t = evaluation.q if self.ratio is not None else evaluation.t
        self.m.add(evaluation.weighted_distances(), t)
        if self.g is not None:
            self.g.add_square(t)

    def finish(self, gram: Array) -> None:
        y, m, g = self.landmarks, self.m.total, gram if self.g is None else self.g.total
        squares, unit, scale = np.einsum("id,id->i", y, y), 1.0, self.slope
        if self.ratio is not None:  # M was summed with exponents; convert to s
            unit, scale = 2 / self.ratio, self.ratio
        for rows, columns in upper_tiles(len(y)):  # reuse cached buffers: new pages cost more than the arithmetic
            delta = -2 * y[rows] @ y[columns].T
            delta += squares[rows, None] + squares[columns]
            np.maximum(delta, 0, out=delta)
            if rows.start == columns.start:
                delta.reshape(-1)[:: delta.shape[1] + 1] = 0  # the diagonal
            delta *= g[rows, columns]
            part = m[rows, columns] + m[columns, rows].T
            part *= unit
            part -= delta
            part *= 0.5 * scale**2
            m[rows, columns] = part
            m[columns, rows] = part.T


def upper_tiles(p: int) -> Iterator[tuple[slice, slice]]:
    """Yield tiles, rows and columns, of the upper triangle of a symmetric matrix (p, p)."""
    for start in range(0, p, TILE[0]):
        for left in range(start, p, TILE[1]):
            yield slice(start, start + TILE[0]), slice(left, left + TILE[1])


class DotGradientSum:
    """L = (q'(X) q'(X)^T) o (Y Y^T) (Algorithm 2)."""

    def __init__(self, kernel: ProfileKernel, landmarks: Array, out: Array, dtype: Any, workspace: Workspace):
        self.landmarks, self.g = kernel.slope * landmarks, ProductSum(workspace, out, dtype)

    def add(self, evaluation: Any) -> None:
        self.g.add_square(evaluation.t)

    def finish(self, gram: Array) -> None:
        total = self.g.total
        total *= self.landmarks @ self.landmarks.T


def _gradients(basis: LandmarkBasis, a: Array, x: Array) -> Array:
    """Return ∇f_j(x), (c, m, d), of f_j = Σ_i a_ij k(., y_i), a (p, m), in O(c p m d).

    Radial kernels, T = q'(r)/r (equation (23)): x Σ_i a_ij T_i(x) - Σ_i T_i(x) a_ij y_i; dot-product kernels (equation
    (24)): Σ_i q'(x.y_i) a_ij y_i; other kernels by their partial derivatives.
    """
    kernel, x, y = basis.kernel, x - basis.center, basis.centered_landmarks
    if isinstance(kernel, Mahalanobis):
        found: Array = _gradients(basis.embedded, a, kernel.embedded(x)) @ kernel.root.T
        return found
    if of_distances(kernel):
        t = 2 * kernel.profiled(kernel.argument(x, y), 1)
        return x[:, None] * (t.T @ a)[:, :, None] - _contracted(t, a, y)
    if of_products(kernel):
        return _contracted(kernel.profiled(kernel.argument(x, y), 1), a, y)
    partials = (kernel.partial(x, y, unit_index(axis, basis.dimension)) for axis in range(basis.dimension))
    return np.stack([partial.T @ a for partial in partials], axis=2)


def _contracted(t: Array, a: Array, y: Array) -> Array:
    """Return sum_i t_ik a_ij y_i, (c, m, d), as one product."""
    together = (a[:, :, None] * y[:, None]).reshape(len(a), -1)
    found: Array = (t.T @ together).reshape(-1, a.shape[1], y.shape[1])
    return found
