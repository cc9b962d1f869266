"""The elements of a small finite group, listed from its generators: for baselines that visit every one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskspectral.groups.base import Group
from daskspectral.manifolds import Box, Isometry, Manifold, Product

Array = NDArray[np.float64]
_SAME = 1e-6  # an entry: maps that differ by less are one element


def elements(group: Group, manifold: Manifold, most: int) -> list[Isometry] | None:
    """All elements of a group that acts on the manifold, the identity first, or None where there are more than `most`.

    Products of generators are taken breadth first until nothing is new; shifts that differ by periods of the manifold
    are the same. Raises ValueError for a generator that is not an isometry of it.
    """
    group.check(manifold)
    if group.order is not None and group.order > most:
        return None
    periods, generators = _periods(manifold), group.generators
    weights = np.random.default_rng(0).standard_normal(group.dimension * (group.dimension + 2))
    found = [Isometry(np.eye(group.dimension))]
    signatures = [_signature(found[0], periods)]
    cells: dict[int, list[int]] = {_cell(signatures[0], weights): [0]}
    reached = 0
    while reached < len(found):
        for g in generators:
            product = g @ found[reached]
            product = Isometry(product.matrix, _wrapped(product.shift, periods))
            signature = _signature(product, periods)
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


def _periods(manifold: Manifold) -> Array:
    """The period of each coordinate, infinite where it has none."""
    if isinstance(manifold, Box):
        return manifold.lengths
    if isinstance(manifold, Product):
        return np.concatenate([_periods(manifold.first), _periods(manifold.second)])
    return np.full(manifold.ambient, np.inf)


def _wrapped(shift: Array, periods: Array) -> Array:
    whole = np.isfinite(periods)
    return np.asarray(np.where(whole, shift - np.where(whole, periods, 0) * np.rint(shift / periods), shift))


def _signature(g: Isometry, periods: Array) -> Array:
    """Numbers (d (d + 2),) that agree for two maps if and only if the maps are the same on the manifold."""
    turn = 2 * np.pi * g.shift / periods
    return np.concatenate([g.matrix.ravel(), np.cos(turn), np.sin(turn)])


def _cell(signature: Array, weights: Array) -> int:
    """The cell of a signature on a line; signatures of one map lie in the same cell or in neighbours."""
    return int(np.floor(signature @ weights / (_SAME * np.abs(weights).sum())))
