"""A progress bar over rows, or steps of a training, which shows only after a second and a half."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from daskspectral.data.writing import progress_bar
from daskspectral.errors import printable

REPORTED = 0.5  # seconds between two reports


class Progress:
    """A bar of rows, or other units, done out of `rows`; `show` None means only on a terminal.

    What it shows goes to `report` too, bar or no bar, as a dict: `run` (an id), `stage`, `state` ("started", "running",
    "finished" or "failed"), `done`, `total`, `unit`, `seconds`, the name of an `error`, and what else is shown.
    """

    def __init__(
        self,
        rows: int,
        description: str,
        show: bool | None,
        unit: str = "rows",
        report: Callable[[dict[str, Any]], None] | None = None,
    ):
        self._bar = progress_bar(rows, description, show, unit=unit, leave=False)
        self._report, self._done, self._began = report, 0, time.monotonic()
        self._fixed = {"run": uuid.uuid4().hex, "stage": description, "total": rows, "unit": unit}
        self._shown: dict[str, str] = {}
        self._told = 0.0
        self._tell("started")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.close()
        if error is None:
            self._tell("finished")
        else:
            self._tell("failed", error=type(error).__name__)

    def advance(self, rows: int, **shown: str) -> None:
        """Count so many more rows as done; what is `shown` stands beside the bar, by name."""
        if shown:
            self._shown = shown
            self._bar.set_postfix({printable(name): printable(text) for name, text in shown.items()}, refresh=False)
        self._bar.update(rows)
        self._done += rows
        if time.monotonic() - self._told >= REPORTED:
            self._tell("running")

    def _tell(self, state: str, **more: str) -> None:
        if self._report is not None:
            self._told = time.monotonic()
            seconds = round(self._told - self._began, 3)
            self._report({**self._fixed, "state": state, "done": self._done, "seconds": seconds, **self._shown, **more})
