"""Names of groups for the command: `permutations`, `rotations:6`, or several joined by +."""

from __future__ import annotations

from collections.abc import Callable

from daskspectral.groups import Cyclic, Generated, Group, Permutations, Rotations, SignFlips

GROUPS = "permutations, cyclic, signflips, rotations:K"


def parse_group(text: str, dimension: int) -> Group:
    """Return the group `permutations`, `cyclic`, `signflips` or `rotations:K`, or several joined by +.

    `rotations:K` rotates the plane of the first two of `dimension` columns. Raises ValueError for other names.
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
    raise ValueError(f"unknown group {text!r}; available: {GROUPS}, or several joined by +")
