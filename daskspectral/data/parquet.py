"""Parquet files as rows of numbers, read row group by row group through pyarrow.dataset."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.door import refuse_irregular
from daskspectral.data.readers import Reader
from daskspectral.data.remote import connect, is_url, reaching, refuse_nothing

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ParquetReader(Reader):
    """The columns `names` of Parquet files behind one another; `borders` are those of their row groups."""

    groups: tuple[Any, ...]  # fragments of a pyarrow dataset, one row group each
    names: tuple[str, ...]
    borders: Array
    kind: str
    paths: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.borders[-1]), len(self.names))

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return np.dtype(self.kind)

    @property
    def edges(self) -> Array:
        return self.borders

    def read(self, start: int, stop: int) -> Array:
        first, last = np.searchsorted(self.borders, [start, stop - 1], "right") - 1
        result = np.empty((stop - start, len(self.names)), self.dtype)
        for i in range(int(first), int(last) + 1):
            table = self.groups[i].to_table(columns=list(self.names))
            low, high = int(self.borders[i]), int(self.borders[i + 1])
            a, b = max(start, low), min(stop, high)
            result[a - start : b - start] = numbers(table.slice(a - low, b - a), self.names, self.dtype)
        return result

    @property
    def identity(self) -> dict[str, Any]:
        return {**super().identity, "columns": list(self.names)}


def open_parquet(paths: Sequence[str], columns: Sequence[str] | None = None) -> ParquetReader:
    """A reader of the files, or folders of files; nothing but their metadata is read.

    Raises TypeError for columns that are not real numbers, ValueError for files without rows or without the columns of
    the first, and ImportError without pyarrow.
    """
    data = parquet_dataset(paths)
    names = [n for n in data.schema.names if not n.startswith("__index_level_")] if columns is None else list(columns)
    kinds = []
    for fragment in data.get_fragments():
        own = fragment.physical_schema
        if not set(names) <= set(own.names):
            raise ValueError(f"{', '.join(names)} are not distinct columns of {fragment.path}: {', '.join(own.names)}.")
        kinds += [real_dtype(own.field(name).type, name, fragment.path) for name in names]
    groups = [part for fragment in data.get_fragments() for part in fragment.split_by_row_group()]
    groups = [part for part in groups if part.row_groups[0].num_rows]
    if not groups or not names:
        raise ValueError(f"{', '.join(paths)} has no rows of numbers: its columns are {data.schema.names}")
    borders = np.cumsum([0, *(part.row_groups[0].num_rows for part in groups)])
    scheme = paths[0].partition("://")[0] + "://" if is_url(paths[0]) else ""
    files = tuple(scheme + path for path in data.files)
    kind = np.result_type(*kinds) if all(k.kind == "f" for k in kinds) else np.dtype(float)
    return ParquetReader(tuple(groups), tuple(names), borders, kind.str, files)


def parquet_dataset(paths: Sequence[str]) -> Any:
    """The pyarrow dataset of files, or of one folder of files, in a file system or an object store."""
    try:
        dataset = importlib.import_module("pyarrow.dataset").dataset
    except ImportError as error:
        raise ImportError("This format needs pyarrow: pip install daskspectral[convert]") from error
    if not is_url(paths[0]):
        for path in chain.from_iterable(_parts(path) for path in paths):
            refuse_irregular(path, os.stat(path))
        return dataset(paths[0] if len(paths) == 1 else list(paths), format="parquet")
    files, _ = connect(paths[0])
    roots = [str(files._strip_protocol(path)) for path in paths]
    for path, root in zip(paths, roots, strict=True):
        refuse_nothing(path, files, root)
    with reaching(paths[0], files=files):
        return dataset(roots[0] if len(roots) == 1 else roots, format="parquet", filesystem=files)


def _parts(path: str) -> Iterator[str]:
    """A file, or the Parquet files in a folder and in those within: pyarrow leaves out what it cannot open."""
    yield path
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names if name.endswith((".parquet", ".pq")))


def real_dtype(kind: Any, name: str, where: str) -> np.dtype[Any]:
    """The dtype of a column of real numbers. Raises TypeError for others."""
    types = importlib.import_module("pyarrow").types
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return np.dtype(str(np.dtype(kind.to_pandas_dtype())))
    raise TypeError(
        f"Column {name!r} of {where} holds {kind}, but only real numbers can be columns: choose other columns "
        "(columns= of daskspectral.convert), or encode it as numbers first."
    )


def numbers(table: Any, names: Sequence[str], dtype: Any = float) -> Array:
    """The columns of an Arrow table or batch as numbers (c, d), missing values NaN."""
    found = np.empty((table.num_rows, len(names)), dtype)
    for j, name in enumerate(names):
        column = table.column(name).cast("float64", safe=False)
        found[:, j] = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    return found
