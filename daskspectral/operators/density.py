"""Density estimate from a sample of rows, whose weights make eigenvalues independent of the sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.kernels import Gaussian, Periodic
from daskspectral.kernels.geometry import squared_distances
from daskspectral.landmarks import kmeans_plus_plus
from daskspectral.registry import Registered, digest_of
from daskspectral.validation import check_number

Array = NDArray[np.floating[Any]]

CENTERS = 1000
ROWS_PER_CENTER = 20  # least mean
SEEDED = 20_000  # rows among which centers are chosen
TEST_ROWS = 1000  # at which a bandwidth is scored
UNIT_ROWS = 50  # of them, for the median distance
WIDTHS = 16
LEAST_NEIGHBORS = 16  # at the narrowest width, in both halves together
PRIOR = 0.5  # of a row, so that no expectation is 0
TRIMMED = 0.02  # share of the most remote rows, not scored: the density is clipped there
CLIP = 0.01
ENTRIES = 1 << 18  # of a block of distances


@dataclass(frozen=True, eq=False, repr=False)
class Density(Registered):
    """Estimate of the density ρ of the rows, up to a factor, with the exponent a of their weights ρ^-a.

    ρ(x) = Σ_j n_j k(x, y_j) / Σ_j v_j k(x, y_j), at least `floor`, with a Gaussian k of width `bandwidth`: the
    `counts` n_j (m,) are the weights of the rows nearest to the center y_j, v_j = n_j / `heights`_j. `centers` (m, e)
    are prepared columns, periodic ones (`periods`) as circles. ρ^-a has mean 1 over the sample; `clipped` is the share
    of rows below the floor, `removed` the share of weight that it removed.

    Examples
    --------
    >>> x = np.random.default_rng(0).random((20_000, 1)) ** 2  # of the density 1 / (2 sqrt x)
    >>> density = estimate_density(x, 1.0, np.random.default_rng(0))
    >>> found = density(np.array([[0.09], [0.81]]))
    >>> round(float(found[0] / found[1]))
    3
    """

    exponent: float
    centers: Array
    counts: Array
    heights: Array
    bandwidth: float
    floor: float = 0.0
    clipped: float = 0.0
    removed: float = 0.0
    periods: tuple[float | None, ...] | None = None

    def __post_init__(self) -> None:
        check_number("density", self.exponent, "[0, 1]")
        m = len(self.centers)
        if self.centers.ndim != 2 or not m or self.counts.shape != (m,) or self.heights.shape != (m,):
            raise ValueError("a density requires centers (m, d), counts (m,) and heights (m,)")
        if not (0 < self.bandwidth < math.inf and (self.counts > 0).all() and (self.heights > 0).all()):
            raise ValueError("the bandwidth, counts and heights of a density must be positive")

    @property
    def dimension(self) -> int:
        return int(self.centers.shape[1]) if self.periods is None else len(self.periods)

    def __call__(self, x: Array) -> Array:
        """Return ρ (c,) at prepared points x (c, d)."""
        x = embedded(x, self.periods)
        sums = np.stack([self.counts, self.counts / self.heights])
        values = np.empty(len(x))
        for part in _blocks(len(x), len(self.centers)):
            s = squared_distances(x[part], self.centers)
            s -= s.min(axis=0)  # the ratio is the same, and neither sum underflows
            s *= -0.5 / self.bandwidth**2
            above, below = sums @ np.exp(s, out=s)
            values[part] = above / below
        return np.maximum(values, self.floor, out=values)

    def weights(self, x: Array) -> Array:
        return np.asarray(self(x) ** -self.exponent)

    @cached_property
    def digest(self) -> str:
        arrays = [np.asarray(a, dtype=float) for a in (self.centers, self.counts, self.heights)]
        return digest_of([self.exponent, self.bandwidth, self.floor, self.periods, *arrays])[:16]

    def __repr__(self) -> str:
        return f"Density(exponent={self.exponent:g}, {len(self.centers)} centers, {self.digest})"

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Density) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)


def exponent_of(density: float | Density) -> float:
    """Return the exponent of the density that is divided out of all sums, or 0."""
    return density.exponent if isinstance(density, Density) else float(density)


def estimate_of(density: float | Density) -> Density | None:
    """Return the density that is divided out, or None if it is not yet estimated."""
    return density if isinstance(density, Density) else None


def density_factors(density: float | Density, fields: Mapping[str, Array]) -> Array | None:
    """Return ρ^-a (c,) of a block of rows, None without density; raise ValueError if not estimated."""
    if isinstance(density, Density):
        return density.weights(fields["x"]) if density.exponent else None
    if density:
        raise ValueError(
            f"the density of exponent {density:g} is not estimated: measure with moments_.operator of a fitted model"
        )
    return None


def estimate_density(
    x: Array,
    exponent: float,
    rng: np.random.Generator,
    *,
    weights: Array | None = None,
    periods: tuple[float | None, ...] | None = None,
    clip: float = CLIP,
) -> Density:
    """Return the density of a sample of prepared points x (n, d), optionally with weights (n,).

    The centers are the means of the rows nearest to each of up to 1000 k-means++ seeds, their heights kernel sums over
    all rows with `chosen_bandwidth`. The density is clipped below at its quantile `clip`. Raises ValueError if all
    rows of positive weight are equal.
    """
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    e, w = embedded(x, periods)[w > 0], w[w > 0]
    if len(e) < 2 or not np.ptp(e, axis=0).any():
        raise ValueError("the density cannot be estimated: all rows of the sample are the same point")
    if periods is None and (np.abs(e[0]) > 4 * np.ptp(e, axis=0)).any():  # relative to a row, means keep their digits
        options: dict[str, Any] = {"weights": weights, "clip": clip}
        found = estimate_density(x - e[0], exponent, rng, **options)
        return replace(found, centers=found.centers + e[0])
    centers, counts = _cells(e, w, rng)
    heights = _sums(centers, e, w, chosen_bandwidth(e, w, rng))
    heights = np.maximum(heights, heights[heights > 0].min(initial=np.inf)) if heights.any() else np.ones(len(heights))
    rough = Density(float(exponent), centers, counts, heights, _spacing(centers), periods=periods)
    values = rough(x if weights is None else x[np.asarray(weights) > 0])
    floor = float(np.quantile(values, clip, weights=w, method="inverted_cdf"))
    clipped, whole = (float(v**-exponent @ w / w.sum()) for v in (np.maximum(values, floor), values))
    unit = clipped ** (1 / exponent) if exponent else 1.0
    return replace(
        rough,
        heights=unit * heights,
        floor=unit * floor,
        clipped=float(w[values < floor].sum() / w.sum()),
        removed=1 - clipped / whole,
    )


def chosen_bandwidth(x: Array, w: Array, rng: np.random.Generator) -> float:
    """Return the width of a Gaussian kernel sum over the rows x (n, e) that best predicts local counts.

    Sums over one half of the rows predict, up to a factor, counts of the other half at further test rows, by the
    likelihood of Poisson counts divided by their expectations, so that sparse and dense regions count equally. The
    width is then reduced by one step, √2: noise averages out over the rows, bias does not.
    """
    rows = rng.choice(len(x), min(TEST_ROWS, len(x)), replace=False)
    first = rng.permutation(len(x)) % 2 == 0
    halves = np.stack([w * first, w * ~first], axis=1) / w.mean()
    sums = np.zeros((WIDTHS, len(rows), 2))
    some = squared_distances(x, x[rows[:UNIT_ROWS]])
    widest = 0.5 * math.sqrt(float(np.median(some[some > 0])))
    for part in _blocks(len(rows), len(x)):
        tests = rows[part]
        k = np.exp(squared_distances(x, x[tests]) * (-0.5 / widest**2))
        k[np.arange(len(tests)), tests] = 0
        for level in range(WIDTHS):
            sums[level, part] = k @ halves
            np.multiply(k, k, out=k)
    total = sums[0].sum(axis=1)
    near = total >= np.quantile(total, TRIMMED)
    sums, total, share = sums[:, near], total[near], w[rows][near]
    levels = np.flatnonzero(np.median(sums.sum(axis=2), axis=1) >= LEAST_NEIGHBORS)
    last = int(levels[-1]) if len(levels) else 0
    share = share / np.maximum(sums[min(last, WIDTHS // 4)].sum(axis=1), 1)
    scores = [
        sum(_likelihood(sums[level, :, a] + PRIOR, sums[last, :, 1 - a], share) for a in (0, 1))
        for level in range(last + 1)
    ]
    return float(widest * 2.0 ** (-0.5 * (int(np.argmax(scores)) + 1)))


def _likelihood(expected: Array, counts: Array, share: Array) -> float:
    """Return sum share (n log e - e) for counts n (m,), expectations e (m,) in the best unit."""
    e = expected * (share @ counts) / (share @ expected)
    return float(share @ (counts * np.log(e) - e))


def embedded(x: Array, periods: tuple[float | None, ...] | None) -> Array:
    """Return points (c, e) with the periodic columns of x (c, d) embedded as circles."""
    x = np.asarray(x, dtype=float)
    return x if periods is None else Periodic(Gaussian(1.0), periods).embedded(x)


def _cells(x: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the means (m, e) and weights (m,) of the rows nearest to each seed."""
    some = x if len(x) <= SEEDED else x[rng.choice(len(x), SEEDED, replace=False)]
    seeds = some[kmeans_plus_plus(some, min(CENTERS, max(1, len(some) // ROWS_PER_CENTER)), rng)]
    parts = _blocks(len(x), len(seeds))
    nearest = np.concatenate([squared_distances(x[part], seeds).argmin(axis=0) for part in parts])
    counts = np.bincount(nearest, w, len(seeds))
    sums = np.stack([np.bincount(nearest, w * column, len(seeds)) for column in x.T], axis=1)
    kept = counts > 0
    return np.asarray(sums[kept] / counts[kept, None]), np.asarray(counts[kept], dtype=float)


def _sums(centers: Array, x: Array, w: Array, bandwidth: float) -> Array:
    squares = (squared_distances(x, centers[part]) for part in _blocks(len(centers), len(x)))
    return np.concatenate([np.exp(s * (-0.5 / bandwidth**2)) @ w for s in squares])


def _blocks(count: int, others: int) -> Iterator[slice]:
    """Return slices of points whose distances fit one block."""
    step = max(1, ENTRIES // others)
    return (slice(start, start + step) for start in range(0, count, step))


def _spacing(centers: Array) -> float:
    s = squared_distances(centers, centers)
    np.fill_diagonal(s, np.inf)
    nearest = s.min(axis=1)
    nearest = nearest[np.isfinite(nearest) & (nearest > 0)]
    return math.sqrt(float(np.median(nearest))) if len(nearest) else 1.0
