"""Functions in the span of a basis, and their gradients, at rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Arena, Basis, Block, LandmarkBasis
from daskspectral.basis.base import VALUE
from daskspectral.basis.gradient import SpanGradient
from daskspectral.moments import block_rows
from daskspectral.passes.rows import RowFunction

Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class SpanValues(RowFunction):
    """The values at rows, (c, k), of k functions sum_i coefficients_ij phi_i in the span of a basis of p functions.

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
        return block_rows(self.basis.size)

    def block(self, x: Array, out: Array) -> None:
        feature = self.basis.at(Block({"x": x}, np.dtype(float), Arena()), [VALUE]).feature(VALUE)
        out[:] = feature.T @ self.coefficients
        if self.means is not None:
            out -= self.means


@final
@dataclass(frozen=True, eq=False)
class SpanSlopes(RowFunction):
    """The gradients at rows of m functions in the span of a basis of p functions, with coefficients (p, m).

    They are (c, m n_features), function by function, by the raw columns of X; columns that are not used have
    derivative 0.
    """

    basis: LandmarkBasis
    coefficients: Array
    n_features: int

    @property
    def columns(self) -> int:
        return int(self.coefficients.shape[1]) * self.n_features

    @property
    def rows(self) -> int:
        return block_rows(self.basis.size)

    @cached_property
    def _gradient(self) -> SpanGradient:
        return SpanGradient(self.basis, self.coefficients)

    def block(self, x: Array, out: Array) -> None:
        columns, scale = self.preparation.columns, self.preparation.scale
        slopes = np.zeros((len(x), self.coefficients.shape[1], self.n_features))
        found = self._gradient(x)
        slopes[:, :, slice(None) if columns is None else list(columns)] = found if scale is None else found / scale
        out[:] = slopes.reshape(len(x), -1)
