"""Dask's callbacks (progress bars, profilers) over one pass, which is several graphs, some of them at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dask.callbacks import local_callbacks
from dask.core import istask
from dask.diagnostics.progress import ProgressBar

Graph = Mapping[Any, Any]
Functions = tuple[Callable[..., Any] | None, ...]  # start, start_state, pretask, posttask, finish
_MERGED = ("dependencies", "dependents", "waiting_data")


class PassCallbacks:
    """The callbacks that were active when a pass began: each has one start, every task of the pass, and one finish.

    They see the union of the graphs, and the union of their states, in which a task of a graph that has not begun is
    waiting. `done(key)` is called after each task, with or without callbacks.
    """

    def __init__(self, active: Iterable[Functions], done: Callable[[Any], None]):
        self._active, self._done = list(active), done
        self._graph: dict[Any, Any] = {}
        self._state: dict[str, Any] = {
            **{name: {} for name in (*_MERGED, "waiting", "cache")},
            **{name: set() for name in ("running", "finished", "released")},
            "ready": [],
        }
        self._started: list[Functions] = []
        self._lock = threading.Lock()  # graphs run in threads of their own, and callbacks are written for one

    def __bool__(self) -> bool:
        return bool(self._active)

    @property
    def bar_shown(self) -> bool:
        """Whether a progress bar of dask's is among them."""
        return any(isinstance(getattr(start, "__self__", None), ProgressBar) for start, *_ in self._active)

    @property
    def of_a_graph(self) -> Functions:
        """The callback that each graph of the pass is computed with."""
        if self._active:
            return None, self._begun, self._before, self._after, None
        return None, None, None, lambda key, *others: self._done(key), None

    def over(self, graphs: Iterator[tuple[dict[Any, Any], Any]]) -> Iterator[tuple[dict[Any, Any], Any]]:
        """The graphs of the pass with their keys; where there are callbacks, all are made first, and these started."""
        if not self._active:
            return graphs
        made = list(graphs)
        for graph, _ in made:
            self._graph |= graph
        self._state["waiting"] = {key: set() for key, value in self._graph.items() if istask(value)}
        for functions in self._active:
            self._started.append(functions)
            _tell([functions], 0, self._graph)
        _tell(self._active, 1, self._graph, self._state)
        return iter(made)

    def finish(self, failed: bool) -> None:
        """The end of the pass, when none of its tasks runs any more."""
        _tell(self._started, 4, self._graph, self._state, failed)

    def _begun(self, graph: Graph, state: Mapping[str, Any]) -> None:
        """Take the state of a graph in place of what was known of it."""
        with self._lock:
            for name in _MERGED:
                self._state[name].update(state[name])
            waiting = self._state["waiting"]
            for key in graph:
                waiting.pop(key, None)
            waiting.update(state["waiting"])
            waiting.update({key: set() for key in state["ready"]})

    def _before(self, key: Any, graph: Graph, state: Mapping[str, Any]) -> None:
        with self._lock:
            self._state["waiting"].pop(key, None)
            self._state["running"].add(key)
            _tell(self._active, 2, key, graph, self._state)

    def _after(self, key: Any, value: Any, graph: Graph, state: Mapping[str, Any], worker: Any) -> None:
        self._done(key)
        with self._lock:
            self._state["running"].discard(key)
            self._state["finished"].add(key)
            self._state["released"] |= state["released"]
            _tell(self._active, 3, key, value, graph, self._state, worker)


def _tell(callbacks: Iterable[Functions], place: int, *arguments: Any) -> None:
    """Call the functions at one place of some callbacks."""
    for functions in callbacks:
        if (function := functions[place]) is not None:
            function(*arguments)


@contextmanager
def pass_callbacks(done: Callable[[Any], None]) -> Iterator[PassCallbacks]:
    """Dask's active callbacks for one pass; what its tasks compute themselves is not told to them, as in dask."""
    with local_callbacks() as active:
        watched = PassCallbacks(active, done)
        failed = True
        try:
            yield watched
            failed = False
        finally:
            watched.finish(failed)
