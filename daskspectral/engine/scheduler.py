"""The active dask scheduler, with one interface: submit a graph, wait for one key, stop."""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import dask
import dask.base
import dask.local
import dask.system
import dask.threaded
from dask.callbacks import add_callbacks

from daskspectral.errors import warn_user

Graph = Mapping[Any, Any]
Done = Callable[[Any], None]
DRIVERS = 8  # threads, each of which waits for one graph
AHEAD_TASKS = 1024  # tasks submitted to a cluster that may grow, if there are so many
AHEAD_BYTES = 1 << 28  # rows and results of these tasks that the cluster may hold
TOPIC = "daskspectral"  # of the events of a cluster by which workers report finished tasks
_listeners: list[Callable[[Any], None]] = []


class Scheduler(ABC):
    """Scheduler of raw dask graphs, several at once if possible."""

    shares_memory = True
    reports = False
    """Whether workers report each task."""

    def in_flight(self, tasks: int, size: int | None = None) -> int:
        """Return how many graphs of `tasks` tasks keep the workers busy while the driver adds one's results.

        `size` is the number of bytes that a cluster holds for a graph, None while it is unknown.
        """
        return 1

    def share(self, value: Any, key: str) -> Any:
        """Return a replacement of `value` in a graph, which is sent to each worker at most once."""
        return value

    @abstractmethod
    def submit(self, graph: Graph, keys: list[Any]) -> Any:
        """Start a graph, and return a handle on the values of the keys."""

    def result(self, handle: Any) -> list[Any]:
        return list(handle)

    def stop(self, handles: list[Any]) -> None:  # noqa: B027  (nothing is under way between two calls of most)
        ...


class _Immediate(Scheduler):
    """Synchronous scheduler, process scheduler, or `get` of a user: one graph at a time."""

    def __init__(self, get: Callable[..., Any], done: Done | None, shares_memory: bool):
        self._get, self._callback, self.shares_memory = get, _after(done), shares_memory

    def submit(self, graph: Graph, keys: list[Any]) -> list[Any]:
        with add_callbacks(self._callback):  # `get` of a user may have no argument for them
            return list(self._get(graph, keys))


class _Threads(Scheduler):
    """The threaded scheduler, several graphs on one pool."""

    def __init__(self, pool: ThreadPoolExecutor, drivers: ThreadPoolExecutor, workers: int, done: Done | None):
        self._pool, self._drivers, self._workers = pool, drivers, workers
        self._callbacks = [_after(done)]

    def in_flight(self, tasks: int, size: int | None = None) -> int:
        return min(DRIVERS, 1 + math.ceil(self._workers / tasks))

    def submit(self, graph: Graph, keys: list[Any]) -> Future[Any]:
        return self._drivers.submit(dask.threaded.get, graph, keys, pool=self._pool, callbacks=self._callbacks)

    def result(self, handle: Future[Any]) -> list[Any]:
        return list(handle.result())

    def stop(self, handles: list[Any]) -> None:
        for handle in handles:
            handle.cancel()


class _Cluster(Scheduler):
    """A distributed client."""

    shares_memory = False
    reports = True

    def __init__(self, client: Any, place: Callable[[Any], str]):
        self._client, self._place, self._address = client, place, client.scheduler.address

    def in_flight(self, tasks: int, size: int | None = None) -> int:
        workers = self._client.scheduler_info(n_workers=-1).get("workers", {}).values()
        threads = sum(int(w["nthreads"]) for w in workers)
        ahead = 0  # a cluster grows by the work that it was given, so more than its workers need are submitted
        if size is not None:
            ahead = min(AHEAD_TASKS // tasks, AHEAD_BYTES // max(1, size))
        return max(ahead, 1 + math.ceil(max(1, threads) / tasks))

    def share(self, value: Any, key: str) -> Any:
        # a task, not scattered data: it can be computed again when the worker that holds it is lost
        return self._client.submit(_identity, value, key=key, pure=False)

    def submit(self, graph: Graph, keys: list[Any]) -> Any:
        if self._client.status != "running":
            raise self._lost(keys[0])
        # a priority of its own for each graph: they end in the order of submission
        return self._client.get(graph, keys, sync=False, fifo_timeout="0s")

    def result(self, handle: list[Any]) -> list[Any]:
        return [self._result(one) for one in handle]

    def _result(self, handle: Any) -> Any:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError, FuturesCancelledError

        try:
            return self._wait_for(handle)
        except KilledWorker as error:
            raise RuntimeError(
                f"{self._place(error.task)}: {error.allowed_failures + 1} workers died one after the other at this "
                "task: killed by the nanny or the system for their memory, or crashed (see their logs). "
                "Use workers with more memory or fewer threads, each of which has buffers"
            ) from error
        except (FutureCancelledError, FuturesCancelledError, OSError) as error:
            if isinstance(error, OSError) and self._client.status == "running":
                raise
            raise self._lost(handle.key) from error

    def _lost(self, key: Any) -> RuntimeError:
        return RuntimeError(
            f"{self._place(key)}: the dask scheduler {self._address} is lost (it died, was shut down, or this client "
            "was closed or cut off). Start it again; a run with a checkpoint resumes"
        )

    def _wait_for(self, handle: Any) -> Any:
        from distributed import wait

        patience = float(dask.config.get("daskspectral.patience", 60.0))
        alive = time.monotonic()
        heard: dict[str, tuple[Any, float]] = {}  # of each running worker: its last heartbeat, since when
        while not handle.done():
            with suppress(TimeoutError):
                wait(handle, timeout=min(5.0, patience / 4))  # type: ignore[no-untyped-call]
                continue
            now = time.monotonic()
            workers = self._client.scheduler_info(n_workers=-1).get("workers", {})
            beats = {a: w.get("last_seen") for a, w in workers.items() if w.get("status") == "running"}
            heard = {a: heard[a] if heard.get(a, (None,))[0] == beat else (beat, now) for a, beat in beats.items()}
            alive = max([alive, *(since for _, since in heard.values())])
            if now - alive >= patience:
                states = ", ".join(f"{a} {w.get('status')}" for a, w in [*workers.items()][:5]) or "no workers"
                raise RuntimeError(
                    f"no task has run for {patience:.0f} s ({states}): workers are frozen, paused for lack of memory, "
                    "or disconnected. A run with a checkpoint resumes; the dask option daskspectral.patience "
                    "(seconds) sets how long to wait"
                )
        return handle.result(timeout=10 * patience)  # its worker may have left meanwhile

    def stop(self, handles: list[Any]) -> None:
        if self._client.status == "running":
            for handle in handles:
                self._client.cancel(handle)


def warn_from_task(message: str | Warning, category: type[Warning]) -> None:
    """Warn the user from inside a task: at the caller's line, or through the clients of the worker."""
    module = sys.modules.get("distributed.worker")
    try:
        if module is None:
            raise ValueError
        module.get_worker()
    except ValueError:  # this process runs no worker's task
        warn_user(message, category)
    else:
        module.warn(message, category)


def report_done() -> None:
    """Report the calling worker's task as done to the progress bar of the driver."""
    from distributed import get_worker

    worker = get_worker()
    worker.log_event(TOPIC, worker.get_current_task())


def _hear(event: tuple[float, Any]) -> None:
    key = event[1]
    for done in [*_listeners]:
        done(tuple(key) if isinstance(key, list) else key)


@contextmanager
def _listening(client: Any, done: Done | None) -> Iterator[None]:
    """Call `done(key)` for each task that workers report."""
    if done is None:
        yield
        return
    client.subscribe_topic(TOPIC, _hear)
    _listeners.append(done)
    try:
        yield
    finally:
        _listeners.remove(done)


def _identity(value: Any) -> Any:
    return value


def _after(done: Done | None) -> tuple[Any, ...]:
    """Return the callback of dask that calls `done(key)` after each task."""
    return None, None, None, None if done is None else lambda key, *others: done(key), None


@contextmanager
def active_scheduler(done: Done | None, place: Callable[[Any], str]) -> Iterator[Scheduler]:
    """Return the scheduler of any dask computation at this point; threads by default.

    A local scheduler calls `done(key)`, if given, after each task, a cluster after each task that calls `report_done`.
    On a cluster errors name the rows of a task by `place(key)`, and within a task its thread is released to others.
    Raises RuntimeError if the active client is asynchronous, or missing although dask's configuration requires one.
    """
    get = _active_get()
    client = _client_of(get)
    if client is not None:
        with _released_thread(), _listening(client, done):
            yield _Cluster(client, place)
    elif get is None or get is dask.threaded.get:
        workers = int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)
        pool = dask.config.get("pool", None)
        given = isinstance(pool, ThreadPoolExecutor)
        made = nullcontext(pool) if given else ThreadPoolExecutor(workers, thread_name_prefix="daskspectral")
        with ThreadPoolExecutor(DRIVERS, thread_name_prefix="daskspectral-epoch") as drivers, made as threads:
            yield _Threads(threads, drivers, workers, done)
    else:
        yield _Immediate(get, done, shares_memory=get is dask.local.get_sync)


def active_client() -> Any:
    """Return the active distributed client, or None; raise as `active_scheduler`."""
    return _client_of(_active_get())


def _active_get() -> Any:
    """Return the `get` of dask's scheduler, None for the default one."""
    chosen, named = dask.config.get("scheduler", None), dask.base.named_schedulers
    if "distributed" not in sys.modules and chosen in (None, *named):
        return named.get(chosen)  # there is no client, and dask would import distributed to find none
    return dask.base.get_scheduler()


def _client_of(get: Any) -> Any:
    owner = getattr(get, "__self__", None)
    return owner if type(owner).__module__.startswith("distributed") else None


@contextmanager
def _released_thread() -> Iterator[None]:
    """Release the thread of a worker's task to other tasks, for which it may wait."""
    from distributed import rejoin, secede

    try:
        secede()  # type: ignore[no-untyped-call]
    except (ValueError, KeyError, AttributeError):  # in no task, or in one that has left already (worker_client)
        yield
        return
    try:
        yield
    finally:
        rejoin()  # type: ignore[no-untyped-call]
