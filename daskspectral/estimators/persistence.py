"""Models and moments to and from zarr."""

from __future__ import annotations

import os
from typing import Any

from daskspectral.data.state import read_state, write_state
from daskspectral.estimators.diffusion import DiffusionMap
from daskspectral.estimators.embedding import SDPEmbedding
from daskspectral.estimators.graph import GraphLaplacian
from daskspectral.estimators.hermite import HermiteRegressor
from daskspectral.estimators.invariant import InvariantRegressor
from daskspectral.estimators.kernelised import KernelEmbedding
from daskspectral.estimators.saved import Saved
from daskspectral.estimators.spectral import SpectralDecomposition
from daskspectral.moments import Moments
from daskspectral.store import moments_from_state, moments_state

KINDS: dict[str, type[Saved]] = {
    cls.kind: cls
    for cls in (
        SpectralDecomposition,
        HermiteRegressor,
        GraphLaplacian,
        SDPEmbedding,
        DiffusionMap,
        KernelEmbedding,
        InvariantRegressor,
    )
}


def save(what: Saved | Moments, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted estimator or moments as a zarr group; it appears whole or not at all.

    Raises FileExistsError for a path that exists unless `overwrite`, ValueError for an estimator that is not fitted
    or holds functions that cannot be found again by name.
    """
    if isinstance(what, Moments):
        write_state(path, "moments", moments_state(what), overwrite=overwrite)
    elif isinstance(what, Saved):
        write_state(path, what.kind, what.state(), overwrite=overwrite)
    else:
        raise TypeError(f"save() takes a fitted estimator or moments, not {type(what).__name__}")


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote: a fitted estimator, or moments. Raises as `store.read_state` does."""
    kind, state = read_state(path)
    if kind == "moments":
        return moments_from_state(state)
    if kind in KINDS:
        return KINDS[kind].from_state(state)
    raise ValueError(f"{os.fspath(path)} holds {kind!r}, which this daskspectral does not know: upgrade it")
