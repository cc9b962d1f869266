"""A progress bar over rows, silent for what is over in a second or two."""

from __future__ import annotations

import sys
from typing import Any

from tqdm.auto import tqdm


class Progress:
    """Rows done of n; `show` None means only on a terminal."""

    def __init__(self, rows: int, description: str, show: bool | None):
        self._bar: Any = tqdm(
            total=rows,
            desc=description,
            unit=" rows",
            unit_scale=True,
            delay=1.5,
            file=sys.stderr,
            leave=False,
            disable=None if show is None else not show,
        )

    def advance(self, rows: int) -> None:
        """That many more rows are done."""
        self._bar.update(rows)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()
