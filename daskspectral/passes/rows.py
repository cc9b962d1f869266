"""A function of rows: what it does with a block of points; the loop over blocks is here, once."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Preparation
from daskspectral.errors import renumbered

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class RowFunction(ABC):
    """Raw rows (c, n_features) to (c, columns): `preparation` of the rows, then `block` by block.

    With `nan_rows`, invalid rows, and those at which the function is not defined, become NaN instead of an error.
    """

    preparation: Preparation = field(default_factory=Preparation)
    nan_rows: bool = False

    @property
    @abstractmethod
    def columns(self) -> int:
        """How many numbers there are of a row."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Their type."""
        return np.dtype(float)

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """How many rows make a block; None where the function takes any number at once."""

    @abstractmethod
    def block(self, x: Array, out: Array) -> None:
        """The values at valid, prepared points x (c, d) into `out` (c, columns); NaN where they are undefined."""

    def undefined(self, x: Array, count: int) -> str:
        """The message where values are undefined at the points x, some of `count`."""
        return f"the function is undefined at {len(x)} of {count} rows, the first of them {x[0]}"

    @final
    def __call__(self, rows: Any) -> Array:
        """The values at raw rows."""
        return self._blocks(np.asarray(rows), self.preparation)

    @final
    def of_prepared(self, x: Array) -> Array:
        """The values at rows that are prepared already, (c, d)."""
        return self._blocks(x, Preparation())

    def _blocks(self, rows: Array, preparation: Preparation) -> Array:
        result = np.empty((len(rows), self.columns), self.dtype)
        step = self.rows or max(1, len(rows))
        for start in range(0, len(rows), step):
            x = np.asarray(preparation(rows[start : start + step]), dtype=float)
            out = result[start : start + step]
            valid = np.isfinite(x).all(axis=1)
            if not valid.any():
                out[:] = np.nan
                continue
            if not valid.all():
                x = np.where(valid[:, None], x, x[valid.argmax()])  # 0 may be no point of a manifold
            with renumbered(partial(operator.add, start)):
                self.block(x, out)
            lost = valid & np.isnan(out).any(axis=1)
            if lost.any() and not self.nan_rows:
                raise ValueError(self.undefined(x[lost], len(x)))
            out[~valid] = np.nan
        return result
