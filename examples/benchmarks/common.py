"""Code that the benchmarks share: alternated timings, fits with their warnings, data, memory, tables and JSON.

Every benchmark compares inside one run: both sides run in turn for several rounds, and the ratio is the median of the
ratios of the rounds, so that a machine that slows down or speeds up affects both sides equally.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import threadpoolctl

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis
from daskspectral.datasets import write
from daskspectral.kernels import Kernel
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian, Operator

Array = np.ndarray
Rows = list[dict[str, Any]]
Settings = dict[str, Any]


def options(repeats: int | None = 5) -> Callable[..., Any]:
    """Add the options of every benchmark: --quick, --json, and --repeats with a default (None: no such option)."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if repeats is not None:
            function = click.option("--repeats", default=repeats, show_default=True, help="rounds of measurements")(
                function
            )
        path = click.Path(dir_okay=False, path_type=Path)
        function = click.option("--json", "json_path", type=path, help="write the results here")(function)
        return click.option("--quick", is_flag=True, help="tiny sizes, with meaningless numbers")(function)

    return decorate


def folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --folder, where the data are kept between runs."""
    default = Path(os.environ.get("TMPDIR", "/tmp")) / "daskspectral-benchmarks"
    path = click.Path(file_okay=False, path_type=Path)
    return click.option("--folder", default=default, show_default=True, type=path, help="of the data")(function)


def settings_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --set NAME=EXPRESSION, repeatable: parameters of SpectralDecomposition, in terms of `dsp`."""

    def parsed(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> Settings:
        return {name: eval(value, {"dsp": dsp}) for name, _, value in (text.partition("=") for text in texts)}

    text = 'a parameter of SpectralDecomposition: solver="dsp.solvers.Truncated()"'
    return click.option("--set", "settings", multiple=True, metavar="NAME=EXPRESSION", callback=parsed, help=text)(
        function
    )


# -- time ------------------------------------------------------------------------------------------------------------


def alternate(functions: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each function in each round; they run in turn, after one round that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for r in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if r:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median over the rounds of above / below."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def gemm(size: int, dtype: str = "float64") -> tuple[Callable[[], Any], float]:
    """Return a product of two square matrices of a size, in place, and its flops."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(dtype) for _ in range(2))
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out), 2.0 * size**3


# -- fits ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """A fitted model (None if the fit raised ValueError), CPU seconds, and the classes and texts of its warnings."""

    model: Any
    cpu: float
    said: tuple[str, ...]

    @property
    def values(self) -> Array:
        """The eigenvalues or singular values; none if the fit failed."""
        found = {} if self.model is None else vars(self.model)
        return np.asarray(found.get("singular_values_", found.get("eigenvalues_", np.empty(0))))


def fit(x: Any, kind: Any = dsp.SpectralDecomposition, **settings: Any) -> Fit:
    """Fit an estimator of this class with these parameters, also nested ones."""
    model = kind().set_params(**settings)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(x)
            refusal = []
        except ValueError as error:
            model, refusal = None, [f"ValueError: {error}"]
    cpu = time.process_time() - start
    said = [f"{w.category.__name__}: {w.message}" for w in caught if issubclass(w.category, UserWarning)]
    return Fit(model, cpu, tuple(dict.fromkeys(said + refusal)))


def classes(said: Iterable[str]) -> str:
    """Return the classes of the warnings, each with its count: `RankWarning 5`."""
    counts = Counter(text.split(":")[0] for text in said)
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))


def processes_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --processes."""
    return click.option("--processes", default=1, show_default=True, help="fits at once, each on one thread")(function)


def parallel(function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], processes: int) -> list[Any]:
    """Return function(*job) for every job, in their order, from processes of one thread each."""
    if processes == 1:
        return [function(*job) for job in jobs]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_one_thread) as pool:
        return list(pool.map(function, *zip(*jobs, strict=True)))


def _one_thread() -> None:
    threadpoolctl.threadpool_limits(1)
    dask.config.set(scheduler="synchronous")


# -- what is measured ------------------------------------------------------------------------------------------------


def measure(kernel: Kernel, landmarks: Array, operator: Operator | None = None, dtype: str = "float64") -> Measure:
    """Return the sums of the forms of the operator (the Laplacian) and its Gram in a kernel's basis."""
    operator, basis = operator or Laplacian(), LandmarkBasis(kernel, landmarks)
    return Measure(basis, basis, operator.forms, operator=operator, dtype=dtype)


def normal_zarr(folder: Path, n: int, d: int) -> Path:
    """Return the path of standard normal rows (n, d) as zarr (float32, zstd, crc32c); write them if they are missing.

    A separate process writes, because the memory of this one is measured.
    """
    path = folder / f"normal-{n}-{d}.zarr"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        given = {"dimension": d, "dtype": "float32"}
        process = multiprocessing.get_context("spawn").Process(target=write, args=("gaussian", path, n), kwargs=given)
        process.start()
        process.join()
        if process.exitcode:
            raise click.ClickException(f"the data could not be written to {path}")
    return path


def memory(name: str) -> int:
    """Return bytes of this process: VmRSS, resident now, or VmHWM, the most since the start or `reset_peak`.

    `getrusage` is not used: its ru_maxrss keeps, over an exec, the size of the process that forked this one.
    """
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:"))


def reset_peak() -> None:
    """Start VmHWM again from what is resident now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


# -- report ----------------------------------------------------------------------------------------------------------


def report(title: str, rows: Rows, json_path: Path | None, notes: Sequence[str] = (), **more: Any) -> None:
    """Print the rows as a table with the notes below; write all of it, and the machine, as JSON if asked."""
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    blas = [b for b in threadpoolctl.threadpool_info() if b["user_api"] == "blas"]
    libraries = ", ".join(f"{b['internal_api']} {b['version']} ({b.get('architecture')})" for b in blas)
    cores = len(os.sched_getaffinity(0))
    machine = f"{processor or platform.processor()}, {cores} cores; numpy {np.__version__}; {libraries}"
    click.echo("\n".join([title, machine, "", table(rows), *notes]))
    if json_path is not None:
        result = {"benchmark": title, "machine": machine, "rows": rows, "notes": list(notes), **more}
        json_path.write_text(json.dumps(result, indent=1, default=lambda value: value.tolist()) + "\n")


def table(rows: Rows) -> str:
    """Return the rows as aligned columns, headed by the keys of the row that has the most."""
    heading = list(max(rows, key=len)) if rows else []
    cells = [heading, *([_text(row.get(k)) for k in heading] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in cells)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return "-" if value is None else str(value)
