"""Kernel functions at landmarks (Nystrom): phi_i = k(., y_i)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array, Basis, GradientSum
from daskspectral.basis.dirichlet import DotGradientSum, RadialGradientSum
from daskspectral.basis.evaluation import Arena, Block, Evaluation
from daskspectral.devices import largest
from daskspectral.forms import Atom, Field
from daskspectral.kernels import DotKernel, Kernel, Mahalanobis, RadialKernel
from daskspectral.kernels.embedded import EmbeddedKernel
from daskspectral.kernels.radial import clean_distances

PANEL_BYTES = 1 << 18  # of one buffer; the fastest of 64 kB to 256 kB with an L2 cache of 512 kB


@dataclass(frozen=True, eq=False)
class LandmarkBasis(Basis):
    """phi_i(x) = k(x, y_i) for landmarks y (p, d).

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian
    >>> basis = LandmarkBasis(Gaussian(1.0), np.array([[0.0], [1.0]]))
    >>> basis.values(np.array([[1.0]])).round(3)
    array([[0.607],
           [1.   ]])
    """

    expects: ClassVar = {"kernel": Kernel}

    kernel: Kernel
    landmarks: Array

    def __post_init__(self) -> None:
        kernel: Any = self.kernel
        if not isinstance(kernel, Kernel):
            raise TypeError(
                f"a LandmarkBasis takes a kernel of daskspectral.kernels, such as Gaussian(1.0); got {kernel!r}"
            )
        landmarks = np.ascontiguousarray(self.landmarks, dtype=float)
        if landmarks.ndim != 2:
            raise ValueError(f"landmarks are points (p, d); they have shape {landmarks.shape}")
        valid = np.isfinite(landmarks).all(axis=1)
        if not valid.all():
            row = int(np.argmin(valid))
            raise ValueError(
                f"landmarks must be finite; row {row} holds NaN or infinity: leave such rows out, "
                "landmarks[numpy.isfinite(landmarks).all(axis=1)]"
            )
        self.kernel.embedded(landmarks[:1])  # raises ValueError for another number of columns than it has periods
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
        return f"use a smoother kernel, such as {smoother}"

    @property
    def portable(self) -> bool:
        return self.kernel.portable

    @property
    def local(self) -> NDArray[np.bool_]:
        return np.full(self.size, isinstance(self.kernel.inner, RadialKernel))

    def norm(self, gram: Array) -> Array:
        return self.kernel.values(self.landmarks, self.landmarks)

    @property
    def slope_norm(self) -> float | None:
        kernel = self.kernel.inner
        if not isinstance(kernel, RadialKernel) or kernel.smoothness < 1 or isinstance(self.kernel, Mahalanobis):
            return None
        return -2.0 * float(kernel.profile(np.zeros(1), 1, np.empty(1))[0])

    @cached_property
    def centre(self) -> Array:
        """The landmarks' mean, subtracted from points and landmarks of a radial kernel."""
        if isinstance(self.kernel, RadialKernel):
            found: Array = self.landmarks.mean(axis=0)
            return found
        return np.zeros(self.dimension, like=self.landmarks)

    @cached_property
    def centred(self) -> Array:
        """Landmarks minus the centre, (p, d)."""
        found: Array = self.landmarks - self.centre
        return found

    @cached_property
    def augmented(self) -> Array:
        """[-2 y, |y|^2, 1], (p, d + 2): one GEMM with [x, 1, |x|^2] gives the squared distances."""
        y = self.centred
        return np.column_stack([-2 * y, np.einsum("id,id->i", y, y), np.ones(len(y), like=y)])

    @cached_property
    def embedded(self) -> LandmarkBasis:
        """The inner kernel at the embedded landmarks."""
        return self._of(self.kernel.inner, self.kernel.embedded(self.landmarks))

    @cached_property
    def metric(self) -> LandmarkBasis:
        """For a kernel in a metric: landmarks y A Aᵀ, whose products are those of its gradients."""
        kernel = self.kernel
        assert isinstance(kernel, Mahalanobis)
        return self._of(kernel.inner, self.embedded.landmarks @ np.asarray(kernel.root, like=self.landmarks).T)

    def _of(self, kernel: Kernel, landmarks: Array) -> LandmarkBasis:
        found = object.__new__(LandmarkBasis)  # these landmarks were checked, and may lie on a device
        object.__setattr__(found, "kernel", kernel)
        object.__setattr__(found, "landmarks", landmarks)
        return found

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        family = _family(self.kernel)
        return family(self, block, any(a.kind == "gradient" or a.kind == "along" for a in atoms))

    def gradient_sum(self, dtype: Any, arena: Arena) -> GradientSum | None:
        if isinstance(self.kernel, RadialKernel):
            return RadialGradientSum(self.kernel, self.centred, dtype, arena)
        if isinstance(self.kernel, DotKernel):
            return DotGradientSum(self.kernel, self.landmarks, dtype, arena)
        if isinstance(self.kernel, Mahalanobis) and isinstance(self.kernel.inner, RadialKernel):
            return RadialGradientSum(self.kernel.inner, self.metric.centred, dtype, arena)
        return None


class _LandmarkEvaluation(Evaluation):
    """Any kernel, through its own values and partial derivatives."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        self.basis, self.block = basis, block
        self._cache: dict[Atom, Array] = {}
        self._spare = 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.basis.size, len(self.block.x)

    def feature(self, atom: Atom) -> Array:
        atom = replace(atom, view="x")
        if atom not in self._cache:
            self._cache[atom] = self._compute(atom)
        return self._cache[atom]

    def second(self, atom: Atom, block: Block) -> Array:
        return self.feature(atom)

    def _compute(self, atom: Atom) -> Array:
        x, y, kernel = self.block.x.astype(float, copy=False), self.basis.landmarks, self.basis.kernel
        if atom.kind == "value":
            result = kernel.values(x, y)
        elif atom.kind == "along" and atom.direction is not None:
            result = kernel.along(x, y, self.block.field(atom.direction))
        elif atom.kind == "partial":
            result = kernel.partial(x, y, atom.alpha)
        elif atom.kind == "second":
            matrix = atom.direction
            result = kernel.second(x, y, None if matrix is None else self.block.field(matrix).astype(float, copy=False))
        else:
            raise ValueError("the gradient is a vector; its features are the partial derivatives")
        if self.block.scale is not None:
            result = result * self.block.scale
        return result.astype(self.block.dtype, copy=False)

    def _buffer(self, name: str) -> Array:
        return self.block.buffer(name, self.shape)

    def _panels(self) -> list[slice]:
        p, c = self.shape
        rows = max(1, PANEL_BYTES // (max(c, 1) * self.block.dtype.itemsize))
        return [slice(i, min(i + rows, p)) for i in range(0, p, rows)]


class _RadialEvaluation(_LandmarkEvaluation):
    """s, q and T = q'(r)/r of one block, in panels that stay in the cache."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        super().__init__(basis, block, gradient)
        kernel = basis.kernel
        assert isinstance(kernel, RadialKernel)
        dtype = block.dtype
        self.points = block.x - basis.centre
        left = basis.augmented.astype(dtype, copy=False)
        self.s, self.q = self._buffer("s"), self._buffer("q")
        self.t = self._buffer("t") if gradient and kernel.proportional is None else None
        self.gradient = gradient
        self._weighted = False
        ratio = kernel.proportional
        unit = 1.0 if ratio is None else 0.5 * ratio
        squares = self._distances(left, unit)
        rounding = abs(unit) * float(np.finfo(dtype).eps) * (largest(squares) + largest(left[:, -2]))
        exact = kernel.smoothness < math.inf
        for panel in self._panels():
            s, q = self.s[panel], self.q[panel]
            if ratio is not None:  # s is the exponent
                if rounding > 1e-6:  # smaller excesses over 0 do no harm
                    np.minimum(s, 0, out=s)
                np.exp(s, out=q)
            else:
                touching = clean_distances(s, squares, left[panel, -2], exact=exact)
                if self.t is None:
                    kernel.profile(s, 0, q)
                else:
                    kernel.pair(s, q, self.t[panel], touching=touching)
            if block.scale is not None:
                scale = block.scale.astype(dtype, copy=False)
                q *= scale
                if self.t is not None:
                    self.t[panel] *= scale

    def _distances(self, left: Array, unit: float) -> Array:
        """Fill `s` with unit times the squared distances, by one GEMM or from another basis of the same landmarks.

        Returns the squared norms of the points (c,).
        """
        block = self.block
        key = (id(self.basis.landmarks), block.points, block.dtype)
        if block.shared is not None and key in block.shared:
            pristine, squares = block.shared[key]
            np.multiply(pristine, unit, out=self.s)
            found: Array = squares
            return found
        right = np.empty((self.shape[1], self.basis.dimension + 2), block.dtype, like=self.points)
        right[:, :-2], right[:, -2] = self.points, 1
        right[:, -1] = np.einsum("kd,kd->k", self.points, self.points)
        if block.shared is None:
            np.matmul(unit * left, right.T, out=self.s)
        else:
            pristine = block.arena.get(f"shared {key}", self.shape, block.dtype)
            np.matmul(left, right.T, out=pristine)
            np.multiply(pristine, unit, out=self.s)
            block.shared[key] = pristine, right[:, -1]
        return right[:, -1]

    def weighted_distances(self, t: Array) -> Array:
        """s o T / slope, written over s, which nothing else needs after the features; for a Gaussian, exponent o q."""
        if not self._weighted:
            for panel in self._panels():
                self.s[panel] *= t[panel]
            self._weighted = True
        return self.s

    def _compute(self, atom: Atom) -> Array:
        if atom.kind == "value":
            return self.q
        if atom.kind != "along" or atom.direction is None or not self.gradient:
            return super()._compute(atom)
        # T (x - y).v ; T is a multiple of q for the Gaussian
        v = self.block.field(atom.direction)
        out = self._buffer(f"along {self._spare}")
        self._spare += 1
        v = v.astype(self.block.dtype, copy=False)
        kernel = self.basis.kernel
        assert isinstance(kernel, RadialKernel)
        t, slope = (self.q, kernel.proportional or 1.0) if self.t is None else (self.t, kernel.slope)
        y = self.basis.centred.astype(self.block.dtype, copy=False)
        np.matmul(-slope * y, np.ascontiguousarray(v.T, like=v), out=out)
        offset = slope * np.einsum("kd,kd->k", self.points, v).astype(self.block.dtype, copy=False)
        for panel in self._panels():
            o = out[panel]
            o += offset
            o *= t[panel]
        return out


class _DotEvaluation(_LandmarkEvaluation):
    """q(t) and q'(t) / slope of one block, t = x.y."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        super().__init__(basis, block, gradient)
        kernel = basis.kernel
        assert isinstance(kernel, DotKernel)
        dtype = block.dtype
        t, self.q = self._buffer("t"), self._buffer("q")
        self.dq = self._buffer("dq") if gradient else None
        points = np.ones((len(block.x), basis.dimension + 1), dtype, like=block.x)
        points[:, :-1] = block.x
        rate, offset = kernel.affine if gradient else (1.0, 0.0)
        left = np.column_stack([rate * basis.landmarks, np.full(basis.size, offset, like=basis.landmarks)])
        np.matmul(left.astype(dtype, copy=False), points.T, out=t)
        for panel in self._panels():
            if self.dq is None:
                kernel.profile(t[panel], 0, self.q[panel])
            else:
                kernel.pair(t[panel], self.q[panel], self.dq[panel])
            if block.scale is not None:
                scale = block.scale.astype(dtype, copy=False)
                self.q[panel] *= scale
                if self.dq is not None:
                    self.dq[panel] *= scale

    def _compute(self, atom: Atom) -> Array:
        if atom.kind == "value":
            return self.q
        if atom.kind != "along" or atom.direction is None or self.dq is None:
            return super()._compute(atom)
        v = self.block.field(atom.direction).astype(self.block.dtype, copy=False)
        out = self._buffer(f"along {self._spare}")
        self._spare += 1
        kernel = self.basis.kernel
        assert isinstance(kernel, DotKernel)
        y = (kernel.slope * self.basis.landmarks).astype(self.block.dtype, copy=False)
        np.matmul(y, np.ascontiguousarray(v.T, like=v), out=out)
        for panel in self._panels():
            out[panel] *= self.dq[panel]
        return out


class _EmbeddedEvaluation(_LandmarkEvaluation):
    """A kernel at points that are mapped; directions are carried there."""

    def __init__(self, basis: LandmarkBasis, block: Block, gradient: bool):
        super().__init__(basis, block, gradient)
        self.fields = {block.points: self.kernel.embedded(block.x)}
        there = replace(block, fields=self.fields)
        self.there = _family(self.kernel.inner)(basis.embedded, there, gradient)
        self.q, self.t, self.s = (getattr(self.there, name, None) for name in ("q", "t", "s"))

    @property
    def kernel(self) -> EmbeddedKernel:
        kernel = self.basis.kernel
        assert isinstance(kernel, EmbeddedKernel)
        return kernel

    def weighted_distances(self, t: Array) -> Array:
        """s o T for a kernel in a metric M = A Aᵀ, with s = |(x - y) M|²; of a Gaussian times its rate."""
        basis, kernel = self.basis.metric, self.kernel
        assert isinstance(kernel, Mahalanobis)
        assert isinstance(kernel.inner, RadialKernel)
        points = self.fields[self.block.points] @ np.asarray(kernel.root, like=t).T - basis.centre
        ratio = kernel.inner.proportional
        left = basis.augmented * (1.0 if ratio is None else 0.5 * ratio)
        right = np.column_stack([points, np.ones(len(points), like=t), np.einsum("kd,kd->k", points, points)])
        s = np.matmul(left.astype(t.dtype, copy=False), right.T.astype(t.dtype, copy=False), out=self.s)
        s *= t
        return np.asarray(s, like=t)

    def _compute(self, atom: Atom) -> Array:
        if atom.kind == "value":
            return self.there.feature(atom)
        if atom.kind == "along" and atom.direction is not None:
            direction = self.block.field(atom.direction)
        elif atom.kind == "partial" and atom.order == 1:
            direction = np.zeros_like(self.block.x, dtype=float)
            direction[:, atom.alpha.index(1)] = 1
        else:
            return super()._compute(atom)
        name = f"direction {len(self.fields)}"
        self.fields[name] = self.kernel.pushed(self.block.x, direction)
        return self.there.feature(Atom("along", direction=Field(name)))


def _family(kernel: Kernel) -> type[_LandmarkEvaluation]:
    if isinstance(kernel, EmbeddedKernel):
        return _EmbeddedEvaluation
    if isinstance(kernel, RadialKernel):
        return _RadialEvaluation
    return _DotEvaluation if isinstance(kernel, DotKernel) else _LandmarkEvaluation
