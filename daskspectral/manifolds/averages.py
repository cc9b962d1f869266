"""Invariant functions of eigenspaces that are never built: symmetric polynomials of blocks of coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, factorial, lgamma, prod
from typing import final

import numpy as np
from numpy.typing import NDArray

from daskspectral.manifolds.eigenspace import Array, Functions, along
from daskspectral.manifolds.zonal import SphereKernel, projected

_LOST = 2e-10  # largest estimated rounding error of a kernel's values
_COLUMNS = 512  # points per block of symmetric functions
_MOST_TERMS = 20_000  # partitions: more cost more than elements or null spaces

Partition = tuple[int, ...]
Growth = tuple[tuple[int, NDArray[np.intp], NDArray[np.intp]], ...]


@final
@dataclass(frozen=True)
class ElementBlock:
    """Coordinates under all permutations; with `signs`, also under all changes of signs."""

    coordinates: tuple[int, ...]
    signs: bool = False


@final
@dataclass(frozen=True)
class PermutationAverage:
    """Mean over the permutations within blocks of all d ≥ 3 coordinates; `even` if x -> -x is in the group.

    Zbar(v, w) = mean of Z_l(v . g w) reproduces the invariant functions of degree l on the unit sphere. E (v . g w)^l
    = sum over partitions lambda of l of M_lambda(v) M_lambda(w), M_lambda^2 = l! / (prod lambda_i!) m_lambda^2 / (the
    number of monomials in m_lambda), m_lambda the monomial symmetric functions. Blocks have a partition each; signs
    keep even parts.
    """

    blocks: tuple[ElementBlock, ...]
    even: bool = False

    @property
    def ambient(self) -> int:
        return sum(len(block.coordinates) for block in self.blocks)

    def dimension(self, degree: int) -> int:
        fewer = self.invariant_polynomials(degree - 2) if degree > 1 else 0
        return self.invariant_polynomials(degree) - fewer

    def invariant_polynomials(self, degree: int) -> int:
        """Return the number of invariant homogeneous polynomials (Molien)."""
        if self.even and degree % 2:
            return 0
        series = [1] + [0] * degree
        for block in self.blocks:
            step = 2 if block.signs else 1
            for part in range(step, step * len(block.coordinates) + 1, step):  # 1 / (1 - t) ... (1 - t^n)
                for k in range(part, degree + 1):
                    series[k] += series[k - part]
        return series[degree]

    def reaches(self, degree: int) -> bool:
        """Return whether a degree is evaluated to rounding, at feasible cost."""
        terms = sum(self.invariant_polynomials(k) for k in range(degree + 1))
        leading = _leading_coefficient(self.ambient, degree) * _mean_power(self.ambient, degree)
        return terms <= _MOST_TERMS and float(np.finfo(float).eps * np.sqrt(leading)) <= _LOST

    def terms(self, degree: int) -> int:
        """Return the number of zonal functions of the same cost per row."""
        smaller = sum(self.invariant_polynomials(k) for k in range(degree + 1))
        return 1 + 4 * smaller * self.ambient // max(1, degree)

    def functions(self, degree: int, points: Iterator[NDArray[np.float64]] | None = None) -> SymmetricHarmonics:
        """Return an orthonormal basis of the invariant harmonics of a degree."""
        rows = _symmetric_harmonics(self, degree) if points is None else next(points)
        return SymmetricHarmonics(self, degree, rows)


@final
@dataclass(frozen=True, eq=False)
class SymmetricHarmonics(Functions):
    """Harmonics Q (r, q) times the M_lambda of one degree, symmetric in each block of coordinates.

    The rows of Q are an orthonormal basis of the null space of the Laplace operator in the M_lambda, for the inner
    product with the reproducing kernel sum of M_lambda(v) M_lambda(w), that of L2 of the sphere up to sqrt(c_l).
    """

    average: PermutationAverage
    degree: int
    rows: NDArray[np.float64]

    @property
    def ambient(self) -> int:
        return self.average.ambient

    @property
    def size(self) -> int:
        return len(self.rows)

    @cached_property
    def transform(self) -> Array:
        return np.asarray(self.rows * np.sqrt(_leading_coefficient(self.ambient, self.degree)))

    def raw(self, x: Array) -> Array:
        return self._features(projected(x)[0])

    def raw_along(self, x: Array, direction: Array) -> Array:
        points, steps = projected(x, direction)
        return along(self._features, points, np.asarray(steps))

    def points(self) -> tuple[NDArray[np.float64], ...]:
        return (self.rows,)

    def _features(self, points: Array) -> Array:
        table = _table(self.average.blocks, self.degree)
        found = np.empty((len(table.weights), len(points)), dtype=points.dtype)
        for start in range(0, len(points), _COLUMNS):
            found[:, start : start + _COLUMNS] = table.features(points[start : start + _COLUMNS])
        return found


def _symmetric_harmonics(average: PermutationAverage, degree: int) -> NDArray[np.float64]:
    """Return Q (r, q)."""
    if not average.dimension(degree):
        return np.zeros((0, len(_table(average.blocks, degree).weights)))
    laplacian = _laplacian(average.blocks, degree)
    factor, _ = np.linalg.qr(laplacian.T, mode="complete")
    return np.ascontiguousarray(factor[:, len(laplacian) :].T, dtype=float)


@dataclass(frozen=True, eq=False)
class _MonomialTable:
    """Values M_lambda of degree l, products over the blocks, computed from those of lower degrees.

    With each coordinate x, m_lambda becomes m_lambda + sum over the parts a of lambda of x^a m_(lambda without a).
    """

    blocks: tuple[ElementBlock, ...]
    count: int
    growth: tuple[Growth, ...]
    """For each block (a, index of m_lambda, index of m_(lambda without a))."""
    place: Mapping[tuple[Partition, ...], int]
    """Indices of those of degree l."""
    weights: NDArray[np.float64]
    """Ratios M_lambda / m_lambda."""

    def features(self, x: Array) -> Array:
        found = np.zeros((self.count, len(x)), dtype=x.dtype)
        found[0] = 1
        for block, growth in zip(self.blocks, self.growth, strict=True):
            for coordinate in block.coordinates:
                before, powers = found.copy(), _powers(x[:, coordinate], growth)
                for a, target, source in growth:
                    found[target] += powers[a] * before[source]
        return np.asarray(found[[*self.place.values()]] * self.weights[:, None])


@lru_cache(maxsize=64)
def _table(blocks: tuple[ElementBlock, ...], degree: int) -> _MonomialTable:
    found: list[tuple[Partition, ...]] = [()]
    for block in blocks:
        found = [(*fewer, more) for fewer in found for more in _partitions(block, degree - sum(map(sum, fewer)))]
    place = {partitions: i for i, partitions in enumerate(found)}
    growth = []
    for b, _ in enumerate(blocks):
        pairs: dict[int, list[tuple[int, int]]] = {}
        for partitions, i in place.items():
            for a in set(partitions[b]):
                rest = list(partitions[b])
                rest.remove(a)
                source = (*partitions[:b], tuple(rest), *partitions[b + 1 :])
                pairs.setdefault(a, []).append((i, place[source]))
        growth.append(tuple((a, *np.array(pairs[a]).T) for a in sorted(pairs)))
    top = {partitions: i for partitions, i in place.items() if sum(map(sum, partitions)) == degree}
    weights = np.sqrt([_weight(blocks, partitions) for partitions in top])
    return _MonomialTable(blocks, len(found), tuple(growth), top, weights)


def _laplacian(blocks: tuple[ElementBlock, ...], degree: int) -> Array:
    """Return the Laplace operator from the M_lambda of a degree to those of two degrees less.

    The coefficient of x^mu in that of m_lambda is (b + 2) (b + 1) for each exponent b of mu that, raised by 2, turns
    mu into lambda.
    """
    above, below = _table(blocks, degree), _table(blocks, degree - 2) if degree > 1 else None
    if below is None:
        return np.zeros((0, len(above.weights)))
    column = {partitions: k for k, partitions in enumerate(above.place)}
    found = np.zeros((len(below.weights), len(above.weights)))
    for row, partitions in enumerate(below.place):
        for i, (block, partition) in enumerate(zip(blocks, partitions, strict=True)):
            exponents = Counter(partition)
            exponents[0] = len(block.coordinates) - len(partition)
            for b, times in exponents.items():
                if times:
                    rest = [*partition, *([0] if not b else [])]
                    rest.remove(b)
                    more = tuple(sorted([*rest, b + 2], reverse=True))
                    k = column[*partitions[:i], more, *partitions[i + 1 :]]
                    found[row, k] += times * (b + 2) * (b + 1) * above.weights[k] / below.weights[row]
    return found


def _partitions(block: ElementBlock, most: int) -> list[Partition]:
    """Return the partitions of 0, ..., `most` of a block; even ones for signs."""
    step = 2 if block.signs else 1
    found: list[Partition] = [()]
    last: list[Partition] = [()]
    for _ in block.coordinates:
        last = [(*fewer, a) for fewer in last for a in range(step, min([most - sum(fewer), *fewer[-1:]]) + 1, step)]
        found += last
    return found


def _weight(blocks: tuple[ElementBlock, ...], partitions: tuple[Partition, ...]) -> float:
    ways = factorial(sum(map(sum, partitions)))
    monomials = 1
    for block, partition in zip(blocks, partitions, strict=True):
        n = len(block.coordinates)
        monomials *= factorial(n) // (
            prod(factorial(times) for times in Counter(partition).values()) * factorial(n - len(partition))
        )
    return ways / (prod(factorial(a) for partition in partitions for a in partition) * monomials)


def _powers(value: Array, growth: Growth) -> Array:
    most = growth[-1][0] if growth else 0
    return np.concatenate([np.ones((1, len(value))), np.cumprod(np.broadcast_to(value, (most, len(value))), axis=0)])


def _leading_coefficient(d: int, degree: int) -> float:
    """Return the coefficient of t^l in Z_l(t) on S^(d-1), N 2^l (a)_l / (2 a)_l."""
    a = (d - 2) / 2
    return SphereKernel(d, degree).size * prod(2 * (a + i) / (2 * a + i) for i in range(degree))


def _mean_power(d: int, k: int) -> float:
    """Return the mean of |t|^k over S^(d-1)."""
    return exp(lgamma((k + 1) / 2) + lgamma(d / 2) - lgamma(0.5) - lgamma((k + d) / 2))
