"""A billion points on disk and a thousand functions: a Fourier lattice on a standard normal distribution.

Writes n rows (float32, zstd, crc32c; a function of n alone) where they are missing. Timed apart: the pass that finds
the box, then the pass that sums modes, with the choice of the prior and the solution; two threads of one BLAS thread
each. The eigenvalue k of the distribution has multiplicity k + 1 (d = 2) or (k + 1)(k + 2) / 2 (d = 3). "sums": rows a
second of the bare sums on as many threads, of rows in memory; "reads": of a pass that only reads; "share": the rows a
second of the pass over the less of the two. The memory is the peak of the whole process during box and fit.

With --regression values y = sin(2 x_1) cos(x_2) + noise are regressed on the rows (written likewise, 4 bytes a row).
For comparison, EFGP (Greengard, Rachh and Barnett 2022) reports about two minutes for a billion values in two
dimensions on a desktop, in memory.

    python examples/benchmarks/billion_modes.py --json billion_modes.json            # d = 2, m = 15: 7.5 GB in --folder
    python examples/benchmarks/billion_modes.py --d 3 --m 5 --eps 1e-6 --against 1e-9      # 11 GB
    python examples/benchmarks/billion_modes.py --regression
    python examples/benchmarks/billion_modes.py --n 1e7                              # the same in seconds
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import zarr
from common import cached_share, folder_option, forget, memory, normal_zarr, options, report, reset_peak

from daskspectral import HermiteRegressor, SpectralDecomposition
from daskspectral.basis import FourierLattice
from daskspectral.choosing.lattice import boxed
from daskspectral.data.rows import Rows
from daskspectral.data.source import open_data
from daskspectral.data.writing import create_array
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.sampling import scan
from daskspectral.modes.sums import mode_sum, rows_at_once
from daskspectral.operators import Laplacian

COMPONENTS = 16
NOISE = 0.1


def truth(d: int, count: int) -> np.ndarray:
    """The first eigenvalues, ascending."""
    several = (lambda k: k + 1) if d == 2 else (lambda k: (k + 1) * (k + 2) // 2)
    return np.concatenate([np.full(several(k), float(k)) for k in range(count)])[:count]


def target(x: np.ndarray) -> np.ndarray:
    """The function that is regressed."""
    return np.asarray(np.sin(2 * x[:, 0]) * np.cos(x[:, 1]))


def values_of(path: Path) -> Path:
    """The values at the rows of a zarr array, beside it."""
    out = path.with_name(f"{path.stem}-values.zarr")
    if out.exists():
        return out
    x: Any = zarr.open_array(path, mode="r")
    rows = x.chunks[0]
    with create_array(str(out), (x.shape[0],), np.dtype("float32"), chunk_rows=rows) as y:

        def write(start: int) -> None:
            part = x[start : start + rows]
            noise = np.random.default_rng([7, start]).standard_normal(len(part), dtype=np.float32)
            y[start : start + len(part)] = target(part) + NOISE * noise

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, range(0, x.shape[0], rows)))
    return out


def apart(function: Any, *arguments: Any) -> None:
    """A function in a process of its own: this one's memory is measured."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise click.ClickException(f"the data could not be written: {arguments}")


def bare(lattice: FourierLattice, threads: int, quick: bool) -> float:
    """Rows a second of the sums of one weight, on all threads together, of angles in memory."""
    rows = rows_at_once(str(lattice.method), lattice.orders)
    angles = np.random.default_rng(0).normal(0, 0.6, (rows, lattice.dimension))
    rounds = max(1, int((1e5 if quick else 2e7) / rows))

    def work(_: int) -> None:
        sums = mode_sum(tuple(2 * m for m in lattice.orders), str(lattice.method), lattice.eps)
        for _ in range(rounds):
            sums.add(angles, None)
        sums.result()

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return threads * rounds * rows / (time.perf_counter() - start)


@click.command(help=__doc__)
@options(repeats=None)
@folder_option
@click.option("--n", "size", default="1e9", show_default=True, help="rows")
@click.option("--d", default=2, show_default=True, type=click.IntRange(2, 3), help="columns")
@click.option("--m", type=int, help="highest frequency; the default of the lattice where it is not given")
@click.option("--eps", default=1e-9, show_default=True, help="precision of the nonuniform FFT")
@click.option("--against", type=float, help="a second pass with this eps, to tell the difference")
@click.option("--regression", is_flag=True, help="regress values in place of the eigenvalues")
@click.option("--threads", default=2, show_default=True)
@click.option("--cold", is_flag=True, help="drop the data from the page cache first")
def main(
    quick: bool,
    json_path: Path | None,
    folder: Path,
    size: str,
    d: int,
    m: int | None,
    eps: float,
    against: float | None,
    regression: bool,
    threads: int,
    cold: bool,
) -> None:
    """Write, find the box, sum, solve, compare."""
    n = 200_000 if quick else int(float(size))
    apart(normal_zarr, folder, n, d)
    path = normal_zarr(folder, n, d)
    y = None
    if regression:
        apart(values_of, path)
        y = values_of(path)
    if cold:
        for array in (path, y):
            if array is not None:
                forget(array)
    logging.basicConfig(format="%(message)s")
    logging.getLogger("daskspectral").setLevel(logging.INFO)
    operator, source = Laplacian(), open_data(Laplacian(), Rows(path), weight=None)
    reset_peak()
    imported, cached = memory("VmRSS"), cached_share(path)
    seconds: dict[str, float] = {}

    def timed(name: str, function: Any) -> Any:
        start = time.perf_counter()
        found = function()
        seconds[name] = time.perf_counter() - start
        return found

    with dask.config.set(scheduler="threads", num_workers=threads):
        rng = np.random.default_rng(0)
        lattice = timed("box", lambda: boxed(FourierLattice(m, eps=eps), source, operator, rng, periods=None))
        if y is not None:
            model: Any = HermiteRegressor(lattice)
            timed("fit", lambda: model.fit(path, y))
        else:
            model = SpectralDecomposition(basis=lattice, n_components=COMPONENTS, random_state=0)
            timed("fit", lambda: model.fit(path))
        peak = memory("VmHWM")
        timed("solve", lambda: model.fit_moments(model.moments_))
        timed("read", lambda: Run(source, plan_rows(source, 20.0 * source.row_bytes)).reduce(scan))
        other = None
        if against is not None and y is None:
            basis, solver = replace(lattice, eps=against, kernel=model.kernel_), model.choice_.parameters["solver"]
            other = SpectralDecomposition(basis=basis, n_components=COMPONENTS, solver=solver)
            timed(f"fit at {against:g}", lambda: other.fit(path))
    rates = {"sums": bare(lattice, threads, quick), "reads": n / seconds["read"]}
    numbers: dict[str, Any] = {
        "n": n,
        "d": d,
        "p": lattice.size,
        "eps": eps,
        "method": lattice.method,
        "threads": threads,
        "box seconds": seconds["box"],
        "fit seconds": seconds["fit"],
        "of which choice and solution": seconds["solve"],
        "seconds in all": seconds["box"] + seconds["fit"],
        "share of the page cache": cached,
        "million rows a second, sums": rates["sums"] / 1e6,
        "million rows a second, reads": rates["reads"] / 1e6,
        "share of the less of the two": n / (seconds["fit"] - seconds["solve"]) / min(rates.values()),
        "peak MB": peak / 1e6,
        "peak above imports MB": (peak - imported) / 1e6,
    }
    rows: list[dict[str, Any]] = []
    if y is not None:
        x = np.random.default_rng(1).standard_normal((100_000, d))
        numbers["error"] = float(np.sqrt(np.mean((model.predict(x) - target(x)) ** 2)))
        rows = [{"test error": numbers["error"], "noise": NOISE, "cv": model.cv_score_, "alpha": model.alpha_}]
    else:
        found, exact = model.eigenvalues_, truth(d, COMPONENTS)
        for level in np.unique(exact):
            own = found[exact == level]
            held = model.eigenvalue_errors_[exact == level]
            inside = int(np.count_nonzero((held[:, 0] <= level) & (level <= held[:, 1])))
            far = float(np.abs(own - level).max())
            rows.append({"eigenvalue": level, "values": len(own), "largest distance": far, "intervals hold": inside})
        numbers["eigenvalues"] = found
    if other is not None:
        change = np.abs(other.eigenvalues_ - model.eigenvalues_)[1:] / model.eigenvalues_[1:]
        numbers[f"largest change from eps {against:g}"] = float(change.max())
        numbers[f"fit seconds at {against:g}"] = seconds[f"fit at {against:g}"]
    notes = [f"{name}: {value:.4g}" for name, value in numbers.items() if isinstance(value, float)]
    report(f"{n:.3g} points, d = {d}, lattice of {lattice.size} functions", rows, json_path, notes, **numbers)


if __name__ == "__main__":
    main()
