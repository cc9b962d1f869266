"""The warnings and errors that are daskspectral's own; all others are Python's standard ones."""

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
    """The Gram matrix has fewer numerically independent directions than were asked for."""


class DensityWarning(UserWarning):
    """Places that hold very few rows decide what remains once the sampling density is divided out."""


class ManifoldWarning(UserWarning):
    """The rows lie off the manifold that was named, by more than rounding."""


class FitWarning(UserWarning):
    """A regression that explains nothing of rows left out, or would explain more in other units of y or the columns."""


class WeightWarning(UserWarning):
    """Sample weights that count rows otherwise than they seem to have been meant: weight 2 is the row twice."""


class ReliabilityWarning(UserWarning):
    """The values, or their error bars, may be wrong by more than they say, or are too uncertain to be of use."""


class ExtrapolationWarning(ReliabilityWarning):
    """Rows so far from those of the fit that values there are extrapolated: `count` of `rows`."""

    def __init__(self, message: str, count: int = 0, rows: int = 0):
        super().__init__(message)
        self.count, self.rows = count, rows

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.count, self.rows)


class Rank(IntEnum):
    """The order in which doubts count: causes before their consequences, and what has a remedy first."""

    DATA = 0  # the rows or their units, of which other doubts are the consequence
    ORDER = 1  # how rows depend on each other, by which all error bars may be wrong
    METHOD = 2  # the functions
    UNCERTAINTY = 3  # too few rows for what is asked


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that is nearest to a mistyped one, to be put behind it; empty where none is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def redacted(text: str) -> str:
    """Text with *** in place of the user part of each URL, but for a container of abfs, and of its query."""
    without = _USER.sub(lambda user: user[0] if _CONTAINER.fullmatch(user[0]) else f"{user[1]}***@", text)
    return _QUERY.sub(r"\1***", without)


def printable(text: str) -> str:
    """Text for a terminal: no credential in a URL, and control characters, but for ends of lines and tabs, as \\x1b."""
    return redacted(plain_name(text, "\n\t"))


def plain_name(name: str, kept: str = "") -> str:
    """Return a name from data for a message, with control characters but those that are `kept` as \\x1b."""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in name)


T = TypeVar("T")
_listening: ContextVar[tuple[dict[str, Rank], ...]] = ContextVar("listening", default=())
_waiting: ContextVar[dict[str, Rank] | None] = ContextVar("waiting", default=None)
_SEARCHED = ("_fit_and_score", "_score")  # of scikit-learn, in every search and cross-validation


@contextmanager
def scoped(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Let a context variable have a value inside."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def overheard() -> Iterator[dict[str, Rank]]:
    """Yield the ranks of what `warn_user` warns of inside, by "Category: message", whatever filters do with it."""
    heard: dict[str, Rank] = {}
    with scoped(_listening, (*_listening.get(), heard)):
        yield heard


def column_name(number: int, names: Sequence[str]) -> str:
    """Return a column for a message, by its number and its name, if it has one, such as "column 3 (ash)"."""
    return f"column {number} ({plain_name(names[number])})" if number < len(names) else f"column {number}"


@contextmanager
def one_doubt() -> Iterator[None]:
    """Combine warnings of reliability inside into one, of the first rank, with the number of the others."""
    if _waiting.get() is not None:
        yield
        return
    doubts: dict[str, Rank] = {}
    with scoped(_waiting, doubts):
        yield
    if doubts:
        more = f". {len(doubts) - 1} more in warnings_" if len(doubts) > 1 else ""
        _warn(ranked(doubts)[0] + more, ReliabilityWarning)


@contextmanager
def doubts_of(*ranks: Rank) -> Iterator[None]:
    """Keep those doubts inside that have one of these ranks."""
    doubts: dict[str, Rank] = {}
    with scoped(_waiting, doubts), scoped(_listening, ()):
        yield
    for text, rank in doubts.items():
        if rank in ranks:
            warn_user(text, ReliabilityWarning, rank)


def ranked(doubts: Mapping[str, Rank]) -> list[str]:
    """Return the doubts by rank, those of one rank as they came."""
    return sorted(doubts, key=lambda text: doubts[text])


def warn_user(message: str | Warning, category: type[Warning], rank: Rank = Rank.METHOD) -> None:
    """Warn at the line outside this package, and outside scikit-learn, that called into it, however deep it is.

    Not of fits within a search or a cross-validation of scikit-learn, and of doubts within `one_doubt` at its end.
    """
    text = f"{category.__name__}: {message}"
    for heard in _listening.get():
        heard.setdefault(text, rank)
    doubts = _waiting.get()
    if category is not ReliabilityWarning or doubts is None:
        _warn(message, category)
    else:
        doubts.setdefault(str(message), rank)


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
    """A kernel has fewer derivatives than the operator takes."""


class ParameterError(ValueError, TypeError):
    """A parameter has a value or a type that it must not have; `parameter` is its name."""

    def __init__(self, parameter: str, expected: str, value: Any):
        super().__init__(parameter, expected, value)
        self.parameter, self.expected, self.value = parameter, expected, value

    def __str__(self) -> str:
        return f"{self.parameter} must be {self.expected}, got {self.value!r}"


class InvalidRowError(ValueError):
    """A row of the data holds NaN, infinity, a number whose square overflows (1e153), or a negative sample weight.

    `row` is the number of the lowest one, and `column` that of X in which it holds such a number, None for others. In
    trajectories `row` is counted within its own trajectory, and is a row of the first pair (x, future) that is invalid.
    """

    def __init__(self, message: str, row: int, column: int | None = None):
        super().__init__(message, row, column)
        self.row, self.column = row, column

    def __str__(self) -> str:
        return str(self.args[0])


class UntrustedError(ValueError):
    """A file asks for classes or functions that are not daskspectral's own; `names` lists them as `module.name`."""

    def __init__(self, names: Sequence[str]):
        super().__init__(list(names))
        self.names = tuple(names)

    def __str__(self) -> str:
        return (
            f"the file asks for {', '.join(self.names)}, which would run code that is not daskspectral's. Where you "
            f"know this code and where the file comes from, load it with trusted={list(self.names)!r} (in the shell "
            f"{' '.join(f'--trust {name}' for name in self.names)})"
        )


class PointError(ValueError):
    """A point that a manifold does not accept, such as a point off the sphere.

    `row` is the number of its row, in the data once a run reports it, and `field` the array of points that holds it.
    The message is `before`, "row" with the number, and `after`.
    """

    def __init__(self, before: str, row: int, after: str, field: str = "x"):
        super().__init__(before, row, after, field)
        self.before, self.row, self.after, self.field = before, row, after, field

    def __str__(self) -> str:
        return f"{self.before} row {self.row}{self.after}"

    def at(self, row: int, field: str | None = None) -> PointError:
        """The same error for another row number, or for another field."""
        return PointError(self.before, row, self.after, field or self.field)


@contextmanager
def renumbered(number: Callable[[int], int], field: str | None = None) -> Iterator[None]:
    """A PointError raised inside is raised again for the row `number(row)`, and for `field` where it is given."""
    try:
        yield
    except PointError as error:
        raise error.at(int(number(error.row)), field) from None


class Stopped(BaseException):
    """A signal told the process to stop; like KeyboardInterrupt, this is not an error."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def raise_on_signals(*numbers: int) -> Iterator[None]:
    """These signals raise `Stopped` in the main thread while the block runs; other threads see no change.

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
