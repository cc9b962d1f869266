"""What an operator reads: one array, views of each row, trajectories; and data to which rows were appended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from daskspectral.data.source import Source, label_of, open_source
from daskspectral.data.trajectories import open_trajectories
from daskspectral.moments import Moments
from daskspectral.operators import Operator
from daskspectral.operators.regression import Regression


def open_data(
    operator: Operator,
    X: Any,
    *,
    columns: Sequence[int] | None,
    weight: Any,
    fields: Mapping[str, Any] | None,
    fold: Any = None,
) -> Source:
    """What an operator reads: one array, the views of a sample row by row, or the pairs of trajectories.

    `weight` and `fold` are further fields, of sample weights and of the labels of folds. Raises ValueError or TypeError
    where the data do not fit the operator; nothing is read but metadata.
    """
    if not isinstance(fields, (Mapping, type(None))):
        raise TypeError(f"fields is a mapping of names to arrays; it is {type(fields).__name__}")
    given = {name: value for name, value in (fields or {}).items() if value is not None}
    if given.keys() != operator.data_fields:
        operator.check_fields(dict.fromkeys(given, ()), 0)  # says which are missing or unknown
    views, apart = operator.views, operator.own_right_basis
    if operator.lag is not None:
        source = open_trajectories(X, operator.lag, columns=columns, fields={"weight": weight, "fold": fold, **given})
    elif len(views) > 1:
        if not isinstance(X, (tuple, list)) or len(X) != len(views):
            got = f"{type(X).__name__} of {len(X)}" if isinstance(X, (tuple, list)) else type(X).__name__
            raise ValueError(
                f"the operator {operator.name} takes {len(views)} views of each row: fit(({', '.join(views)})); X is "
                f"a {got}"
            )
        others = dict(zip(views[1:], X[1:], strict=True))
        right = {operator.right_view: others.pop(operator.right_view)} if apart else {}
        source = open_source(X[0], columns=columns, views=others, apart=right, weight=weight, fold=fold, fields=given)
    else:
        source = open_source(X, columns=columns, weight=weight, fold=fold, fields=given)
    operator.check(source.dimension, source.dimension_at(operator.right_view) if apart else None)
    operator.check_fields({name: source.readers[name].shape[1:] for name in given}, source.dimension)
    return source


def open_appended(
    before: Moments, X: Any, *, weight: Any, fields: Mapping[str, Any] | None, fold: Any = None
) -> Source:
    """Data of the operator that these moments were measured with, to which rows were appended since."""
    columns = before.preparation["columns"]
    return open_data(before.operator, X, columns=columns, weight=weight, fields=fields, fold=fold)


def check_widths(before: Moments, source: Source) -> None:
    """Raise ValueError where the points of the source have not the columns that were measured."""
    operator, fitted = before.operator, {"x": before.preparation}
    if operator.own_right_basis:
        fitted[operator.right_view] = before.preparation["right"]
    for view, preparation in fitted.items():
        found, wanted = source.width(view), preparation["n_features_in"]
        if found != wanted:
            raise ValueError(f"{label_of(view)} has {found} columns, and the model was fitted on {wanted}")


def open_regression(
    X: Any,
    y: Any,
    *,
    gradients: Any = None,
    columns: Sequence[int] | None = None,
    weight: Any = None,
    fold: Any = None,
    slopes: bool = False,
) -> tuple[Source, Regression]:
    """Rows with their targets and gradients, and what their shapes ask for. Raises ValueError where they do not fit.

    With `slopes`, gradients do without y.
    """
    source = open_source(X, columns=columns, weight=weight, fold=fold, y=y, gradients=gradients)
    return source, checked_targets(source, slopes)


def checked_targets(source: Source, slopes: bool = False) -> Regression:
    """What the shapes of y and the gradients ask for; gradients alone do where `slopes` says that they may.

    Raises ValueError where they do not fit.
    """
    shapes = {name: reader.shape for name, reader in source.readers.items()}
    if "y" not in shapes:
        if slopes and "gradients" in shapes:
            return _checked_slopes(source, shapes["gradients"])
        either = ", or gradients" if slopes else ""
        raise ValueError(
            f"this requires y to be passed, but the target y is None: give the values to fit, (n,), or (n, m) for m "
            f"targets{either}"
        )
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


def _checked_slopes(source: Source, shape: tuple[int, ...]) -> Regression:
    n, d = source.n, source.n_features_in
    if len(shape) not in (2, 3) or shape[-1] != d or 0 in shape:
        raise ValueError(
            f"gradients must have shape {(n, d)}, or ({n}, m, {d}) for m targets, a derivative for each column of X; "
            f"they have shape {shape}"
        )
    return Regression(gradients=True, targets=shape[1] if len(shape) == 3 else None, values=False)
