"""Moments as state dictionaries: what models are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daskspectral.basis import basis_from_state
from daskspectral.moments import Moments
from daskspectral.operators import operator_from_state

_PLAIN = ("arrays", "weight", "count", "skipped", "rows", "start", "head", "dtype", "preparation")


def moments_state(moments: Moments) -> dict[str, Any]:
    """Moments as plain data and arrays."""
    return {
        "arrays": dict(moments.arrays),
        "weight": moments.weight,
        "count": moments.count,
        "skipped": moments.skipped,
        "rows": moments.rows,
        "start": moments.start,
        "head": moments.head,
        "basis": moments.basis.state(),
        "operator": moments.operator.state(),
        "dtype": moments.dtype,
        "preparation": dict(moments.preparation),
        "right_basis": None if moments.right_basis is None else moments.right_basis.state(),
    }


def moments_from_state(state: Mapping[str, Any]) -> Moments:
    """The inverse of `moments_state`."""
    return Moments(
        **{k: state[k] for k in _PLAIN},
        basis=basis_from_state(state["basis"]),
        right_basis=None if state.get("right_basis") is None else basis_from_state(state["right_basis"]),
        operator=operator_from_state(state["operator"]),
    )
