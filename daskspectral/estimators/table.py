"""The data of one call of an estimator, opened as their rows say, and how the call runs."""

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
from daskspectral.estimators.reading import LABELS, Reading, labelled_as, paired_views, wanted_columns
from daskspectral.estimators.records import remembered
from daskspectral.passes.folds import FoldRequest
from daskspectral.validation import check_flag


@dataclass(frozen=True)
class RunContext:
    """How a call runs: with a progress bar (None: on a terminal only), and a fit with a checkpoint.

    The sums of a fit are written to the path or URL `checkpoint` every `checkpoint_every` seconds. Of a fit that is a
    `dry_run` the plan alone is made.
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
    """Rows without labels, with what has an entry for each of them, and how the call runs."""

    rows: Rows
    context: RunContext
    y: Any
    gradients: Any
    sample_weight: Any

    def options(self, folds: FoldRequest | None = None) -> dict[str, Any]:
        """Return the weights, the bar and labels of folds, as functions that open a `Source` accept them."""
        labels = {} if folds is None else {"fold": folds.labels}
        return {"weight": self.sample_weight, "progress": self.context.progress, **labels}


@contextmanager
def open_table(
    estimator: Any, X: Any, context: RunContext | None = None, *, fits: bool = False, **fields: Any
) -> Iterator[Table]:
    """Open the data of one call of an estimator for the time of a block.

    Within the block URLs are opened with the options of the rows, and an InvalidRowError names the place of its row. A
    fit reads the rows as they say, and other calls as the fit did. A fit holds the lock of its checkpoint, and keeps
    the layouts and names of the columns if it succeeds, and what it warns of as `warnings_`.

    Parameters
    ----------
    estimator : Estimator
    X : Rows or data
        The rows of the call.
    context : RunContext, optional
        How the call runs.
    fits : bool
        Whether the call fits the estimator, or plans to.
    **fields
        Further arguments with an entry for each row: `y`, `gradients`, `sample_weight`, and `folds` of an update. Rows
        are weighted by latitude only with `sample_weight`.

    Raises
    ------
    NotFittedError
        If the call is no fit and the estimator was not fitted.
    ValueError or TypeError
        For labels that do not belong together, and for rows of other columns than those of the fit.
    """
    context = context or RunContext()
    learns, fits = fits, fits and not context.dry_run
    fitted = None if learns else estimator.fitted()
    known = {} if learns else {name: value for name, value in vars(estimator).items() if name in LABELS}
    rows, wanted = wanted_columns(Rows.of(X), fitted)
    if fields.get("y") is not None and estimator._pairs_y(learns) and not isinstance(rows.data, tuple):
        rows = paired_views(rows, fields, wanted)
    with ExitStack() as stack:
        stack.enter_context(using(rows.storage_options, rows.allow_missing or None))
        reading = Reading(
            estimator, {"X": rows.data, "fields": rows.fields, **fields}, known, learns, rows, fits, wanted
        )
        reading.lay_out()
        if fits and is_symmetric(reading.values["X"]):
            warn_user(
                "X is a symmetric matrix, such as of affinities, and its rows are taken as points. Give the points",
                UserWarning,
            )
        opened = reading.opened if learns else estimator._as_fitted(reading.opened)
        if fits:
            stack.enter_context(labelled_as(estimator, reading.labels))
            stack.enter_context(remembered(estimator))
            stack.enter_context(locked_checkpoint(context.checkpoint, context.checkpoint_every))
        beside = {name: reading.values.get(name) for name in ("y", "gradients", "sample_weight")}
        try:
            yield Table(opened, context, **beside)
        except InvalidRowError as error:
            reading.tell_place(error)
            raise
