"""Moments as state dictionaries, and saved: what models are made of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from daskspectral.basis import basis_from_state
from daskspectral.data.state import read_state, write_state
from daskspectral.moments import Moments
from daskspectral.operators import operator_from_state


def save_moments(moments: Moments, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write moments as a zarr group that appears whole or not at all. Raises FileExistsError unless `overwrite`."""
    write_state(path, "moments", moments_state(moments), overwrite=overwrite)


def load_moments(path: str | os.PathLike[str]) -> Moments:
    """Moments that were saved, by themselves or in a model. Raises ValueError where the path holds neither."""
    kind, state = read_state(path)
    if "moments" in state:
        return moments_from_state(state["moments"])
    if kind != "moments":
        raise ValueError(f"{os.fspath(path)} holds {kind!r}, and moments or a model are wanted")
    return moments_from_state(state)


def moments_state(moments: Moments) -> dict[str, Any]:
    """Moments as plain data and arrays."""
    return {
        "arrays": dict(moments.arrays),
        "weight": moments.weight,
        "count": moments.count,
        "skipped": moments.skipped,
        "rows": moments.rows,
        "basis": moments.basis.state(),
        "operator": moments.operator.state(),
        "dtype": moments.dtype,
        "preparation": dict(moments.preparation),
    }


def moments_from_state(state: Mapping[str, Any]) -> Moments:
    """The inverse of `moments_state`."""
    return Moments(
        **{k: state[k] for k in ("arrays", "weight", "count", "skipped", "rows", "dtype", "preparation")},
        basis=basis_from_state(state["basis"]),
        operator=operator_from_state(state["operator"]),
    )
