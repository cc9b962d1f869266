"""Manifolds as plain data, for models that are saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daskspectral.kernels.registry import function_path, load_function
from daskspectral.manifolds.base import Manifold
from daskspectral.manifolds.box import Box
from daskspectral.manifolds.implicit import Implicit
from daskspectral.manifolds.product import Product
from daskspectral.manifolds.rotations import SO3
from daskspectral.manifolds.sphere import Circle, Sphere
from daskspectral.manifolds.torus import FlatTorus

MANIFOLDS: dict[str, Callable[..., Manifold]] = {
    "Sphere": Sphere,
    "Circle": Circle,
    "FlatTorus": FlatTorus,
    "Box": Box,
    "SO3": SO3,
    "Product": Product,
    "Implicit": Implicit,
}


def manifold_state(manifold: Manifold | None) -> dict[str, Any] | None:
    """A manifold as plain data."""
    if manifold is None:
        return None
    return {"manifold": type(manifold).__name__, **{k: _plain(v) for k, v in manifold.get_params().items()}}


def manifold_from_state(state: dict[str, Any] | None) -> Manifold | None:
    """The inverse of `manifold_state`."""
    if state is None:
        return None
    return MANIFOLDS[state["manifold"]](**{k: _made(k, v) for k, v in state.items() if k != "manifold"})


def _plain(value: Any) -> Any:
    if isinstance(value, Manifold):
        return manifold_state(value)
    if callable(value):
        return function_path(value)
    return list(value) if isinstance(value, tuple) else value


def _made(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return manifold_from_state(value)
    return load_function(value) if name == "normals" else value
