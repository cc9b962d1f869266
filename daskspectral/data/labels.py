"""Labels of classes, numbers or text, read as the numbers of their classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from daskspectral.data.containers import DaskReader, reader_of
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.data.tables import refuse_kind
from daskspectral.errors import warn_user

Array = NDArray[Any]
UNKNOWN = -1.0
"""The number of a label that is none of the classes."""


def labels_reader(y: Any) -> Reader:
    """A Reader of labels (n,) in any container: whole numbers, text, truth values. Raises ValueError for others."""
    if y is None:
        raise ValueError("this requires y to be passed, but the target y is None: give the label of each row, (n,)")
    reader = reader_of(y, "y")
    if isinstance(reader, ArrayReader) and len(reader.shape) == 2 and reader.shape[1] == 1:
        warn_user(
            "A column-vector y was passed when a 1d array was expected. Its only column is taken; give y.ravel(), (n,)",
            DataConversionWarning,
        )
        reader = ArrayReader(reader.array[:, 0])
    if reader.dtype.kind == "c":
        refuse_kind(reader.dtype, "y")
    if len(reader.shape) != 1 or not reader.shape[0]:
        raise ValueError(
            f"y must have shape (n,), a label for each row; it has shape {reader.shape}. A single column is y.ravel()"
        )
    if reader.dtype.kind not in "biufUOT":
        raise ValueError(f"labels are numbers or text; y has dtype {reader.dtype}")
    return reader


def missing(labels: Array) -> NDArray[np.bool_]:
    """Which labels (c,) are missing: NaN or None."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "O":
        return np.array([v is None or type(v).__name__ == "NAType" or v != v for v in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def distinct(labels: Array) -> Array:
    """The distinct labels, sorted, without missing ones. Raises ValueError for labels of kinds that do not compare."""
    there = labels[~missing(labels)]
    try:
        return np.unique(there)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in there.tolist()}))
        raise ValueError(
            f"labels are values of one kind, which can be sorted, and these are of the kinds {kinds}; make them all "
            "strings, or all numbers"
        ) from None


def coded(labels: Array, classes: Array) -> NDArray[np.float32]:
    """The number (c,) of the class of each label: NaN where it is missing, `UNKNOWN` for none of the `classes`."""
    labels = np.asarray(labels)
    codes = np.full(len(labels), np.nan, dtype=np.float32)
    there = ~missing(labels)
    known = labels[there]
    numbers = known.dtype.kind in "biuf" and classes.dtype.kind in "biuf"
    if not numbers and (known.dtype.kind != classes.dtype.kind or known.dtype.kind == "O"):
        number = {label: float(i) for i, label in enumerate(classes.tolist())}
        codes[there] = [number.get(label, UNKNOWN) for label in known.tolist()]
        return codes
    found = np.minimum(np.searchsorted(classes, known), len(classes) - 1)
    codes[there] = np.where(classes[found] == known, found, UNKNOWN)
    return codes


@dataclass(frozen=True, eq=False)
class ClassReader(Reader):
    """The numbers (n,) of the classes of labels, which are read and numbered chunk by chunk."""

    labels: Reader
    classes: Array

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.labels.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return np.dtype(np.float32)

    @property
    def edges(self) -> Array:
        return self.labels.edges

    def read(self, start: int, stop: int) -> Array:
        return coded(self.labels.read(start, stop), self.classes)

    def localise(self, start: int, stop: int) -> Reader:
        return replace(self, labels=self.labels.localise(start, stop))

    @property
    def parts(self) -> tuple[Reader, ...]:
        return self.labels.parts

    @property
    def identity(self) -> dict[str, Any]:
        return {**self.labels.identity, "classes": [str(label) for label in self.classes.tolist()]}


def class_reader(labels: Reader, classes: Array) -> Reader:
    """A Reader of the numbers of the classes: of a dask array lazily, of an array in memory at once, else by chunk."""
    if isinstance(labels, DaskReader):
        numbers: Any = da.map_blocks(coded, labels.array, classes=classes, dtype=np.float32, meta=np.empty(0))
        return DaskReader(numbers, labels.files)
    if isinstance(labels, ArrayReader):
        return ArrayReader(coded(labels.read(0, labels.shape[0]), classes))
    return ClassReader(labels, classes)
