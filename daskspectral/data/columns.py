"""Names of columns, and the positions of requested columns in other data."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.errors import plain_name
from daskspectral.registry import Registered

Array = NDArray[Any]
Label = str | int | float | tuple[Any, ...]
MOST_SHOWN = 5


@dataclass(frozen=True, eq=False)
class ColumnNames(Registered):
    """Names of columns: text, numbers, or tuples of these with the names of their `levels` (a MultiIndex)."""

    labels: tuple[Label, ...]
    levels: tuple[str | None, ...] | None = None

    @classmethod
    def of(cls, labels: Iterable[Any], levels: Iterable[Any] | None = None) -> Self | None:
        """Return the names of columns with these labels; None if they are the numbers of the columns."""
        found = tuple(map(_plain, labels))
        names = cls(found, None if levels is None else tuple(None if name is None else str(name) for name in levels))
        return None if names.numbered else names

    @classmethod
    def numbers(cls, count: int) -> Self:
        return cls(tuple(range(count)))

    @property
    def numbered(self) -> bool:
        """Whether these are the numbers of the columns in order, as for columns without names."""
        return self.labels == tuple(range(len(self.labels)))

    @property
    def texts(self) -> list[str]:
        return [
            ", ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in map(_plain, self.labels)
        ]

    def coordinates(self, dim: str) -> dict[str, Any]:
        if self.levels is None:
            return {dim: [*self.texts] if self.feature_names is None else [*self.labels]}
        levels = [name or f"level_{i}" for i, name in enumerate(self.levels)]
        return {level: (dim, [*values]) for level, values in zip(levels, zip(*self.labels, strict=True), strict=True)}

    @property
    def feature_names(self) -> Array | None:
        """Names in the form of scikit-learn; None unless all are text."""
        if not all(isinstance(label, str) for label in self.labels):
            return None
        return np.array(self.labels, dtype=object)

    def select(self, places: Iterable[int]) -> ColumnNames:
        return ColumnNames(tuple(self.labels[place] for place in places), self.levels)

    def check_distinct(self, what: str) -> None:
        several = [label for label, count in Counter(self.labels).items() if count > 1]
        if several:
            raise ValueError(f"several columns of {what} have the name {several[0]!r}: rename them")


@dataclass(frozen=True, eq=False)
class ColumnSelection:
    """Columns that a call reads: those with the `names`, in their order; by default all.

    The numbers `used` must be present; others may be missing or not numeric. Names from the user (`asked`) are an error
    for data without names, whose columns are otherwise matched by position.
    """

    names: ColumnNames | None = None
    used: tuple[int, ...] | None = None
    asked: bool = False

    @classmethod
    def by_user(cls, columns: Any) -> Self:
        """Return the columns of `Rows(columns=...)`; raise ValueError for repeated names."""
        if are_names(columns) and len({*columns}) < len(columns):
            raise ValueError(f"columns must be distinct, got {columns!r}")
        return cls(ColumnNames(tuple(columns)), asked=True) if are_names(columns) else cls(used=_numbers(columns))

    def uses(self, number: int, width: int) -> bool:
        return self.used is None or number in self.used or number - width in self.used

    def places(self, names: ColumnNames | None, width: int, what: str) -> Sequence[int | None]:
        """Return the position of each column among `width` columns `names`; None for unused missing ones.

        Raises ValueError for missing columns, and for names if the data have none.
        """
        if self.names is None or (names is None and not self.asked):
            return range(width)
        if names is not None and self.names.numbered and {*names.labels} != {*self.names.labels}:
            return range(width)
        if names is None:
            raise ValueError(f"columns={[*self.names.labels]} are names, but {what} has no column names. Pass numbers")
        names.check_distinct(what)
        known = {label: place for place, label in enumerate(names.labels)}
        labels = [_plain(label) for label in self.names.labels]
        missing = [label for j, label in enumerate(labels) if label not in known and self.uses(j, len(labels))]
        if missing and self.asked:
            raise ValueError(f"{what} has no columns {missing}. Available: {[*names.labels[:20]]}")
        if missing:
            raise ValueError(_mismatch(labels, names.labels, missing, what))
        return [known.get(label) for label in labels]


def _mismatch(wanted: Sequence[Label], came: Sequence[Label], missing: Sequence[Label], what: str) -> str:
    """Return scikit-learn's message for missing columns."""
    strange = sorted({*came} - {*wanted}, key=str)
    parts = [("Feature names unseen at fit time", strange)] if len(came) <= len(wanted) else []
    parts += [("Feature names seen at fit time, yet now missing", sorted(missing, key=str))]
    lists = "".join(
        f"{title}:\n" + "".join(f"- {name}\n" for name in names[:MOST_SHOWN]) + ("- ...\n" * (len(names) > MOST_SHOWN))
        for title, names in ((title, [plain_name(str(name)) for name in names]) for title, names in parts)
        if names
    )
    return (
        f"The feature names should match those that were passed during fit.\n{lists}"
        f"{what} must have the columns of the fit, in any order: rename its columns"
    )


def are_names(columns: Any) -> bool:
    """Return whether these columns are names."""
    return isinstance(columns, (list, tuple, np.ndarray)) and any(isinstance(c, (str, tuple)) for c in columns)


def _numbers(columns: Any) -> tuple[int, ...] | None:
    """Return the numbers of columns, not yet checked; None for anything else."""
    try:
        return None if columns is None else tuple(map(operator.index, columns))
    except TypeError:
        return None


def _plain(label: Any) -> Any:
    """Return a label in its stored form: text, a number, or a tuple of these."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(map(_plain, label))
    return label if isinstance(label, (str, int, float)) else str(label)


def check_columns(columns: Sequence[int | str] | None, d: int) -> tuple[int, ...] | None:
    """Return column numbers from 0 to d - 1, possibly given from the end; otherwise raise ValueError."""
    if columns is None:
        return None
    try:
        given = [*columns]
        chosen = [operator.index(c) for c in given if not isinstance(c, (bool, np.bool_))]  # type: ignore[arg-type]
    except TypeError:
        given, chosen = [], []
    distinct = {c % d for c in chosen}
    if not given or len(distinct) < len(given) or any(not -d <= c < d for c in chosen):
        raise ValueError(
            f"columns must be a list of distinct numbers of the {d} columns of X, from 0 to {d - 1}, got {columns!r}"
        )
    return tuple(c % d for c in chosen)


def select_columns(block: Array, places: Sequence[int | None]) -> Array:
    """Return the columns (c, d) at these positions, 0 for None."""
    found: Array = block[:, [0 if place is None else place for place in places]]
    if None in places:
        found[:, [place is None for place in places]] = 0
    return found
