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
    """sum_i c_i phi_i at rows, (c, k), for coefficients (p, k), complex where these are; less the `means` (k,)."""

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
    """Gradients in the raw columns of X at rows, (c, m n_features), target by target, for coefficients (p, m).

    Columns that are not used have derivative 0.
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
