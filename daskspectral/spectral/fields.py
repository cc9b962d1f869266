"""Estimators of modes of fields, numbered from 1, and their datasets, with the variable names of xeofs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.labeled import ROW
from daskspectral.data.layout import Layout, plain
from daskspectral.data.rows import Rows
from daskspectral.estimators.records import provenance
from daskspectral.estimators.summary import summary_of
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.patterns import Patterns, patterns_of, right_patterns_of
from daskspectral.spectral.estimator import (
    FieldVariables,
    SpectralEstimator,
    model_dataset,
    units_of_columns,
    with_fields,
)

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.floating[Any]]

DAYS_PER_DECADE = 3652.425
ENDS = ("lower", "upper")


class FieldEstimator(SpectralEstimator):
    """Estimator of the modes of one field, or of pairs of modes of two fields."""

    _numbering: ClassVar[tuple[str, int]] = ("mode", 1)
    _values_name: ClassVar[str] = "scores"
    _value_name: ClassVar[str]
    """Name of the values in labeled results."""

    def _labels(self) -> dict[str, NDArray[np.inexact[Any]]]:
        value = Attributes(self.solver_).value
        return {name.replace(value, self._value_name): values for name, values in super()._labels().items()}

    def to_xarray(self, X: Any = None, *, details: bool = False) -> xr.Dataset:
        """Return the modes as a Dataset with the variable names of xeofs.

        Variables have the dimension `mode`, numbered from 1, the dimensions, coordinates and units of the data, and a
        `long_name`. Names that are in use are extended (`<variable>_components`, `x_mode`). The attribute `verdict`
        summarizes the reliability of the modes.

        Parameters
        ----------
        X : array-like, Rows or tuple, optional
            Rows at which `scores`, of unit variance, are computed; for two fields a tuple, as in `fit`.
        details : bool, default=False
            Add means, validation values, multiplets, interval ends, climatologies, coefficients and all other
            results.

        Returns
        -------
        xarray.Dataset
            For one field: `components`, the change of the field per unit of the score; `components_error`, half of
            their 95 % interval; `explained_variance` and `explained_variance_ratio` with interval ends `_lower` and
            `_upper`; and `trend` per decade, if a trend was subtracted. For two fields: `components1` and
            `components2`, the changes of both (homogeneous regression maps, not singular vectors), `scores1`,
            `scores2`, and values with interval ends and `_held_out` (validation values). Coordinates of the second
            field that differ from those of the first have a 2 appended to their names, such as `lon2`.
        """
        return field_dataset(self._fitted(), X, details)

    def _mode_fields(self) -> list[ModeField]:
        patterns = patterns_of(self.moments_, self.coefficients_)
        known = patterns.in_columns(self.preparation_, self.n_features_in_, units_of_columns(self))
        if not hasattr(self, "right_coefficients_"):
            return [ModeField("", known, False)]
        right = right_patterns_of(self.moments_, self.right_coefficients_)
        units = units_of_columns(self, right=True)
        other = right.in_columns(self.right_preparation_, self.n_right_features_in_, units)
        return [ModeField("1", known, False), ModeField("2", other, True)]

    @abstractmethod
    def _mode_label(self, i: int) -> str:
        """Return the label of mode i, counted from 0, for the title of a figure."""

    @abstractmethod
    def _of_values(self) -> dict[str, tuple[Any, dict[str, str]]]: ...


@dataclass(frozen=True, eq=False)
class ModeField:
    """One of the fields: its suffix in names, its patterns, and whether it is the right view."""

    number: str
    patterns: Patterns
    right: bool

    @property
    def scaled(self) -> Array:
        """Change of the columns per standard deviation of each score, (k, d)."""
        return np.asarray(self.patterns.single.real * np.sqrt(self.patterns.variances)[:, None])


def field_dataset(model: Any, X: Any, details: bool) -> xr.Dataset:
    """Return the Dataset of `FieldEstimator.to_xarray`."""
    import xarray as xr

    dim, first = model._numbering
    variables = {name: (dim, values, attrs) for name, (values, attrs) in model._of_values().items()}
    count = len(next(iter(variables.values()))[1])
    coords = {dim: (dim, np.arange(first, first + count), {"long_name": "mode"})}
    attrs = {**plain(provenance(type(model).__name__, model._plain_params())), "verdict": summary_of(model).verdict}
    dataset, fields = xr.Dataset(variables, coords, attrs=attrs), []
    for side in model._mode_fields():
        fields += _maps(model, side, dim, details)
    functions = {} if X is None else _scores(model, X, dim, dataset[dim].values)
    dataset = with_fields(dataset, model, fields, functions)
    if not details:
        return dataset
    more = model_dataset(model)
    value = Attributes(model.solver_).value
    old = [name for name in more.data_vars if str(name).startswith(value) or "_pattern" in str(name)]
    return dataset.merge(
        more.drop_vars([*old, *(name for name in more.data_vars if name in dataset)]), compat="override"
    )


def _alone(model: Any, right: bool) -> bool:
    layout: Layout | None = vars(model).get(f"{'right_' * right}layout_")
    return layout is None or len(layout.variables) == 1


def _maps(model: Any, side: ModeField, dim: str, details: bool) -> list[FieldVariables]:
    """Return the patterns of a field, with their errors and the trend."""
    shared: dict[str, Any] = {"alone": _alone(model, side.right), "right": side.right}
    found = [
        FieldVariables(
            f"components{side.number}",
            side.scaled,
            (dim,),
            long_name="change of {} per standard deviation of the score",
            **shared,
        )
    ]
    if not side.number and len(ends := model._pattern_ends()):
        half = FieldVariables(
            "components_error", (ends[1] - ends[0]) / 2, (dim,), long_name="half of the 95 % interval", **shared
        )
        found.append(half)
        if details:
            named = zip(ENDS, ends, strict=True)
            found += [
                FieldVariables(f"components_{end}", v, (dim,), long_name=f"{end} end of the 95 % interval", **shared)
                for end, v in named
            ]
    layout: Layout | None = vars(model).get(f"{'right_' * side.right}layout_")
    if layout is not None and layout.baseline is not None and layout.baseline.degree:
        baseline = layout.baseline
        slope = np.asarray(baseline.trend)[::2].sum(axis=0) * layout.units * DAYS_PER_DECADE / baseline.half
        name = f"trend{side.number}"
        found.append(FieldVariables(name, slope, long_name="mean trend of {} per decade", per=" per decade", **shared))
    return found


def _scores(model: Any, X: Any, dim: str, modes: Array) -> dict[str, xr.DataArray]:
    """Return the scores (mode, rows) at rows X of one field, or of a tuple of two."""
    import xarray as xr

    rows = Rows.of(X)
    if not hasattr(model, "right_coefficients_"):
        parts = {"": model.transform(X)}
    elif isinstance(rows.data, tuple) and len(rows.data) == 2:
        first, second = (part if isinstance(part, Rows) else replace(rows, data=part) for part in rows.data)
        parts = {"1": model.transform(first), "2": model.transform(second, side="right")}
    else:
        raise ValueError(f"X must be a tuple of both fields, (x, y), got {type(rows.data).__name__}")
    found, sides = {}, {side.number: side for side in model._mode_fields()}
    for number, values in parts.items():
        if not isinstance(values, xr.DataArray):
            values = xr.DataArray(np.asarray(values), {dim: modes}, (ROW, dim))
        about = {"long_name": "score, of variance 1 in the fit", "units": "1"}
        if model.solver_.by_norm and model.solver_.two_sided:  # others have variance 1
            spread = np.sqrt(sides[number].patterns.variances)
            values = values / xr.DataArray(np.where(spread > 0, spread, 1), dims=dim)
        found[f"scores{number}"] = values.transpose(dim, ...).assign_attrs(about)
    return found


def square_units(model: Any) -> dict[str, str]:
    """Return the unit of variances as attributes; empty if columns have no common unit."""
    layout: Layout | None = vars(model).get("layout_")
    if model.preparation_.standardized:
        return {"units": "1"}
    units = {str(v.attrs.get("units", "")) for v in layout.variables} if layout is not None else {""}
    unit = units.pop() if len(units) == 1 else ""
    return {"units": f"{unit}^2"} if unit else {}


def with_ends(name: str, values: Array, ends: Array, long_name: str, units: dict[str, str]) -> dict[str, Any]:
    """Return values and the ends (k, 2) of their 95 % intervals as named variables with attributes."""
    found = {name: (values, {"long_name": long_name, **units})}
    for end, column in zip(ENDS, ends.T, strict=True):
        found[f"{name}_{end}"] = column, {"long_name": f"{end} end of the 95 % interval of the {long_name}", **units}
    return found
