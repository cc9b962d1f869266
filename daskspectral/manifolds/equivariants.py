"""Equivariant functions of one eigenspace, from the generators of a group and their matrices alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import connected_components

from daskspectral.manifolds.eigenspace import Eigenspace, Matrix, dense
from daskspectral.manifolds.invariants import fixed_by_products, null_space
from daskspectral.manifolds.isometry import Isometry, KillingField

Array = NDArray[np.floating[Any]]

MOST_DENSE = 2000
"""The largest tensor product of an eigenspace and a representation whose null space is computed from matrices."""

_STEPS = 192  # random elements of a projection: each halves the expected square of what is not equivariant
_COUPLED = 1e-13  # entries of D(g) above couple functions of a torus


@dataclass(frozen=True, eq=False)
class Pairs:
    """Generators g with their orthogonal matrices rho(g) (k, k), and elements X of the algebra with theirs, drho(X)."""

    isometries: Sequence[tuple[Isometry, Array]]
    algebra: Sequence[tuple[KillingField, Array]] = ()

    @property
    def moving(self) -> Pairs:
        """The pairs that move something."""
        isometries = [(g, rho) for g, rho in self.isometries if not (g.trivial and (rho == np.eye(len(rho))).all())]
        return Pairs(isometries, [(x, rho) for x, rho in self.algebra if not x.trivial or rho.any()])

    @property
    def joint(self) -> tuple[list[Isometry], list[KillingField]]:
        """Each pair as one isometry, or one field, of m + k coordinates."""
        isometries = [g.beside(Isometry(rho)) for g, rho in self.isometries]
        return isometries, [x.beside(KillingField(rho)) for x, rho in self.algebra]


def equivariant_coefficients(space: Eigenspace, pairs: Pairs, components: int) -> Matrix:
    """An orthonormal basis U (m k, r) of the matrices A (m, k), row by row, with f = Aᵀ φ equivariant.

    f(g x) = ρ(g) f(x) holds if and only if D(g) A ρ(g)ᵀ = A for every generator g, and dD(X) A + A drho(X)ᵀ = 0
    for every X of the algebra: coefficients are the vectors fixed by the tensor products of D(g) and ρ(g). On tori,
    where D(g) is sparse, they are found orbit by orbit of frequencies, and U is sparse; in eigenspaces with m k above
    `MOST_DENSE` by products with D of random elements (`fixed_by_products`), otherwise as a null space. `components` is
    k.

    Raises ValueError where no gap separates zero singular values from the others.

    Examples
    --------
    >>> from daskspectral.groups import Permutations
    >>> from daskspectral.manifolds import Sphere
    >>> pairs = Pairs([(g, g.matrix) for g in Permutations(3).generators])
    >>> equivariant_coefficients(Sphere(3).eigenfunctions(1), pairs, 3).shape  # x, and (s, s, s), s the sum
    (9, 2)
    """
    pairs = pairs.moving
    if not pairs.isometries and not pairs.algebra:
        return csr_array(eye_array(space.size * components))
    actions = [space.action(g) for g, _ in pairs.isometries]
    derived = [space.derived_action(field) for field, _ in pairs.algebra]
    together = [*actions, *derived]
    sparse = [action for action in together if isinstance(action, csr_array)]
    if len(sparse) == len(together):
        return _by_orbits(sparse, len(actions), pairs, components)
    if space.size * components > MOST_DENSE:
        return _fixed(space, pairs, components)
    return _null_space([dense(action) for action in together], len(actions), pairs)


def _fixed(space: Eigenspace, pairs: Pairs, k: int) -> Array:
    """The coefficients fixed by every pair, (m k, r), from products of D with blocks of vectors alone.

    An element and its matrix are one isometry of d + k coordinates, which takes A to D(h) A ρ(h)ᵀ.
    """
    m, d = space.size, space.ambient

    def moved(h: Isometry, x: Array) -> Array:
        turned = np.asarray(space.action(h.block(np.arange(d))) @ x.reshape(m, -1)).reshape(m, k, -1)
        return np.asarray(h.matrix[d:, d:] @ turned).reshape(m * k, -1)

    remedy = f"take fewer levels, whose eigenspaces times the {k} components of the output are at most {MOST_DENSE}"
    return fixed_by_products(m * k, moved, *pairs.joint, steps=_STEPS, remedy=remedy)


def _null_space(actions: Sequence[Array], count: int, pairs: Pairs) -> Array:
    """The null space of the first `count` matrices D(g), and of the others dD(X), in tensor products."""
    fixed = [np.kron(action, rho) for action, (_, rho) in zip(actions[:count], pairs.isometries, strict=True)]
    derived = []
    for action, (_, rho) in zip(actions[count:], pairs.algebra, strict=True):
        derived.append(np.kron(action, np.eye(len(rho))) + np.kron(np.eye(len(action)), rho))
    return null_space(fixed, derived)


def _by_orbits(actions: Sequence[csr_array], count: int, pairs: Pairs, k: int) -> csr_array:
    """The null space, one part for each set of functions that the sparse matrices mix with each other."""
    m = actions[0].shape[0]
    where = [action.tocoo() for action in actions]
    entries = np.concatenate([a.data for a in where])
    rows, columns = (np.concatenate([a.coords[axis] for a in where]) for axis in (0, 1))
    coupled = np.abs(entries) > _COUPLED
    graph = csr_array((np.ones(coupled.sum()), (rows[coupled], columns[coupled])), shape=(m, m))
    labels = connected_components(graph, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    parts: list[tuple[Array, Array, Array]] = []
    total = 0
    for members in np.split(order, np.cumsum(np.bincount(labels))[:-1]):
        own = [np.asarray(action[members][:, members].toarray()) for action in actions]
        vectors = _null_space(own, count, pairs)
        places = (members[:, None] * k + np.arange(k)).ravel()
        r = vectors.shape[1]
        parts.append((vectors.ravel(), np.repeat(places, r), np.tile(np.arange(total, total + r), len(places))))
        total += r
    entries, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    return csr_array((entries, (rows, columns)), shape=(m * k, total))
