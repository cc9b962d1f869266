"""Groups by name, as they are written in the shell: `permutations`, `rotations:6`, or several joined by +."""

from __future__ import annotations

from collections.abc import Callable

from daskspectral.groups import Cyclic, Generated, Group, Permutations, Rotations, SignFlips

GROUPS = "permutations, cyclic, signflips, rotations:K"


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
