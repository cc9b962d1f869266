"""Classes of rows: the labels of the data, the class that a function of rows predicts, and how often it is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import log_softmax

from daskspectral.data.containers import class_reader, distinct, labels_reader, missing
from daskspectral.data.integrity import Snapshot
from daskspectral.data.readers import ArrayReader, Reader
from daskspectral.data.source import Source, open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.tasks import Tally
from daskspectral.errors import renumbered
from daskspectral.moments import NUMBER
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.parameters import check_one_of
from daskspectral.passes.rows import Guessed, RowFunction
from daskspectral.solve.multinomial import probabilities

Array = NDArray[Any]
MOST_CLASSES = 1000


@final
@dataclass(frozen=True, eq=False)
class Probabilities(RowFunction):
    """The probabilities at rows, (c, K), of the classes with these scores, or their logarithms."""

    scores: SpanValues
    logarithms: bool = False

    @property
    def columns(self) -> int:
        return self.scores.columns

    @property
    def rows(self) -> int:
        return self.scores.rows

    def block(self, x: Array, out: Array) -> Guessed | None:
        guessed = self.scores.block(x, out)
        out[:] = log_softmax(out, axis=1) if self.logarithms else probabilities(out.T).T
        return guessed

    def doubt(self, found: Tally, count: int) -> str:
        return self.scores.support.doubt(found, count, "probabilities")


@final
@dataclass(frozen=True, eq=False)
class LikeliestClass(RowFunction):
    """The number at rows, (c, 1), of the class of the highest score."""

    scores: SpanValues

    @property
    def columns(self) -> int:
        return 1

    @property
    def rows(self) -> int:
        return self.scores.rows

    def block(self, x: Array, out: Array) -> Guessed | None:
        scores = np.empty((len(x), self.scores.columns))
        guessed = self.scores.block(x, scores)
        out[:, 0] = scores.argmax(axis=1)
        return guessed

    def doubt(self, found: Tally, count: int) -> str:
        return self.scores.support.doubt(found, count, "probabilities")


def named_classes(numbers: Any, classes: Array) -> Any:
    """The labels of classes with the numbers (n,), in the container of these."""
    if isinstance(numbers, xr.DataArray):
        return numbers.copy(data=named_classes(numbers.data, classes))
    if isinstance(numbers, da.Array):
        return da.map_blocks(_named, numbers, classes=classes, dtype=classes.dtype, meta=classes[:0])
    return _named(numbers, classes)


def _named(numbers: Array, classes: Array) -> Array:
    return np.asarray(classes[numbers.astype(np.int64)])


@dataclass(frozen=True, eq=False)
class _Distinct:
    """The task that returns the distinct labels of a batch; one more than may be at most."""

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        return distinct(batch["x"])[: MOST_CLASSES + 1]


def classes_of(labels: Reader, progress: bool | None) -> Array:
    """The distinct labels, sorted, missing ones left out; from one pass over labels that are not in memory.

    Raises ValueError for one class, for more than 1000, and for labels that are measured rather than named: numbers
    with fractions, infinity, or different ones in most rows.
    """
    n = labels.shape[0]
    if isinstance(labels, ArrayReader):
        classes = distinct(labels.read(0, n))
    else:
        source = Source({"x": labels})
        found = Run(source, plan_rows(source, 20.0), None, "keep", progress, "labels").map(_Distinct(), raw=True)
        classes = distinct(np.asarray([] if found is None else found))
    wanted = "; give labels of classes, or take InvariantRegressor for values"
    measured = [label for label in classes.tolist() if isinstance(label, float) and not label.is_integer()]
    if measured:
        raise ValueError(f"y is continuous, with values such as {measured[0]:g}, which name no class{wanted}")
    if len(classes) > MOST_CLASSES or (len(classes) > 2 and 2 * len(classes) > n):
        many = f"more than {MOST_CLASSES}" if len(classes) > MOST_CLASSES else str(len(classes))
        raise ValueError(f"y has {many} distinct labels in {n} rows: too few rows for each class{wanted}")
    if len(classes) < 2:
        only = "no labels" if not len(classes) else f"one class, {classes.tolist()[0]!r}"
        if isinstance(labels, ArrayReader) and (lost := int(np.count_nonzero(missing(np.asarray(labels.read(0, n)))))):
            only += f" beside {lost} rows whose label is missing"
        raise ValueError(f"y has {only}, and a classifier tells two or more apart")
    return classes


def open_classes(X: Any, labels: Reader, classes: Array, **fields: Any) -> Source:
    """Rows x with the numbers of their classes, y, and other fields."""
    return open_source(X, fields={"y": class_reader(labels, classes)}, **fields)


@dataclass(frozen=True, eq=False)
class _Compare:
    """A task over rows: their weight, and the weight of the rows whose class a function predicts."""

    function: LikeliestClass

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        right = np.zeros(1)
        for batch in batches:
            with renumbered(batch[NUMBER].__getitem__):
                numbers, _ = self.function.of_prepared(batch["x"])
            found = np.equal(numbers[:, 0], batch["y"])
            right += found.sum() if "weight" not in batch else batch["weight"] @ found
        return {"right": right}


def accuracy(
    function: LikeliestClass,
    classes: Array,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    on_invalid: str = "raise",
    allow_missing: bool = False,
    progress: bool | None = None,
) -> float:
    """The share of the weight of rows X whose labels y are those that a function predicts, in one pass.

    Labels that are none of the `classes` count as wrong. Raises ValueError for weights that sum to 0, InvalidRowError
    for the lowest invalid row, unless on_invalid="skip" leaves such rows out, and OSError where the data changed
    meanwhile.
    """
    check_one_of("on_invalid", on_invalid, ("raise", "skip"))
    source = open_classes(X, labels_reader(y), classes, weight=sample_weight)
    snapshot = Snapshot(source)
    total = Run(source, plan_rows(source, 2000.0), None, on_invalid, progress, "score").reduce(_Compare(function))
    snapshot.check_unchanged()
    if not total.weight > 0:
        raise ValueError(f"the total sample weight is {total.weight:g}; some row needs a weight above zero")
    return float(total.sums["right"][0] / total.weight)
