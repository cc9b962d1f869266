"""The SDP embedding: passes of the accelerated solver against the power method, low rank against exact, cost in n.

"passes": products with the kernel of the accelerated solver, until its certificate proves a relative gap of 1e-10, and
of the power method until its gap is as small (--most at most), for the wine data (standardised) and two moons.
"low rank": two moons of n = 4000 (standardised, bandwidth 0.3): objective and Gram matrix B of p landmarks against the
exact solution. "scaling": two moons in zarr, from n = 10^5 up, embedded and certified at p = 400.

    python examples/benchmarks/sdp.py --json sdp.json
    python examples/benchmarks/sdp.py --only scaling --n 10000000

Targets: a tenth of the power method's passes where the power method needs more than 1000, never more passes than it
elsewhere; 0.1 % and 1 % at p = 400; seconds a pass linear in n, and memory flat.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, folder_option, memory, options, report, reset_peak
from sklearn.datasets import load_wine, make_moons

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.data.writing import create_array
from daskspectral.embedding.ascent import accelerated
from daskspectral.embedding.problems import Deflated, ExactProblem
from daskspectral.embedding.stages import solve_accelerated
from daskspectral.kernels import Gaussian

GAP = 1e-10


def moons(n: int, noise: float, seed: int) -> np.ndarray:
    """Two moons, standardised."""
    x, _ = make_moons(n, noise=noise, random_state=seed)
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def passes(quick: bool, most: int) -> Rows:
    """Both solvers from the same start."""
    wine = load_wine().data
    wine = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
    cases: list[tuple[str, np.ndarray, float]] = [("wine", wine, b) for b in (1.5, 2.0, 3.0, 4.0, 10.0)]
    cases += [("two moons, n = 400", moons(400, 0.1, 0), b) for b in (0.15, 0.25, 0.3, 0.5, 1.0)]
    rows: Rows = []
    for name, x, bandwidth in cases[:2] if quick else cases:
        gram = Gaussian(bandwidth / np.sqrt(2)).values(x, x)
        matrix = Deflated(gram, gram.sum(axis=1))
        problem = ExactProblem(matrix, matrix.bound)
        start = np.random.default_rng(0).standard_normal((len(x), 6))
        ours = solve_accelerated(problem, start, tolerance=GAP, max_passes=10_000)
        reached = ours.certificate.gap / ours.objective
        count, gap = power_to_gap(problem, start, reached, 200 if quick else most)
        rows.append(
            {
                "data": name,
                "bandwidth": bandwidth,
                "rank": len(ours.eigenvalues),
                "accelerated": ours.passes,
                "power": count,
                "power / accelerated": count / ours.passes,
                "relative gap": reached,
                "of power": gap,
            }
        )
    return rows


def power_to_gap(problem: ExactProblem, start: np.ndarray, wanted: float, most: int) -> tuple[int, float]:
    """Passes of the power method until its relative gap is as small, to five in a hundred, and the gap."""
    count, point = 0, start
    while True:
        most_now = max(5, count // 20) + 1
        found = accelerated(problem, point, residual=0.0, max_passes=most_now, warm_up=most_now)
        count, point = count + len(found.objectives) - 1, found.last.point  # the last point is evaluated again
        gap = problem.certify(point, GAP).gap / found.last.objective
        if gap <= max(wanted, 1e-13) or count >= most:
            return count + 1, gap


def embedding(p: int, **options: Any) -> dsp.SDPEmbedding:
    """That of the low-rank method, by p landmarks."""
    landmarks = Landmarks(count=p, method="cholesky")
    return dsp.SDPEmbedding(0.3, method="lowrank", landmarks=landmarks, random_state=0, **options)


def low_rank(quick: bool) -> Rows:
    """The Gram matrix B, by its products with itself: |B - B'|_F^2 = |E^T E|^2 - 2 |E^T E'|^2 + |E'^T E'|^2."""
    rows: Rows = []
    n, counts = (400, (50,)) if quick else (4000, (100, 200, 400))
    for noise in (0.05, 0.1, 0.2):
        x = moons(n, noise, 0)
        start = time.perf_counter()
        exact = dsp.SDPEmbedding(0.3, method="exact", random_state=0).fit(x)
        seconds = time.perf_counter() - start
        e, size = exact.embedding_, np.linalg.norm(exact.spectrum_)
        for p in counts:
            row: dict[str, Any] = {"noise": noise, "p": p, "exact s": seconds}
            start = time.perf_counter()
            try:
                found = embedding(p).fit(x)
            except ValueError as error:
                rows.append({**row, "objective": str(error).split(" (")[0]})
                continue
            f = found.embedding_
            square = size**2 - 2 * np.linalg.norm(e.T @ f) ** 2 + np.linalg.norm(found.spectrum_) ** 2
            rows.append(
                {
                    **row,
                    "low rank s": time.perf_counter() - start,
                    "objective": f"{found.objective_ / exact.objective_ - 1:.1e}",
                    "Gram": float(np.sqrt(max(square, 0)) / size),
                    "optimal": found.certificate_.optimal and exact.certificate_.optimal,
                }
            )
    return rows


def moons_zarr(folder: Path, n: int) -> Path:
    """Two moons with noise 0.1 as zarr, written chunk by chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"moons-{n}.zarr"
    if not path.exists():
        click.echo(f"writing {path}", err=True)
        with create_array(path, (n, 2), "float32") as array:
            for number, start in enumerate(range(0, n, array.chunks[0])):
                rows = min(array.chunks[0], n - start)
                array[start : start + rows] = make_moons(rows, noise=0.1, random_state=number)[0]
    return path


def scaling(folder: Path, counts: tuple[int, ...]) -> Rows:
    """One fit for each n; the seconds per pass are the time of the whole fit over its passes."""
    rows: Rows = []
    for n in counts:
        path = moons_zarr(folder, n)
        reset_peak()
        before, start = memory("VmRSS"), time.perf_counter()
        found = embedding(400, cache="never").fit(dsp.Rows(path, standardize=True), progress=False)
        seconds = time.perf_counter() - start
        rows.append(
            {
                "n": n,
                "passes": found.n_passes_,
                "seconds": seconds,
                "us a row and pass": 1e6 * seconds / found.n_passes_ / n,
                "optimal": found.certificate_.optimal,
                "relative gap": found.certificate_.gap / found.objective_,
                "least coverage": found.coverage_,
                "peak MB": (memory("VmHWM")) / 1e6,
                "above start MB": (memory("VmHWM") - before) / 1e6,
            }
        )
    return rows


@click.command(help=__doc__)
@options(repeats=None)
@folder_option
@click.option("--only", type=click.Choice(["passes", "low rank", "scaling"]), help="one of the three tables")
@click.option("--n", "counts", multiple=True, type=int, default=(100_000, 300_000, 1_000_000), show_default=True)
@click.option("--most", default=20_000, show_default=True, help="passes of the power method at most")
def main(
    quick: bool, json_path: Path | None, folder: Path, only: str | None, counts: tuple[int, ...], most: int
) -> None:
    """Print the tables."""
    parts = {
        "passes": lambda: passes(quick, most),
        "low rank": lambda: low_rank(quick),
        "scaling": lambda: scaling(folder, (20_000,) if quick else counts),
    }
    for name, part in parts.items():
        if only in (None, name):
            path = None if json_path is None else json_path.with_stem(f"{json_path.stem}-{name.replace(' ', '-')}")
            report(f"SDP embedding: {name}", part(), path)


if __name__ == "__main__":
    main()
