"""Reading ahead: the next batch is read and decoded while the last one is worked on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

Batch = TypeVar("Batch")
END: Any = object()


@contextmanager
def read_ahead(batches: Iterable[Batch]) -> Iterator[Iterator[Batch]]:
    """The same batches in the same order, each read by a thread while the one before it is worked on.

    An error of the reading is raised where its batch would have come. When the block ends, by an error too, the thread
    has ended, and no more than one batch was read for nothing.

    Examples
    --------
    >>> with read_ahead(range(3)) as numbers:
    ...     list(numbers)
    [0, 1, 2]
    """
    source = iter(batches)
    with ThreadPoolExecutor(1, "daskspectral-reader") as reader:

        def following() -> Iterator[Batch]:
            coming = reader.submit(next, source, END)
            while (batch := coming.result()) is not END:
                coming = reader.submit(next, source, END)
                yield batch

        yield following()
