"""The constants of the cost model (`engine.costs`), measured on this machine by fits of a few thousand rows.

Everything is measured through the estimators themselves, on one thread, so that a constant holds all that a fit does
for a row, a column, a function or a task. Times are the lesser of the processor's time and the clock's: other work on
the machine lengthens the latter alone, and several BLAS threads the former.
"""

from __future__ import annotations

import math
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask
import dask.threaded
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from threadpoolctl import threadpool_info

from daskspectral import landmarks as choosing
from daskspectral.basis import Arena, Block, FourierLattice, LandmarkBasis
from daskspectral.data.samples import write_sample
from daskspectral.data.stores import open_array
from daskspectral.engine.costs import Costs, Work
from daskspectral.engine.memory import local_threads
from daskspectral.engine.threads import one_blas_thread
from daskspectral.estimators.spectral import SpectralDecomposition
from daskspectral.estimators.stopwatch import Stopwatch
from daskspectral.forms import Atom, Field
from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Matern, Polynomial
from daskspectral.moments import block_rows
from daskspectral.operators import Covariance, Cross, Laplacian, Operator, Transfer
from daskspectral.passes.work import family

Array = NDArray[Any]
SHAPES = (
    *((16, 3, 2_000), (16, 3, 100_000), (16, 48, 40_000), (128, 3, 2_000), (128, 3, 50_000), (128, 48, 20_000)),
    *((512, 3, 2_000), (512, 3, 10_000)),
)
"""Functions p, columns d and rows n of the fits that tell the costs of rows, columns, functions and entries apart."""
CROWDED = ((100, 3, 1_000_000), (400, 20, 100_000))
"""Functions, columns and rows of fits on one thread and on all of them."""
SIZES = (32, 128, 512, 1024)
SOLVED = {"symmetric": (64, 256, 1024), "singular": (64, 256, 512), "eigen": (64, 256), "principal": (64, 256)}
LATTICES = {1: (25, 75), 2: (5, 15), 3: (3, 4)}
WIDE = 35
"""Columns in which a distance costs noticeably more than in three."""
ALONG = Atom("along", direction=Field("v"))
KERNELS: tuple[Kernel, ...] = (
    *(Gaussian(1.0), Exponential(1.0), Matern(1.5, 1.0), Matern(2.5, 1.0), Matern(3.5, 1.0), Polynomial(3)),
    Linear(),
)
READ_ROWS = 2_000_000
TASKS = 400
"""Of the graphs that tell what a task costs its scheduler."""


class _Timed(SpectralDecomposition):
    """A decomposition that knows how long it was solved, and its whole fit took."""

    def fit_moments(self, moments: Any) -> Any:
        watch = Stopwatch()
        with watch.of("solve"):
            found = super().fit_moments(moments)
        self.solving = watch.seconds["solve"]
        return found


@dataclass(frozen=True)
class _Fit:
    """The seconds of a fit before its solution, and of its solution; its tasks, and the groups of rows of each."""

    before: float
    solving: float
    work: Work


def calibrate(*, quick: bool = False, say: Callable[[str], None] = lambda text: None) -> Costs:
    """Measure the constants: about a minute on a machine that does nothing else; `quick` sizes mean nothing."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        return _Calibration(quick, Path(folder), say).costs()


class _Calibration:
    """The measurements, one after the other: each takes what those before it have found."""

    def __init__(self, quick: bool, folder: Path, say: Callable[[str], None]):
        self._quick, self._folder, self._say = quick, folder, say
        self._rng = np.random.default_rng(0)
        self._watch = Stopwatch()

    def costs(self) -> Costs:
        """The constants."""
        threads = local_threads()
        self._say("products of matrices")
        syrk, gemm = self._products()
        draft = Costs(
            **dict.fromkeys(("start", "rows", "columns", "distances", "entries", "reading", "sampling"), 0.0),
            single=self._single(),
            values={},
            syrk=syrk,
            gemm=gemm,
            modes={},
            task=self._task(),
            **self._cluster(),
            choice=0.0,
            apart=0.0,
            slowdown=1.0,
            solve={},
            threads=threads,
            machine=_machine(),
        )
        self._say("rows, columns and kernels")
        draft = self._rows(self._evaluations(draft))
        draft = replace(draft, reading=self._reading(), sampling=self._sampling(), slowdown=self._slowdown(threads))
        self._say("solutions")
        draft = replace(draft, solve=self._solutions())
        self._say("the Fourier lattice")
        draft = self._lattices(draft)
        self._say("the automatic choice")
        return self._choice(draft, threads)

    def _fit(self, n: int, d: int, repeats: int = 2, data: Any = None, **options: Any) -> _Fit:
        """A fit to normal rows, or to the data, on one thread: the least of several."""
        data = self._rng.standard_normal((n, d)) if data is None else data
        if "basis" not in options:
            options["landmarks"] = "uniform"
        befores, solutions = [], []
        with dask.config.set(scheduler="synchronous"):
            for _ in range(1 if self._quick else repeats):
                estimator, watch = _Timed(random_state=0, **options), Stopwatch()
                with watch.of("fit"):
                    estimator.fit(data, progress=False)
                solutions.append(estimator.solving)
                befores.append(watch.seconds["fit"] - estimator.solving)
            work = _work(estimator, data)
        return _Fit(max(min(befores), 1e-9), max(min(solutions), 1e-9), work)

    def _size(self, full: int, quick: int) -> int:
        return min(full, quick) if self._quick else full

    def _products(self) -> tuple[dict[str, float], dict[str, float]]:
        """The seconds of a row for each entry of a p x p matrix: of symmetric products, and of others."""
        found: dict[str, dict[str, float]] = {"syrk": {}, "gemm": {}}
        for p in SIZES[:2] if self._quick else SIZES:
            c = block_rows(p)
            q, m = self._rng.standard_normal((2, p, c))
            with one_blas_thread():
                for name, left in (("syrk", q), ("gemm", m)):
                    seconds = self._repeated(f"{name} {p}", _product(left, q), max(1, int(1e9 / (p * p * c))))
                    found[name][str(p)] = seconds / (c * p * p)
        return found["syrk"], found["gemm"]

    def _single(self) -> float:
        """The share of float64's time that a product of float32 takes."""
        p, c = self._size(256, 16), 1024
        q = self._rng.standard_normal((p, c))

        def product(a: Array) -> float:
            return self._repeated(f"product {a.dtype}", _product(a, a), 10)

        with one_blas_thread():
            return min(1.0, product(q.astype(np.float32)) / product(q))

    def _repeated(self, name: str, function: Callable[[], Any], count: int) -> float:
        """The seconds of one of `count` calls in a row, the least of several times."""

        def several() -> None:
            for _ in range(count):
                function()

        function()
        return max(self._watch.time(name, several, 5) / count, 1e-12)

    def _task(self) -> float:
        """The seconds that a task of a graph costs on threads."""
        graph = {("task", i): (int, i) for i in range(TASKS)}
        keys = list(graph)
        return self._repeated("task", lambda: dask.threaded.get(graph, keys), 1) / TASKS

    def _cluster(self) -> dict[str, float]:
        """What a task costs the scheduler of a cluster, the worker's part in it, and a byte of a result on loopback."""
        from distributed import Client, LocalCluster, wait

        sizes = {
            "n_workers": 1,
            "threads_per_worker": 1,
            "processes": False,
            "dashboard_address": None,
            "protocol": "tcp://",
        }
        with (
            LocalCluster(**sizes) as cluster,  # type: ignore[no-untyped-call]
            Client(cluster) as client,  # type: ignore[no-untyped-call]
        ):
            for i in range(2):
                graph = {(f"task {i}", k): (int, k) for k in range(TASKS)}
                with self._watch.of("scheduler"):
                    client.get(graph, list(graph))
            size = self._size(4_000_000, 1000)
            for _ in range(3):
                made = client.submit(np.ones, size, pure=False)
                wait(made)  # type: ignore[no-untyped-call]
                with self._watch.of("sending"):
                    made.result()
        seconds = self._watch.seconds
        return {"scheduler": seconds["scheduler"] / TASKS, "sending": seconds["sending"] / (8 * size)}

    def _slowdown(self, threads: int) -> float:
        """How much longer a task takes while all threads are at work, and how long threads wait for each other."""
        if threads < 2:
            return 1.0
        found = []
        for p, d, n in CROWDED:
            x = self._rng.standard_normal((self._size(n, 1000), d))
            seconds: dict[int, float] = {}
            for count in (1, threads) * (1 if self._quick else 2):  # in turn
                with dask.config.set(scheduler="threads", num_workers=count):
                    start = time.perf_counter()
                    kernel = Gaussian(d**0.5)
                    estimator = _Timed(
                        kernel=kernel, n_landmarks=self._size(p, 16), landmarks="uniform", random_state=0
                    )
                    estimator.fit(x, progress=False)
                    elapsed = time.perf_counter() - start - estimator.solving
                seconds[count] = min(elapsed, seconds.get(count, elapsed))
            found.append(threads * seconds[threads] / seconds[1])
        return float(np.clip(np.mean(found), 1.0, threads))

    def _evaluations(self, draft: Costs) -> Costs:
        """What a kernel function costs at one row, by family, with slopes and without, and a column of its distance."""
        p, c = self._size(256, 16), 1024
        values: dict[str, float] = {}
        atoms = {False: [Atom("value")], True: [Atom("value"), Atom("gradient"), ALONG]}

        def evaluation(kernel: Kernel, d: int, slope: bool, along: bool = False) -> float:
            basis = LandmarkBasis(kernel.resolve(1.0), self._rng.standard_normal((p, d)))
            x, v = self._rng.standard_normal((2, c, d))
            arena = Arena()

            def evaluate() -> None:
                at = basis.at(Block({"x": x, "v": v}, np.dtype(float), arena), atoms[slope])
                at.feature(Atom("value"))
                if along:
                    at.feature(ALONG)

            key = f"{kernel} {d} {slope} {along}"
            return self._repeated(key, evaluate, 1 if self._quick else 5) / (p * c)

        with one_blas_thread():
            wide, narrow = (evaluation(Gaussian(1.0), d, True) for d in (3 + WIDE, 3))
            distances = max(0.0, (wide - narrow) / WIDE)
            for slope in (True, False):
                for kernel in KERNELS:
                    found = evaluation(kernel, 3, slope) - 3 * distances
                    values[family(kernel, slope=slope)[0]] = max(found, 1e-12)
            more = evaluation(Gaussian(1.0), 3, True, along=True) - narrow - 3 * distances
        return replace(draft, values={**values, "along": max(more, 1e-12)}, distances=distances)

    def _rows(self, draft: Costs) -> Costs:
        """What a fit, a row, a column, a function and an entry of the sums cost beside all this, by least squares."""
        lines: list[list[float]] = []
        seconds = []
        for p, d, n in SHAPES:
            p, n = self._size(p, 16), self._size(n, 1000)
            fit = self._fit(n, d, kernel=Gaussian(d**0.5), n_landmarks=p)
            work = fit.work
            sums = work.tasks * work.groups * work.forms * work.p**2
            lines.append([value / fit.before for value in (1.0, n, n * d, n * work.p, sums)])
            seconds.append(max(1 - draft.summing(work) / fit.before, 0.02))
        scale = np.max(lines, axis=0)
        found = nnls(np.array(lines) / scale, np.array(seconds))[0] / scale
        start, rows, columns, functions, entries = (float(value) for value in found)
        values = {name: value + functions * (name != "along") for name, value in draft.values.items()}
        return replace(draft, start=start, rows=rows, columns=columns, values=values, entries=entries)

    def _reading(self) -> float:
        """The seconds of a decoded byte of a zarr array that is in the page cache."""
        path, n = self._folder / "points.zarr", self._size(READ_ROWS, 1000)
        write_sample("gaussian", path, n, dimension=3, dtype="float32", progress=False)
        array = open_array(str(path))
        step = array.chunks[0]

        def read() -> None:
            for start in range(0, n, step):
                np.asarray(array[start : start + step])

        return self._repeated("reading", read, 1) / (12 * n)

    def _sampling(self) -> float:
        """The seconds of a row of the sample and a landmark that is chosen among them."""
        m, p = self._size(10_000, 100), self._size(256, 10)
        points = self._rng.standard_normal((m, 8))
        chosen = self._repeated("sampling", lambda: choosing.choose("kmeans++", points, p, np.random.default_rng(0)), 1)
        return chosen / (m * p)

    def _solutions(self) -> dict[str, float]:
        """The seconds of the solution for each solver and some numbers p of functions."""
        operators: dict[str, Operator] = {
            "symmetric": Laplacian(),
            "singular": Cross(),
            "eigen": Transfer(1, solver="eigen"),
            "principal": Covariance(),
        }
        found = {}
        for name, sizes in SOLVED.items():
            for p in sizes[:1] if self._quick else sizes:
                n = max(4 * p, 1000)
                data: Any = self._rng.standard_normal((n, 3))
                if name == "singular":
                    data = (data, data + 0.3 * self._rng.standard_normal((n, 3)))
                fit = self._fit(
                    n,
                    3,
                    data=data,
                    operator=operators[name],
                    kernel=Matern(2.5, 1.0),
                    n_landmarks=p,
                    repeats=1 + (p < 100),
                )
                found[f"{name} {fit.work.p}"] = fit.solving
        return found

    def _lattices(self, draft: Costs) -> Costs:
        """The seconds of a row on lattices, by method and number of modes, and of the choice and solution after it."""
        modes: dict[str, float] = {}
        solve = dict(draft.solve)
        for d, orders in LATTICES.items():
            n = self._size(500_000, 2000)
            for m in orders[:1] if self._quick else orders:
                fit = self._fit(n, d, basis=FourierLattice(m), repeats=1)
                name = f"{fit.work.method} {d} {fit.work.modes}"
                known = replace(draft, modes={name: 0.0})
                rest = fit.before - known.summing(fit.work) - known.choosing(fit.work)
                modes[name] = max(rest / (n * fit.work.transforms), 1e-12)
                solve[f"{fit.work.solver} {fit.work.p}"] = fit.solving
        return replace(draft, modes=modes, solve=solve)

    def _choice(self, draft: Costs, threads: int) -> Costs:
        """The seconds of an automatic choice on one thread, and the share of them that several threads divide."""
        x = self._rng.standard_normal((self._size(20_000, 200), 3))
        clock = processor = math.inf
        for _ in range(1 if self._quick else 2):
            started = time.perf_counter(), time.process_time()
            estimator = _Timed(random_state=0).fit(x, progress=False)
            clock = min(clock, time.perf_counter() - started[0])
            processor = min(processor, time.process_time() - started[1])
        work = replace(_work(estimator, x), automatic=False)
        serial = draft.summing(work) + draft.choosing(work) + estimator.solving
        whole = max(min(clock, processor) if threads == 1 else processor, serial) - serial
        elapsed = clock - serial
        apart = 0.0
        if threads > 1 and whole > 0:
            apart = float(np.clip((1 - elapsed / whole) / (1 - 1 / threads), 0.0, 1.0))
        return replace(draft, choice=whole, apart=apart)


def _product(left: Array, right: Array) -> Callable[[], None]:
    """A product of features (p, c) of a block, added to a sum."""
    out, total = np.empty((len(left), len(right)), left.dtype), np.zeros((len(left), len(right)))

    def product() -> None:
        np.matmul(left, right.T, out=out)
        np.add(total, out, out=total)

    return product


def _work(estimator: SpectralDecomposition, data: Any) -> Work:
    """The work of a fit."""
    plan = estimator.plan(data)
    assert plan.work is not None, plan.untimed
    return plan.work


def _machine() -> dict[str, Any]:
    """What the constants depend on."""
    blas = [f"{f['internal_api']} {f['version']}" for f in threadpool_info() if f["user_api"] == "blas"]
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "blas": ", ".join(dict.fromkeys(blas)),
        "measured": time.strftime("%Y-%m-%d %H:%M"),
    }
