"""Orbits of functions that isometries permute, up to phases: what is invariant is read off them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from daskspectral.manifolds.spectrum import Floats, Integers

Move = tuple[Integers, Floats]
"""Where each of n functions goes, (n,), and by which phase it is multiplied there, (n,)."""

_TRIVIAL = 1e-11  # a phase below this, gathered around a cycle of functions, is rounding


def places(rows: Integers, among: Integers) -> Integers:
    """Where each of the distinct rows (n, m) is among the same rows in another order."""
    found = np.empty(len(rows), dtype=np.int64)
    found[np.lexsort(rows.T)] = np.lexsort(among.T)
    return found


def orbits(count: int, moves: Sequence[Move]) -> tuple[Integers, Floats, NDArray[np.bool_]]:
    """The orbit of each of `count` functions, its phase carried from the first of the orbit, and which orbits close.

    An orbit closes, and holds one invariant function, if all ways round it multiply by the same phase.
    """
    sources = np.tile(np.arange(count), len(moves))
    targets = np.concatenate([target for target, _ in moves]) if moves else sources
    graph = csr_array((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    orbit = np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
    front = np.unique(orbit, return_index=True)[1]
    phase, known = np.zeros(count), np.zeros(count, dtype=bool)
    known[front] = True
    closed = np.ones(len(front), dtype=bool)
    while len(front):  # each move is a permutation: its orbit is reached forwards
        reached = []
        for target, shift in moves:
            fresh = front[~known[target[front]]]
            phase[target[fresh]] = phase[fresh] + shift[fresh]
            known[target[fresh]] = True
            reached.append(target[fresh])
        front = np.concatenate(reached) if reached else front[:0]
    for target, shift in moves:
        closed[orbit[np.abs(np.exp(1j * (phase + shift - phase[target])) - 1) > _TRIVIAL]] = False
    return orbit, phase, closed
