"""Batches that are read by a thread while the one before is worked on."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from daskspectral.data.ahead import read_ahead

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


@pytest.mark.parametrize(("bad", "error"), [(2, OSError), (None, KeyboardInterrupt)])
def test_an_error_comes_where_its_batch_would_and_nothing_is_left_running(bad: Any, error: Any) -> None:
    """Of the reading, and of the work."""
    reading, seen = Reading(100, bad), list[int]()
    with pytest.raises(error, match=r"damaged|enough"):
        work(reading, seen, 3, KeyboardInterrupt)
    assert seen == ([0, 1] if bad else [0, 1, 2, 3])
    assert not readers()
    assert not reading.started[5].is_set()
