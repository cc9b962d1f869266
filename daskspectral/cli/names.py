"""Manifolds and groups by their names in a shell."""

from __future__ import annotations

from collections.abc import Callable

from daskspectral.groups import Cyclic, Generated, Group, Permutations, Rotations, SignFlips
from daskspectral.manifolds import Circle, FlatTorus, Interval, Manifold, PeriodicBox, Sphere

MANIFOLDS = "sphere, circle, torus, box:LOWER:UPPER, interval:LOWER:UPPER"
GROUPS = "permutations, cyclic, signflips, rotations:K"


def parse_manifold(text: str, dimension: int) -> Manifold:
    """The manifold named `sphere`, `circle`, `torus`, `box:LOWER:UPPER` or `interval:LOWER:UPPER`, in so many columns.

    The sides of a box, which is periodic, and of an interval, which is not, are all alike. Raises ValueError, which
    lists the valid names, for any other name.
    """
    name, *numbers = text.split(":")
    bounded = name in ("box", "interval")
    if not (bounded or name in ("sphere", "circle", "torus")) or len(numbers) != (2 if bounded else 0):
        raise ValueError(f"there is no manifold {text!r}; the manifolds are {MANIFOLDS}")
    if name == "sphere":
        return Sphere(dimension)
    if name == "circle":
        return Circle()
    if name == "torus":
        if dimension % 2:
            raise ValueError(f"a torus has cos and sin of each angle, an even number of columns; got {dimension}")
        return FlatTorus(dimension // 2)
    try:
        lower, upper = map(float, numbers)
    except ValueError:
        raise ValueError(f"the bounds of a box or an interval are numbers, as in {name}:-1:1; got {text!r}") from None
    kind = PeriodicBox if name == "box" else Interval
    return kind([lower] * dimension, [upper] * dimension)


def parse_group(text: str, dimension: int) -> Group:
    """The group named `permutations`, `cyclic`, `signflips` or `rotations:K`, or several joined by +.

    They act on `dimension` columns; `rotations:K` turn the plane of the first two columns by multiples of 2 pi / K.
    Raises ValueError, which lists the valid names, for any other name.
    """
    parts = [_parse_one(part, text, dimension) for part in text.split("+")]
    return parts[0] if len(parts) == 1 else Generated(parts, text)


def _parse_one(part: str, text: str, dimension: int) -> Group:
    name, *numbers = part.split(":")
    simple: dict[str, Callable[[int], Group]] = {"permutations": Permutations, "cyclic": Cyclic, "signflips": SignFlips}
    if name in simple and not numbers:
        return simple[name](dimension)
    if name == "rotations" and len(numbers) == 1 and numbers[0].isdecimal():
        return Rotations(int(numbers[0]), dimension)
    raise ValueError(f"there is no group {text!r}; the groups are {GROUPS}, or several joined by +")
