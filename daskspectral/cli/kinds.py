"""The kinds of values that options take: counts, columns, periods, lattices and others, as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


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


def _count_or_share(text: str) -> float:
    number = float(text)
    return number if 0 < number < 1 else _whole(text)


def _lag(text: str) -> int | str:
    from daskspectral.operators.lags import lag_of

    return lag_of(text)


def _folds(text: str) -> Any:
    return None if text == "none" else int(text) if text.isdecimal() else text


def _columns(text: str) -> list[int] | list[str]:
    parts = [part.partition(":") for part in text.split(",")]
    if not any(first.strip().isdecimal() for first, _, _ in parts):
        return [*_names(text)]
    ranges = [range(int(first), int(last) if colon else int(first) + 1) for first, colon, last in parts]
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


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise ValueError
    return name, path


def number_or(*words: str) -> OptionType:
    """A number, or one of these words."""
    return OptionType("number", float, f"not a number, nor one of {', '.join(words)}", *words)


COUNT = OptionType("count", _whole, "not a number")
COUNT_OR_SHARE = OptionType("count|share", _count_or_share, "no number of components, nor a share such as 0.95")
LAG = OptionType("rows|time", _lag, "no number of rows, nor a time such as 6h or 1D")
COUNT_OR_AUTO = OptionType("count", _whole, "not a number", "auto")
FOLDS = OptionType("folds", _folds, "no folds")
COLUMNS = OptionType("columns", _columns, "not a list of column numbers such as 0,2,5 or 0:8, or of names")
NAMES = OptionType("names", _names, "not a list of names such as time,lat,lon")
SETS = OptionType("sets", _names, "no array of booleans, nor two such as a.zarr,b.zarr")
PERIODS = OptionType("periods", _periods, "not a list of columns with their periods such as 0:6.283185,2:360")
LATTICE = OptionType("m", _sizes, "no highest frequency such as 15, nor one for each column such as 30,20", "auto")
LAGS = OptionType("multiples", _sizes, "no list of multiples of the lag such as 2,5,10")
NEURONS = OptionType("neurons", _sizes, "no list of neurons of hidden layers such as 96,96,96")
FIELD = OptionType("name=path", _field, "no field with its array, such as drift=b.zarr")
