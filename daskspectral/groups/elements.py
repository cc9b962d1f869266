"""The elements of a finite group of orthogonal matrices, listed from its generators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SAME = 1e-6  # an entry: matrices that differ by less are one element


def orthogonal_elements(generators: Array, most: int) -> Array | None:
    """Return all products of orthogonal matrices (k, d, d), the identity first; None for more than `most`."""
    if any(_order(g, most) is None for g in generators):
        return None
    found = _Elements(generators.shape[1], most)
    return np.concatenate(found.cosets) if all(found.add(g) for g in generators) else None


class _Elements:
    """The elements that orthogonal matrices (d, d) generate, at most `most` of them.

    By Dimino's algorithm: generator after generator, whole cosets of the group of the earlier ones at a time. Elements
    are looked up by a random linear combination of their entries.
    """

    def __init__(self, d: int, most: int):
        self.generators: list[Array] = []
        self.cosets: list[Array] = []
        self._most = most
        self._weights = np.random.default_rng(0).standard_normal(d * d)
        self._cells: dict[int, list[Array]] = {}
        self._extend(np.eye(d)[None])

    def add(self, g: Array) -> bool:
        """Add a generator and all products with it; return whether there are no more than `most` elements."""
        if self.holds(g):
            return True
        self.generators.append(g)
        subgroup, representatives = np.concatenate(self.cosets), [np.eye(len(g))]
        for r in representatives:
            for step in self.generators:
                product = r @ step
                if self.holds(product):
                    continue
                if sum(map(len, self.cosets)) + len(subgroup) > self._most:
                    return False
                self._extend(subgroup @ product)
                representatives.append(product)
        return True

    def holds(self, g: Array) -> bool:
        """Return whether a matrix is among the elements."""
        (cell,) = self._cell(g[None])
        near = (other for c in (cell - 1, cell, cell + 1) for other in self._cells.get(c, ()))
        return any(np.abs(other - g).max() < _SAME for other in near)

    def _extend(self, matrices: Array) -> None:
        for matrix, cell in zip(matrices, self._cell(matrices), strict=True):
            self._cells.setdefault(cell, []).append(matrix)
        self.cosets.append(matrices)

    def _cell(self, matrices: Array) -> list[int]:
        """The cells of matrices on a line: those of one element lie in the same cell or in neighbors."""
        width = _SAME * np.abs(self._weights).sum()
        cells: list[int] = np.floor(matrices.reshape(len(matrices), -1) @ self._weights / width).astype(int).tolist()
        return cells


def _order(g: Array, most: int) -> int | None:
    """The order of an orthogonal matrix, from the angles of its eigenvalues; None above `most`, or if it has none."""
    turns = np.angle(np.linalg.eigvals(g)) / (2 * np.pi)
    multiples = np.outer(np.arange(1, most + 1), turns)
    whole = np.flatnonzero(np.abs(multiples - np.rint(multiples)).max(axis=1) < 1e-8)
    return int(whole[0]) + 1 if len(whole) else None
