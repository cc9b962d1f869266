"""Products of the matrices of forms on a lattice with vectors, by fast Fourier transforms, without the matrices.

A form mean(w d_a f d_b g) is an integral against the density sum_j c_w(j) exp(i j.t) of the modes of its weight. On a
grid of 4m + 1 points or more along each axis it is exact: derivatives are factors in frequency, the density is a factor
on the grid. One product costs a few transforms of the grid, 2^d times as many points as there are functions.

Approximate inverses of penalised matrices follow from the density of the data and the prior alone. Functions of high
frequency see the density as nearly constant: at a point x, on frequency w, the matrix S (Phi + t L) S + t mu acts
nearly as rho(x) sigma(w) + t mu, with sigma = S^2 (1 + t |w|^2). Its inverse is applied band by band of sigma: a factor
in frequency, a factor on a grid, and the factor in frequency again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from daskspectral.basis.lattice import FourierLattice
from daskspectral.modes.matrices import Index, ModeTerm, ModeWeight, power, together

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]
RATIO = 16.0  # of sigma at the middles of neighbouring bands, and of its largest beyond the coarse block to the first


@dataclass(frozen=True)
class Quadratic:
    """A quadratic form of frequencies, the sum of factor * w_a w_b over its (a, b, factor)."""

    entries: tuple[tuple[int, int, float], ...]

    @classmethod
    def half(cls, terms: Iterable[ModeTerm]) -> Quadratic:
        """Half of that of terms of first derivatives."""
        return cls(tuple(sorted((t.left.index(1), t.right.index(1), 0.5 * t.factor) for t in terms)))

    @property
    def is_symmetric(self) -> bool:
        """Whether a and b may change places."""
        factors = {(a, b): factor for a, b, factor in self.entries}
        return all(factors.get((b, a)) == factor for (a, b), factor in factors.items())

    def of(self, w: Sequence[Array]) -> Array:
        """Its values at frequencies, whose components (...) broadcast against each other."""
        total = np.zeros(np.broadcast_shapes(*(axis.shape for axis in w)))
        for a, b, factor in self.entries:
            total += factor * (w[a] * w[b])
        return total


Factor = Index | Quadratic  # in frequency, of a derivative or as it is
Step = tuple[float, Factor, tuple[ModeWeight, Quadratic | None], Factor]


class Packing:
    """Real coefficients of a lattice's functions <-> half of a conjugate-symmetric spectrum <-> values on a grid.

    A spectrum has shape (2 m_1 + 1, ..., m_d + 1): frequencies 0 ... m, -m ... -1 along each axis but the last, whose
    negative ones are the conjugates of others.
    """

    def __init__(self, lattice: FourierLattice):
        self.orders, half = lattice.orders, lattice.half
        self.shape = (*(2 * order + 1 for order in self.orders[:-1]), self.orders[-1] + 1)
        self.size = lattice.size
        turned = half[:, -1] < 0
        self._turned = np.where(turned, -1.0, 1.0)
        self._places = self._flat(np.where(turned[:, None], -half, half))
        self._flat_half = np.flatnonzero(half[:, -1] == 0)  # whose conjugates are in the half, too
        self._mirrored = self._flat(-half[self._flat_half])
        frequencies = [np.concatenate([np.arange(o + 1), np.arange(-o, 0)]) for o in self.orders]
        frequencies[-1] = frequencies[-1][: self.orders[-1] + 1]
        unit = 2 * np.pi / lattice.period
        self._axes = np.meshgrid(*(f * u for f, u in zip(frequencies, unit, strict=True)), indexing="ij", sparse=True)

    def _flat(self, frequencies: NDArray[np.int64]) -> NDArray[np.int64]:
        wrapped = [column % (2 * order + 1) for column, order in zip(frequencies.T, self.orders, strict=True)]
        return np.asarray(np.ravel_multi_index(wrapped, self.shape))

    def symbol(self, factor: Index | Quadratic) -> Complex:
        """(i w)^alpha on a spectrum, the factor of a derivative; or a quadratic form of w."""
        if isinstance(factor, Quadratic):
            return factor.of([np.asarray(axis) for axis in self._axes]).astype(complex)
        return (1j ** sum(factor) * self.power(factor)).astype(complex)

    def power(self, alpha: Index) -> Array:
        """w^alpha on a spectrum."""
        product = np.ones(self.shape)
        for axis, order in zip(self._axes, alpha, strict=True):
            if order:
                product = product * axis**order
        return product

    def spectrum(self, vector: Array) -> Complex:
        """The spectrum of the function with coefficients (p,)."""
        h = len(self._places)
        values = np.empty(h, dtype=complex)
        values.real = vector[1 : h + 1]
        values.imag = -self._turned * vector[h + 1 :]
        values *= np.sqrt(0.5)
        spectrum = np.zeros(self.shape, dtype=complex)
        flat = spectrum.reshape(-1)
        flat[self._places] = values
        flat[self._mirrored] = values[self._flat_half].conj()
        flat[0] = vector[0]
        return spectrum

    def coefficients(self, spectrum: Complex) -> Array:
        """The means (p,) of the lattice's functions times the real function of a spectrum."""
        h, flat = len(self._places), spectrum.reshape(-1)
        values = flat[self._places]
        found = np.empty(self.size)
        found[0] = flat[0].real
        found[1 : h + 1] = np.sqrt(2) * values.real
        found[h + 1 :] = -np.sqrt(2) * self._turned * values.imag
        return found

    def grid(self, spectrum: Complex, points: Sequence[int]) -> Array:
        """The values of the function of a spectrum on a grid of so many points along each axis."""
        for axis, (order, size) in enumerate(zip(self.orders[:-1], points[:-1], strict=True)):
            padded = np.zeros((*spectrum.shape[:axis], size, *spectrum.shape[axis + 1 :]), dtype=complex)
            ahead = (slice(None),) * axis
            padded[(*ahead, slice(order + 1))] = spectrum[(*ahead, slice(order + 1))]
            padded[(*ahead, slice(size - order, None))] = spectrum[(*ahead, slice(order + 1, None))]
            spectrum = scipy.fft.ifft(padded, axis=axis, norm="forward", overwrite_x=True)
        return np.asarray(scipy.fft.irfft(spectrum, n=points[-1], norm="forward"))

    def back(self, values: Array) -> Complex:
        """The spectrum, up to the lattice's orders, of values on a grid."""
        spectrum = scipy.fft.rfft(values, norm="forward")[..., : self.orders[-1] + 1]
        for axis in reversed(range(len(self.orders) - 1)):
            order, size = self.orders[axis], values.shape[axis]
            spectrum = scipy.fft.fft(spectrum, axis=axis, norm="forward")
            ahead = (slice(None),) * axis
            kept = spectrum[(*ahead, slice(order + 1))], spectrum[(*ahead, slice(size - order, None))]
            spectrum = np.concatenate(kept, axis=axis)
        return np.asarray(spectrum)


class FormProducts:
    """The matrices (p, p) of several forms on one lattice, whose products with a vector share their transforms.

    `products(vectors)` gives a product for each form, in the shape of the vectors, (p,) or (p, k). `forms` are the
    terms of each, `modes` the mean modes (4 m_1 + 1, ..., 4 m_d + 1) of each of their weights, with
    entry j + 2m the mean of w exp(-i j.t). Row i, column j is `mean(w d_left phi_i d_right phi_j)`; functions are in
    the order of the lattice. `workers` threads share the columns of a block; the bits of a product do not depend on
    their number.

    Raises ValueError for modes of another shape than the lattice needs, or where a weight has none.

    Examples
    --------
    >>> lattice = FourierLattice(2, periods=(2 * np.pi,)).on_box(1, None, None)
    >>> uniform = np.zeros(9, dtype=complex)
    >>> uniform[4] = 1
    >>> energy = FormProducts(lattice, [[ModeTerm(1.0, ModeWeight(), (1,), (1,))]], {ModeWeight(): uniform})
    >>> energy(np.ones(5))[0].round(12)  # squared frequencies of 1, cos t, cos 2t, sin t, sin 2t
    array([0., 1., 4., 1., 4.])
    """

    def __init__(
        self,
        lattice: FourierLattice,
        forms: Sequence[Sequence[ModeTerm]],
        modes: Mapping[ModeWeight, Complex],
        *,
        workers: int = 1,
    ):
        self.lattice, self.forms, self.workers = lattice, tuple(together(form) for form in forms), workers
        self.shape = (lattice.size, lattice.size)
        self.modes = {term.weight: _checked(lattice, term.weight, modes) for form in self.forms for term in form}
        self._kills = [all(any(term.left) and any(term.right) for term in form) for form in self.forms]
        self._packing = Packing(lattice)
        self._grid = tuple(scipy.fft.next_fast_len(4 * order + 1, real=True) for order in lattice.orders)
        self._steps = _planned(self.forms, lattice, self.modes, self._packing, self._grid)

    def __call__(self, vectors: Array) -> tuple[Array, ...]:
        vectors = np.asarray(vectors)
        if len(vectors) != self.shape[0] or vectors.ndim > 2:
            raise ValueError(f"vectors have shape ({self.shape[0]},) or ({self.shape[0]}, k); got {vectors.shape}")
        block = vectors.reshape(len(vectors), -1)
        columns = by_columns(self._multiplied, block, self.workers)
        products = np.empty((len(self.forms), *block.shape[::-1]))
        for j, column in enumerate(columns):
            products[:, j] = column
        return tuple(product.T.reshape(vectors.shape) for product in products)

    def _multiplied(self, vector: Array) -> list[Array]:
        """The product of each form with one vector."""
        steps, packing = self._steps, self._packing
        spectrum = packing.spectrum(vector)
        results = [np.zeros_like(spectrum) for _ in self.forms]
        values = [packing.grid(spectrum * symbol, self._grid) for symbol in steps.rights]
        for parts, uses in steps.lefts:
            total = steps.densities[parts[0][0]] * values[parts[0][1]]
            for density, right in parts[1:]:
                total += steps.densities[density] * values[right]
            back = packing.back(total)
            for form, symbol in uses:
                results[form] += symbol * back
        products = [packing.coefficients(result) for result in results]
        for product, kills in zip(products, self._kills, strict=True):
            if kills:
                product[0] = 0
        return products

    def diagonals(self) -> tuple[Array, ...]:
        """The diagonal of each matrix, (p,)."""
        half, orders = self.lattice.half, np.array(self.lattice.orders)
        w = half * (2 * np.pi / self.lattice.period)
        found = []
        for form in self.forms:
            first, cos, sin = 0.0, np.zeros(len(half)), np.zeros(len(half))
            for term in form:
                modes = self.modes[term.weight]
                mean, double = modes[tuple(2 * orders)].real, modes[tuple((2 * half + 2 * orders).T)]
                left, right = sum(term.left), sum(term.right)
                first += term.factor * mean * (left == right == 0)
                factor = term.factor * power(w, term.left) * power(w, term.right)
                # mean(w d_a e_k conj(d_b e_k)) and mean(w d_a e_k d_b e_k), for the factors i^|a| and i^|b|
                same = (1j ** (left - right)).real * mean
                opposite = 1j ** (left + right) * double.conj()
                cos += factor * (same + opposite.real)
                sin += factor * (same - opposite.real)
            found.append(np.concatenate([[first], cos, sin]))
        return tuple(found)


def by_columns(function: Callable[[Array], Any], block: Array, workers: int) -> list[Any]:
    """A function of each column of a block (p, k), by so many threads."""
    columns = [block[:, j] for j in range(block.shape[1])]
    if workers == 1 or len(columns) == 1:
        return [function(column) for column in columns]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, columns))


@dataclass(frozen=True, eq=False)
class _Steps:
    """What a product computes: derivatives of the vector, their sums with densities, the transforms back.

    `rights` are factors of the vector's spectrum whose functions are needed on the grid. Each of `lefts` is a transform
    back of a sum of parts, density times function, by their numbers; and what multiplies it for which form.
    """

    rights: tuple[Complex, ...]
    densities: tuple[Array, ...]
    lefts: tuple[tuple[tuple[tuple[int, int], ...], tuple[tuple[int, Complex], ...]], ...]


def _planned(
    forms: Sequence[Sequence[ModeTerm]],
    lattice: FourierLattice,
    modes: Mapping[ModeWeight, Complex],
    packing: Packing,
    grid: Sequence[int],
) -> _Steps:
    """The plan of fewest transforms: derivatives on both sides, or quadratic forms of the frequency."""
    plain: list[list[Step]] = [[(t.factor, t.left, (t.weight, None), t.right) for t in form] for form in forms]
    polarised = [list(_polarised(form, lattice.dimension)) for form in forms]
    rights, densities, lefts = min((_shared(plan) for plan in (plain, polarised)), key=lambda p: len(p[0]) + len(p[2]))
    unit = 2 * np.pi / lattice.period
    axes = [np.arange(-2 * order, 2 * order + 1) * u for order, u in zip(lattice.orders, unit, strict=True)]
    differences = np.meshgrid(*axes, indexing="ij", sparse=True)
    values: dict[tuple[ModeWeight, Quadratic | None], Array] = {}
    for _, source in densities:
        if source not in values:
            weight, quadratic = source
            found = modes[weight]
            if quadratic is not None:
                found = found * quadratic.of(differences)
            values[source] = density_values(found, grid)
    return _Steps(
        tuple(packing.symbol(right) for right in rights),
        tuple(factor * values[source] for factor, source in densities),
        tuple(
            (parts, tuple((form, packing.symbol(left).conj()) for form, left in uses)) for parts, uses in lefts.items()
        ),
    )


def _shared(plan: Sequence[Sequence[Step]]) -> tuple[dict[Any, int], dict[Any, int], dict[Any, list[Any]]]:
    """Functions on the grid and densities by number, and sums of parts with the forms and factors they are used for."""
    rights: dict[Any, int] = {}
    densities: dict[Any, int] = {}
    sums: dict[tuple[int, Any], list[tuple[int, int]]] = {}
    for number, form in enumerate(plan):
        for factor, left, source, right in form:
            density = densities.setdefault((factor, source), len(densities))
            sums.setdefault((number, left), []).append((density, rights.setdefault(right, len(rights))))
    lefts: dict[Any, list[Any]] = {}
    for use, parts in sums.items():
        lefts.setdefault(tuple(parts), []).append(use)
    return rights, densities, lefts


def _polarised(form: Sequence[ModeTerm], dimension: int) -> Iterator[Step]:
    """Steps with the gradients' terms of a weight as one: 2 w.F w' = w.F w + w'.F w' - (w - w').F (w - w').

    The last is a factor of the modes, so that two functions on the grid and two transforms back are enough, whatever
    the number of variables.
    """
    none = (0,) * dimension
    first: dict[ModeWeight, list[ModeTerm]] = {}
    for term in form:
        if sum(term.left) == sum(term.right) == 1:
            first.setdefault(term.weight, []).append(term)
        else:
            yield term.factor, term.left, (term.weight, None), term.right
    for weight, terms in first.items():
        quadratic = Quadratic.half(terms)
        if not quadratic.is_symmetric:
            yield from ((t.factor, t.left, (weight, None), t.right) for t in terms)
            continue
        yield 1.0, quadratic, (weight, None), none
        yield 1.0, none, (weight, None), quadratic
        yield -1.0, none, (weight, quadratic), none


def density_values(modes: Complex, grid: Sequence[int]) -> Array:
    """sum_j c(j) exp(i j.t) on a grid of points t, for modes |j| <= M of a real weight; 2M + 1 points or more."""
    orders = [size // 2 for size in modes.shape]
    spectrum = np.zeros((*grid[:-1], orders[-1] + 1), dtype=complex)
    axes = [np.arange(-order, order + 1) for order in orders[:-1]]
    spectrum[np.ix_(*axes, np.arange(orders[-1] + 1))] = modes[..., orders[-1] :]
    return np.asarray(scipy.fft.irfftn(spectrum, s=grid, norm="forward"))


def _checked(lattice: FourierLattice, weight: ModeWeight, modes: Mapping[ModeWeight, Complex]) -> Complex:
    """The modes of a weight. Raises ValueError where there are none, or not as many as the lattice needs."""
    if weight not in modes:
        known = ", ".join(sorted(w.name for w in modes)) or "none"
        raise ValueError(f"the form needs the modes of the weight {weight.name}; there are those of {known}")
    found, shape = np.asarray(modes[weight]), tuple(4 * order + 1 for order in lattice.orders)
    if found.shape != shape:
        raise ValueError(f"modes of {weight.name} have shape {found.shape}; a lattice of these orders needs {shape}")
    return found


class SymbolInverse:
    """An approximate inverse of A + t (B + sigma A) for functions of a lattice beyond a coarse block.

    A = S Phi S and B = S L S + mu I. `modes` (4m + 1, ...) are the mean modes of the rows, `scale` (p,) the diagonal of
    S, `energy` (p,) that of L; `coarse` are the places of the functions whose inverse is known otherwise. An instance
    called with t and sigma gives the function of residuals (p, k) that `leading_iterative` takes. The density is
    smoothed by the Fejer kernel of the lattice's half order: no less than 0 anywhere.
    """

    def __init__(
        self,
        lattice: FourierLattice,
        modes: Complex,
        scale: Array,
        energy: Array,
        mu: float,
        coarse: NDArray[np.integer[Any]],
        *,
        workers: int = 1,
    ):
        self.lattice, self.workers, self.mu = lattice, workers, mu
        self._packing = Packing(lattice)
        self._grid = tuple(scipy.fft.next_fast_len(2 * order + 1, real=True) for order in lattice.orders)
        self._density = _smoothed(modes, lattice.orders, self._grid)
        h = len(lattice.half)
        mean = 0.5 * (energy[1 : h + 1] + energy[h + 1 :])  # of each cosine and its sine
        self._energy = np.concatenate([energy[:1], mean, mean]).clip(0)
        self._squares = scale**2
        self._beyond = np.ones(lattice.size, dtype=bool)
        self._beyond[np.append(coarse, 0)] = False

    def __call__(self, t: float, sigma: float) -> Callable[[Array], Array]:
        symbol, packing = self._squares * (1 + t * sigma + t * self._energy), self._packing
        if not self._beyond.any():
            return np.zeros_like
        ends = np.log(symbol[self._beyond].min()), np.log(symbol[self._beyond].max() * RATIO)
        nodes = np.linspace(*ends, max(2, 1 + round((ends[1] - ends[0]) / np.log(RATIO))))
        places = (np.log(np.maximum(symbol, symbol[self._beyond].min())) - nodes[0]) / (nodes[1] - nodes[0])
        shares = [np.sqrt(np.clip(1 - np.abs(places - number), 0, 1)) for number in range(len(nodes))]
        for share in shares:
            share[0] = 0
        factors = [1 / (self._density * np.exp(node) + t * self.mu) for node in nodes]

        def multiplied(column: Array) -> Array:
            """The sum over the bands of share * (factor on the grid) * share."""
            total = np.zeros(len(column))
            for share, factor in zip(shares, factors, strict=True):
                values = packing.grid(packing.spectrum(share * column), self._grid)
                values *= factor
                total += share * packing.coefficients(packing.back(values))
            return total

        return lambda residuals: np.array(by_columns(multiplied, residuals, self.workers)).T


def _smoothed(modes: Complex, orders: tuple[int, ...], grid: tuple[int, ...]) -> Array:
    """The density on a grid, smoothed by the Fejer kernel of half the lattice's order, along each axis."""
    kept = modes[tuple(slice(order, 3 * order + 1) for order in orders)]
    for axis, order in enumerate(orders):
        weights = np.maximum(0, 1 - np.abs(np.arange(-order, order + 1)) / (0.5 * order + 1))
        kept = kept * weights.reshape([-1 if a == axis else 1 for a in range(len(orders))])
    return np.maximum(density_values(kept, grid), 0)
