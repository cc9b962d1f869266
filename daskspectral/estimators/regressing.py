"""One pass of the sums of regression on values and gradients, and the gradient of its solution at rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.basis.gradient import SpanGradient
from daskspectral.data.readers import ZarrReader
from daskspectral.data.source import Preparation, Source
from daskspectral.engine import Run
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import check_memory, local_threads, predict_memory, release
from daskspectral.estimators.measuring import Store, plan_of
from daskspectral.moments import NUMBER, Measure, Moments, block_rows
from daskspectral.operators.regression import Regression

Array = NDArray[np.floating[Any]]


def checked_targets(source: Source) -> Regression:
    """What the shapes of y and the gradients ask for. Raises ValueError where they do not fit."""
    shapes = {name: reader.shape for name, reader in source.readers.items()}
    if "y" not in shapes:
        raise ValueError("y is None; give the values to fit, (n,), or (n, m) for m targets")
    y = shapes["y"]
    if len(y) > 2 or 0 in y:
        raise ValueError(f"y must have shape (n,), or (n, m) for m targets; it has shape {y}")
    wanted = (*y, source.n_features_in)
    accepted = {wanted, (y[0], source.n_features_in)} if y[1:] in ((), (1,)) else {wanted}  # of a column, (n, d) too
    if "gradients" in shapes and shapes["gradients"] not in accepted:
        raise ValueError(
            f"gradients must have shape {wanted}, a derivative of y for each column of X; they have shape "
            f"{shapes['gradients']}"
        )
    return Regression("gradients" in shapes, y[1] if len(y) == 2 else None)


@dataclass(frozen=True, eq=False)
class MeasureRegression:
    """The sums of one range: forms, right-hand sides (p, m), squared norms (m,) of values and gradients.

    `observed` counts the rows of positive weight. Gradients, given in the raw columns of X, follow the preparation of
    the columns by the chain rule.
    """

    measure: Measure
    preparation: Preparation

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        """The sums over the rows of these batches."""
        totals: dict[str, Array] = {}

        def prepared() -> Iterator[dict[str, Array]]:
            for batch in batches:
                fields = self._fields(batch)
                for name, part in _squares(fields).items():
                    totals[name] = totals[name] + part if name in totals else part
                yield fields

        sums = self.measure(prepared())
        slopes = [sums.pop(name) for name in self.measure.functionals if name != "values" and name in sums]
        return sums | ({"slopes": np.column_stack(slopes)} if slopes else {}) | totals

    def _fields(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        fields = {name: values for name, values in batch.items() if name in ("x", "weight", NUMBER)}
        fields["y"] = np.asarray(batch["y"], dtype=float).reshape(len(batch["y"]), -1)
        if "gradients" in batch:
            t = np.asarray(batch["gradients"], dtype=float)
            t = t.reshape(*fields["y"].shape, t.shape[-1])
            columns, scale = self.preparation.columns, self.preparation.scale
            t = t if columns is None else t[:, :, list(columns)]
            fields["gradients"] = t if scale is None else t * scale
        return fields


def _squares(fields: Mapping[str, Array]) -> dict[str, Array]:
    y = fields["y"]
    w = np.asarray(fields["weight"], dtype=float) if "weight" in fields else np.ones(len(y))
    with np.errstate(over="ignore"):  # infinity is refused later
        y = y**2
    squares = {"value_squares": w @ y, "observed": np.array([np.count_nonzero(w)], dtype=float)}
    if "gradients" in fields:
        squares["slope_squares"] = np.einsum("k,kjd,kjd->j", w, fields["gradients"], fields["gradients"])
    return squares


def measure_regression(
    source: Source,
    basis: Basis,
    operator: Regression,
    *,
    dtype: str,
    on_invalid: str,
    progress: bool | None,
    store: Store,
    checkpoint: Checkpoint | None = None,
    start: int = 0,
) -> Moments:
    """The moments of the rows from `start` on, in one pass on the active scheduler.

    Raises as `Run.reduce` does, MemoryError where the pass would not fit, OSError where the data changed meanwhile.
    """
    functionals, threads = operator.functionals, local_threads()
    plan = plan_of(source, basis.size, start)
    readers = [r for r in source.readers.values() if isinstance(r, ZarrReader)]
    release()
    memory = predict_memory(
        basis.size,
        source.dimension,
        rows=block_rows(basis.size),
        dtype=dtype,
        threads=threads,
        live=plan.live(1 + math.ceil(threads / plan.epoch)),
        chunk_bytes=sum(max(1 << 20, r.chunk * int(np.prod(r.shape[1:])) * r.dtype.itemsize) for r in readers),
        buffers=2 + len(functionals),
    )
    check_memory(memory)
    task = MeasureRegression(Measure(basis, basis, operator.forms, functionals, dtype=dtype), source.preparation)
    run = Run(source, plan, None, on_invalid, progress, "fit")
    total = run.reduce(task, checkpoint=checkpoint)
    store.check_unchanged()
    release()
    return Moments(
        arrays=total.sums,
        weight=total.weight,
        count=total.count,
        basis=basis,
        operator=operator,
        skipped=total.skipped,
        dtype=dtype,
        preparation=source.preparation.state() | {"n_features_in": source.n_features_in},
        rows=source.n - start,
    )


@dataclass(frozen=True, eq=False)
class Slopes:
    """Gradients in the raw columns of X at raw rows: (c, n_features) to (c, m n_features), target by target.

    Columns that are not used have derivative 0.
    """

    basis: LandmarkBasis
    coefficients: Array
    preparation: Preparation
    n_features: int
    nan_rows: bool = False

    @property
    def width(self) -> int:
        """m n_features."""
        return int(self.coefficients.shape[1]) * self.n_features

    def __call__(self, rows: Any) -> Array:
        """The gradients at these rows, in blocks; invalid rows become NaN where that was asked for."""
        return self._blocks(np.asarray(rows), self.preparation)

    def of_prepared(self, x: Array) -> Array:
        """The same of rows that are prepared already, (c, d)."""
        return self._blocks(x, Preparation())

    def _blocks(self, rows: Array, preparation: Preparation) -> Array:
        gradient = SpanGradient(self.basis, self.coefficients)
        columns, scale = self.preparation.columns, self.preparation.scale
        used = slice(None) if columns is None else list(columns)
        result = np.zeros((len(rows), self.coefficients.shape[1], self.n_features))
        step = block_rows(self.basis.size)
        for start in range(0, len(rows), step):
            x = np.asarray(preparation(rows[start : start + step]), dtype=float)
            valid = np.isfinite(x).all(axis=1)
            slopes = gradient(np.where(valid[:, None], x, 0.0))
            block = result[start : start + step]
            block[:, :, used] = slopes if scale is None else slopes / scale
            block[~valid] = np.nan
        return result.reshape(len(rows), -1)


def shaped(result: Any, name: str, shape: tuple[int, ...], dims: tuple[str, ...], coords: Mapping[Any, Any]) -> Any:
    """Rows (n, width) as (n, *shape) in the same container; the names are those of an xarray object."""
    if not isinstance(result, xr.DataArray):
        return result.reshape(len(result), *shape)
    kept = {key: c for key, c in result.coords.items() if "component" not in (key, *c.dims)}
    data = result.data.reshape(len(result), *shape)
    return xr.DataArray(data, dims=(result.dims[0], *dims[: len(shape)]), coords={**kept, **coords}, name=name)
