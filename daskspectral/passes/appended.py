"""Whether data are those that were measured, with rows appended: only what may have changed is read again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.integrity import Snapshot
from daskspectral.data.readers import DaskReader, Reader
from daskspectral.data.source import Source, check_widths, label_of
from daskspectral.engine import Plan, Run
from daskspectral.engine.sampling import Scan
from daskspectral.moments import Digests, Moments


def check_appended(before: Moments, source: Source, snapshot: Snapshot) -> Digests:
    """The digests of the measured rows, with the files that are behind them now.

    Rows behind files that were written since, and rows of which no files are known, are read and compared, field by
    field; a field of which the operator has none, such as labels of folds, may be given only then, or only now. Raises
    ValueError where weights are, and, with the first rows that differ, where the source is not the measured data with
    rows appended.
    """
    check_widths(before, source)
    if source.n <= before.rows:
        raise ValueError(f"X has {source.rows}, and the model has seen {before.rows}: there is nothing to add")
    known = before.digests
    if known is None:
        raise ValueError(
            "these moments were added up from several arrays, and cannot be updated from one: measure the new rows by "
            "themselves, with these landmarks, and add the moments"
        )
    if ("weight" in known.dtypes) != ("weight" in source.readers):
        then, now = ("with", "without") if "weight" in known.dtypes else ("without", "with")
        raise ValueError(
            f"the rows of the fit were measured {then} sample_weight, and the update has come {now}: give the weights "
            "of all rows to both (ones, where there are none) or to neither"
        )
    files = snapshot.files_behind(known.ranges)
    for name in filter(files.__contains__, known.dtypes):
        tasks = np.flatnonzero(known.moved(name, files[name])[known.stretch])
        values = np.zeros(len(known.lengths), np.uint64)
        values[tasks] = _digested(source.readers[name], known, name, tasks, source.progress)
        differing = known.differing(name, values)
        if len(differing):
            here = np.flatnonzero(known.stretch == differing[0])
            rows = "pairs" if source.lagged is not None else "rows"
            raise ValueError(
                f"{label_of(name)} differs from what was measured in {rows} {known.ranges[here[0]][0]} to "
                f"{known.ranges[here[-1]][1]}, and an update only adds {rows} behind the {before.rows} that were "
                "measured. Give the data as they were with others appended, fit anew, or, to add other data, fit them "
                "with the same landmarks and add the moments"
            )
    return known.behind(files)


def _digested(
    reader: Reader, known: Digests, name: str, tasks: NDArray[np.intp], progress: bool | None
) -> NDArray[np.uint64]:
    """The digests of the values of a field that some tasks read, as tasks over the same rows read them now."""
    if not len(tasks):
        return np.zeros(0, np.uint64)
    if isinstance(reader, DaskReader):  # in blocks of the tasks
        rows = reader.array[: known.ranges[-1][1]]
        reader = replace(reader, array=rows.rechunk({0: tuple(known.lengths.tolist())}))
    plan = Plan(tuple(known.ranges[task] for task in tasks))
    run = Run(
        Source({"x": reader}, on_invalid="keep", progress=progress),
        plan,
        None,
        "check",
        digested={"x": known.dtypes[name]},
    )
    found = run.reduce(Scan()).digests
    assert found is not None
    return np.asarray(found[np.argsort(found[:, 0]), 1])
