"""What further lags, residuals, sets and committors of two torsions cost beside the values alone.

Frames of two angles in a zarr array, steps in a periodic potential. Each fit is of the same functions, waves of both
angles (`FourierLattice(m, periods=...)`, 2 m (m + 1) + 1 of them), or 300 landmarks; "ratio" is the CPU time over that
of `Transfer(10)` alone in the same round, "rows / s" of one pass, all threads. The Chapman-Kolmogorov test and
residuals follow from the sums of the fit; sets and committors are a draw and a pass more.

    python examples/benchmarks/further_lags.py --rows 1e8 --repeats 1 --json further_lags.json
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import zarr
from common import Rows, folder_option, options, report

import daskspectral as dsp
from daskspectral.basis import FourierLattice, LandmarkBasis
from daskspectral.kernels import Gaussian
from daskspectral.operators import Transfer

FULL, CHAINS = 2 * np.pi, 1000


def write_frames(path: Path, rows: int) -> str:
    """So many frames, one trajectory behind another that began elsewhere, (rows, 2), in chunks of 32 MB."""
    if path.exists() and zarr.open_array(path, mode="r").shape[0] == rows:
        return str(path)
    rng, length = np.random.default_rng(0), -(-rows // CHAINS)
    store = zarr.create_array(path, shape=(rows, 2), chunks=(1 << 21, 2), dtype="f8", overwrite=True)
    now, frames = rng.uniform(0, FULL, (CHAINS, 2)), np.empty((CHAINS, length, 2), dtype="f4")
    for t in range(length):
        a, b = now.T
        twist = np.sin(a - b) / 2
        force = np.stack([3 * np.sin(3 * a) + np.sin(a) - twist, np.sin(b) + twist], axis=1)
        now = np.remainder(now + 0.02 * force + 0.2 * rng.standard_normal(now.shape), FULL)
        frames[:, t] = now
    store[:] = frames.reshape(-1, 2)[:rows]
    return str(path)


def jobs(path: str, basis: Any) -> dict[str, Callable[[Any], Any]]:
    """What is timed, by its name; sets and committors are of the model that the fit before them gave."""

    def fit(operator: Transfer) -> Any:
        model = dsp.SpectralDecomposition(operator, basis, n_components=6).fit(path, progress=False)
        if len(operator.multiples) > 1:
            model.chapman_kolmogorov()
        return model

    def sets(model: Any) -> Any:
        model.metastable_sets(2, path)
        return model

    def committor(model: Any) -> Any:
        model.first_passage(path, near(np.pi / 3), near(np.pi))
        return model

    return {
        "values": lambda _: fit(Transfer(10)),
        "values, further lags": lambda _: fit(Transfer(10, further=(2, 5))),
        "eigenvalues, residuals, further lags": lambda _: fit(Transfer(10, "eigen", further=(2, 5))),
        "reversible, residuals, further lags": lambda _: fit(Transfer(10, reversible=True, further=(2, 5))),
        "metastable sets": sets,
        "committor": committor,
    }


def near(angle: float) -> Callable[[Any], Any]:
    """Whether the first angle of rows is near this one."""
    return lambda x: np.cos(x[:, 0] - angle) > 0.95


@click.command(help=__doc__)
@options(3)
@folder_option
@click.option("--rows", default=2e6, show_default=True, help="frames")
def main(quick: bool, json_path: Path | None, repeats: int, folder: Path, rows: float) -> None:
    """Fit, several times in turn, and compare."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 20_000 if quick else int(rows)
    path = write_frames(folder / f"torsions-{count}.zarr", count)
    sample = zarr.open_array(path, mode="r")[:: max(1, count // 300)][:300]
    bases = {
        "225 waves": FourierLattice(3 if quick else 7, periods=(FULL, FULL)),
        "300 landmarks": LandmarkBasis(dsp.kernels.Periodic(Gaussian(1.0), (FULL, FULL)), sample),
    }
    found: Rows = []
    warnings.simplefilter("ignore")
    for name, basis in bases.items():
        seconds: dict[str, list[tuple[float, float]]] = {}
        for _ in range(repeats):
            model = None
            for kind, job in jobs(path, basis).items():
                wall, cpu = time.perf_counter(), time.process_time()
                model = job(model)
                taken = time.process_time() - cpu, time.perf_counter() - wall
                seconds.setdefault(kind, []).append(taken)
        alone = [cpu for cpu, _ in seconds["values"]]
        for kind, times in seconds.items():
            ratio = statistics.median(cpu / one for (cpu, _), one in zip(times, alone, strict=True))
            cpu, wall = (statistics.median(column) for column in zip(*times, strict=True))
            found.append({"functions": name, "what": kind, "CPU s": cpu, "rows / s": count / wall, "ratio": ratio})
    report(f"further lags, {count} frames of two torsions", found, json_path)


if __name__ == "__main__":
    main()
