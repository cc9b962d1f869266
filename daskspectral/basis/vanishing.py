"""Functions that vanish at the ends of the data: a basis times a function, by the product rule (Dirichlet ends)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.base import Array, Basis, GivenFunctions
from daskspectral.basis.edges import Edge
from daskspectral.basis.evaluation import VALUE, Block, ConcatenatedEvaluation, Evaluation, kept
from daskspectral.basis.landmark import LandmarkBasis, Landmarks
from daskspectral.forms import Atom, Field
from daskspectral.kernels.base import MultiIndex, unit_index
from daskspectral.registry import Parameterised
from daskspectral.validation import check_type

SLOPE = Field("gradient of the edge")


@dataclass(frozen=True, eq=False)
class Vanishing(Parameterised, Basis):
    """u_i = w φ_i for the functions φ of a basis and a function w that vanishes at the ends of the data.

    With them an operator has Dirichlet ends. `basis` is any basis, or `Landmarks`, which an estimator draws. `edge` is
    w: a `BoxEdge`, a `BallEdge`, or your own subclass of `Edge`, in the prepared columns. Estimators add no constant to
    it. Derivatives go up to the second order.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = np.random.default_rng(0).uniform(0, np.pi, (20_000, 1))
    >>> basis = Vanishing(Landmarks(dsp.kernels.Gaussian(1.0), 30), dsp.basis.BoxEdge(0, np.pi))
    >>> est = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0)
    >>> est.fit(x).eigenvalues_.round()
    array([ 1.,  4.,  9., 16.])
    """

    expects: ClassVar = {"basis": (Basis, Landmarks), "edge": Edge}

    basis: Basis | Landmarks
    edge: Edge

    def __post_init__(self) -> None:
        check_type("basis", self.basis, GivenFunctions, "one of daskspectral.basis, or Landmarks(...)")
        check_type("edge", self.edge, Edge, "a daskspectral.basis.Edge, such as BoxEdge(lower, upper)")
        d = None if self.open_landmarks is not None else self.inner.dimension
        if d is not None and self.edge.dimension not in (None, d):
            raise ValueError(f"{self.edge!r} has {self.edge.dimension} columns, and the functions have {d} variables")

    def of(self, basis: Basis | Landmarks) -> Vanishing:
        """The same function times another basis."""
        return replace(self, basis=basis)

    @property
    def open_landmarks(self) -> Landmarks | None:
        return self.basis.open_landmarks

    def placed(self, found: Any) -> Vanishing:
        return self.of(self.basis.placed(found))

    @property
    def inner(self) -> Basis:
        """The basis phi. Raises ValueError where it is still to be made."""
        if not isinstance(self.basis, Basis) or self.open_landmarks is not None:
            raise ValueError(
                "Vanishing(Landmarks(...), ...) is put at the landmarks by an estimator; by itself it has no "
                "functions: give it a basis, such as LandmarkBasis(kernel, points)"
            )
        return self.basis

    @property
    def landmark_parts(self) -> tuple[LandmarkBasis, ...]:
        return self.inner.landmark_parts

    @property
    def periodic(self) -> bool:
        return self.basis.periodic

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.edge, *self.basis.edges)

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def order(self) -> float:
        return min(self.inner.order, self.edge.order)

    @property
    def description(self) -> str:
        return f"{self.inner.description} times {self.edge!r}"

    @property
    def local(self) -> NDArray[np.bool_]:
        return self.inner.local

    @property
    def parts(self) -> tuple[Basis, ...]:
        parts = self.inner.parts
        return (self,) if len(parts) == 1 else tuple(self.of(part) for part in parts)

    def norm(self, gram: Array) -> Array:
        return self.inner.norm(gram)

    def remedy(self, order: int) -> str:
        if order > 2:
            return "Vanishing has derivatives up to the second order"
        if order > self.edge.order:
            return f"give {type(self.edge).__name__} the method {'gradient' if order == 1 else 'hessian'}"
        return self.inner.remedy(order)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        parts = self.parts
        if len(parts) == 1:
            return _VanishingEvaluation(self, block, atoms)
        return ConcatenatedEvaluation(tuple(part.at(block.part(str(i)), atoms) for i, part in enumerate(parts)))


class _VanishingEvaluation(Evaluation):
    """One block: the basis with the weights' roots times w, and by itself where derivatives of w come in."""

    def __init__(self, basis: Vanishing, block: Block, atoms: Sequence[Atom]):
        self.basis, self.inner, self.edge = basis, basis.inner, basis.edge
        self.x = np.asarray(block.x, dtype=float)
        self.w = self.edge.values(self.x)
        self.block = replace(block, shared={} if block.shared is None else block.shared)  # the distances
        scale = self.w if block.scale is None else self.w * block.scale
        self.scaled = self.inner.at(replace(self.block.part("edge"), scale=scale), atoms)

    @cached_property
    def slope(self) -> Array:
        """The gradient of w (c, d)."""
        return self.edge.gradient(self.x)

    @cached_property
    def bend(self) -> Array:
        """The second derivatives of w (c, d, d)."""
        return self.edge.hessian(self.x)

    @cached_property
    def plain(self) -> Evaluation:
        """phi without w."""
        return self.inner.at(self.block.part("plain"), [VALUE, Atom("along", direction=SLOPE)])

    feature = kept(Evaluation.feature)

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
        total = self._plus(scaled, self.bend[:, a, b])
        for axis, other in ((a, b), (b, a)):
            partial = self.plain.feature(Atom("partial", alpha=unit_index(other, self.x.shape[1])))
            total += partial * self.slope[:, axis].astype(partial.dtype, copy=False)
        return total

    def second(self, atom: Atom, block: Block) -> Array:
        d = self.x.shape[1]
        matrix = np.eye(d) if atom.direction is None else np.asarray(block.field(atom.direction), dtype=float)
        both = matrix + matrix.swapaxes(-1, -2)
        turned = self.plain.along(np.squeeze(both @ self.slope[:, :, None], axis=2))
        curved = np.sum(matrix * self.bend, axis=(1, 2))
        return self._plus(self.scaled.second(atom, block) + turned, curved)

    def _plus(self, scaled: Array, factors: Array) -> Array:
        """A new array: scaled + phi times factors (c,)."""
        phi = self.plain.feature(VALUE)
        return np.asarray(scaled + phi * factors.astype(phi.dtype, copy=False))
