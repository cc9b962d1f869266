"""Invariant harmonics of eigenspaces that are never built: their number against Molien's series, and the time.

N is the size of the eigenspace, "kept" and "next" are the least eigenvalue that belongs to a function and the largest
that does not, of the reproducing kernel of the invariant functions at 2 r + 16 random points, where its trace is r;
permutations need no cut: their functions are counted by partitions. "seconds" make the functions, "evaluated" their
values at 10^4 rows; "moved" is the largest change of a value under a random element, over the largest value. Four
atoms: O(3) and the permutations of the atoms act on the nine mass-weighted Jacobi coordinates.

    python examples/benchmarks/invariant_dimensions.py --json invariant_dimensions.json
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import permutations as everything
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report

from daskspectral.groups import Cyclic, FullOrthogonal, Generated, Group, Orthogonal, Permutations, SignFlips
from daskspectral.groups.invariants import Invariants
from daskspectral.manifolds import Sphere
from daskspectral.manifolds.zonal import KernelFunctions

ROWS = 10_000
CONTRASTS = np.array([[1, -1, 0, 0], [1, 1, -2, 0], [1, 1, 1, -3.0]]) / np.sqrt([[2.0], [6.0], [12.0]])
PERMUTED = [CONTRASTS @ g.matrix @ CONTRASTS.T for g in Permutations(4).generators]
FOUR_ATOMS = Generated(
    [FullOrthogonal(3, copies=3), Orthogonal([np.kron(p, np.eye(3)) for p in PERMUTED])], "O(3) and S_4"
)


def harmonic(series: np.ndarray) -> int:
    """The last coefficient of (1 - t^2) times a series."""
    return round(float(series[-1] - (series[-3] if len(series) > 2 else 0)))


def product(degrees: Iterable[int], last: int) -> np.ndarray:
    """1 over the product of 1 - t^k, to a degree."""
    series = np.zeros(last + 1)
    series[0] = 1
    for k in degrees:
        for i in range(k, last + 1):
            series[i] += series[i - k]
    return series


def permutations(d: int, degree: int) -> int:
    """Molien's count for all permutations."""
    return harmonic(product(range(1, d + 1), degree))


def signed(d: int, degree: int) -> int:
    """The same for permutations and changes of sign."""
    return harmonic(product(range(2, 2 * d + 1, 2), degree))


def cyclic(d: int, degree: int) -> int:
    """The same for cyclic shifts: the shift by k has gcd(d, k) cycles of one length."""
    shifts = [np.gcd(d, k) for k in range(d)]
    return harmonic(np.mean([product([d // cycles] * cycles, degree) for cycles in shifts], axis=0))


def weyl(_: int, degree: int) -> int:
    """The same for four atoms: the mean of 1 / det(1 - t g) over permutations and angles with Weyl's weight."""
    radius, t = 0.5, 0.5 * np.exp(2j * np.pi * np.arange(256) / 256)
    found = np.zeros(256, dtype=complex)
    angles = 2 * np.pi * np.arange(64) / 64
    elements = CONTRASTS @ np.array([np.eye(4)[list(p)] for p in everything(range(4))]) @ CONTRASTS.T
    for p in [*elements, *-elements]:
        for angle in angles:
            values = np.outer(np.linalg.eigvals(p), np.exp(1j * angle * np.array([-1, 0, 1]))).ravel()
            found += (1 - np.cos(angle)) / np.prod(1 - t[:, None] * values, axis=1)
    found /= 2 * len(elements) * len(angles)
    return round(float((np.fft.fft(found * (1 - t**2)) / 256).real[degree] / radius**degree))


CASES: list[tuple[str, int, Group, Callable[[int, int], int], tuple[int, ...]]] = [
    ("S_5", 5, Permutations(5), permutations, (8, 20)),
    ("S_8", 8, Permutations(8), permutations, (4, 8, 12)),
    ("S_30", 30, Permutations(30), permutations, (4, 8)),
    ("S_100", 100, Permutations(100), permutations, (8,)),
    ("signed S_20", 20, Generated([Permutations(20), SignFlips(20)]), signed, (12,)),
    ("cyclic shifts", 12, Cyclic(12), cyclic, (4, 6)),
    ("O(3) and S_4", 9, FOUR_ATOMS, weyl, (4, 8, 10, 12, 14, 20)),
]


def measured(name: str, d: int, group: Group, molien: int, degree: int, rows: int) -> dict[str, Any]:
    """One degree of one group."""
    sphere, rng = Sphere(d), np.random.default_rng(0)
    start = time.perf_counter()
    invariants = Invariants.of(sphere, group)
    functions = invariants.functions(degree)
    making, r = time.perf_counter() - start, functions.size
    points = sphere.sample(2 * r + 16, rng)
    if isinstance(functions, KernelFunctions):
        gram = functions.kernel.between(points, points)
    else:
        gram = functions.values(points) @ functions.values(points).T
    values = np.linalg.eigvalsh(gram)[::-1] / np.trace(gram) * r
    following = float(np.abs(values[r:]).max()) if isinstance(functions, KernelFunctions) else None
    x = sphere.sample(rows, rng)
    start = time.perf_counter()
    found = functions.values(x)
    evaluating = time.perf_counter() - start
    moved = functions.values(group.word(rng, 30)(x))
    return {
        "group": name,
        "degree": degree,
        "N": sphere.multiplicity(degree),
        "invariant": r,
        "Molien": molien,
        "kept": float(values[r - 1]),
        "next": following,
        "seconds": making,
        "evaluated": evaluating,
        "moved": float(np.abs(moved - found).max() / np.abs(found).max()),
    }


@click.command(help=__doc__)
@options(repeats=None)
def main(quick: bool, json_path: Path | None) -> None:
    """Count and time."""
    rows: Rows = []
    for name, d, group, molien, degrees in CASES:
        for degree in degrees[:1] if quick else degrees:
            rows.append(measured(name, d, group, molien(d, degree), degree, 100 if quick else ROWS))
    wrong = [f"{row['group']}, degree {row['degree']}" for row in rows if row["invariant"] != row["Molien"]]
    report("invariant harmonics", rows, json_path, [f"not Molien's count: {case}" for case in wrong])


if __name__ == "__main__":
    main()
