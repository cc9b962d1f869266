"""Models and moments to and from zarr."""

from __future__ import annotations

import os
from typing import Any

from daskspectral.data.state import read_state, write_state
from daskspectral.estimators.hermite import HermiteRegressor
from daskspectral.estimators.parameters import params_from_state, params_state
from daskspectral.estimators.solving import SOLUTION
from daskspectral.estimators.spectral import SpectralDecomposition
from daskspectral.moments import Moments
from daskspectral.store import moments_from_state, moments_state


def save(
    what: SpectralDecomposition | HermiteRegressor | Moments, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a fitted estimator or moments as a zarr group; it appears whole or not at all.

    Raises FileExistsError for a path that exists unless `overwrite`, ValueError for an estimator that is not fitted
    or holds functions that cannot be found again by name.
    """
    if isinstance(what, Moments):
        write_state(path, "moments", moments_state(what), overwrite=overwrite)
    elif isinstance(what, SpectralDecomposition):
        state = {
            "params": params_state(what.fitted().get_params(deep=False)),
            "moments": moments_state(what.moments_),
            "solution": {name: getattr(what, name) for name in SOLUTION[what.moments_.operator.solver]},
        }
        write_state(path, "spectral", state, overwrite=overwrite)
    elif isinstance(what, HermiteRegressor):
        write_state(path, "hermite", what.state(), overwrite=overwrite)
    else:
        raise TypeError(f"save() takes a fitted estimator or moments, not {type(what).__name__}")


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote: a fitted estimator, or moments. Raises as `store.read_state` does."""
    kind, state = read_state(path)
    if kind == "moments":
        return moments_from_state(state)
    if kind == "spectral":
        estimator = SpectralDecomposition(**params_from_state(state["params"]))
        # not solved again: another machine's LAPACK may turn degenerate eigenfunctions
        return estimator.with_solution(moments_from_state(state["moments"]), state["solution"])
    if kind == "hermite":
        return HermiteRegressor.from_state(state)
    raise ValueError(f"{os.fspath(path)} holds {kind!r}, which this daskspectral does not know: upgrade it")
