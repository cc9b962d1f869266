"""Batches that are read by a thread while the one before is worked on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from daskspectral.data.ahead import read_ahead
from daskspectral.data.batches import Batches, Rows
from daskspectral.data.readers import ArrayReader
from daskspectral.data.source import Preparation

PATIENCE = 30.0  # seconds after which another thread is taken to hang


class Reading:
    """Numbers that tell when they are read."""

    def __init__(self, count: int, bad: int | None = None):
        self.started = [threading.Event() for _ in range(count)]
        self.threads: set[str] = set()
        self.bad = bad

    def __iter__(self) -> Iterator[int]:
        for number, started in enumerate(self.started):
            self.threads.add(threading.current_thread().name)
            started.set()
            if number == self.bad:
                raise OSError(f"chunk {number} is damaged")
            yield number


def test_chunks_are_read_together_until_there_are_rows_enough() -> None:
    x, edges = np.zeros((250_000, 3)), np.arange(0, 250_001, 10_000)

    def sizes(least: int, width: int) -> list[int]:
        """The rows of each batch, of chunks of which `width` columns were more than is read at once."""
        reader = ArrayReader(np.broadcast_to(np.zeros(width), (len(x), width)))
        rows = Rows({"x": Preparation()}, least=least)
        return [len(batch["x"]) for batch in Batches({"x": reader}, rows, 0, len(x), edges)]

    assert max(sizes(0, 100)) == 10_000
    assert sizes(65_536, 100) == [60_000] * 4 + [10_000]
    assert max(sizes(65_536, 1)) == 65_536


def readers() -> list[str]:
    """The threads that read, of all that live."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("daskspectral-reader")]


def test_the_next_is_read_meanwhile_and_no_more() -> None:
    reading = Reading(4)
    with read_ahead(reading) as batches:
        for number in batches:
            if number < 3:
                assert reading.started[number + 1].wait(PATIENCE), "the next batch is not read meanwhile"
            for later in reading.started[number + 2 :]:
                assert not later.is_set(), "more than one batch waits"
    assert threading.current_thread().name not in reading.threads
    assert not readers()


def work(reading: Reading, seen: list[int], last: int, error: type[BaseException]) -> None:
    """Work on numbers, of which the `last` is too much."""
    with read_ahead(reading) as batches:
        for number in batches:
            seen.append(number)
            if number == last:
                raise error("enough")


def test_an_error_of_the_reading_comes_where_its_batch_would() -> None:
    seen: list[int] = []
    with pytest.raises(OSError, match="chunk 2 is damaged"):
        work(Reading(4, bad=2), seen, 3, ValueError)
    assert seen == [0, 1]
    assert not readers()


def test_nothing_is_left_running() -> None:
    reading, seen = Reading(100), list[int]()
    with pytest.raises(KeyboardInterrupt, match="enough"):
        work(reading, seen, 3, KeyboardInterrupt)
    assert seen == [0, 1, 2, 3]
    assert not readers()
    assert not reading.started[5].is_set()
