"""Functions in the span of a basis, and their gradients, at rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Arena, Basis, Block, FourierLattice, LandmarkBasis
from daskspectral.basis.base import VALUE
from daskspectral.basis.gradient import SpanGradient
from daskspectral.modes.functions import NUFFT_ROWS, LatticeValues
from daskspectral.moments import block_rows
from daskspectral.passes.rows import RowFunction

Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class SpanValues(RowFunction):
    """The values at rows, (c, k), of k functions sum_i coefficients_ij phi_i in the span of a basis of p functions.

    Rows outside the box of a lattice have the values of its nearest point, and the derivative 0 along the way there.

    `coefficients` (p, k), real or complex, decide the dtype; the `means` (k,), where given, are subtracted.
    """

    basis: Basis
    coefficients: Array
    means: Array | None = None

    @property
    def columns(self) -> int:
        return int(self.coefficients.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.coefficients.dtype)

    @property
    def rows(self) -> int:
        return _rows(self.basis)

    @cached_property
    def _lattice(self) -> LatticeValues | None:
        return LatticeValues(self.basis.orders, self.coefficients) if isinstance(self.basis, FourierLattice) else None

    def block(self, x: Array, out: Array) -> None:
        if self._lattice is not None and isinstance(self.basis, FourierLattice):
            out[:] = self._lattice(self.basis.angles(self.basis.nearest(x)[0]))
        else:
            self._dense(x, out)
        if self.means is not None:
            out -= self.means

    def _dense(self, x: Array, out: Array) -> None:
        feature = self.basis.at(Block({"x": x}, np.dtype(float), Arena()), [VALUE]).feature(VALUE)
        out[:] = feature.T @ self.coefficients


@final
@dataclass(frozen=True, eq=False)
class SpanSlopes(RowFunction):
    """The gradients at rows of m functions in the span of a basis of p functions, with coefficients (p, m).

    They are (c, m n_features), function by function, by the raw columns of X; columns that are not used have
    derivative 0.
    """

    basis: LandmarkBasis | FourierLattice
    coefficients: Array
    n_features: int

    @property
    def columns(self) -> int:
        return int(self.coefficients.shape[1]) * self.n_features

    @property
    def rows(self) -> int:
        return _rows(self.basis)

    @cached_property
    def _gradient(self) -> Callable[[Array], Array]:
        basis = self.basis
        if isinstance(basis, FourierLattice):
            values, factors = LatticeValues(basis.orders, self.coefficients), 2 * np.pi / basis.period

            def gradient(x: Array) -> Array:
                points, outside = basis.nearest(x)
                found = np.asarray(values.gradient(basis.angles(points)) * factors)
                if outside is not None:
                    found[np.broadcast_to(outside[:, None], found.shape)] = 0.0
                return found

            return gradient
        return SpanGradient(basis, self.coefficients)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_gradient"}

    def block(self, x: Array, out: Array) -> None:
        columns, scale = self.preparation.columns, self.preparation.scale
        slopes = np.zeros((len(x), self.coefficients.shape[1], self.n_features))
        found = self._gradient(x)
        slopes[:, :, slice(None) if columns is None else list(columns)] = found if scale is None else found / scale
        out[:] = slopes.reshape(len(x), -1)


def _rows(basis: Basis) -> int:
    """Rows of a block."""
    return NUFFT_ROWS if isinstance(basis, FourierLattice) else block_rows(basis.size)
