"""A progress bar over rows, or steps of a training, which shows only after a second and a half."""

from __future__ import annotations

import sys
from typing import Any

from tqdm.auto import tqdm


class Progress:
    """A bar of rows, or other units, done out of `rows`; `show` None means only on a terminal."""

    def __init__(self, rows: int, description: str, show: bool | None, unit: str = " rows"):
        self._bar: Any = tqdm(
            total=rows,
            desc=description,
            unit=unit,
            unit_scale=True,
            delay=1.5,
            file=sys.stderr,
            leave=False,
            disable=None if show is None else not show,
        )

    def advance(self, rows: int, **shown: str) -> None:
        """Count so many more rows as done; what is `shown` stands beside the bar, by name."""
        if shown:
            self._bar.set_postfix(shown, refresh=False)
        self._bar.update(rows)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()
