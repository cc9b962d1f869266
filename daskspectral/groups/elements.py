"""The elements of a small finite group, listed from its generators: for averages, checks and baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.groups.base import Group
from daskspectral.manifolds import Isometry, Manifold

Array = NDArray[np.float64]
_SAME = 1e-6  # an entry: maps that differ by less are one element


def elements(group: Group, manifold: Manifold, most: int) -> list[Isometry] | None:
    """All elements of a group that acts on the manifold, the identity first, or None where there are more than `most`.

    Shifts that differ by vectors of the manifold's lattice are the same. Raises ValueError for a generator that is not
    an isometry of it.
    """
    group.check(manifold)
    if any(not field.trivial for field in group.algebra) or (group.order is not None and group.order > most):
        return None
    found = Elements(manifold.lattice, most)
    if not all(found.add(affine(g.matrix, g.shift)) for g in group.generators):
        return None
    return [Isometry(map_[:-1, :-1], map_[:-1, -1]) for map_ in found.maps]


def orthogonal_elements(generators: Array, most: int) -> Array | None:
    """All products of orthogonal matrices (k, d, d), the identity first, (n, d, d), or None for more than `most`."""
    d = generators.shape[1]
    found = Elements(np.zeros((0, d)), most)
    if any(_order(g, most) is None for g in generators):
        return None
    if not all(found.add(affine(g, np.zeros(d))) for g in generators):
        return None
    return np.ascontiguousarray(found.maps[:, :d, :d])


class Elements:
    """The elements that affine maps (d + 1, d + 1) generate, at most so many; shifts are modulo a lattice (r, d).

    By Dimino's algorithm: generator after generator, whole cosets of the group of the earlier ones at a time. Maps of
    which no entry differs by more than `same` are one element; each is looked up by one number.
    """

    def __init__(self, lattice: Array, most: int, same: float = _SAME):
        d = lattice.shape[1]
        self.generators: list[Array] = []
        """The maps that were added and are no products of those before."""
        self.count = 0
        self._lattice, self._fractions = lattice, np.linalg.pinv(lattice).astype(np.float64)
        self._most, self._same = most, same
        self._weights = np.random.default_rng(0).standard_normal(d * d + 2 * len(lattice))
        self._cosets: list[Array] = []
        self._cells: dict[int, list[Array]] = {}
        self._extend(np.eye(d + 1)[None])

    @property
    def maps(self) -> Array:
        """All elements found, (n, d + 1, d + 1), the identity first."""
        return np.concatenate(self._cosets)

    def add(self, g: Array) -> bool:
        """Add a generator and all products with it; whether no more than `most` elements were found."""
        if self.holds(g):
            return True
        self.generators.append(self._reduced(g[None])[0])
        subgroup, representatives = self.maps, [np.eye(len(g))]
        for r in representatives:
            for step in self.generators:
                product = r @ step
                if self.holds(product):
                    continue
                if self.count + len(subgroup) > self._most:
                    return False
                self._extend(self._reduced(subgroup @ product))
                representatives.append(self._reduced(product[None])[0])
        return True

    def holds(self, g: Array) -> bool:
        """Whether a map is among the elements."""
        signature = self._signature(g[None])
        (cell,) = self._cell(signature)
        near = (other for c in (cell - 1, cell, cell + 1) for other in self._cells.get(c, ()))
        return any(np.abs(other - signature).max() < self._same for other in near)

    def _extend(self, maps: Array) -> None:
        signatures = self._signature(maps)
        for signature, cell in zip(signatures, self._cell(signatures), strict=True):
            self._cells.setdefault(cell, []).append(signature)
        self._cosets.append(maps)
        self.count += len(maps)

    def _reduced(self, maps: Array) -> Array:
        """The maps with shifts as near to 0 as vectors of the lattice take them."""
        if len(self._lattice):
            maps = maps.copy()
            maps[:, :-1, -1] -= np.rint(maps[:, :-1, -1] @ self._fractions) @ self._lattice
        return maps

    def _signature(self, maps: Array) -> Array:
        """Numbers (n, d^2 + 2 r) that agree for two maps if and only if they are the same on the manifold."""
        entries = maps[:, :-1, :-1].reshape(len(maps), -1)
        if not len(self._lattice):
            return entries
        turn = 2 * np.pi * maps[:, :-1, -1] @ self._fractions
        return np.concatenate([entries, np.cos(turn), np.sin(turn)], axis=1)

    def _cell(self, signatures: Array) -> list[int]:
        """The cells of signatures on a line: those of one map lie in the same cell or in neighbours."""
        width = self._same * np.abs(self._weights).sum()
        cells: list[int] = np.floor(signatures @ self._weights / width).astype(np.int64).tolist()
        return cells


def affine(matrix: NDArray[Any], shift: Array) -> Array:
    """x -> A x + b as one matrix (d + 1, d + 1)."""
    return np.block([[matrix, shift[:, None]], [np.zeros(len(shift)), np.ones(1)]])


def _order(g: Array, most: int) -> int | None:
    """The order of an orthogonal matrix, from the angles of its eigenvalues; None above `most`, or if it has none."""
    turns = np.angle(np.linalg.eigvals(g)) / (2 * np.pi)
    multiples = np.outer(np.arange(1, most + 1), turns)
    whole = np.flatnonzero(np.abs(multiples - np.rint(multiples)).max(axis=1) < 1e-8)
    return int(whole[0]) + 1 if len(whole) else None
