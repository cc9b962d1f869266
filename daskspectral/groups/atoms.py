"""The symmetries of a molecule's potential: rotations, reflections, and exchanges of identical atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from daskspectral.groups.base import Group
from daskspectral.groups.lie import FullOrthogonal
from daskspectral.manifolds import Isometry, KillingField

Array = NDArray[np.float64]


def jacobi_matrix(masses: Sequence[float]) -> Array:
    """A (N - 1, N): the mass-weighted Jacobi vectors A x of positions x (N, 3), unmoved by translations.

    Row k is √(mu_k) times the position of atom k + 1 less the centre of mass of the first k, with the reduced mass
    mu_k of both; A M⁻¹ Aᵀ = I, so that |A x|² = Σ_i m_i |x_i - centre|², the square of the hyperradius.

    Examples
    --------
    >>> jacobi_matrix([1, 1, 2])
    array([[-0.70710678,  0.70710678,  0.        ],
           [-0.5       , -0.5       ,  1.        ]])
    """
    m = np.asarray(masses, dtype=float)
    a = np.zeros((len(m) - 1, len(m)))
    for k in range(1, len(m)):
        total = m[:k].sum()
        root = np.sqrt(m[k] * total / (m[k] + total))
        a[k - 1, :k], a[k - 1, k] = -root * m[:k] / total, root
    return a


@final
@dataclass(frozen=True)
class MolecularSymmetry(Group):
    """O(3) and the permutations of atoms of the same species, on Jacobi coordinates of a molecule of N atoms.

    A row is the hyperradius |A x|, which nothing moves, and then the N - 1 Jacobi vectors A x (`jacobi_matrix`), or
    their direction: x -> P X R for a permutation P, in Jacobi vectors an orthogonal matrix, and a rotation or
    reflection R. `InvariantRegressor` so learns potentials, on the product of an interval and a sphere, that
    translations, rotations, reflections and exchanges leave as they are. `species` (N,) are any labels, by default the
    masses; atoms of one species have one mass. Raises ValueError for fewer than two atoms, masses that are not
    positive, and species of several masses.

    Examples
    --------
    >>> water = MolecularSymmetry([16, 1, 1])
    >>> water.dimension, len(water.generators), len(water.algebra)
    (7, 2, 2)
    """

    masses: tuple[float, ...]
    species: tuple[str, ...] | None = None

    def __init__(self, masses: Sequence[float], species: Sequence[str] | None = None):
        found = np.atleast_1d(np.asarray(masses, dtype=float))
        if found.ndim != 1 or len(found) < 2 or not (np.isfinite(found).all() and (found > 0).all()):
            raise ValueError(f"expected positive masses of two atoms or more, received {masses!r}")
        labels = [repr(m) for m in found.tolist()] if species is None else [str(s) for s in species]
        if len(labels) != len(found):
            raise ValueError(f"expected a species for each of {len(found)} atoms, received {len(labels)}")
        for label in sorted(set(labels)):
            own = {m for m, s in zip(found.tolist(), labels, strict=True) if s == label}
            if len(own) > 1:
                raise ValueError(f"atoms of one species have one mass; those of {label!r} have {sorted(own)}")
        object.__setattr__(self, "masses", tuple(found.tolist()))
        object.__setattr__(self, "species", None if species is None else tuple(labels))

    @property
    def dimension(self) -> int:
        return 3 * len(self.masses) - 2

    @property
    def generators(self) -> tuple[Isometry, ...]:
        a, inverse = jacobi_matrix(self.masses), 1 / np.array(self.masses)
        labels: tuple[float | str, ...] = self.masses if self.species is None else self.species
        last: dict[float | str, int] = {}
        found = list(FullOrthogonal(3, len(a)).generators)
        for i, label in enumerate(labels):
            if label in last:  # neighbouring swaps generate all permutations of a species
                swap = np.eye(len(labels))
                swap[[i, last[label]]] = swap[[last[label], i]]
                found.append(Isometry(np.kron(_rounded(a @ swap @ (inverse[:, None] * a.T)), np.eye(3))))
            last[label] = i
        return tuple(Isometry([[1.0]]).beside(g) for g in found)

    @property
    def algebra(self) -> tuple[KillingField, ...]:
        fields = FullOrthogonal(3, len(self.masses) - 1).algebra
        return tuple(KillingField([[0.0]]).beside(field) for field in fields)


def _rounded(matrix: Array) -> Array:
    """The nearest orthogonal matrix: squared, a swap is the identity to the last bit."""
    left, _, right = np.linalg.svd(matrix)
    return np.asarray(left @ right)
