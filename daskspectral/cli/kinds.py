"""The kinds of values that options take: counts, columns, periods, lattices and others, as they are written."""

from __future__ import annotations

from typing import Any

import click

MOST_COLUMNS = 100_000


def number_of(text: str | None) -> float | None:
    """The number that a text is; None for none, and for other text."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


class Count(click.ParamType):  # type: ignore[type-arg]
    """A whole number, written 10000, 1e4 or 10_000."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number as an int."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number")
        if not number.is_integer():
            self.fail(f"{value!r} is not a whole number")
        return int(number)


class OrAuto(click.ParamType):  # type: ignore[type-arg]
    """The word auto, or what another type takes."""

    def __init__(self, other: click.ParamType):  # type: ignore[type-arg]
        self.other = other
        self.name = f"{other.name}|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as the other type has it."""
        return value if value == "auto" else self.other.convert(value, param, ctx)


class Folds(click.ParamType):  # type: ignore[type-arg]
    """A number of folds, the words blocks and none, or the path of a zarr array of labels."""

    name = "folds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, None, or the text as it is."""
        if not isinstance(value, str):
            return value
        return None if value == "none" else int(value) if value.isdecimal() else value


class Columns(click.ParamType):  # type: ignore[type-arg]
    """Column numbers: 0,2,5 or 0:8."""

    name = "columns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers as a list, in order."""
        if isinstance(value, list):
            return value
        try:
            parts = [part.partition(":") for part in value.split(",")]
            ranges = [range(int(first), int(last) if colon else int(first) + 1) for first, colon, last in parts]
        except ValueError:
            self.fail(f"{value!r} is not a list of column numbers such as 0,2,5 or 0:8")
        if sum(max(0, numbers.stop - numbers.start) for numbers in ranges) > MOST_COLUMNS:
            self.fail(f"{value[:80]!r} has more than {MOST_COLUMNS} column numbers: choose fewer")
        return [number for numbers in ranges for number in numbers]


class Words(click.ParamType):  # type: ignore[type-arg]
    """Names separated by commas: time,lat,lon."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The names as a tuple."""
        found = tuple(value) if isinstance(value, (list, tuple)) else tuple(word.strip() for word in value.split(","))
        if not all(found):
            self.fail(f"{value!r} is not a list of names such as time,lat,lon")
        return found


class Periods(click.ParamType):  # type: ignore[type-arg]
    """Periods of columns: 0:6.283185,2:360."""

    name = "periods"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The periods by the numbers of their columns."""
        if isinstance(value, dict):
            return value
        try:
            pairs = [part.split(":") for part in value.split(",")]
            return {int(column): float(period) for column, period in pairs}
        except ValueError:
            self.fail(f"{value!r} is not a list of columns with their periods such as 0:6.283185,2:360")


class Lattice(click.ParamType):  # type: ignore[type-arg]
    """A Fourier lattice by its highest frequency, or one for each column; "auto" compares it with landmarks."""

    name = "m"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str) or value == "auto":
            return value
        from daskspectral.basis import FourierLattice

        try:
            orders = tuple(int(part) for part in value.split(","))
            return FourierLattice(orders if len(orders) > 1 else orders[0])
        except ValueError as error:
            if "invalid literal" not in str(error):
                self.fail(str(error))
            self.fail(f"{value!r} is no highest frequency such as 15, nor one for each column such as 30,20")


class Box(click.ParamType):  # type: ignore[type-arg]
    """The ends of each column: -1:1,0:5; none for a periodic one."""

    name = "lower:upper"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The ends as pairs, None for a periodic column."""
        if not isinstance(value, str):
            return value
        try:
            sides = [None if part == "none" else tuple(map(float, part.split(":"))) for part in value.split(",")]
        except ValueError:
            sides = [()]
        if any(side is not None and len(side) != 2 for side in sides):
            self.fail(f"{value!r} is no list of the ends of columns such as -1:1,0:5")
        return tuple(sides)


class Network(click.ParamType):  # type: ignore[type-arg]
    """A network by the neurons of its hidden layers."""

    name = "neurons"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        from daskspectral.basis import NeuralBasis

        try:
            return NeuralBasis(tuple(int(part) for part in value.split(",")))
        except ValueError as error:
            if "invalid literal" not in str(error):
                self.fail(str(error))
            self.fail(f"{value!r} is no list of neurons of hidden layers such as 96,96,96")
