"""How long things take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """The least time that each of several named parts took: the processor's or the clock's, whichever is less."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Time what the block does."""
        clock, processor = time.perf_counter(), time.process_time()
        yield
        found = min(time.perf_counter() - clock, time.process_time() - processor)
        self.seconds[name] = min(found, self.seconds.get(name, found))

    def time(self, name: str, function: Callable[[], Any], repeats: int = 3) -> float:
        """The least time of several calls."""
        for _ in range(repeats):
            with self.of(name):
                function()
        return self.seconds[name]
