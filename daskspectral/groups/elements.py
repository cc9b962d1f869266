"""The elements of a small finite group, listed from its generators: for averages, checks and baselines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskspectral.groups.base import Group
from daskspectral.manifolds import Isometry, Manifold

Array = NDArray[np.float64]
_SAME = 1e-6  # an entry: maps that differ by less are one element


def elements(group: Group, manifold: Manifold, most: int) -> list[Isometry] | None:
    """All elements of a group that acts on the manifold, the identity first, or None where there are more than `most`.

    Products of generators are taken breadth first until nothing is new; shifts that differ by vectors of the
    manifold's lattice are the same. Raises ValueError for a generator that is not an isometry of it.
    """
    group.check(manifold)
    if any(not field.trivial for field in group.algebra) or (group.order is not None and group.order > most):
        return None
    lattice, generators = manifold.lattice, group.generators
    fractions: Array = np.linalg.pinv(lattice).astype(np.float64)  # x @ fractions: x in the lattice's vectors
    weights = np.random.default_rng(0).standard_normal(group.dimension**2 + 2 * len(lattice))
    found = [Isometry(np.eye(group.dimension))]
    signatures = [_signature(found[0], fractions)]
    cells: dict[int, list[int]] = {_cell(signatures[0], weights): [0]}
    reached = 0
    while reached < len(found):
        for g in generators:
            product = g @ found[reached]
            product = Isometry(product.matrix, product.shift - np.rint(product.shift @ fractions) @ lattice)
            signature = _signature(product, fractions)
            cell = _cell(signature, weights)
            near = [i for c in (cell - 1, cell, cell + 1) for i in cells.get(c, ())]
            if any(np.abs(signatures[i] - signature).max() < _SAME for i in near):
                continue
            if len(found) == most:
                return None
            cells.setdefault(cell, []).append(len(found))
            found.append(product)
            signatures.append(signature)
        reached += 1
    return found


def _signature(g: Isometry, fractions: Array) -> Array:
    """Numbers (d^2 + 2 r,) that agree for two maps if and only if the maps are the same on the manifold."""
    turn = 2 * np.pi * g.shift @ fractions
    return np.concatenate([g.matrix.ravel(), np.cos(turn), np.sin(turn)])


def _cell(signature: Array, weights: Array) -> int:
    """The cell of a signature on a line; signatures of one map lie in the same cell or in neighbours."""
    return int(np.floor(signature @ weights / (_SAME * np.abs(weights).sum())))


def orthogonal_elements(generators: Array, most: int) -> Array | None:
    """All products of orthogonal matrices (k, d, d), the identity first, (n, d, d), or None for more than `most`.

    By Dimino's algorithm: generator after generator, whole cosets of the group of the earlier ones at a time.
    """
    d = generators.shape[1]
    orders = [_order(g, most) for g in generators]
    if None in orders:
        return None
    known = _Known(d)
    known.add(np.eye(d)[None])
    for last, g in enumerate(generators):
        if known.holds(g):
            continue
        subgroup = known.elements()
        representatives = [np.eye(d)]
        for r in representatives:
            for step in generators[: last + 1]:
                product = r @ step
                if known.holds(product):
                    continue
                if known.count + len(subgroup) > most:
                    return None
                known.add(subgroup @ product)
                representatives.append(product)
    return known.elements()


class _Known:
    """Matrices of which those that differ by less than 1e-6 an entry are one; each is looked up by one number."""

    def __init__(self, d: int):
        self.weights = np.random.default_rng(0).standard_normal(d * d)
        self.blocks: list[Array] = []
        self.cells: dict[int, list[tuple[int, int]]] = {}
        self.count = 0

    def add(self, matrices: Array) -> None:
        """Add matrices (n, d, d) that are not among them."""
        for row, matrix in enumerate(matrices):
            self.cells.setdefault(_cell(matrix.ravel(), self.weights), []).append((len(self.blocks), row))
        self.blocks.append(matrices)
        self.count += len(matrices)

    def holds(self, matrix: Array) -> bool:
        """Whether a matrix is among them."""
        cell = _cell(matrix.ravel(), self.weights)
        near = (self.blocks[b][row] for c in (cell - 1, cell, cell + 1) for b, row in self.cells.get(c, ()))
        return any(np.abs(other - matrix).max() < _SAME for other in near)

    def elements(self) -> Array:
        """All of them, (n, d, d)."""
        return np.concatenate(self.blocks)


def _order(g: Array, most: int) -> int | None:
    """The order of an orthogonal matrix, from the angles of its eigenvalues; None above `most`, or if it has none."""
    turns = np.angle(np.linalg.eigvals(g)) / (2 * np.pi)
    multiples = np.outer(np.arange(1, most + 1), turns)
    whole = np.flatnonzero(np.abs(multiples - np.rint(multiples)).max(axis=1) < 1e-8)
    return int(whole[0]) + 1 if len(whole) else None
