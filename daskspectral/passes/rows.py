"""Functions of rows: each evaluates a block of points; the loop over blocks is here, once."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.batches import usable
from daskspectral.data.source import Preparation
from daskspectral.engine.tasks import Tally
from daskspectral.errors import renumbered

Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Guessed:
    """At which points (c,) values are a guess, and how `far` (c,) each is from being none, where that is measured."""

    rows: NDArray[np.bool_]
    far: Array | None = None

    def tally(self, valid: NDArray[np.bool_]) -> Tally:
        """How many of the valid points they are, and the farthest."""
        rows = self.rows & valid
        far = 0.0 if self.far is None else float(self.far[rows].max(initial=0))
        return Tally(int(np.count_nonzero(rows)), far)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowFunction(ABC):
    """A function from raw rows (c, n_features) to values (c, columns): rows are prepared, then evaluated in blocks.

    With `nan_rows`, invalid rows and rows where the function is undefined become NaN instead of an error. What costs
    is computed on the `device`.
    """

    preparation: Preparation = field(default_factory=Preparation)
    nan_rows: bool = False
    device: str = "cpu"

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of values for each row."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return np.dtype(float)

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """The number of rows in a block; None where the function takes any number at once."""

    @abstractmethod
    def block(self, x: Array, out: Array) -> Guessed | None:
        """Write the values at valid, prepared points x (c, d) into `out` (c, columns); NaN where they are undefined.

        Returns at which points the values are a guess, of which `doubt` tells; None where they are none.
        """

    def undefined(self, x: Array, count: int) -> str:
        """The error message for values that are undefined at points x (m, d), out of `count` rows."""
        return f"the function is undefined at {len(x)} of {count} rows, the first of them {x[0]}"

    def doubt(self, found: Tally, count: int) -> str:
        """The warning for values that are a guess at those `found` out of `count` rows."""
        return f"the values are a guess at {found.count} of {count} rows"

    @final
    def __call__(self, rows: Any) -> tuple[Array, Tally]:
        """The values (c, columns) at raw rows, and at how many they are a guess.

        Raises ValueError where they are undefined, unless `nan_rows`.
        """
        return self._blocks(np.asarray(rows), self.preparation)

    @final
    def of_prepared(self, x: Array) -> tuple[Array, Tally]:
        """The values (c, columns) at rows that are prepared already, (c, d), and at how many they are a guess."""
        return self._blocks(x, Preparation())

    def _blocks(self, rows: Array, preparation: Preparation) -> tuple[Array, Tally]:
        result = np.empty((len(rows), self.columns), self.dtype)
        step, found = self.rows or max(1, len(rows)), Tally()
        for start in range(0, len(rows), step):
            x = np.asarray(preparation(rows[start : start + step]), dtype=float)
            out = result[start : start + step]
            valid: NDArray[np.bool_] = np.asarray(usable(x).all(axis=1))
            if not valid.any():
                out[:] = np.nan
                continue
            if not valid.all():
                x = np.where(valid[:, None], x, x[valid.argmax()])  # 0 may be no point of a manifold
            with renumbered(partial(operator.add, start)):
                guessed = self.block(x, out)
            lost = valid & np.isnan(out).any(axis=1)
            if guessed is not None:
                found += guessed.tally(valid)
                lost &= ~guessed.rows
            if lost.any() and not self.nan_rows:
                raise ValueError(self.undefined(x[lost], len(x)))
            out[~valid] = np.nan
        return result, found
