"""Predicted memory of a run, from p, d, the block, the threads and the dtype; and its device."""

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
    """Return the device of a run, "cpu" or "cuda"; "auto" is a GPU if this process, or every worker, has one.

    "cuda" is not checked on a cluster without workers, which may start later. Raises ValueError for another name,
    ImportError or RuntimeError if "cuda" is not available, and RuntimeError for "auto" on a cluster without workers.
    """
    client = active_client() if name in DEVICES else None
    if client is None or name == "cpu":
        return device_of(name).name
    found = client.run(_attempt, name)
    if not found and name == "auto":
        raise RuntimeError("device='auto' requires workers, and the cluster has none yet. Pass 'cpu' or 'cuda'")
    failures = {worker: answer for worker, answer in found.items() if answer not in DEVICES}
    if failures:
        worker, reason = next(iter(failures.items()))
        raise RuntimeError(
            f"{len(failures)} of {len(found)} workers do not support device={name!r}, {worker}: {reason}"
        )
    return "cuda" if {*found.values()} <= {"cuda"} else "cpu"


def device_here(name: str) -> Device:
    """Return the device of the driving process: the host if only workers have an accelerator."""
    return device_of(name) if _attempt(name) in DEVICES else HOST


def free_on_device(name: str) -> int | None:
    """Return the free bytes on the device of this process, or the minimum of the workers; None on a CPU."""
    client = active_client()
    if client is None or name == "cpu":
        return device_of(name).free()
    found = client.run(lambda: device_of(name).free())
    return min(found.values(), default=None)


def _attempt(name: str) -> str:
    try:
        return device_of(name).name
    except (ImportError, RuntimeError) as error:
        return str(error)


logger = logging.getLogger("daskspectral")
LEAST_RELEASED = 1 << 28  # bytes that a run needs
WORKER_BYTES = 200 << 20  # of a worker after its imports


@dataclass(frozen=True)
class Memory:
    """Predicted memory of one process, in bytes.

    `now` is the memory in use, `tasks` the buffers of all `threads`, `sums` the partial sums that wait to be added,
    `solver` the dense algebra after the pass, `choosing` an automatic choice before it, and `there` the buffers on the
    accelerator `device`.
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
        """Peak of choosing, summing and solving, beyond the memory in use."""
        return max(self.tasks + self.sums, self.driver)

    @property
    def peak(self) -> int:
        return self.now + self.needed

    @property
    def driver(self) -> int:
        """Memory of the driving process before and after the pass."""
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
    """Return the peak memory of one pass with p functions of d variables, and of its solution.

    A thread evaluates blocks of `rows` rows at once, in `arrays` arrays (p, rows) of a `dtype` on a `device`.
    `chunk_bytes` is the decoded size of one read; a task has at most `task_rows` rows. `sums` is the number of (p, p)
    results of a task for each of `groups` groups of rows, `live` the number of groups' results that wait to be added,
    `kept` the number of groups that are kept apart while solving. The buffers of an accelerator are on it.
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
        solver=square * (sums * (1 + kept) + 18),
        threads=threads,
        there=there,
        device=device,
    )


def released(memory: Memory) -> Memory:
    """Return the prediction with updated memory in use, after freed memory was returned to the system (glibc).

    Small runs skip the release, because allocating the memory again would be slower than the run.
    """
    if memory.needed > LEAST_RELEASED:
        release()
    return replace(memory, now=resident())


def release() -> None:
    """Return freed memory to the system, if the C library can (glibc)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(_process(os.getpid()).memory_info().rss)


_process = cache(psutil.Process)


def local_threads() -> int:
    """Return the number of threads of the local scheduler."""
    if dask.config.get("scheduler", None) in {"synchronous", "sync", "single-threaded"}:
        return 1
    return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)


def available() -> int:
    """Return the available bytes of the machine, or of the control group of this process."""
    free = int(psutil.virtual_memory().available)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no limit, or "max"
            free = min(free, int(Path(path).read_text()) - resident())
    return free


def check_memory(memory: Memory) -> None:
    """Raise MemoryError if the run does not fit into this process or a worker."""
    logger.info("memory: %s", memory)
    room, workers = available(), cluster_workers()
    threads = max((int(worker["nthreads"]) for worker in workers or ()), default=memory.threads)
    there, free = threads * memory.there // memory.threads, free_on_device(memory.device) if memory.there else None
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
                f"a worker of {threads} threads needs {_megabytes(wanted)} and may use {_megabytes(limit)}. Use "
                "fewer landmarks (memory grows as the square of their number), more memory or fewer threads"
            )


def cluster_workers() -> list[Any] | None:
    """Return the workers of the active cluster; None for a run in this process."""
    client = active_client()
    if client is None:
        return None
    return list(client.scheduler_info(n_workers=-1)["workers"].values())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size < 1e10 else f"{size / 1e9:.1f} GB"
