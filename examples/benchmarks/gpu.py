"""The sums on a GPU beside the CPU, in one run: shares of its dgemm, rates of the lattice, and fits from zarr.

    pip install "daskspectral[gpu]"
    python examples/benchmarks/gpu.py --json gpu.json

"kernels": `Measure` on rows in memory, p landmarks, d = 20: useful flops a second (as in `chunk_kernel.py`) over the
flops a second of a product of two 8192 x 8192 matrices there, in turn with it; float32 over float64; the largest
difference of the sums from the CPU's, and whether a second pass gives the same bits. "lattice": rows a second whose
modes are summed, by matrix products and, with cufinufft, by the nonuniform FFT at eps = 1e-9, whose rate is compared
with calls of the transform alone, and the difference from the CPU's matrix products. "from zarr": the whole pass over a
compressed array, the same rows in memory, and the reading alone, whose share it is that no device takes away. "end to
end": a fit with fixed parameters on --rows rows, and on a hundredth of them with two CPU threads. With --device cpu the
same code runs without a GPU.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import dask.array
import numpy as np
import zarr
from chunk_kernel import cases, points, useful_flops
from common import Rows, alternate, folder_option, measure, normal_zarr, options, ratio, report

import daskspectral as dsp
from daskspectral.basis.evaluation import Arena
from daskspectral.devices import Device, device_of
from daskspectral.modes import nufft
from daskspectral.modes.sums import mode_sum, rows_at_once

WORK = 4e13  # useful flops of one measurement: a second at 40 Tflop/s, as a task of a long run has
LATTICES = {2: (15, 50), 3: (5, 10)}  # orders m by dimension


def waited(device: Device, work: Callable[[], Any]) -> Callable[[], Any]:
    """The work, and the wait for what it left running on the device."""

    def both() -> Any:
        found = work()
        if device.accelerated:
            device.module.cuda.runtime.deviceSynchronize()
        return found

    return both


def product(device: Device, size: int, dtype: str) -> tuple[Callable[[], Any], float]:
    """A product of two square matrices on the device, in place, and its flops."""
    rng = np.random.default_rng(0)
    a, b = (device.put(rng.standard_normal((size, size)).astype(dtype)) for _ in range(2))
    out = device.empty((size, size), dtype)
    return lambda: np.matmul(a, b, out=out), 2.0 * size**3


def difference(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """The largest difference of sums over the largest sum of the name."""
    return max(float(np.abs(found[k] - v).max() / np.abs(v).max()) for k, v in wanted.items())


def kernels(device: Device, sizes: tuple[int, ...], quick: bool, repeats: int) -> Rows:
    """Each kernel's chunk sums at each number of landmarks."""
    rows: Rows = []
    size = 256 if quick else 8192
    for p in sizes:
        for name, kernel, operator in cases(20)[:4]:
            flops = useful_flops(kernel, operator, p, 20)
            n = 2000 if quick else max(1 << 17, round(WORK / flops))
            x, landmarks = points(operator, n, 20, 0), points(operator, p, 20, 1)
            there = {
                t: replace(measure(kernel, landmarks, operator, t), device=device.name) for t in ("float64", "float32")
            }
            (double, work), (single, _) = product(device, size, "float64"), product(device, size, "float32")
            seconds = alternate(
                {
                    "dgemm": waited(device, double),
                    "float64": lambda there=there, x=x: there["float64"]([{"x": x}]),
                    "float32": lambda there=there, x=x: there["float32"]([{"x": x}]),
                    "sgemm": waited(device, single),
                },
                repeats,
            )
            few = [{"x": x[:20_000]}]
            first, again = there["float64"](few), there["float64"](few)
            rows.append(
                {
                    "kernel": name,
                    "p": p,
                    "rows": n,
                    "dgemm Gflop/s": work / min(seconds["dgemm"]) / 1e9,
                    "useful Gflop/s": n * flops / min(seconds["float64"]) / 1e9,
                    "% of dgemm": 100 * n * flops / work * ratio(seconds["dgemm"], seconds["float64"]),
                    "float32 / float64": ratio(seconds["float64"], seconds["float32"]),
                    "% of sgemm": 100 * n * flops / work * ratio(seconds["sgemm"], seconds["float32"]),
                    "from the CPU": difference(first, replace(there["float64"], device="cpu")(few)),
                    "same bits": all(np.array_equal(first[k], again[k]) for k in first),
                }
            )
    return rows


def lattices(device: Device, quick: bool, repeats: int) -> Rows:
    """Modes of rows in memory, by matrix products and by the nonuniform FFT."""
    rows: Rows = []
    methods = ["matmul", *(["nufft"] if device.accelerated and nufft.available_there() else [])]
    for (d, orders), method in itertools.product(LATTICES.items(), methods):
        for m in orders[: 1 if quick else None]:
            n = 5000 if quick else 1 << 22
            angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (n, d))
            doubled, step = (2 * m,) * d, n if method == "matmul" else rows_at_once(method, (m,) * d)

            def summed(
                count: int,
                where: Device,
                kind: str = method,
                doubled: tuple[int, ...] = doubled,
                step: int = step,
                angles: np.ndarray = angles,
            ) -> np.ndarray:
                found = mode_sum(doubled, kind, arena=Arena(where))
                for start in range(0, count, step):
                    found.add(angles[start : min(start + step, count)])
                return found.result()

            work = {"there": lambda s=summed, n=n: s(n, device)}
            if method == "nufft":
                work["bare"] = waited(device, bare(device, doubled, angles, step))
            seconds = alternate(work, repeats)
            here, there = summed(5000, device_of("cpu"), "matmul"), summed(5000, device)
            rows.append(
                {
                    "d": d,
                    "m": m,
                    "functions": (2 * m + 1) ** d,
                    "method": method,
                    "million rows/s": n / min(seconds["there"]) / 1e6,
                    "of the bare call": ratio(seconds["bare"], seconds["there"]) if method == "nufft" else None,
                    "from the CPU": float(np.abs(here - there).max() / np.abs(here).max()),
                }
            )
    return rows


def bare(device: Device, orders: tuple[int, ...], angles: np.ndarray, step: int) -> Callable[[], None]:
    """Calls of the transform alone, of rows that lie on the device already."""
    plan, x = nufft.plan(1, orders, 1e-9, device), device.put(np.ascontiguousarray(angles.T))
    ones = device.put(np.ones(len(angles), complex))

    def run() -> None:
        for start in range(0, len(angles), step):
            rows = slice(start, start + step)
            plan.setpts(*(device.module.ascontiguousarray(axis[rows]) for axis in x))
            plan.execute(ones[rows])

    return run


def spectral(p: int, device: str) -> dsp.SpectralDecomposition:
    """A fit with nothing left to choose."""
    basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(2.0), p, method="uniform", spread=0.0)
    return dsp.SpectralDecomposition(basis=basis, solver=dsp.solvers.Penalised(1.0), device=device, random_state=0)


def from_zarr(device: Device, folder: Path, n: int, p: int, threads: int) -> Rows:
    """A pass from a compressed array, the same from memory, and the reading alone."""
    path = normal_zarr(folder, n, 3)
    array = zarr.open_array(path, mode="r")
    seconds = {}
    with dask.config.set(scheduler="threads", num_workers=threads):
        for name, work in {
            "zarr": lambda: spectral(p, device.name).fit(str(path)),
            "memory": lambda x=array[:]: spectral(p, device.name).fit(x),
            "reading": lambda: dask.array.from_zarr(str(path)).sum().compute(),
        }.items():
            start = time.perf_counter()
            work()
            seconds[name] = time.perf_counter() - start
    return [{"rows": n, "p": p, "threads": threads, **seconds, "reading's share": seconds["reading"] / seconds["zarr"]}]


def end_to_end(device: Device, folder: Path, n: int, p: int, threads: int) -> Rows:
    """One fit there, and a hundredth of its rows on two CPU threads."""
    rows: Rows = []
    for where, count, workers in ((device.name, n, threads), ("cpu", max(n // 100, 1000), 2)):
        path = normal_zarr(folder, count, 3)
        with dask.config.set(scheduler="threads", num_workers=workers):
            start = time.perf_counter()
            fitted = spectral(p, where).fit(str(path))
            took = time.perf_counter() - start
        rows.append(
            {
                "device": where,
                "threads": workers,
                "rows": count,
                "p": p,
                "seconds": took,
                "million rows/s": count / took / 1e6,
                "value 1": float(fitted.eigenvalues_[1]),
            }
        )
    return rows


@click.command(help=__doc__)
@options(3)
@folder_option
@click.option("--device", default="cuda", show_default=True, type=click.Choice(["cuda", "cpu"]))
@click.option("--p", "sizes", multiple=True, type=int, default=(4096, 1000), show_default=True, help="landmarks")
@click.option("--rows", default=100_000_000, show_default=True, help="of the fit end to end")
@click.option("--threads", default=4, show_default=True, help="that read and decompress")
def main(
    quick: bool,
    repeats: int,
    json_path: Path | None,
    folder: Path,
    device: str,
    sizes: tuple[int, ...],
    rows: int,
    threads: int,
) -> None:
    """Measure everything."""
    there = device_of(device)
    if quick:
        sizes, repeats, rows = (50,), 1, 20_000
    p = 50 if quick else 1000
    name = there.module.cuda.runtime.getDeviceProperties(0)["name"].decode() if there.accelerated else "no GPU"
    tables: dict[str, Rows] = {}
    for title, work in {
        "kernels": lambda: kernels(there, sizes, quick, repeats),
        "lattice": lambda: lattices(there, quick, repeats),
        "from zarr": lambda: from_zarr(there, folder, max(rows // 10, 1000), p, threads),
        "end to end": lambda: end_to_end(there, folder, rows, p, threads),
    }.items():
        tables[title] = work()
        report(f"sums on a GPU: {title} ({name})", tables[title], json_path, device=name, **tables)


if __name__ == "__main__":
    main()
