"""Sums on a GPU and on the CPU, in one run: shares of its dgemm, rates of the lattice, and fits from zarr.

    pip install -e ".[gpu]"
    python examples/benchmarks/gpu.py --json gpu.json

"kernels": `Measure` on rows in memory, p landmarks, d = 20: useful flops a second (as in `chunk_kernel.py`) over the
flops a second of a product of two 8192 x 8192 matrices there, in turn with it; float32 over float64; the largest
difference of the sums from the CPU's, and whether a second pass has the same bits. "lattice": rows a second whose
modes are summed, by matrix products and, with cufinufft, by the nonuniform FFT at eps = 1e-9, and the difference from
the CPU's matrix products. "fits": with fixed parameters, from a compressed array on the GPU and, a hundredth of the
rows, on two CPU threads. With --device cpu the same code runs without a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
from chunk_kernel import cases, points, useful_flops
from common import Rows, alternate, folder_option, measure, normal_zarr, options, ratio, report

import daskspectral as dsp
from daskspectral.devices import Device, device_of
from daskspectral.modes import nufft
from daskspectral.modes.sums import mode_sum, rows_at_once
from daskspectral.workspace import Workspace

WORK = 4e13  # useful flops of one measurement: a second at 40 Tflop/s, as a task of a long run has
LATTICES = ((2, 15), (3, 5))  # d, m


def product(device: Device, size: int) -> tuple[Callable[[], Any], float]:
    """Return a product of two square matrices on the device, in place, that waits for it, and its flops."""
    a, b = (device.put(np.random.default_rng(seed).standard_normal((size, size))) for seed in range(2))
    out = device.empty((size, size), "float64")

    def run() -> None:
        np.matmul(a, b, out=out)
        if device.accelerated:
            device.module.cuda.runtime.deviceSynchronize()

    return run, 2.0 * size**3


def kernels(device: Device, sizes: tuple[int, ...], quick: bool, repeats: int) -> Rows:
    """Measure the chunk sums of each kernel at each number of landmarks."""
    rows: Rows = []
    dgemm, work = product(device, 256 if quick else 8192)
    for p, (name, kernel, operator) in ((p, case) for p in sizes for case in cases(20)[:4]):
        flops = useful_flops(kernel, operator, p, 20)
        n = 2000 if quick else max(1 << 17, round(WORK / flops))
        block, landmarks = [{"x": points(operator, n, 20, 0)}], points(operator, p, 20, 1)
        here = {t: measure(kernel, landmarks, operator, t) for t in ("float64", "float32")}
        there = {t: replace(one, device=device.name) for t, one in here.items()}
        runs = {t: lambda one=one, block=block: one(block) for t, one in there.items()}
        seconds = alternate({"dgemm": dgemm, **runs}, repeats)
        few = [{"x": block[0]["x"][:20_000]}]
        first, again, wanted = there["float64"](few), there["float64"](few), here["float64"](few)
        rows.append(
            {
                "kernel": name,
                "p": p,
                "rows": n,
                "dgemm Gflop/s": work / min(seconds["dgemm"]) / 1e9,
                "% of dgemm": 100 * n * flops / work * ratio(seconds["dgemm"], seconds["float64"]),
                "float32 / float64": ratio(seconds["float64"], seconds["float32"]),
                "from the CPU": max(float(np.abs(first[k] - v).max() / np.abs(v).max()) for k, v in wanted.items()),
                "same bits": all(np.array_equal(first[k], again[k]) for k in first),
            }
        )
    return rows


def lattices(device: Device, quick: bool, repeats: int) -> Rows:
    """Measure the sums of modes of rows in memory, by matrix products and by the nonuniform FFT."""

    def summed(angles: np.ndarray, m: int, method: str, where: Device) -> np.ndarray:
        orders = (m,) * angles.shape[1]
        found = mode_sum(tuple(2 * order for order in orders), method, workspace=Workspace(where))
        step = len(angles) if method == "matmul" else rows_at_once(method, orders)
        for start in range(0, len(angles), step):
            found.add(angles[start : start + step])
        return found.result()

    rows: Rows = []
    methods = ["matmul", *(["nufft"] if device.accelerated and nufft.available_there() else [])]
    for d, m in LATTICES[:1] if quick else LATTICES:
        angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (5000 if quick else 1 << 22, d))
        exact = summed(angles[:5000], m, "matmul", device_of("cpu"))
        for method in methods:
            work = {"there": lambda a=angles, m=m, method=method: summed(a, m, method, device)}
            rate = len(angles) / min(alternate(work, repeats)["there"]) / 1e6
            far = np.abs(summed(angles[:5000], m, method, device) - exact).max() / np.abs(exact).max()
            rows.append({"d": d, "m": m, "method": method, "million rows/s": rate, "from the CPU": float(far)})
    return rows


def fits(device: Device, folder: Path, n: int, p: int, threads: int) -> Rows:
    """Measure a fit there, and a hundredth of its rows on two CPU threads."""
    rows: Rows = []
    basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(2.0), p, method="uniform", jitter=0.0)
    for where, count, workers in ((device.name, n, threads), ("cpu", max(n // 100, 1000), 2)):
        path, solver = normal_zarr(folder, count, 3), dsp.solvers.Regularized(1.0)
        model = dsp.SpectralDecomposition(basis=basis, solver=solver, device=where, random_state=0)
        start = time.perf_counter()
        with dask.config.set(scheduler="threads", num_workers=workers):
            model.fit(str(path))
        seconds, value = time.perf_counter() - start, float(model.eigenvalues_[1])
        rows.append({"device": where, "threads": workers, "rows": count, "p": p, "seconds": seconds, "value 1": value})
    return rows


@click.command(help=__doc__)
@options(3)
@folder_option
@click.option("--device", default="cuda", show_default=True, type=click.Choice(["cuda", "cpu"]))
@click.option("--p", "sizes", multiple=True, type=int, default=(4096, 1000), show_default=True, help="landmarks")
@click.option("--rows", default=100_000_000, show_default=True, help="of the fit from zarr")
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
    tables = {"kernels": kernels(there, sizes, quick, repeats), "lattice": lattices(there, quick, repeats)}
    tables["fits"] = fits(there, folder, rows, 50 if quick else 1000, threads)
    name = there.module.cuda.runtime.getDeviceProperties(0)["name"].decode() if there.accelerated else "no GPU"
    for title, found in tables.items():
        report(f"sums on a GPU: {title} ({name})", found, json_path, **tables)


if __name__ == "__main__":
    main()
