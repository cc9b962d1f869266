"""Functions in the span of a basis, evaluated at rows."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Arena, Basis, Block
from daskspectral.basis.base import VALUE
from daskspectral.data.source import Preparation
from daskspectral.errors import renumbered
from daskspectral.moments import block_rows

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Eigenfunctions:
    """Functions of a basis at raw rows: (c, n_features) to (c, k), complex where the coefficients (p, k) are.

    `means` (k,), where given, are taken off.
    """

    basis: Basis
    coefficients: NDArray[np.inexact[Any]]
    preparation: Preparation
    nan_rows: bool = False
    means: NDArray[np.inexact[Any]] | None = None

    @property
    def width(self) -> int:
        """k."""
        return int(self.coefficients.shape[1])

    def __call__(self, rows: Any) -> Array:
        """The values at these rows, in blocks; invalid rows become NaN where that was asked for."""
        return self._blocks(np.asarray(rows), self.preparation)

    def of_prepared(self, x: Array) -> Array:
        """The values at rows that are prepared already, (c, d) to (c, k)."""
        return self._blocks(x, Preparation())

    def _blocks(self, rows: Array, preparation: Preparation) -> Array:
        arena = Arena()
        result = np.empty((len(rows), self.width), self.coefficients.dtype)
        step = block_rows(self.basis.size)
        for start in range(0, len(rows), step):
            x = np.asarray(preparation(rows[start : start + step]), dtype=float)
            valid = np.isfinite(x).all(axis=1)
            if not valid.all():
                if not valid.any():
                    result[start : start + step] = np.nan
                    continue
                x = np.where(valid[:, None], x, x[valid.argmax()])  # 0 may be no point of the basis' manifold
            block = Block({"x": x}, np.dtype(float), arena)
            with renumbered(partial(operator.add, start)):
                feature = self.basis.at(block, [VALUE]).feature(VALUE)
            result[start : start + step] = feature.T @ self.coefficients
            if self.means is not None:
                result[start : start + step] -= self.means
            result[start : start + step][~valid] = np.nan
        return result
