"""A progress bar over rows, or steps of a training, which shows only after a second and a half."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from daskspectral.data.writing import progress_bar
from daskspectral.errors import printable


class Progress:
    """A bar of rows, or other units, done out of `rows`; `show` None means only on a terminal."""

    def __init__(self, rows: int, description: str, show: bool | None, unit: str = "rows"):
        self._bar = progress_bar(rows, description, show, unit=unit, leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.close()

    def advance(self, rows: int, **shown: str) -> None:
        """Count so many more rows as done; what is `shown` stands beside the bar, by name."""
        if shown:
            self._bar.set_postfix({printable(name): printable(text) for name, text in shown.items()}, refresh=False)
        self._bar.update(rows)
