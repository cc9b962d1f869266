"""Bases: the p functions whose span the operator is restricted to."""

from __future__ import annotations

from typing import Any

from daskspectral.basis.base import Arena, Basis, Block, Contraction, Evaluation
from daskspectral.basis.concatenated import Concatenated, ConstantBasis
from daskspectral.basis.landmark import LandmarkBasis

__all__ = [
    "Arena",
    "Basis",
    "Block",
    "Concatenated",
    "ConstantBasis",
    "Contraction",
    "Evaluation",
    "LandmarkBasis",
    "basis_from_state",
]


def basis_from_state(state: dict[str, Any]) -> Basis:
    """The basis that `Basis.state` described."""
    kind = state["basis"]
    if kind == "constant":
        return ConstantBasis(int(state["dimension"]))
    if kind == "concatenated":
        return Concatenated(tuple(basis_from_state(s) for s in state["bases"]))
    if kind == "landmark":
        return LandmarkBasis.from_state(state)
    raise ValueError(f"unknown kind of basis {kind!r} in a saved model; a newer daskspectral may have written it")
