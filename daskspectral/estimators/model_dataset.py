"""A fitted decomposition as an xarray Dataset: its spectrum, its patterns in the columns of the data, its functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from daskspectral.data.layout import Layout, plain
from daskspectral.estimators.identity import provenance
from daskspectral.moments.patterns import POINTS, Patterns

COMPONENT = "component"
OF_A_MAP = "component of a map"


def model_dataset(estimator: Any, X: Any = None) -> xr.Dataset:
    """The Dataset of `SpectralDecomposition.to_xarray`."""
    solver = estimator.solver_
    value, count = solver.values.removesuffix("s_"), len(getattr(estimator, solver.values))
    bounds = getattr(estimator, solver.errors)
    found: dict[str, Any] = {
        value: (COMPONENT, getattr(estimator, solver.values), {"long_name": value.replace("_", " ")}),
        f"{value}_lower": (COMPONENT, bounds[:, 0], {"long_name": "lower end of the 95 % interval"}),
        f"{value}_upper": (COMPONENT, bounds[:, 1], {"long_name": "upper end of the 95 % interval"}),
        "standard_error": (COMPONENT, estimator.standard_errors_),
        "held_out": (COMPONENT, estimator.held_out_, {"long_name": f"{value} on rows that were not fitted to"}),
        "group": (COMPONENT, estimator.groups_, {"long_name": "values of one group cannot be told apart"}),
        "trusted": (COMPONENT, estimator.trusted_, {"long_name": "value is trusted; of a constant always"}),
        "function_error": (COMPONENT, estimator.function_errors_, {"long_name": "sine of the angle of a group"}),
    }
    for name in solver.functions:
        side = f"basis_{name.partition('coef')[0]}function"
        found[name.removesuffix("_")] = ((side, COMPONENT), getattr(estimator, name))
    dataset = xr.Dataset(
        found,
        {COMPONENT: np.arange(count)},
        attrs=plain(provenance(type(estimator).__name__, estimator.plain_params())),
    )
    if POINTS in estimator.moments_.arrays:
        dataset = _with_patterns(dataset, estimator, estimator.patterns_)
    if X is not None:
        functions = estimator._functions("", estimator.coefficients_, X)  # whatever `set_output` asks for
        if not isinstance(functions, xr.DataArray):
            functions = xr.DataArray(np.asarray(functions), dims=("row", COMPONENT))
        dataset["eigenfunction"] = functions.drop_vars([n for n in functions.coords if COMPONENT in functions[n].dims])
    return dataset


def _with_patterns(dataset: xr.Dataset, estimator: Any, patterns: Patterns) -> xr.Dataset:
    """The same with the regression maps, in the dimensions of the data, and what they explain.

    A dimension or coordinate of the data that the model has too, such as the components of another model, is `x_...`.
    """
    dataset["explained_variance_ratio"] = COMPONENT, patterns.explained
    maps, means = in_the_field(estimator, patterns.single, (OF_A_MAP,)), in_the_field(estimator, patterns.mean)
    taken = {*dataset.dims, *dataset.variables}  # by other names in the fields, such as a component of another model
    clashing = {name: f"x_{name}" for name in {*means.dims, *means.coords} if name in taken}
    maps, means = maps.rename({**clashing, OF_A_MAP: COMPONENT}), means.rename(clashing)
    for name in maps:
        own = maps[name].assign_attrs(long_name=f"regression of {name} on each function, of variance 1")
        dataset[f"{name}_pattern"] = own
        dataset[f"{name}_mean"] = means[name]
    return dataset


def in_the_field(estimator: Any, values: Any, dims: tuple[Any, ...] = (), coords: Any = None) -> xr.Dataset:
    """Values (..., d) in the columns of X as a Dataset of the variables of the fit; of one, `x`, without labels."""
    layout: Layout | None = vars(estimator).get("layout_")
    if layout is not None:
        return layout.spread(values, dims, coords, unweighted=True)
    names = vars(estimator).get("feature_names_in_", np.arange(values.shape[-1]))
    return xr.Dataset({"x": ((*dims, "feature"), values)}, {"feature": names, **(coords or {})})
