"""Dirichlet boundary conditions: functions times a boundary function, by the product rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array, Basis
from daskspectral.basis.boundary import Boundary
from daskspectral.basis.concatenated import Concatenated, ConstantBasis
from daskspectral.basis.evaluation import VALUE, Block, ConcatenatedEvaluation, Evaluation, cached
from daskspectral.basis.landmark import LandmarkBasis
from daskspectral.basis.nystrom import Landmarks
from daskspectral.basis.recipe import BasisRecipe, Sample
from daskspectral.forms import Atom, Field
from daskspectral.kernels.base import MultiIndex, unit_index
from daskspectral.registry import Parameterized
from daskspectral.validation import check_type

SLOPE = Field("gradient of the boundary function")


@dataclass(frozen=True, eq=False)
class DirichletBasis(Parameterized, BasisRecipe):
    """Recipe of functions times a boundary function, 0 at the boundary of the data; no constant is added.

    Parameters
    ----------
    basis : BasisRecipe
        Functions, such as `MonomialBasis(d, 8)` or `Landmarks()`.
    boundary : Boundary
        Factor, such as a `BoxBoundary`, in the prepared columns.

    See Also
    --------
    BoxBoundary : A box.
    BallBoundary : A ball.
    DirichletFunctions : The basis that a fit builds.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 30)
    >>> basis = DirichletBasis(landmarks, dsp.basis.BoxBoundary(0, np.pi))
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0)
    >>> est.fit(x).eigenvalues_.round()
    array([ 1.,  4.,  9., 16.])
    """

    expects: ClassVar = {"basis": BasisRecipe, "boundary": Boundary}

    basis: BasisRecipe
    boundary: Boundary

    def __post_init__(self) -> None:
        check_type("basis", self.basis, BasisRecipe, "one of daskspectral.basis")
        check_type("boundary", self.boundary, Boundary, "such as daskspectral.basis.BoxBoundary(lower, upper)")
        if self.basis.trained:
            raise ValueError("networks are trained without a boundary function. Pass DirichletBasis a trained basis_.")
        if isinstance(self.basis, Basis):
            DirichletFunctions(self.basis, self.boundary)  # raises an error for incompatible dimensions

    @property
    def landmark_recipe(self) -> Landmarks | None:
        return self.basis.landmark_recipe

    def with_landmarks(self, landmarks: Landmarks) -> DirichletBasis:
        return replace(self, basis=self.basis.with_landmarks(landmarks))

    def finished(self, basis: Basis) -> Basis:
        return DirichletFunctions(self.basis.finished(basis), self.boundary)

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        return self.basis.cost(operator, dimension, n_rows)

    def probe(self, sample: Sample) -> Basis:
        return DirichletFunctions(self.basis.probe(sample), self.boundary)

    def resolved(self, sample: Sample, rng: np.random.Generator) -> DirichletBasis:
        return replace(self, basis=self.basis.resolved(sample, rng))

    def build(self, sample: Sample, rng: np.random.Generator) -> Basis:
        return DirichletFunctions(self.basis.build(sample, rng), self.boundary)

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        return (self.boundary, *self.basis.boundaries)

    @property
    def periodic(self) -> bool:
        return self.basis.periodic


@dataclass(frozen=True, eq=False)
class DirichletFunctions(Basis):
    """Functions u_i = w φ_i of a basis φ and a boundary function w, with derivatives up to the second order.

    Parameters
    ----------
    inner : Basis
        Basis φ of p functions.
    boundary : Boundary
        Boundary function w.

    See Also
    --------
    DirichletBasis : Construction from the data.

    Examples
    --------
    >>> from daskspectral.basis import BoxBoundary, MonomialBasis
    >>> basis = DirichletFunctions(MonomialBasis(1, 1), BoxBoundary(0, 2))
    >>> basis.values(np.array([[0.0], [0.5]]))
    array([[0.   , 0.75 ],
           [0.   , 0.375]])
    """

    expects: ClassVar = {"inner": Basis, "boundary": Boundary}

    inner: Basis
    boundary: Boundary

    def __post_init__(self) -> None:
        check_type("basis", self.inner, Basis, "one of daskspectral.basis")
        check_type("boundary", self.boundary, Boundary, "such as daskspectral.basis.BoxBoundary(lower, upper)")
        d = self.inner.dimension
        if self.boundary.dimension not in (None, d):
            raise ValueError(f"{self.boundary!r} has {self.boundary.dimension} columns, but the functions have {d}.")

    @property
    def landmark_parts(self) -> tuple[LandmarkBasis, ...]:
        return self.inner.landmark_parts

    @property
    def periodic(self) -> bool:
        return self.inner.periodic

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        return (self.boundary, *self.inner.boundaries)

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def order(self) -> float:
        return min(self.inner.order, self.boundary.order)

    @property
    def description(self) -> str:
        return f"{self.inner.description} times {self.boundary!r}"

    @property
    def local(self) -> NDArray[np.bool_]:
        return self.inner.local

    @property
    def parts(self) -> tuple[Basis, ...]:
        parts = self.inner.parts
        return (self,) if len(parts) == 1 else tuple(replace(self, inner=part) for part in parts)

    def norm(self, gram: Array) -> Array:
        return self.inner.norm(gram)

    def remedy(self, order: int) -> str:
        if order > 2:
            return "Functions times a boundary function have derivatives up to the second order."
        if order > self.boundary.order:
            return f"Define the {'gradient' if order == 1 else 'hessian'} of {type(self.boundary).__name__}."
        return self.inner.remedy(order)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        parts = self.parts
        if len(parts) == 1:
            return _DirichletEvaluation(self, block, atoms)
        return ConcatenatedEvaluation(tuple(part.at(block.part(str(i)), atoms) for i, part in enumerate(parts)))


class _DirichletEvaluation(Evaluation):
    """Evaluation of the functions w φ_i on one block."""

    def __init__(self, basis: DirichletFunctions, block: Block, atoms: Sequence[Atom]):
        self.basis, self.inner, self.boundary = basis, basis.inner, basis.boundary
        self.x = np.asarray(block.x, dtype=float)
        self.w = self.boundary.values(self.x)
        self.block = replace(block, shared={} if block.shared is None else block.shared)  # distances
        scale = self.w if block.scale is None else self.w * block.scale
        self.scaled = self.inner.at(replace(self.block.part("boundary"), scale=scale), atoms)

    @cached_property
    def slope(self) -> Array:
        return self.boundary.gradient(self.x)

    @cached_property
    def hessian(self) -> Array:
        return self.boundary.hessian(self.x)

    @cached_property
    def plain(self) -> Evaluation:
        return self.inner.at(self.block.part("plain"), [VALUE, Atom("along", direction=SLOPE)])

    feature = cached(Evaluation.feature)

    @property
    def value(self) -> Array:
        return self.scaled.feature(VALUE)

    def along(self, direction: Array) -> Array:
        return self._plus(self.scaled.along(direction), np.einsum("kd,kd->k", direction, self.slope))

    def partial(self, alpha: MultiIndex) -> Array:
        scaled = self.scaled.feature(Atom("partial", alpha=alpha))
        axes = [axis for axis, count in enumerate(alpha) for _ in range(count)]
        if len(axes) == 1:
            return self._plus(scaled, self.slope[:, axes[0]])
        a, b = axes
        total = self._plus(scaled, self.hessian[:, a, b])
        for axis, other in ((a, b), (b, a)):
            partial = self.plain.feature(Atom("partial", alpha=unit_index(other, self.x.shape[1])))
            total += partial * self.slope[:, axis].astype(partial.dtype, copy=False)
        return total

    def second(self, atom: Atom, block: Block) -> Array:
        d = self.x.shape[1]
        matrix = np.eye(d) if atom.direction is None else np.asarray(block.field(atom.direction), dtype=float)
        both = matrix + matrix.swapaxes(-1, -2)
        turned = self.plain.along(np.squeeze(both @ self.slope[:, :, None], axis=2))
        curved = np.sum(matrix * self.hessian, axis=(1, 2))
        return self._plus(self.scaled.second(atom, block) + turned, curved)

    def _plus(self, scaled: Array, factors: Array) -> Array:
        phi = self.plain.feature(VALUE)
        return np.asarray(scaled + phi * factors.astype(phi.dtype, copy=False))


# -- outside of sets ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SetDistances(Boundary):
    """Function of the distances (s,) of points from sets, which are domains of boundary functions."""

    sets: tuple[Boundary, ...]
    expects: ClassVar = {"sets": Boundary}

    @property
    def dimension(self) -> int | None:
        return next((boundary.dimension for boundary in self.sets if boundary.dimension is not None), None)

    @property
    def order(self) -> int:
        return min(boundary.order for boundary in self.sets)

    def outside(self, x: Array) -> NDArray[np.bool_]:
        return np.zeros(len(x), bool)

    def _depths(self, x: Array) -> Array:
        """Return the distances (c, s) of points from the sets, 0 inside."""
        return np.maximum(-np.stack([boundary.values(x) for boundary in self.sets], axis=1), 0)

    def _gradients(self, x: Array) -> Array:
        return self._beyond(x, [boundary.gradient(x) for boundary in self.sets])

    def _hessians(self, x: Array) -> Array:
        return self._beyond(x, [boundary.hessian(x) for boundary in self.sets])

    def _beyond(self, x: Array, derivatives: list[Array]) -> Array:
        out = (self._depths(x) > 0).all(axis=1)
        return np.stack([-found * out.reshape(-1, *[1] * (found.ndim - 1)) for found in derivatives], axis=1)


class _DistanceProduct(_SetDistances):
    """Product of the distances: 0 in every set."""

    def values(self, x: Array) -> Array:
        return np.asarray(self._depths(x).prod(axis=1))

    def gradient(self, x: Array) -> Array:
        return np.asarray(np.einsum("cs,csd->cd", self._others(x), self._gradients(x)))

    def hessian(self, x: Array) -> Array:
        found: Array = np.einsum("cs,csij->cij", self._others(x), self._hessians(x))
        slopes = self._gradients(x)
        if len(self.sets) > 1:
            cross = np.einsum("ci,cj->cij", slopes[:, 0], slopes[:, 1])
            found += cross + cross.swapaxes(1, 2)
        return found

    def _others(self, x: Array) -> Array:
        depths = self._depths(x)
        return depths[:, ::-1] if len(self.sets) > 1 else np.ones_like(depths)


class _InitialGuess(_SetDistances):
    """Initial guess a / (a + b) for distances a, b from two sets: 0 in one, 1 in the other."""

    def values(self, x: Array) -> Array:
        a, b = self._depths(x).T
        if not (a + b > 0).all():
            raise ValueError(f"sets a and b must be disjoint, got the common point {x[np.argmin(a + b)]}.")
        return np.asarray(a / (a + b))

    def gradient(self, x: Array) -> Array:
        slopes, u = self._gradients(x), self.values(x)[:, None]
        return np.asarray((slopes[:, 0] - u * slopes.sum(axis=1)) / self._depths(x).sum(axis=1)[:, None])

    def hessian(self, x: Array) -> Array:
        bends, u = self._hessians(x), self.values(x)[:, None, None]
        cross = np.einsum("ci,cj->cij", self.gradient(x), self._gradients(x).sum(axis=1))
        above = bends[:, 0] - u * bends.sum(axis=1) - cross - cross.swapaxes(1, 2)
        return np.asarray(above / self._depths(x).sum(axis=1)[:, None, None])


def vanishing_in(sets: tuple[Boundary, ...], basis: Basis) -> Basis:
    """Return a basis that vanishes in the sets, with the initial guess if there are two."""
    vanishing = DirichletFunctions(basis, _DistanceProduct(sets))
    if len(sets) == 1:
        return vanishing
    return Concatenated((vanishing, DirichletFunctions(ConstantBasis(basis.dimension), _InitialGuess(sets))))
