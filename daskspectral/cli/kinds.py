"""The kinds of values that options take: counts, columns, periods, lattices and others, as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from daskspectral.groups import Cyclic, Generated, Group, Permutations, Rotations, SignFlips
from daskspectral.manifolds import Circle, FlatTorus, Interval, Manifold, PeriodicBox, Sphere

MOST_COLUMNS = 100_000


class OptionType(click.ParamType):  # type: ignore[type-arg]
    """Text as `read` has it, which raises ValueError for what is `wrong`; some words stay as they are."""

    def __init__(self, name: str, read: Callable[[str], Any], wrong: str, *words: str):
        self.name, self.read, self.wrong, self.words = "|".join([name, *words]), read, wrong, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text, or a default as it is."""
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            return self.read(value)
        except ValueError:
            self.fail(f"{value!r} is {self.wrong}")


def number_of(text: str | None) -> float | None:
    """The number that a text is; None for none, and for other text."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise click.BadParameter(f"{text!r} is not a whole number")
    return int(number)


def _folds(text: str) -> Any:
    return None if text == "none" else int(text) if text.isdecimal() else text


def _columns(text: str) -> list[int]:
    parts = [part.partition(":") for part in text.split(",")]
    ranges = [range(int(first), int(last) if colon else int(first) + 1) for first, colon, last in parts]
    if sum(max(0, numbers.stop - numbers.start) for numbers in ranges) > MOST_COLUMNS:
        raise click.BadParameter(f"{text[:80]!r} has more than {MOST_COLUMNS} column numbers: choose fewer")
    return [number for numbers in ranges for number in numbers]


def _names(text: str) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(","))
    if not all(found):
        raise ValueError
    return found


def _periods(text: str) -> dict[int, float]:
    pairs = [part.split(":") for part in text.split(",")]
    return {int(column): float(period) for column, period in pairs}


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _box(text: str) -> tuple[tuple[float, ...] | None, ...]:
    sides = [None if part == "none" else tuple(map(float, part.split(":"))) for part in text.split(",")]
    if any(side is not None and len(side) != 2 for side in sides):
        raise ValueError
    return tuple(sides)


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise ValueError
    return name, path


def number_or(*words: str) -> OptionType:
    """A number, or one of these words."""
    return OptionType("number", float, f"not a number, nor one of {', '.join(words)}", *words)


COUNT = OptionType("count", _whole, "not a number")
COUNT_OR_AUTO = OptionType("count", _whole, "not a number", "auto")
FOLDS = OptionType("folds", _folds, "no folds")
COLUMNS = OptionType("columns", _columns, "not a list of column numbers such as 0,2,5 or 0:8")
NAMES = OptionType("names", _names, "not a list of names such as time,lat,lon")
PERIODS = OptionType("periods", _periods, "not a list of columns with their periods such as 0:6.283185,2:360")
LATTICE = OptionType("m", _sizes, "no highest frequency such as 15, nor one for each column such as 30,20", "auto")
NEURONS = OptionType("neurons", _sizes, "no list of neurons of hidden layers such as 96,96,96")
BOX = OptionType("lower:upper", _box, "no list of the ends of columns such as -1:1,0:5")
FIELD = OptionType("name=path", _field, "no field with its array, such as drift=b.zarr")


# -- manifolds and groups by their names in a shell --------------------------------------------------------------------


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
