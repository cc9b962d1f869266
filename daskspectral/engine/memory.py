"""What a run will need in memory, before it starts: from p, d, the block, the threads and the dtype; and its device."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import dask
import dask.system
import numpy as np
import psutil

from daskspectral.devices import DEVICES, HOST, Device, device_of
from daskspectral.engine.scheduler import active_client


def chosen_device(name: str) -> str:
    """The device of a run, "cpu" or "cuda", for "auto" a GPU where this process, or every worker, has one.

    Of a cluster without workers, which come and go, "cuda" is taken at its word. Raises ValueError for another name,
    ImportError or RuntimeError for "cuda" where it cannot be had, and RuntimeError for "auto" where no worker can tell.
    """
    client = active_client() if name in DEVICES else None
    if client is None or name == "cpu":
        return device_of(name).name
    found = client.run(_attempt, name)
    if not found and name == "auto":
        raise RuntimeError("device='auto' asks the workers, and the cluster has none yet: give 'cpu' or 'cuda'")
    failures = {worker: answer for worker, answer in found.items() if answer not in DEVICES}
    if failures:
        worker, reason = next(iter(failures.items()))
        raise RuntimeError(f"{len(failures)} of {len(found)} workers cannot take device={name!r}, {worker}: {reason}")
    return "cuda" if {*found.values()} <= {"cuda"} else "cpu"


def device_here(name: str) -> Device:
    """The device of what the driving process does by itself: the host where only the workers have another."""
    return device_of(name) if _attempt(name) in DEVICES else HOST


def free_there(name: str) -> int | None:
    """The bytes that are free on the device of this process, the least of the workers of its cluster; None on a CPU."""
    client = active_client()
    if client is None or name == "cpu":
        return device_of(name).free()
    found = client.run(lambda: device_of(name).free())
    return min(found.values(), default=None)


def _attempt(name: str) -> str:
    """The device of a worker, or why it has none."""
    try:
        return device_of(name).name
    except (ImportError, RuntimeError) as error:
        return str(error)


logger = logging.getLogger("daskspectral")
LEAST_RELEASED = 1 << 28  # bytes that a run needs
WORKER_BYTES = 200 << 20  # held by a worker that has imported what it needs


@dataclass(frozen=True)
class Memory:
    """The memory that one process will need, in bytes.

    `now` is what it holds already, `tasks` the buffers of all `threads` together, `sums` the partial sums that wait to
    be added, `solver` the dense algebra after the pass, `choosing` an automatic choice before it. `there` is what the
    buffers take on the `device`, an accelerator.
    """

    now: int
    tasks: int
    sums: int
    solver: int
    threads: int
    choosing: int = 0
    there: int = 0
    device: str = "cpu"

    @property
    def needed(self) -> int:
        """The most that is held at a time, while choosing, summing or solving, besides what is held already."""
        return max(self.tasks + self.sums, self.driver)

    @property
    def peak(self) -> int:
        """The most that is held at a time."""
        return self.now + self.needed

    @property
    def driver(self) -> int:
        """What the driving process holds by itself, before and after the pass."""
        return max(self.solver, self.choosing)

    def __str__(self) -> str:
        return (
            f"{_megabytes(self.peak)} at the peak: {_megabytes(self.now)} now, {_megabytes(self.tasks)} in the "
            f"buffers of {self.threads} threads, {_megabytes(self.sums)} in sums under way, "
            f"{_megabytes(self.driver)} in the {'choice' if self.choosing > self.solver else 'solver'}"
            f"{f'; {_megabytes(self.there)} on the device {self.device}' if self.there else ''}"
        )


def predict_memory(
    p: int,
    d: int,
    rows: int,
    *,
    threads: int,
    live: int,
    sums: int = 1,
    groups: int = 1,
    kept: int = 0,
    arrays: int = 3,
    dtype: str = "float64",
    device: str = "cpu",
    chunk_bytes: int = 0,
    task_rows: int = sys.maxsize,
) -> Memory:
    """The peak memory of one pass with p functions of d variables, and of its solution.

    A thread evaluates blocks of so many `rows` at once, in so many `arrays` (p, rows) of a `dtype` on a `device`.
    `chunk_bytes` is the decoded size of what is read at once; there are no more rows than `task_rows` in a task.
    `sums` is the number of (p, p) results of a task for each of `groups` groups of rows, `live` the number of groups'
    results that wait to be added, `kept` the number of groups that are kept apart while solving. The buffers of an
    accelerator lie there.
    """
    rows, square, accelerated = min(rows, -(-task_rows // groups)), 8 * p * p, device != "cpu"
    block = arrays * p * rows * np.dtype(dtype).itemsize
    points = 3 * rows * (d + 2) * 8  # as read, prepared, and with a product
    there = threads * (block + points + square * (sums * groups + 2)) if accelerated else 0
    block = points if accelerated else block + points
    reading = 5 * chunk_bytes // 2  # compressed, decoded, and in place
    if groups > 1:  # rows wait until there is a block of their group
        reading += min(groups * rows, task_rows) * (d + 2) * 8
    return Memory(
        now=resident(),
        tasks=threads * (block + square * (sums * groups + 2) + reading),
        sums=square * sums * live,
        solver=square * (sums * (1 + kept) + 10),
        threads=threads,
        there=there,
        device=device,
    )


def released(memory: Memory) -> Memory:
    """The same with what is held now, after freed memory went back to the system, where the C library can (glibc).

    For a run that needs little it is left: to get it again takes longer than the run.
    """
    if memory.needed > LEAST_RELEASED:
        release()
    return replace(memory, now=resident())


def release() -> None:
    """Give freed memory back to the system, where the C library can (glibc), before more is asked for."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def resident() -> int:
    """Bytes that this process holds in memory now."""
    return int(_process(os.getpid()).memory_info().rss)


_process = cache(psutil.Process)


def local_threads() -> int:
    """How many threads the local scheduler would use."""
    if dask.config.get("scheduler", None) in {"synchronous", "sync", "single-threaded"}:
        return 1
    return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)


def available() -> int:
    """Bytes that the machine, or the control group that confines this process, can still give."""
    free = int(psutil.virtual_memory().available)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is none, or it says max
            free = min(free, int(Path(path).read_text()) - resident())
    return free


def check_memory(memory: Memory) -> None:
    """Raise MemoryError where the run would not fit, in this process or in a worker, saying what to lower."""
    logger.info("memory: %s", memory)
    room, workers = available(), cluster_workers()
    threads = max((int(worker["nthreads"]) for worker in workers or ()), default=memory.threads)
    there, free = threads * memory.there // memory.threads, free_there(memory.device) if memory.there else None
    if free is not None and there > free:
        raise MemoryError(
            f"this run needs {_megabytes(there)} on the device {memory.device}, and {_megabytes(free)} are free "
            "there; use fewer landmarks, fewer threads (--threads), or dtype='float32'"
        )
    needed = memory.needed if workers is None else memory.driver  # the workers do the rest
    if needed > room:
        raise MemoryError(
            f"this run needs {memory}, and {_megabytes(room)} are free; use fewer landmarks (memory "
            "grows as the square of their number), fewer threads (--threads), dtype='float32', or smaller chunks"
        )
    for worker in workers or ():
        threads, limit = int(worker["nthreads"]), int(worker.get("memory_limit") or 0)
        wanted = WORKER_BYTES + threads * memory.tasks // memory.threads + memory.sums
        if 0 < limit < wanted:
            raise MemoryError(
                f"a worker of {threads} threads needs {_megabytes(wanted)} and may use {_megabytes(limit)}; use "
                "fewer landmarks (memory grows as the square of their number), or give workers more memory or fewer "
                "threads"
            )


def cluster_workers() -> list[Any] | None:
    """The workers of the cluster that a run would go to; None where it stays in this process."""
    client = active_client()
    if client is None:
        return None
    return list(client.scheduler_info(n_workers=-1)["workers"].values())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size < 1e10 else f"{size / 1e9:.1f} GB"
