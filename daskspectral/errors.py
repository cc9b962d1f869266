"""Warnings and errors of daskspectral; all others are standard Python exceptions."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from enum import IntEnum
from types import FrameType
from typing import Any, TypeVar

__all__ = [
    "FitWarning",
    "ReliabilityWarning",
    "ExtrapolationWarning",
    "RankWarning",
    "DensityWarning",
    "ManifoldWarning",
    "WeightWarning",
    "InvalidRowError",
    "ParameterError",
    "PointError",
    "SmoothnessError",
    "UntrustedError",
]

_USER = re.compile(
    r"""
    (\b(?:https?|s3a?|gs|gcs|abfss?|tcp|tls):/+ | [\w+.-]{0,30}(?<!\bfile)://)
    (?:
        (?!\[)                                                      # the address of a host
        (?:(?<=\bs3://) | (?<=\bs3a://) | (?<=\bgs://) | (?<=\bgcs://)  # buckets have no ports
            | (?![^/:\s]*:\d{1,5}(?:[/?\#\s,;)'"\]]|$)))
        [^/:\s]*:(?![\s:]).{,4000}@                                 # a password may have any letters
    |   [^/?\#\s]*@
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_QUERY = re.compile(r"(\bhttps?:/+[^\s?#;]*[?#;]|(?<!\bfile)://[^\s?]*\?)\S+", re.IGNORECASE)
_CONTAINER = re.compile(r"(abfss?|az|adl|wasbs?)://[a-z0-9$-]+@")

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class RankWarning(UserWarning):
    """The Gram matrix has fewer numerically independent directions than requested components."""


class DensityWarning(UserWarning):
    """Regions with very few rows dominate the result after division by the sampling density."""


class ManifoldWarning(UserWarning):
    """Rows are farther from the manifold than rounding explains."""


class FitWarning(UserWarning):
    """A fit is poor or suspect: no skill, few rows, unequal units of columns, or failed training."""


class WeightWarning(UserWarning):
    """Sample weights look like something other than counts: weight 2 means that the row occurs twice."""


class ReliabilityWarning(UserWarning):
    """Results or their error bars may be wrong by more than stated, or are too uncertain to be useful."""


class ExtrapolationWarning(ReliabilityWarning):
    """Values are extrapolated because rows lie far from those of the fit.

    Parameters
    ----------
    message : str
        Text of the warning.
    count : int
        Number of such rows.
    rows : int
        Number of all rows.
    """

    def __init__(self, message: str, count: int = 0, rows: int = 0):
        super().__init__(message)
        self.count, self.rows = count, rows

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.count, self.rows)


class Rank(IntEnum):
    """Order of reliability warnings: causes before consequences, and those with a remedy first."""

    DATA = 0  # the rows or their units, which cause other warnings
    ORDER = 1  # correlation of rows, which affects all error bars
    METHOD = 2  # the basis functions
    UNCERTAINTY = 3  # too few rows


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a suffix for a message with the known name closest to a mistyped one; empty if none is close."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def redacted(text: str) -> str:
    """Return a text with the user part (except containers of abfs) and the query of each URL replaced by ***."""
    without = _USER.sub(lambda user: user[0] if _CONTAINER.fullmatch(user[0]) else f"{user[1]}***@", text)
    return _QUERY.sub(r"\1***", without)


def printable(text: str) -> str:
    """Return text for a terminal, without credentials in URLs and with control characters escaped."""
    return redacted(plain_name(text, "\n\t"))


def plain_name(name: str, kept: str = "") -> str:
    """Return a name that comes from data with control characters, except those in `kept`, escaped."""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in name)


T = TypeVar("T")
_listening: ContextVar[tuple[dict[str, Rank], ...]] = ContextVar("listening", default=())
_waiting: ContextVar[dict[str, Rank] | None] = ContextVar("waiting", default=None)
_SEARCHED = ("_fit_and_score", "_score")  # of scikit-learn, in every search and cross-validation


@contextmanager
def scoped(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable within a block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def recorded_warnings() -> Iterator[dict[str, Rank]]:
    """Record warnings of `warn_user` within a block, as "Category: message" -> rank, regardless of filters."""
    heard: dict[str, Rank] = {}
    with scoped(_listening, (*_listening.get(), heard)):
        yield heard


def column_name(number: int, names: Sequence[str]) -> str:
    """Return the number and, if there is one, the name of a column, such as "column 3 (ash)"."""
    return f"column {number} ({plain_name(names[number])})" if number < len(names) else f"column {number}"


@contextmanager
def combined_warnings() -> Iterator[None]:
    """Combine the reliability warnings of a block into one: the first by rank and the number of others."""
    if _waiting.get() is not None:
        yield
        return
    pending: dict[str, Rank] = {}
    with scoped(_waiting, pending):
        yield
    if pending:
        more = f". {len(pending) - 1} more in warnings_" if len(pending) > 1 else ""
        _warn(ranked(pending)[0] + more, ReliabilityWarning)


@contextmanager
def warnings_of_rank(*ranks: Rank) -> Iterator[None]:
    """Keep only the reliability warnings of a block that have one of these ranks."""
    pending: dict[str, Rank] = {}
    with scoped(_waiting, pending), scoped(_listening, ()):
        yield
    for text, rank in pending.items():
        if rank in ranks:
            warn_user(text, ReliabilityWarning, rank)


def ranked(pending: Mapping[str, Rank]) -> list[str]:
    """Return reliability warnings sorted by rank, and by time within a rank."""
    return sorted(pending, key=lambda text: pending[text])


def warn_user(message: str | Warning, category: type[Warning], rank: Rank = Rank.METHOD) -> None:
    """Issue a warning that points to the caller's line outside this package and scikit-learn.

    Fits within a search or cross-validation of scikit-learn issue none; those within `combined_warnings` are combined.
    """
    text = f"{category.__name__}: {message}"
    for heard in _listening.get():
        heard.setdefault(text, rank)
    pending = _waiting.get()
    if category is not ReliabilityWarning or pending is None:
        _warn(message, category)
    else:
        pending.setdefault(str(message), rank)


def _warn(message: str | Warning, category: type[Warning]) -> None:
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and _passed(frame):
        if frame.f_code.co_name in _SEARCHED and frame.f_globals["__name__"].startswith("sklearn.model_selection"):
            return
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _passed(frame: FrameType) -> bool:
    own = os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE)
    return own or str(frame.f_globals.get("__name__")).startswith(("sklearn.", "joblib.", "contextlib"))  # pipelines


class SmoothnessError(ValueError):
    """A kernel has fewer derivatives than the operator requires."""


class ParameterError(ValueError, TypeError):
    """A parameter has an invalid value or type; `parameter` is its name."""

    def __init__(self, parameter: str, expected: str, value: Any):
        super().__init__(parameter, expected, value)
        self.parameter, self.expected, self.value = parameter, expected, value

    def __str__(self) -> str:
        return f"{self.parameter} must be {self.expected}, got {self.value!r}"


class InvalidRowError(ValueError):
    """A row contains NaN, infinity, a number whose square overflows (1e153), or a negative sample weight.

    Parameters
    ----------
    message : str
        Text of the error.
    row : int
        Number of the first such row; in trajectories, its number within the trajectory, of the first invalid pair
        (x, future).
    column : int, optional
        Number of the column of X; None if the fault is not in X.
    """

    def __init__(self, message: str, row: int, column: int | None = None):
        super().__init__(message, row, column)
        self.row, self.column = row, column

    def __str__(self) -> str:
        return str(self.args[0])


class UntrustedError(ValueError):
    """A file names classes or functions from outside of daskspectral.

    Parameters
    ----------
    names : sequence of str
        Their names, as `module.name`.
    """

    def __init__(self, names: Sequence[str]):
        super().__init__(list(names))
        self.names = tuple(names)

    def __str__(self) -> str:
        return (
            f"the file names {', '.join(self.names)}, which would run code from outside of daskspectral. If you know "
            f"this code and the origin of the file, load it with trusted={list(self.names)!r} (in the shell "
            f"{' '.join(f'--trust {name}' for name in self.names)})"
        )


class PointError(ValueError):
    """A point that a manifold does not accept, such as a point off the sphere.

    `row` is its row number, and `field` the name of the array. The message is `before`, "row" with the number, `after`.
    """

    def __init__(self, before: str, row: int, after: str, field: str = "x"):
        super().__init__(before, row, after, field)
        self.before, self.row, self.after, self.field = before, row, after, field

    def __str__(self) -> str:
        return f"{self.before} row {self.row}{self.after}"

    def at(self, row: int, field: str | None = None) -> PointError:
        """Return the same error for another row number or field."""
        return PointError(self.before, row, self.after, field or self.field)


@contextmanager
def renumbered(number: Callable[[int], int], field: str | None = None) -> Iterator[None]:
    """Change the row of a PointError raised within a block, and its field if given."""
    try:
        yield
    except PointError as error:
        raise error.at(int(number(error.row)), field) from None


class Stopped(BaseException):
    """A signal stopped the process; like KeyboardInterrupt, this is not an error."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def raise_on_signals(*numbers: int) -> Iterator[None]:
    """Raise `Stopped` in the main thread when one of these signals arrives within the block.

    A signal that the process ignores, such as SIGHUP under nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
