"""Means of zonal kernels over a group: invariant functions of eigenspaces that are never built.

FiniteAverage(elements, fields)      a sum over the elements, and over circles of rotations that commute
PermutationAverage(blocks)           all permutations of blocks of coordinates, with or without changes of sign
RotationAverage(mixing)              rotations of space acting on several vectors at once, and a finite group
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import exp, factorial, lgamma, prod, sqrt
from typing import final

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import eval_gegenbauer, roots_gegenbauer

from daskspectral.manifolds.eigenspace import Array, Functions, along
from daskspectral.manifolds.zonal import KernelFunctions, SphereKernel, SphericalKernel, fundamental_points

_LOST = 2e-10  # of a kernel's values to rounding, at most, as estimated
_MOST_SUMMED = 50_000  # elements of a sum
_PRODUCTS = 2**17  # inner products at once in a sum over elements
_COLUMNS = 512  # points at once of symmetric functions
_MOST_TERMS = 20_000  # partitions: more of them cost more than elements or null spaces
_MATRICES = 2**14  # matrices M at once, fewer for derivatives: their entries stay in the cache

Partition = tuple[int, ...]
Growth = tuple[tuple[int, NDArray[np.intp], NDArray[np.intp]], ...]


class Average(ABC):
    """The mean over a compact group G of orthogonal matrices, on the unit sphere of Rᵈ, d ≥ 3.

    Zbar(v, w) = mean of Z_l(v . g w) is the reproducing kernel of the invariant functions of degree l for the uniform
    probability; its trace, the mean of Zbar(x, x), is how many there are.
    """

    @property
    @abstractmethod
    def ambient(self) -> int:
        """The number of coordinates d."""

    @abstractmethod
    def invariant_polynomials(self, degree: int) -> int:
        """How many homogeneous polynomials of a degree are invariant: a coefficient of Molien's series."""

    @abstractmethod
    def reaches(self, degree: int) -> bool:
        """Whether it can be evaluated at a degree, to rounding and with a bearable number of terms."""

    @abstractmethod
    def terms(self, degree: int) -> int:
        """About how many zonal functions of the degree take as long at a row as the invariant ones."""

    @abstractmethod
    def functions(self, degree: int, points: Iterator[NDArray[np.float64]] | None = None) -> Functions:
        """An orthonormal basis of the invariant harmonics of a degree, the same again from what its `points` gave."""

    @final
    def dimension(self, degree: int) -> int:
        """How many harmonics of a degree are invariant: polynomials less |x|^2 times those of degree l - 2."""
        fewer = self.invariant_polynomials(degree - 2) if degree > 1 else 0
        return self.invariant_polynomials(degree) - fewer


class ZonalAverage(Average, ABC):
    """A mean over a group by the values of averaged zonal kernels."""

    @abstractmethod
    def kernel(self, degree: int, v: Array, w: Array, direction: Array | None = None) -> Array:
        """Zbar(v_i, w_j), (m, c), at unit vectors v (m, d) and w (c, d), or direction_j . grad_w Zbar(v_i, w_j)."""

    @final
    def functions(self, degree: int, points: Iterator[NDArray[np.float64]] | None = None) -> KernelFunctions:
        kernel = _AveragedKernel(self.ambient, degree, self)
        if points is not None:
            return KernelFunctions(kernel, next(points))
        pool = np.random.default_rng(0).standard_normal((2 * self.dimension(degree) + 16, self.ambient))
        pool /= np.linalg.norm(pool, axis=1, keepdims=True)
        return KernelFunctions(kernel, fundamental_points(kernel, pool))


@final
@dataclass(frozen=True, eq=False)
class _AveragedKernel(SphericalKernel):
    """Zbar of one degree."""

    average: ZonalAverage

    @property
    def size(self) -> int:
        return self.average.dimension(self.degree)

    def between(self, v: Array, w: Array, direction: Array | None = None) -> Array:
        return self.average.kernel(self.degree, v, w, direction)


def _mean(
    between: Callable[[Array, Array, Array | None], Array],
    elements: Array,
    v: Array,
    w: Array,
    direction: Array | None,
    *,
    at_once: int,
) -> Array:
    """The mean of Z(gᵀ v_i, w_j), (m, c), over orthogonal matrices g (n, d, d), so many values at once."""
    found = np.zeros((len(v), len(w)))
    columns = max(1, min(len(w), at_once))
    rows = max(1, min(len(v), at_once // columns))
    count = max(1, at_once // (columns * rows))
    for i in range(0, len(v), rows):
        for k in range(0, len(elements), count):
            moved = (v[i : i + rows] @ elements[k : k + count]).reshape(-1, v.shape[1])
            for j in range(0, len(w), columns):
                here = slice(j, j + columns)
                part = found[i : i + rows, here]
                values = between(moved, w[here], None if direction is None else direction[here])
                part += values.reshape(-1, *part.shape).sum(axis=0)
    return found / len(elements)


def _inverse_series(polynomials: Array, degree: int) -> Array:
    """The coefficients (n, degree + 1) of 1 / p(t) for polynomials (n, q + 1) with p(0) = 1, ascending."""
    found = np.zeros((len(polynomials), degree + 1))
    found[:, 0] = 1
    for k in range(1, degree + 1):
        q = min(k, polynomials.shape[1] - 1)
        found[:, k] = -np.sum(polynomials[:, 1 : q + 1] * found[:, k - q : k][:, ::-1], axis=1)
    return found


def _characteristic(matrices: Array) -> Array:
    """det(1 - t g), ascending in t, of matrices (n, d, d), (n, d + 1), by Newton's identities."""
    n, d, _ = matrices.shape
    found, traces = np.zeros((n, d + 1)), np.zeros((n, d + 1))
    found[:, 0] = 1
    power = matrices
    for k in range(1, d + 1):
        traces[:, k] = np.trace(power, axis1=1, axis2=2)
        found[:, k] = -np.sum(traces[:, 1 : k + 1] * found[:, :k][:, ::-1], axis=1) / k
        power = power @ matrices
    return found


def _distinct(polynomials: Array) -> tuple[Array, Array]:
    """Polynomials that differ by more than rounding (k, q), and the share of each (k,)."""
    rounded, inverse, counts = np.unique(np.rint(polynomials * 1e8), axis=0, return_inverse=True, return_counts=True)
    first = np.zeros(len(rounded), dtype=int)
    first[inverse.ravel()] = np.arange(len(polynomials))
    return polynomials[first], counts / len(polynomials)


def _whole(value: float, what: str) -> int:
    """A dimension from a mean of characters. Raises ValueError where it is no whole number."""
    found = round(value)
    if abs(value - found) > 1e-4:
        raise ValueError(
            f"expected the mean of characters over a group to be a whole number, received {value:.9g} for {what}; the "
            "elements are not those of a group"
        )
    return found


@final
@dataclass(frozen=True, eq=False)
class FiniteAverage(ZonalAverage):
    """The mean over orthogonal matrices (n, d, d), all elements of a group, and over circles of rotations.

    `fields` are X (k, d, d) that commute, antisymmetric with eigenvalues i times integers of at most q, and that the
    elements take to each other: the mean is over products of exp(s X), 0 ≤ s < 2π, too. Z_l(v . exp(s X) w) is a
    trigonometric polynomial of degree l q: l q + 1 equal steps take its mean.
    """

    elements: Array
    fields: Array | tuple[()] = ()

    @property
    def ambient(self) -> int:
        return int(self.elements.shape[1])

    def invariant_polynomials(self, degree: int) -> int:
        polynomials, shares = self._summed(degree)._classes
        return _whole(float(shares @ _inverse_series(polynomials, degree)[:, -1]), f"degree {degree}")

    def reaches(self, degree: int) -> bool:
        return len(self.elements) * prod(self.steps(degree)) <= _MOST_SUMMED

    def terms(self, degree: int) -> int:
        return len(self._summed(degree).elements) * self.dimension(degree)

    def kernel(self, degree: int, v: Array, w: Array, direction: Array | None = None) -> Array:
        zonal = SphereKernel(self.ambient, degree)
        return _mean(zonal.between, self._summed(degree).elements, v, w, direction, at_once=_PRODUCTS)

    def steps(self, degree: int) -> list[int]:
        """How many steps each circle takes."""
        return [degree * round(float(np.abs(np.linalg.eigvalsh(1j * x)).max())) + 1 for x in self.fields]

    def _summed(self, degree: int) -> FiniteAverage:
        """The mean over the elements times the steps on the circles, which is the same up to a degree."""
        return _summed(self, degree) if len(self.fields) else self

    @cached_property
    def _classes(self) -> tuple[Array, Array]:
        return _distinct(_characteristic(self.elements))


@lru_cache(maxsize=4)
def _summed(average: FiniteAverage, degree: int) -> FiniteAverage:
    found = average.elements
    for x, steps in zip(average.fields, average.steps(degree), strict=True):
        turns = np.array([scipy.linalg.expm(2 * np.pi * j / steps * x) for j in range(steps)])
        found = (found[:, None] @ turns).reshape(-1, *x.shape)
    return FiniteAverage(found)


@final
@dataclass(frozen=True)
class ElementBlock:
    """Coordinates that are permuted in all ways; with `signs`, their signs change in all ways too."""

    coordinates: tuple[int, ...]
    signs: bool = False


@final
@dataclass(frozen=True)
class PermutationAverage(Average):
    """The mean over the permutations within blocks of coordinates, which together are all d coordinates.

    E (v . g w)^l = sum over partitions lambda of l with at most n parts of M_lambda(v) M_lambda(w),
    M_lambda^2 = l! / (prod lambda_i!) m_lambda^2 / (the number of monomials in m_lambda), m_lambda the monomial
    symmetric functions. Several blocks have a partition each, and changes of sign leave even parts. `even` says that
    x -> -x is in the group too.
    """

    blocks: tuple[ElementBlock, ...]
    even: bool = False

    @property
    def ambient(self) -> int:
        return sum(len(block.coordinates) for block in self.blocks)

    def invariant_polynomials(self, degree: int) -> int:
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
        terms = sum(self.invariant_polynomials(k) for k in range(degree + 1))
        leading = _leading(self.ambient, degree) * _mean_power(self.ambient, degree)
        return terms <= _MOST_TERMS and float(np.finfo(float).eps * np.sqrt(leading)) <= _LOST

    def terms(self, degree: int) -> int:
        smaller = sum(self.invariant_polynomials(k) for k in range(degree + 1))
        return 1 + 4 * smaller * self.ambient // max(1, degree)

    def functions(self, degree: int, points: Iterator[NDArray[np.float64]] | None = None) -> SymmetricHarmonics:
        rows = _symmetric_harmonics(self, degree) if points is None else next(points)
        return SymmetricHarmonics(self, degree, rows)


@final
@dataclass(frozen=True, eq=False)
class SymmetricHarmonics(Functions):
    """The harmonics of one degree that are symmetric in each block of coordinates, Q (r, q) times the M_lambda.

    The rows of Q are an orthonormal basis of the null space of the Laplace operator in the M_lambda of the degree,
    which are orthonormal in the inner product where sum of M_lambda(v) M_lambda(w) reproduces; harmonics are so in
    L2 of the sphere too, up to sqrt(c_l).
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
        return np.asarray(self.rows * np.sqrt(_leading(self.ambient, self.degree)))

    def raw(self, x: Array) -> Array:
        return self._features(SphereKernel(self.ambient, self.degree).projected(x)[0])

    def raw_along(self, x: Array, direction: Array) -> Array:
        points, steps = SphereKernel(self.ambient, self.degree).projected(x, direction)
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
    """Q (r, q): the Laplace operator is onto, of the rank of the number of polynomials of two degrees less."""
    if not average.dimension(degree):
        return np.zeros((0, len(_table(average.blocks, degree).weights)))
    laplacian = _laplacian(average.blocks, degree)
    factor, _ = np.linalg.qr(laplacian.T, mode="complete")
    return np.ascontiguousarray(factor[:, len(laplacian) :].T, dtype=float)


@dataclass(frozen=True, eq=False)
class _Table:
    """M_lambda of degree l, products over the blocks: how they grow from those of lower degrees.

    They grow by one coordinate x at a time: m_lambda becomes m_lambda + sum over the parts a of lambda of
    x^a m_(lambda without a), sums of products alone.
    """

    blocks: tuple[ElementBlock, ...]
    count: int
    growth: tuple[Growth, ...]
    """For each block (a, where m_lambda is, where m_(lambda without a) is)."""
    place: Mapping[tuple[Partition, ...], int]
    """Where those of degree l are."""
    weights: NDArray[np.float64]
    """M_lambda over m_lambda."""

    def features(self, x: Array) -> Array:
        """M_lambda at points (c, d), (q, c)."""
        found = np.zeros((self.count, len(x)), dtype=x.dtype)
        found[0] = 1
        for block, growth in zip(self.blocks, self.growth, strict=True):
            for coordinate in block.coordinates:
                before, powers = found.copy(), _powers(x[:, coordinate], growth)
                for a, target, source in growth:
                    found[target] += powers[a] * before[source]
        return np.asarray(found[[*self.place.values()]] * self.weights[:, None])


@lru_cache(maxsize=64)
def _table(blocks: tuple[ElementBlock, ...], degree: int) -> _Table:
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
    return _Table(blocks, len(found), tuple(growth), top, weights)


def _laplacian(blocks: tuple[ElementBlock, ...], degree: int) -> Array:
    """The Laplace operator from the M_lambda of a degree to those of two degrees less.

    The coefficient of x^mu in that of m_lambda is (b + 2) (b + 1) for each exponent b of mu whose rise by 2 makes it
    lambda.
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
    """The partitions of 0, ..., `most` in at most as many parts as the block has coordinates, even ones for signs."""
    step = 2 if block.signs else 1
    found: list[Partition] = [()]
    last: list[Partition] = [()]
    for _ in block.coordinates:
        last = [(*fewer, a) for fewer in last for a in range(step, min([most - sum(fewer), *fewer[-1:]]) + 1, step)]
        found += last
    return found


def _weight(blocks: tuple[ElementBlock, ...], partitions: tuple[Partition, ...]) -> float:
    """k! / prod lambda_i! over the number of monomials, as a product over the blocks."""
    ways = factorial(sum(map(sum, partitions)))
    monomials = 1
    for block, partition in zip(blocks, partitions, strict=True):
        n = len(block.coordinates)
        monomials *= factorial(n) // (
            prod(factorial(times) for times in Counter(partition).values()) * factorial(n - len(partition))
        )
    return ways / (prod(factorial(a) for partition in partitions for a in partition) * monomials)


def _powers(value: Array, growth: Growth) -> Array:
    """value^0, value^1, ... as far as they are needed, (k, c)."""
    most = growth[-1][0] if growth else 0
    return np.concatenate([np.ones((1, len(value))), np.cumprod(np.broadcast_to(value, (most, len(value))), axis=0)])


def _leading(d: int, degree: int) -> float:
    """The coefficient of t^l in the zonal kernel Z_l(t) on S^(d-1), N 2^l (a)_l / (2 a)_l."""
    a = (d - 2) / 2
    return SphereKernel(d, degree).size * prod(2 * (a + i) / (2 * a + i) for i in range(degree))


def _mean_power(d: int, k: int) -> float:
    """The mean of |t|^k over S^(d-1), t one coordinate."""
    return exp(lgamma((k + 1) / 2) + lgamma(d / 2) - lgamma(0.5) - lgamma((k + d) / 2))


@final
@dataclass(frozen=True, eq=False)
class RotationAverage(ZonalAverage):
    """The mean over x -> (R x_1, ..., R x_k), R in SO(3), and over matrices P (n, k, k) that mix the vectors.

    The k vectors of x (3 k,) stand one after another. With x and v as matrices (3, k), v . g x = tr(Rᵀ M),
    M = V P Xᵀ, and tr(R(q)ᵀ M) = qᵀ N q in unit quaternions q, N symmetric (4, 4), for any s
    det(s - t N) = s^4 - 2 e_1 s² t² - 8 det(M) s t³ + (e_1² - 4 e_2) t^4, e_i the invariants of Mᵀ M.
    The mean of (qᵀ A q)^(-2) over the sphere of the q is det(A)^(-1/2). With A = 1 + t² - 2 t N the first is the
    generating function of the Gegenbauer polynomials C_j of index 2 (Szegoe, Orthogonal Polynomials, 4.7.23), so that
    E C_j(tr(Rᵀ M)) = h_j, Σ_j h_j t^j = det(1 + t² - 2 t N)^(-1/2), for R uniform. The roots of
    the determinant lie on the unit circle, and the recurrence of the h_j is stable; Z_l is a combination of the C_j.
    The matrices P are a finite group; P = -I makes it O(3).
    """

    mixing: Array

    @property
    def ambient(self) -> int:
        return 3 * int(self.mixing.shape[1])

    @cached_property
    def _even(self) -> bool:
        """Whether -I is among the matrices: functions of odd degree vanish."""
        return bool((np.abs(self.mixing + np.eye(self.mixing.shape[1])).max(axis=(1, 2)) < 1e-6).any())

    @cached_property
    def _halved(self) -> Array:
        """One of each pair P, -P, which have the same mean at even degrees; all without -I."""
        if not self._even:
            return self.mixing
        flat = self.mixing.reshape(len(self.mixing), -1)
        first = np.argmax(np.abs(flat) > 1e-6, axis=1)  # equal for P and -P
        return self.mixing[np.take_along_axis(flat, first[:, None], axis=1)[:, 0] > 0]

    @cached_property
    def _classes(self) -> tuple[Array, Array]:
        return _distinct(_characteristic(self.mixing))

    def invariant_polynomials(self, degree: int) -> int:
        """By Weyl's formula: 1 / det(1 - t P x R) is a(t) a(t z) a(t / z), a = 1 / det(1 - t P), z = e^(i θ), of
        which the mean with the weight 1 - cos(θ) of a rotation's angle is taken."""
        polynomials, shares = self._classes
        a = _inverse_series(polynomials, degree)
        diagonal, next_to_it = np.zeros_like(a), np.zeros_like(a)  # coefficients of z^0 and z^1 in a(t z) a(t / z)
        half = np.arange(degree // 2 + 1)
        diagonal[:, 2 * half] = a[:, half] ** 2
        half = np.arange((degree + 1) // 2)
        next_to_it[:, 2 * half + 1] = a[:, half] * a[:, half + 1]
        product = np.sum(a * (diagonal - next_to_it)[:, ::-1], axis=1)
        return _whole(float(shares @ product), f"degree {degree}")

    def reaches(self, degree: int) -> bool:
        size = sqrt(max(1, self.dimension(degree)))  # the root mean square of the kernel
        return index_two_loss(self.ambient, degree) <= _LOST * size

    def terms(self, degree: int) -> int:
        return 3 * len(self._halved) * self.dimension(degree)

    def kernel(self, degree: int, v: Array, w: Array, direction: Array | None = None) -> Array:
        if self._even and degree % 2:
            return np.zeros((len(v), len(w)))
        series = partial(_series, in_index_two(self.ambient, degree))

        def between(v: Array, w: Array, direction: Array | None) -> Array:
            entries = _entries(v, w)
            return series(entries) if direction is None else along(series, entries, _entries(v, direction))

        at_once = _MATRICES if direction is None else _MATRICES // 4
        return _mean(between, np.kron(self._halved, np.eye(3)), v, w, direction, at_once=at_once)


def _entries(v: Array, w: Array) -> Array:
    """M_ab = sum over vectors of v_a w_b, for points v (m, 3 k) and w (c, 3 k): entries (3, 3, m, c)."""
    left, right = v.reshape(len(v), -1, 3).transpose(2, 0, 1), w.reshape(len(w), -1, 3).transpose(2, 1, 0)
    return np.asarray(left[:, None] @ right)


def _series(weights: Array, m: Array) -> Array:
    """sum_k weights_k h_k for matrices with entries m (3, 3, ...)."""
    places = [(a, b) for a in range(3) for b in range(3)]
    rest = {0: (1, 2), 1: (2, 0), 2: (0, 1)}
    corners = {(a, b): (*rest[a], *rest[b]) for a, b in places}
    cofactor = {place: m[i, k] * m[j, n] - m[i, n] * m[j, k] for place, (i, j, k, n) in corners.items()}
    e1 = sum(m[place] * m[place] for place in places)
    e2 = sum(c * c for c in cofactor.values())
    det = sum(m[0, b] * cofactor[0, b] for b in range(3))
    edge, odd = 4 - 8 * e1, -64 * det  # det(1 + t^2 - 2 t N), from t^2 to t^8
    p = {2: edge, 3: odd, 4: 6 + 16 * (e1 * e1 - 4 * e2 - e1), 5: odd, 6: edge, 8: 1.0}
    h = [np.ones_like(e1)]
    for k in range(1, len(weights)):
        h.append(sum((((j / 2 - k) / k) * p[j]) * h[k - j] for j in p if j <= k) + np.zeros_like(e1))
    return np.asarray(sum(c * value for c, value in zip(weights, h, strict=True) if c))


def in_index_two(d: int, degree: int) -> Array:
    """c_j of Z_l(t) = Σ_j c_j C_j(t), Gegenbauer polynomials of index 2, for Sᵈ⁻¹, (degree + 1,).

    The connection of Gegenbauer polynomials (Digital Library of Mathematical Functions, 18.18.16); positive for d > 6.
    """
    found, a = np.zeros(degree + 1), (d - 2) / 2
    for k in range(degree // 2 + 1):
        left = degree - k
        share = prod((a + i) / (3 + i) for i in range(left)) * prod((a - 2 + i) / (1 + i) for i in range(k))
        found[degree - 2 * k] = share * (degree + 2 - 2 * k) / 2 * (degree + a) / a
    return found


def index_two_loss(d: int, degree: int) -> float:
    """What summing these polynomials costs of the value 1 to rounding, for generic points of S^(d-1)."""
    t, shares = roots_gegenbauer(4 * degree + 50, (d - 2) / 2)
    orders = np.arange(degree + 1)
    means = np.abs(eval_gegenbauer(orders[:, None], 2.0, t)) @ (shares / shares.sum())
    return float(np.finfo(float).eps * np.abs(in_index_two(d, degree)) @ means)
