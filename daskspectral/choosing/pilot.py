"""Pilot sample of an automatic choice: rows in memory, on which candidate bases are measured by fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.data.source import Source
from daskspectral.data.writing import progress_bar
from daskspectral.engine.sampling import draw_fields
from daskspectral.moments.counting import repeats
from daskspectral.moments.folds import FOLD, distinct_rows
from daskspectral.moments.summing import SumTask
from daskspectral.moments.trial import Trial
from daskspectral.operators import Operator
from daskspectral.operators.base import derivative_orders
from daskspectral.passes.sums import measure_of

Array = NDArray[np.floating[Any]]
ROWS = 10_000
FOLDS = 10
LEAST_DISTINCT = 0.5  # of the rows


@dataclass(frozen=True, eq=False)
class Pilot:
    """Rows in memory: prepared `fields`, `raw` points of each view, and the fold of each row (m,), of `folds`.

    Each trial calls `tried`.
    """

    source: Source
    operator: Operator
    fields: Mapping[str, Array]
    raw: Mapping[str, Array]
    fold: NDArray[np.int64]
    folds: int
    tried: Callable[[], object] = bool  # nothing

    @classmethod
    def draw(cls, source: Source, operator: Operator, rng: np.random.Generator, *, blocks: bool) -> Pilot:
        """Return a sample of 10 000 rows of the source, or all.

        Folds are labels if the source has them, else contiguous if `blocks`, else random. Raises InvalidRowError for
        the first invalid row (on_invalid="raise"), and ValueError if no row is valid or has weight.
        """
        numbers, fields = draw_fields(source, ROWS, rng)
        if not len(numbers):
            raise ValueError(f"every row is invalid. {source.remedy(1.0)}")
        if "weight" in fields:  # rows without weight contain no information, and could be one half of the folds
            heavy = fields["weight"] > 0
            fields = {name: values[heavy] for name, values in fields.items()}
        m = len(fields["x"])
        if not m:
            raise ValueError(
                f"the total sample weight of the pilot sample must be positive, got 0 in {len(numbers)} rows"
            )
        raw = {view: fields[view] for view in source.preparations}
        fields |= {view: np.asarray(prepare(raw[view])) for view, prepare in source.preparations.items()}
        folds = min(FOLDS, m)
        if FOLD in fields:
            labels, fold = np.unique(fields.pop(FOLD), return_inverse=True)
            folds = len(labels)
        elif blocks:
            fold = np.arange(m) * folds // m
        else:  # copies of a row must be in the same fold
            rows = cls(source, operator, fields, raw, np.zeros(m, np.int64), 1).repeated
            rows = distinct_rows(source.preparation.selected(raw["x"])) if rows is None else rows
            number = int(rows.max()) + 1
            folds = min(folds, number)
            fold = rng.permutation(np.arange(number) * folds // number)[rows]
        return cls(source, operator, fields, raw, fold, folds)

    @contextmanager
    def counted(self) -> Iterator[Pilot]:
        """Yield the same with a progress bar that counts trials."""
        with progress_bar(None, "choice", self.source.progress, unit="trials", leave=False) as bar:
            yield replace(self, tried=bar.update)

    @property
    def rows(self) -> int:
        return len(self.fold)

    @cached_property
    def repeated(self) -> NDArray[np.intp] | None:
        """Numbers (m,), equal for equal points, if most rows have copies and the operator has derivatives.

        Otherwise None. Equal rows contain no information on slopes: candidates are evaluated at distinct points.
        """
        if not any(derivative_orders(self.operator)):
            return None
        points, numbers = np.unique(self.points("x"), axis=0, return_inverse=True)
        return numbers.reshape(self.rows) if len(points) < LEAST_DISTINCT * self.rows else None

    @property
    def distinct(self) -> int:
        """Number of distinct points if most rows have copies; else of all rows."""
        return self.rows if self.repeated is None else int(self.repeated.max()) + 1

    @property
    def repeats(self) -> float:
        """Mean multiplicity of rows by their weights, at least 1."""
        return repeats(self.fields["weight"]) if "weight" in self.fields else 1.0

    def among(self, kept: NDArray[Any]) -> Pilot:
        """Return the rows that are `kept` (m,), or have these numbers."""
        fields = {name: values[kept] for name, values in self.fields.items()}
        return replace(self, fields=fields, raw={k: v[kept] for k, v in self.raw.items()}, fold=self.fold[kept])

    def thinned(self, size: int, kept: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Pilot, NDArray[np.intp]]:
        """Return about `size` rows, at most half of them from `kept` (m,), and their numbers."""
        chosen, others = np.flatnonzero(kept), np.flatnonzero(~kept)
        if len(chosen) > size // 2:
            chosen = rng.choice(chosen, size // 2, replace=False)
        drawn = rng.choice(others, min(len(others), size - len(chosen)), replace=False)
        rows = np.sort(np.concatenate([chosen, drawn]))
        return self.among(rows), rows

    def points(self, view: str) -> Array:
        return self.fields[view]

    def with_merged_folds(self, part: NDArray[np.int64]) -> Pilot:
        """Return the same rows with fold i assigned to part `part` (folds,) i."""
        return replace(self, fold=part[self.fold], folds=int(part.max()) + 1)

    def trial(self, basis: Basis, right: Basis | None, landmark: NDArray[np.bool_], dtype: str) -> Trial:
        """Return the bases measured on these rows, without validation on rows marked by `landmark` (m,)."""
        self.tried()
        preparation = self.source.preparation
        measure = measure_of(basis, right, self.operator, dtype)
        task = SumTask(measure, self.operator, preparation.scale, preparation.columns)
        return Trial.measure(task, self.fields, self.fold, landmark, self.folds)
