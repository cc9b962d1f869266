"""The SDP embedding: passes until the certificate proves the optimum, and the cost in n.

"passes": products with the kernel until a relative gap of 1e-10 is proved, for the wine data (standardized) and two
moons. "scaling": two moons in zarr, from n = 10^5 up, embedded and certified at p = 400.

    python examples/benchmarks/sdp.py --json sdp.json
    python examples/benchmarks/sdp.py --only scaling --n 10000000

Target: seconds a pass linear in n, and memory flat.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from common import Rows, folder_option, memory, options, report, reset_peak
from sklearn.datasets import load_wine, make_moons
from sklearn.preprocessing import scale

import daskspectral as dsp
from daskspectral.data.writing import create_array

GAP = 1e-10


def measured(model: dsp.SDPEmbedding, x: Any) -> dict[str, Any]:
    """Fit, and return passes, the proved gap, seconds and memory."""
    reset_peak()
    before, start = memory("VmRSS"), time.perf_counter()
    model.fit(x, progress=False)
    seconds = time.perf_counter() - start
    return {
        "passes": model.n_passes_,
        "seconds": seconds,
        "optimal": model.certificate_.optimal,
        "relative gap": model.certificate_.gap / model.objective_,
        "MB above start": (memory("VmHWM") - before) / 1e6,
    }


def passes(quick: bool) -> Rows:
    """Measure exact fits."""
    moons = scale(make_moons(400, noise=0.1, random_state=0)[0])
    cases = [("wine", scale(load_wine().data), b) for b in (1.5, 2.0, 3.0, 4.0, 10.0)]
    cases += [("two moons, n = 400", moons, b) for b in (0.15, 0.25, 0.3, 0.5, 1.0)]
    return [
        {"data": name, "bandwidth": b}
        | measured(
            dsp.SDPEmbedding(b, method="exact", solver=dsp.solvers.BurerMonteiro(tolerance=GAP), random_state=0), x
        )
        for name, x, b in (cases[:1] if quick else cases)
    ]


def moons_zarr(folder: Path, n: int) -> Path:
    """Write two moons with noise 0.1 as zarr, chunk by chunk, if they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"moons-{n}.zarr"
    if not path.exists():
        with create_array(path, (n, 2), "float32") as array:
            for number, start in enumerate(range(0, n, array.chunks[0])):
                rows = min(array.chunks[0], n - start)
                array[start : start + rows] = make_moons(rows, noise=0.1, random_state=number)[0]
    return path


def scaling(folder: Path, counts: tuple[int, ...]) -> Rows:
    """Measure low-rank fits of larger and larger n."""
    rows: Rows = []
    for n in counts:
        data = dsp.Rows(moons_zarr(folder, n), standardize=True)
        landmarks = dsp.basis.Landmarks(n_landmarks=400, method="cholesky")
        model = dsp.SDPEmbedding(0.3, method="lowrank", landmarks=landmarks, random_state=0)
        row = {"n": n, **measured(model, data)}
        rows.append(row | {"us a row and pass": 1e6 * row["seconds"] / row["passes"] / n})
    return rows


@click.command(help=__doc__)
@options(repeats=None)
@folder_option
@click.option("--only", type=click.Choice(["passes", "scaling"]), help="one of the tables")
@click.option("--n", "counts", multiple=True, type=int, default=(100_000, 300_000, 1_000_000), show_default=True)
def main(quick: bool, json_path: Path | None, folder: Path, only: str | None, counts: tuple[int, ...]) -> None:
    """Print the tables."""
    tables = {"passes": [] if only == "scaling" else passes(quick)}
    tables["scaling"] = [] if only == "passes" else scaling(folder, (20_000,) if quick else counts)
    for name, rows in tables.items():
        if rows:
            report(f"SDP embedding: {name}", rows, json_path, **tables)


if __name__ == "__main__":
    main()
