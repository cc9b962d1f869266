"""Rows drawn from a source by their global numbers, for landmarks, bandwidths and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source
from daskspectral.engine.plan import Plan, plan_rows
from daskspectral.engine.run import Run
from daskspectral.errors import InvalidRowError
from daskspectral.moments import NUMBER

Array = NDArray[Any]
DRAWN_CHUNKS = 256  # limit of chunks for a draw of whole rows


def _table(names: tuple[str, ...], batch: Mapping[str, Array], state: Any = None) -> Array:
    """Return a table (m, 1 + w) of a batch: row numbers, then the named fields as columns."""
    fields = [np.asarray(batch[name], dtype=float).reshape(len(batch[NUMBER]), -1) for name in names]
    return np.hstack([batch[NUMBER].astype(float)[:, None], *fields])


def count_rows(batches: Any, state: Any = None) -> dict[str, Array]:
    """Return no sums: the run counts and weighs rows, and raises for the lowest invalid one."""
    for _ in batches:
        pass
    return {}


def draw_rows(
    source: Source,
    size: int,
    rng: np.random.Generator,
    *,
    view: str = "x",
    raw: bool = False,
    description: str = "sample",
) -> tuple[Array, Array]:
    """Return `size` distinct rows drawn uniformly: sorted numbers (size,) and prepared points (size, d), float64.

    The points are rows of the field `view`, with `raw` before preparation, (size, n_features_in); a row is valid if all
    its fields are. The draw depends on the generator and the number of rows only. Invalid rows raise InvalidRowError
    for the lowest one of the whole source, or with on_invalid="skip" are replaced by further draws (fewer rows if no
    more exist), as are rows of weight 0, unless all rows have it.
    """
    n = source.n
    numbers = np.sort(rng.choice(n, min(size, n), replace=False))
    options: dict[str, Any] = {"view": view, "raw": raw, "description": description, "weighted": True}
    rows, points = take_rows(source, numbers, **options)
    tried = numbers
    while len(rows) < size and len(tried) < n:
        wanted = min(n, len(tried) + 2 * (size - len(rows)))
        fresh = np.setdiff1d(rng.choice(n, wanted, replace=False), tried)
        tried = np.union1d(tried, fresh)
        more = take_rows(source, fresh, **options)
        keep = rng.permutation(len(more[0]))[: size - len(rows)]
        rows, points = np.concatenate([rows, more[0][keep]]), np.concatenate([points, more[1][keep]])
    order = np.argsort(rows)
    return rows[order], points[order]


def draw_fields(source: Source, size: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], dict[str, Array]]:
    """Return up to `size` valid rows from at most `DRAWN_CHUNKS` chunks: numbers and raw fields.

    The draw depends on the generator and the chunks only. Invalid rows raise InvalidRowError for the lowest one of the
    whole source, or with on_invalid="skip" are left out.
    """
    numbers = _spread(source, size, rng)
    shapes = {name: reader.shape[1:] for name, reader in source.readers.items()}
    borders = np.cumsum([1, *(math.prod(shape) for shape in shapes.values())])
    table = _mapped(source, tuple(shapes), numbers, raw=True)
    table = np.empty((0, borders[-1])) if table is None else table
    parts = np.split(table, borders[:-1], axis=1)[1:]
    fields = {k: part.reshape(len(table), *shapes[k]) for k, part in zip(shapes, parts, strict=True)}
    return table[:, 0].astype(np.int64), fields


def _spread(source: Source, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return sorted row numbers: from all rows, or equally many from each of `DRAWN_CHUNKS` chunks."""
    edges = source.edges
    chunks = len(edges) - 1
    if chunks <= DRAWN_CHUNKS:
        return np.sort(rng.choice(source.n, min(size, source.n), replace=False))
    places = (np.arange(DRAWN_CHUNKS) + rng.random(DRAWN_CHUNKS)) * (chunks / DRAWN_CHUNKS)
    found = []
    for chunk in np.minimum(places.astype(np.int64), chunks - 1):
        first, last = int(edges[chunk]), int(edges[chunk + 1])
        found.append(first + rng.choice(last - first, min(-(-size // DRAWN_CHUNKS), last - first), replace=False))
    return np.sort(np.concatenate(found))


def take_rows(
    source: Source,
    numbers: Array,
    *,
    view: str = "x",
    raw: bool = False,
    description: str = "sample",
    weighted: bool = False,
) -> tuple[Array, Array]:
    """Return the valid rows among these sorted numbers: numbers (m,), and prepared points (m, d) in a view.

    With `raw` the points are not prepared, (m, n_features_in), float64. With on_invalid="raise" raises InvalidRowError
    for the lowest invalid row of the whole source. With `weighted`, rows of weight 0 are left out, unless all have it.
    """
    weighted &= "weight" in source.readers
    table = _mapped(source, (view, "weight") if weighted else (view,), numbers, raw, description)
    if table is None:
        return np.empty(0, dtype=np.int64), np.empty((0, source.width(view) if raw else source.dimension_at(view)))
    if weighted:
        heavy = table[:, -1] > 0
        table = table[heavy if heavy.any() else slice(None), :-1]
    return table[:, 0].astype(np.int64), table[:, 1:]


def _mapped(
    source: Source, names: tuple[str, ...], numbers: Array, raw: bool, description: str = "sample"
) -> Array | None:
    """Return `_table` of the valid rows among these; raise InvalidRowError for the lowest of the source."""
    run = Run(source, plan_of_rows(source, numbers), description=description)
    try:
        return run.map(partial(_table, names), selected=numbers, raw=raw)
    except InvalidRowError:
        # a lower row that was not drawn may be invalid too, and the error names the lowest
        Run(source, plan_of_rows(source, None), description="scan").reduce(count_rows)
        raise


def plan_of_rows(source: Source, numbers: Array | None) -> Plan:
    """Return a plan of cheap tasks over the chunks with these sorted row numbers (None: all rows)."""
    work = 1000.0 if source.dask_fields else 20.0  # a task holds all its blocks of a dask array
    plan = plan_rows(source, work * source.row_bytes)
    if numbers is None:
        return plan
    held = tuple(r for r in plan.ranges if np.searchsorted(numbers, r[0]) < np.searchsorted(numbers, r[1]))
    return replace(plan, ranges=held)
