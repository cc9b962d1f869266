"""Manifolds by name, as on the command line: `sphere`, `box:-1:1`."""

from __future__ import annotations

from daskspectral.manifolds import Circle, FlatTorus, Interval, Manifold, PeriodicBox, Sphere

MANIFOLDS = "sphere, circle, torus, box:LOWER:UPPER, interval:LOWER:UPPER"


def parse_manifold(text: str, dimension: int) -> Manifold:
    """Return the manifold of this name in the given number of columns.

    `sphere`, `circle`, `torus`, `box:LOWER:UPPER` or `interval:LOWER:UPPER`, with equal sides. Raises ValueError for
    others.
    """
    name, *numbers = text.split(":")
    bounded = name in ("box", "interval")
    if not (bounded or name in ("sphere", "circle", "torus")) or len(numbers) != (2 if bounded else 0):
        raise ValueError(f"unknown manifold {text!r}; available: {MANIFOLDS}")
    if name == "sphere":
        return Sphere(dimension)
    if name == "circle":
        return Circle()
    if name == "torus":
        if dimension % 2:
            raise ValueError(f"torus requires an even number of columns, cos and sin of each angle, got {dimension}")
        return FlatTorus(dimension // 2)
    try:
        lower, upper = map(float, numbers)
    except ValueError:
        raise ValueError(f"the bounds of {name} must be numbers, as in {name}:-1:1, got {text!r}") from None
    kind = PeriodicBox if name == "box" else Interval
    return kind([lower] * dimension, [upper] * dimension)
