"""Data of one call of an estimator, opened with the options of their rows, and options of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from daskspectral.data.containers import is_symmetric
from daskspectral.data.remote import using
from daskspectral.data.rows import Rows
from daskspectral.engine.checkpoint import locked_checkpoint
from daskspectral.errors import InvalidRowError, warn_user
from daskspectral.estimators.reading import LABELS, CallArguments, labeled_as, paired_views, wanted_columns
from daskspectral.estimators.records import recording_warnings
from daskspectral.passes.folds import FoldRequest
from daskspectral.validation import check_flag


@dataclass(frozen=True)
class RunContext:
    """Options of a run: a progress bar (None: on a terminal only), and the checkpoint of a fit.

    The sums of a fit are written to the path or URL `checkpoint` every `checkpoint_every` seconds. A `dry_run` only
    plans.
    """

    progress: bool | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.progress is not None:
            check_flag("progress", self.progress)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows without labels, arrays with an entry for each row, and options of the run."""

    rows: Rows
    context: RunContext
    y: Any
    gradients: Any
    sample_weight: Any

    def options(self, folds: FoldRequest | None = None) -> dict[str, Any]:
        """Return weights, progress bar and labels of folds, as arguments of a `Source`."""
        labels = {} if folds is None else {"fold": folds.labels}
        return {"weight": self.sample_weight, "progress": self.context.progress, **labels}


@contextmanager
def open_table(
    estimator: Any, X: Any, context: RunContext | None = None, *, fits: bool = False, **fields: Any
) -> Iterator[Table]:
    """Open the data of one call of an estimator within a context.

    Inside, URLs are opened with the options of the rows, and an InvalidRowError names the place of its row. A fit uses
    the reading options of the rows, other calls those of the fit. A fit holds the lock of its checkpoint; if it
    succeeds, it stores the layouts and names of the columns. Warnings are stored as `warnings_`. Rows are weighted by
    latitude only with `sample_weight`.

    Parameters
    ----------
    estimator : Estimator
        Estimator of the call.
    X : Rows or data
        Rows of the call.
    context : RunContext, optional
        Options of the run.
    fits : bool
        True if the call fits the estimator, or plans a fit.
    **fields
        Arguments with an entry for each row: `y`, `gradients`, `sample_weight`, and `folds` of an update. Rows are
        weighted by latitude only with `sample_weight`.

    Raises
    ------
    NotFittedError
        If the call is not a fit and the estimator was not fitted.
    ValueError or TypeError
        For labels that do not match, and for rows of other columns than those of the fit.
    """
    context = context or RunContext()
    learns, fits = fits, fits and not context.dry_run
    fitted = None if learns else estimator._fitted()
    known = {} if learns else {name: value for name, value in vars(estimator).items() if name in LABELS}
    rows, wanted = wanted_columns(Rows.of(X), fitted)
    given = {"delays": rows.delays > 1, "column_weights": rows.column_weights is not None}
    for name, value in given.items() if learns else ():
        if value and name not in estimator._options_of_rows:
            raise ValueError(f"{type(estimator).__name__} has no {name}. Omit {name} of Rows, or prepare the columns.")
    if fields.get("y") is not None and estimator._pairs_y(learns) and not isinstance(rows.data, tuple):
        rows = paired_views(rows, fields, wanted)
    with ExitStack() as stack:
        stack.enter_context(using(rows.storage_options, rows.allow_missing or None))
        reading = CallArguments(
            estimator, {"X": rows.data, "fields": rows.fields, **fields}, known, learns, rows, fits, wanted
        )
        reading.lay_out()
        if fits and is_symmetric(reading.values["X"]):
            warn_user(
                "rows of X are interpreted as points, but X is a symmetric matrix, such as of affinities; pass points",
                UserWarning,
            )
        opened = reading.opened if learns else estimator._as_fitted(reading.opened)
        if fits:
            stack.enter_context(labeled_as(estimator, reading.labels))
            stack.enter_context(recording_warnings(estimator))
            stack.enter_context(locked_checkpoint(context.checkpoint, context.checkpoint_every))
        others = {name: reading.values.get(name) for name in ("y", "gradients", "sample_weight")}
        try:
            yield Table(opened, context, **others)
        except InvalidRowError as error:
            reading.add_place(error)
            raise
