"""Spectra of real functions on a lattice, as products by fast Fourier transforms take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from daskspectral.basis.lattice import FourierLattice
from daskspectral.modes.terms import Index, ModeTerm

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]


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
