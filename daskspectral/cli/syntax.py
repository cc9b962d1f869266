"""Syntax of option values in a shell."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click


class OptionType(click.ParamType):  # type: ignore[type-arg]
    """Type of an option: `read` converts its text, except some words; `expected` describes it."""

    def __init__(self, name: str, read: Callable[[str], Any], expected: str, *words: str):
        self.name, self.read, self.words = "|".join([name, *words]), read, words
        self.expected = ", or ".join([expected, *words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text; other values, such as defaults, are unchanged."""
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            return self.read(value)
        except ValueError:
            self.fail(f"expected {self.expected}, got {value!r}")


def number_of(text: str | None) -> float | None:
    """Return the number in a text; None for other text."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def type_of(documented: str) -> Any:
    """Return the click type of a type in documentation, such as 'int or "auto"', whose words are values."""
    words = [word.replace("_", "-") for word in re.findall('"(.+?)"', documented)]
    found = tuple(sorted({*re.findall(r"(?<!\")\b(int|float|number|bool)\b(?!\")", documented)}))
    if found in NUMBERS:
        return OptionType(*NUMBERS[found], *words)
    if found or words:
        return bool if found else click.Choice(words)
    return "PATH" if "array" in documented else None


def _whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError
    return int(number)


def _count_or_share(text: str) -> float:
    number = float(text)
    return number if 0 < number < 1 else _whole(text)


def _lag(text: str) -> Any:
    from daskspectral.operators.lags import lags_of

    return lags_of(tuple(text.split(",")) if "," in text else text)


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


NUMBERS: dict[tuple[str, ...], tuple[str, Callable[[str], Any], str]] = {
    ("int",): ("count", _whole, "a whole number"),
    ("float",): ("number", float, "a number"),
    ("number",): ("number", float, "a number"),
    ("float", "int"): ("count|share", _count_or_share, "a count, or a share such as 0.95"),
}
COUNT = type_of("int")
SETS = OptionType("sets", _names, "an array of booleans, or two such as a.zarr,b.zarr")
FIELD = OptionType("name=path", _field, "a field with its array, such as drift=b.zarr")
SYNTAX = {
    "kernel": OptionType("name", str, "name[:parameter...], joined by +"),
    "manifold": OptionType("name", str, "sphere, circle, torus, periodic box:LOWER:UPPER, interval:LOWER:UPPER"),
    "group": OptionType("name", str, "permutations, cyclic, signflips, rotations:K, joined by +"),
    "lag": OptionType("rows|time", _lag, "a number of rows, or a time such as 6h or 1D, or several such as 1,2,5"),
    "folds": OptionType("folds", _folds, "a number, blocks, random, none, or an array of labels"),
    "columns": OptionType("columns", _columns, "numbers such as 0,2,5 or 0:8, or names such as malt,ash"),
    "sample-dims": OptionType("names", _names, "names such as time,lat,lon"),
    "periods": OptionType("periods", _periods, "pairs such as 0:6.283185,2:360"),
    "lattice": OptionType("m", _sizes, "an integer such as 15, or one for each column such as 30,20", "auto"),
    "network": OptionType("neurons", _sizes, "integers such as 96,96,96"),
}
"""Syntax of values that are neither numbers nor words, by option."""
