"""Predicted and measured times of ten fits: the cost model behind `daskspectral plan`, calibrated just before.

Measured: seconds of `SpectralDecomposition.fit` for ten configurations, in turn, the median of the rounds, against
`plan(...).seconds` of the costs that `calibrate` measured in the same run. "ratio" is measured over predicted. Beside
the clock stands the processor's time (all threads together) against the prediction for one thread, which other work on
the machine disturbs less; of a cluster's workers it is not known. Rows are standard normal; zarr is float32, zstd, in
the page cache. Target: eight of ten ratios within 25 %, none off by more than 1.6.

    python examples/benchmarks/cost_model.py --json cost_model.json
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
from common import Rows, folder_option, normal_zarr, options, report

from daskspectral.basis import FourierLattice
from daskspectral.estimators import SpectralDecomposition
from daskspectral.estimators.calibration import calibrate
from daskspectral.kernels import Exponential, Gaussian, Matern, Polynomial
from daskspectral.operators import Cross, Schroedinger


@dataclass(frozen=True)
class Case:
    """A fit to n rows of d columns: its arguments, where the rows are, on how many threads or workers it runs."""

    name: str
    n: float
    d: int
    arguments: dict[str, Any] = field(default_factory=dict)
    zarr: bool = False
    threads: int = 2
    workers: int = 1


CASES = (
    Case("Gaussian", 1e6, 3, {"kernel": Gaussian(1.0), "n_landmarks": 100}),
    Case("Gaussian", 2e6, 3, {"kernel": Gaussian(1.0), "n_landmarks": 100}, zarr=True),
    Case("Matern 3/2", 2e5, 20, {"kernel": Matern(1.5, 4.0), "n_landmarks": 500}),
    Case("exponential", 5e5, 10, {"kernel": Exponential(3.0), "n_landmarks": 200}, zarr=True, threads=1),
    Case("Gaussian", 5e4, 30, {"kernel": Gaussian(6.0), "n_landmarks": 1000}),
    Case("automatic", 5e5, 3, zarr=True),
    Case("polynomial, Schroedinger", 1e6, 4, {"operator": Schroedinger(), "kernel": Polynomial(3), "n_landmarks": 120}),
    Case("Gaussian, Cross", 1e5, 5, {"operator": Cross(), "kernel": Gaussian(2.0), "n_landmarks": 300}),
    Case("lattice, m = 15", 2e7, 2, {"basis": FourierLattice(15)}, zarr=True),
    Case("Gaussian, cluster", 1e6, 6, {"kernel": Gaussian(2.0), "n_landmarks": 250}, zarr=True, threads=1, workers=2),
)
QUICK = 2000  # rows


@contextmanager
def running(case: Case) -> Iterator[None]:
    """On the threads of this process, or on a cluster of processes."""
    if case.workers == 1:
        with dask.config.set(scheduler="threads", num_workers=case.threads):
            yield
        return
    from distributed import Client, LocalCluster

    sizes = {"n_workers": case.workers, "threads_per_worker": case.threads}
    with LocalCluster(**sizes, dashboard_address=None) as cluster, Client(cluster):
        yield


def data_of(case: Case, folder: Path, quick: bool) -> tuple[Any, dict[str, Any]]:
    """The rows, and the fields beside them."""
    n = min(int(case.n), QUICK) if quick else int(case.n)
    if case.zarr:
        return normal_zarr(folder, n, case.d), {}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, case.d))
    operator = case.arguments.get("operator")
    if isinstance(operator, Cross):
        return (x, x + 0.5 * rng.standard_normal(x.shape)), {}
    return x, {"potential": x[:, 0] ** 2} if isinstance(operator, Schroedinger) else {}


def timed(function: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - clock, time.process_time() - processor


def one_case(case: Case, folder: Path, file: Path, rounds: int, quick: bool) -> dict[str, Any]:
    """One line of the table."""
    x, fields = data_of(case, folder, quick)
    where = {"workers": case.workers, "threads": case.threads}
    given = dict(case.arguments)
    if quick:
        given |= {"n_landmarks": 20} if "n_landmarks" in given else {}
    estimator = SpectralDecomposition(random_state=0, **given)
    options = {"fields": fields} if fields else {}
    plan = estimator.plan(x, **options, calibration=file, **where)
    alone = estimator.plan(x, **options, calibration=file, workers=1, threads=1)
    assert plan.time is not None, plan.untimed
    assert alone.seconds is not None
    with running(case):
        if case.workers > 1:  # its processes import what they need at their first task
            estimator.fit(x, **options, progress=False)
        runs = [timed(lambda: estimator.fit(x, **options, progress=False)) for _ in range(rounds)]
    clock, processor = (statistics.median(values) for values in zip(*runs, strict=True))
    return {
        "fit": case.name,
        "n": f"{case.n:.0e}",
        "d": case.d,
        "p": estimator.basis_.size,
        "rows": "zarr" if case.zarr else "memory",
        "on": f"{case.workers} x {case.threads}",
        "predicted s": plan.time.seconds,
        "choice s": plan.time.choosing,
        "pass s": plan.time.summing,
        "solution s": plan.time.solving,
        "measured s": clock,
        "ratio": clock / plan.time.seconds,
        "predicted cpu s": None if case.workers > 1 else alone.seconds,
        "measured cpu s": None if case.workers > 1 else processor,
        "cpu ratio": None if case.workers > 1 else processor / alone.seconds,
    }


def verdict(rows: Rows, key: str) -> str:
    """How many ratios are within 25 %, and the worst."""
    ratios = [row[key] for row in rows if row[key] is not None]
    near = sum(1 / 1.25 <= ratio <= 1.25 for ratio in ratios)
    return f"{key}: {near} of {len(ratios)} within 25 %, the worst {max(max(r, 1 / r) for r in ratios):.2f}"


@click.command(help=__doc__)
@options(repeats=3)
@folder_option
@click.option("--case", "chosen", type=int, multiple=True, help="Only these, by their numbers from 1.")
def main(quick: bool, repeats: int, json_path: Path | None, folder: Path, chosen: tuple[int, ...]) -> None:
    """Calibrate, then plan and fit."""
    warnings.simplefilter("ignore")
    cases = [CASES[i - 1] for i in chosen] or (CASES[:2] if quick else CASES)
    for case in cases:
        data_of(case, folder, quick)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "costs.json"
    seconds, _ = timed(lambda: calibrate(quick=quick).save(file))
    rows: Rows = []
    for case in cases:
        rows.append(one_case(case, folder, file, 1 if quick else repeats, quick))
        click.echo(f"{case.name}: {rows[-1]['ratio']:.2f}", err=True)
    notes = ["", f"calibrated in {seconds:.0f} s", verdict(rows, "ratio"), verdict(rows, "cpu ratio")]
    report("predicted and measured seconds of fits", rows, json_path, notes, markdown=True, calibration=seconds)


if __name__ == "__main__":
    main()
