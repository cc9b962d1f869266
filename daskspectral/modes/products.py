"""Products of the matrices of forms on a lattice with vectors, by fast Fourier transforms, without the matrices.

A form mean(w d_a f d_b g) is an integral against the density sum_j c_w(j) exp(i j.t) of the modes of its weight. On a
grid of 4m + 1 points or more along each axis it is exact: derivatives are factors in frequency, the density is a factor
on the grid. One product costs a few transforms of the grid, 2^d times as many points as there are functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from daskspectral.basis.lattice import FourierLattice
from daskspectral.modes.terms import Index, ModeTerm, ModeWeight

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]


class FormProduct:
    """The matrix (p, p) of a form on a lattice, as something that multiplies vectors (p,) or blocks of them (p, k).

    `terms` are those of the form, `modes` the mean modes (4 m_1 + 1, ..., 4 m_d + 1) of each of their weights, with
    entry j + 2m the mean of w exp(-i j.t). Rows stand for the left function, as in `mean(w d_left phi_i d_right phi_j)`;
    functions are in the order of the lattice. `workers` threads share the columns of a block; the bits of a product do
    not depend on their number.

    Raises ValueError for modes of another shape than the lattice needs, or where a weight has none.

    Examples
    --------
    >>> lattice = FourierLattice(2, periods=(2 * np.pi,)).laid(1, None, None)
    >>> uniform = np.zeros(9, dtype=complex)
    >>> uniform[4] = 1
    >>> energy = FormProduct(lattice, [ModeTerm(1.0, ModeWeight(), (1,), (1,))], {ModeWeight(): uniform})
    >>> (energy @ np.ones(5)).round(12)  # squared frequencies of 1, cos t, cos 2t, sin t, sin 2t
    array([0., 1., 4., 1., 4.])
    """

    def __init__(
        self,
        lattice: FourierLattice,
        terms: Iterable[ModeTerm],
        modes: Mapping[ModeWeight, Complex],
        *,
        workers: int = 1,
    ):
        self._products = FormProducts(lattice, [tuple(terms)], modes, workers=workers)

    @property
    def shape(self) -> tuple[int, int]:
        """(p, p)."""
        return self._products.shape

    def __matmul__(self, vectors: Array) -> Array:
        return self._products(vectors)[0]

    def diagonal(self) -> Array:
        """The diagonal of the matrix, (p,)."""
        return self._products.diagonals()[0]


class FormProducts:
    """The matrices of several forms on one lattice, whose products with a vector share their transforms.

    `products(vectors)` gives a product for each form, in the shape of the vectors, (p,) or (p, k). Parameters are those
    of `FormProduct`, with the terms of each form in `forms`.
    """

    def __init__(
        self,
        lattice: FourierLattice,
        forms: Sequence[Sequence[ModeTerm]],
        modes: Mapping[ModeWeight, Complex],
        *,
        workers: int = 1,
    ):
        self.lattice, self.forms, self.workers = lattice, tuple(tuple(form) for form in forms), workers
        self.shape = (lattice.size, lattice.size)
        self._modes = {weight: _checked(lattice, weight, modes) for weight in _weights(self.forms)}
        self._packing = Packing(lattice)
        self._grid = tuple(scipy.fft.next_fast_len(4 * order + 1, real=True) for order in lattice.orders)
        self._steps = _planned(self.forms, lattice, self._modes, self._packing, self._grid)

    def __call__(self, vectors: Array) -> tuple[Array, ...]:
        vectors = np.asarray(vectors)
        if len(vectors) != self.shape[0] or vectors.ndim > 2:
            raise ValueError(f"vectors have shape ({self.shape[0]},) or ({self.shape[0]}, k); got {vectors.shape}")
        block = vectors.reshape(len(vectors), -1)
        products = tuple(np.empty(block.shape, order="F") for _ in self.forms)

        def column(j: int) -> None:
            for product, one in zip(products, self._multiplied(block[:, j]), strict=True):
                product[:, j] = one

        if self.workers > 1 and block.shape[1] > 1:
            with ThreadPoolExecutor(self.workers) as pool:
                list(pool.map(column, range(block.shape[1])))
        else:
            for j in range(block.shape[1]):
                column(j)
        return tuple(product.reshape(vectors.shape) for product in products)

    def _multiplied(self, vector: Array) -> list[Array]:
        """The product of each form with one vector."""
        steps, packing = self._steps, self._packing
        spectrum = packing.spectrum(vector)
        results = [np.zeros_like(spectrum) for _ in self.forms]
        values: list[Array] = [packing.grid(spectrum * symbol, self._grid) for symbol in steps.rights]
        for form, symbol, parts in steps.lefts:
            total = steps.densities[parts[0][0]] * values[parts[0][1]]
            for density, right in parts[1:]:
                total += steps.densities[density] * values[right]
            results[form] += symbol * packing.back(total)
        return [packing.coefficients(result) for result in results]

    def diagonals(self) -> tuple[Array, ...]:
        """The diagonal of each matrix, (p,)."""
        half, orders = self.lattice.half, np.array(self.lattice.orders)
        w = half * (2 * np.pi / self.lattice.period)
        found = []
        for form in self.forms:
            first, cos, sin = 0.0, np.zeros(len(half)), np.zeros(len(half))
            for term in form:
                modes = self._modes[term.weight]
                mean, double = modes[tuple(2 * orders)].real, modes[tuple((2 * half + 2 * orders).T)]
                left, right = sum(term.left), sum(term.right)
                first += term.factor * mean * (left == right == 0)
                factor = term.factor * _power(w, term.left) * _power(w, term.right)
                # mean(w d_a e_k conj(d_b e_k)) and mean(w d_a e_k d_b e_k), for the factors i^|a| and i^|b|
                same = (1j ** (left - right)).real * mean
                opposite = 1j ** (left + right) * double.conj()
                cos += factor * (same + opposite.real)
                sin += factor * (same - opposite.real)
            found.append(np.concatenate([[first], cos, sin]))
        return tuple(found)

    def truncated(self, orders: Sequence[int]) -> FormProducts:
        """The same forms on the lattice of the lower frequencies, from the modes that they need."""
        lower = self.lattice.truncated(orders)
        centre = tuple(
            slice(2 * (all_ - some), 2 * (all_ + some) + 1)
            for all_, some in zip(self.lattice.orders, lower.orders, strict=True)
        )
        modes = {weight: modes[centre] for weight, modes in self._modes.items()}
        return FormProducts(lower, self.forms, modes, workers=self.workers)


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

    def symbol(self, alpha: Index) -> Complex:
        """(i w)^alpha on a spectrum, the factor of a derivative."""
        return np.asarray(1j ** sum(alpha) * self.power(alpha), dtype=complex)

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


@dataclass(frozen=True, eq=False)
class _Steps:
    """What a product computes: derivatives of the vector, their sums with densities, the transforms back.

    `rights` are symbols of the derivatives that are needed on the grid; `lefts` has (form, symbol, parts) for each
    transform back, of the sum over its parts of density times derivative, by their numbers.
    """

    rights: tuple[Complex, ...]
    densities: tuple[Array, ...]
    lefts: tuple[tuple[int, Complex, tuple[tuple[int, int], ...]], ...]


def _planned(
    forms: Sequence[Sequence[ModeTerm]],
    lattice: FourierLattice,
    modes: Mapping[ModeWeight, Complex],
    packing: Packing,
    grid: Sequence[int],
) -> _Steps:
    rights: dict[Index, int] = {}
    densities: dict[tuple[ModeWeight, float], int] = {}
    lefts: dict[tuple[int, Index], list[tuple[int, int]]] = {}
    for number, form in enumerate(forms):
        for term in form:
            density = densities.setdefault((term.weight, term.factor), len(densities))
            right = rights.setdefault(term.right, len(rights))
            lefts.setdefault((number, term.left), []).append((density, right))
    on_grid = {weight: density_values(modes[weight], lattice.orders, grid) for weight, _ in densities}
    return _Steps(
        tuple(packing.symbol(alpha) for alpha in rights),
        tuple(factor * on_grid[weight] for weight, factor in densities),
        tuple((form, packing.symbol(alpha).conj(), tuple(parts)) for (form, alpha), parts in lefts.items()),
    )


def density_values(modes: Complex, orders: Sequence[int], grid: Sequence[int]) -> Array:
    """sum_j c(j) exp(i j.t) on a grid of points t, for modes (4m + 1, ...) of a real weight; 4m + 1 points or more."""
    spectrum = np.zeros((*grid[:-1], 2 * orders[-1] + 1), dtype=complex)
    axes = [np.arange(-2 * order, 2 * order + 1) for order in orders[:-1]]
    spectrum[np.ix_(*axes, np.arange(2 * orders[-1] + 1))] = modes[..., 2 * orders[-1] :]
    return np.asarray(scipy.fft.irfftn(spectrum, s=grid, norm="forward"))


def _power(w: Array, alpha: Index) -> Array:
    return np.asarray(np.prod(w ** np.array(alpha), axis=1))


def _weights(forms: Iterable[Iterable[ModeTerm]]) -> list[ModeWeight]:
    return list(dict.fromkeys(term.weight for form in forms for term in form))


def _checked(lattice: FourierLattice, weight: ModeWeight, modes: Mapping[ModeWeight, Complex]) -> Complex:
    """The modes of a weight. Raises ValueError where there are none, or not as many as the lattice needs."""
    if weight not in modes:
        known = ", ".join(sorted(w.name for w in modes)) or "none"
        raise ValueError(f"the form needs the modes of the weight {weight.name}; there are those of {known}")
    found, shape = np.asarray(modes[weight]), tuple(4 * order + 1 for order in lattice.orders)
    if found.shape != shape:
        raise ValueError(f"modes of {weight.name} have shape {found.shape}; a lattice of these orders needs {shape}")
    return found
