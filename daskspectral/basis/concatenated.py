"""The constant function, and concatenated bases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from daskspectral.basis.base import Array, Basis, Translation
from daskspectral.basis.boundary import Boundary
from daskspectral.basis.evaluation import Block, ConcatenatedEvaluation, Evaluation, evaluated
from daskspectral.basis.landmark import LandmarkBasis
from daskspectral.devices import filled
from daskspectral.errors import ParameterError
from daskspectral.forms import Atom
from daskspectral.manifolds.product import slices_of
from daskspectral.validation import is_sequence


@dataclass(frozen=True)
class ConstantBasis(Basis):
    """Basis of the constant function 1.

    Parameters
    ----------
    d : int
        Number of variables.

    See Also
    --------
    Concatenated : Several bases together.

    Examples
    --------
    >>> ConstantBasis(3).values(np.zeros((2, 3)))
    array([[1., 1.]])
    """

    size = 1
    order = math.inf
    description = "the constant"
    holds_constant = True
    leads_with_constant = True
    slope_norm = 0.0
    portable = True

    d: int

    @property
    def dimension(self) -> int:
        return self.d

    def translated(self, delta: Array) -> Translation:
        return Translation.identity(self)

    def norm(self, gram: Array) -> Array:
        return np.zeros((1, 1))

    def is_zero(self, atom: Atom) -> bool:
        return all(leaf.order > 0 for leaf in atom.leaves)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        ones = filled(len(block.x), 1, block.x, block.dtype)
        return _ConstantEvaluation(block.weighted(ones)[None])


@dataclass(frozen=True)
class _ConstantEvaluation(Evaluation):
    ones: Array

    def feature(self, atom: Atom) -> Array:
        return self.ones if atom.order == 0 else np.zeros_like(self.ones)


@dataclass(frozen=True, eq=False)
class Concatenated(Basis):
    """Several bases of functions of the same variables as one, with p = p_1 + p_2 + ...

    Parameters
    ----------
    bases : tuple of Basis
        Bases with the same number of variables d.

    See Also
    --------
    ConstantBasis : The function 1.

    Examples
    --------
    >>> from daskspectral.basis import MonomialBasis
    >>> basis = Concatenated((ConstantBasis(1), MonomialBasis(1, 2, constant=False)))
    >>> basis.values(np.array([[3.0]])).ravel()
    array([1., 3., 9.])
    """

    expects: ClassVar = {"bases": Basis}
    portable = True  # each part on the device if it can be

    bases: tuple[Basis, ...]

    def __post_init__(self) -> None:
        bases: Any = self.bases
        good = is_sequence(bases) and bases and all(isinstance(b, Basis) for b in bases)
        if not good or len({b.dimension for b in bases}) > 1:
            raise ParameterError("bases", "a tuple of bases with the same number of variables", bases)
        self._set(bases=tuple(bases))

    @property
    def parts(self) -> tuple[Basis, ...]:
        return self.bases

    @property
    def size(self) -> int:
        return sum(b.size for b in self.bases)

    @property
    def dimension(self) -> int:
        return self.bases[0].dimension

    @property
    def order(self) -> float:
        return min(b.order for b in self.bases)

    @property
    def description(self) -> str:
        return " with ".join(b.description for b in self.bases)

    @property
    def local(self) -> NDArray[np.bool_]:
        return np.concatenate([b.local for b in self.bases])

    @property
    def holds_constant(self) -> bool:
        return any(b.holds_constant for b in self.bases)

    def in_units(self, units: Array) -> Basis:
        return Concatenated(tuple(b.in_units(units) for b in self.bases))

    def translated(self, delta: Array) -> Translation | None:
        found = [b.translated(delta) for b in self.bases]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found):
            return None
        matrix, constant = (
            block_diag(*(part.matrix for part in parts)),
            np.concatenate([part.constant for part in parts]),
        )
        places = np.cumsum([0, *(b.size for b in self.bases)])
        ones = [k for k, b in zip(places, self.bases, strict=False) if b.leads_with_constant]
        if ones:
            matrix[:, ones[0]] += constant
            constant = np.zeros_like(constant)
        return Translation(Concatenated(tuple(part.basis for part in parts)), matrix, constant)

    def norm(self, gram: Array) -> Array:
        own = slices_of(b.size for b in self.bases)
        return np.asarray(block_diag(*(b.norm(gram[i, i]) for b, i in zip(self.bases, own, strict=True))))

    @property
    def slope_norm(self) -> float | None:
        parts = [b.slope_norm for b in self.bases]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    @property
    def periodic(self) -> bool:
        return any(b.periodic for b in self.bases)

    @property
    def landmark_parts(self) -> tuple[LandmarkBasis, ...]:
        return tuple(part for b in self.bases for part in b.landmark_parts)

    @property
    def vanishes(self) -> bool:
        return all(b.vanishes for b in self.bases)

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        return tuple(boundary for b in self.bases for boundary in b.boundaries)

    def condensed(self, coefficients: Array) -> tuple[Basis, Array]:
        own = slices_of(b.size for b in self.bases)
        parts = [b.condensed(coefficients[i]) for b, i in zip(self.bases, own, strict=True)]
        return Concatenated(tuple(b for b, _ in parts)), np.vstack([c for _, c in parts])

    def is_zero(self, atom: Atom) -> bool:
        return all(b.is_zero(atom) for b in self.bases)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return ConcatenatedEvaluation(tuple(evaluated(b, block.part(str(i)), atoms) for i, b in enumerate(self.bases)))
