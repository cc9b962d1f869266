"""Compare six jobs with the tutorials of other tools: what both compute, lines of code, CPU seconds.

Maps of EOFs and pairs of maps (MCA) of a field, by xeofs 3; timescales, metastable sets and a committor of a trajectory
between four wells, by deeptime 0.4.5; modulus and angle of the value of a noisy oscillator, by PyDMD. Each side is the
program that its tutorial has one write: --show prints it, its lines are counted, and it runs in a separate process with
one BLAS thread; its second run is measured, and the sides run in turn. "given" is daskspectral with as many functions
as the other side, where it chooses them by default. "difference" is the largest one from the other side and "error"
that from the exact values, both over the largest value of each quantity.

    python -m venv peers && peers/bin/pip install xeofs h5netcdf h5py deeptime==0.4.5 pydmd matplotlib
    python examples/benchmarks/six_jobs.py --peers peers/bin/python --json six_jobs.json
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.signal
from beside_others import run
from common import folder_option, options, report
from slow_dynamics import PROCESSES, chain, truth

import daskspectral as dsp

COMPARED = "# compared\n"  # the lines below it are not counted
PROCESSES["six jobs"] = WELLS = replace(PROCESSES["four wells"], lag=0.1, grid=((-2, 2, 31), (-2, 2, 31)))
MODULUS, ANGLE = 0.97, 2 * np.pi / 15
LAGS = (1, 2, 5)

OURS = "import numpy as np\nimport xarray as xr\nimport daskspectral as dsp\n# --\n"
XEOFS = """import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
import xeofs as xe
# --
field = xr.open_dataset(f"{folder}/ocean.nc")["ocean"]
months = field.groupby("time.month")
anomalies = months - months.mean()
"""
DEEPTIME = """import numpy as np
from deeptime.clustering import KMeans
from deeptime.markov import TransitionCountEstimator
from deeptime.markov.msm import MaximumLikelihoodMSM
# --
x = np.load(f"{folder}/path.npy")
clustering = KMeans(100, fixed_seed=0).fit_fetch(x)
counts = TransitionCountEstimator(1, "sliding").fit_fetch(clustering.transform(x))
msm = MaximumLikelihoodMSM().fit_fetch(counts.submodel_largest())
"""
FIELD = 'field = xr.open_dataset(f"{folder}/ocean.nc")["ocean"]\n'
KOOPMAN = """x = np.load(f"{folder}/path.npy")
model = dsp.Koopman(reversible=True, n_components=4).fit(x)
"""
ROWS = 'sample_dims="time", latitude="lat", anomaly="month", on_invalid="skip"'
FIRST = """first = {}[0].fillna(0)
first = {}.values.ravel()
first = (first * np.sign(first[abs(first).argmax()]) / np.linalg.norm(first)).tolist()
"""
WEIGHTED = "(first * np.sqrt(np.cos(np.radians(first.lat))))"  # as the maps of xeofs
SETS = "order = np.argsort(p)\nanswer = [p[order].tolist(), np.diag(T)[order].tolist()]\n"
CELLS = 'cells = np.load(f"{folder}/cells.npy")\n'


def near(rows: str, center: tuple[float, ...]) -> str:
    """Return the condition that rows are near a center."""
    return f"np.linalg.norm({rows} - np.array({list(center)}), axis=1) < {WELLS.radius}"


JOBS = {
    "EOF maps": {
        "daskspectral": f"""{OURS}{FIELD}model = dsp.EOF(3).fit(dsp.Rows(field, {ROWS}))
found = model.to_xarray(field)
dsp.plot.eigenfunctions(model, field).savefig(f"{{folder}}/ours.png")
{COMPARED}{FIRST.format("found.components", WEIGHTED)}answer = [found.explained_variance_ratio.values.tolist(), first]
""",
        "xeofs": f"""{XEOFS}model = xe.single.EOF(n_modes=3, use_coslat=True).fit(anomalies, dim="time")
maps, scores = model.components(), model.scores()
maps.plot(col="mode")
plt.savefig(f"{{folder}}/theirs.png")
{COMPARED}{FIRST.format("maps", "first")}answer = [model.explained_variance_ratio().values.tolist(), first]
""",
    },
    "MCA": {
        "daskspectral": f"""{OURS}{FIELD}west, east = field.sel(lon=slice(0, 180)), field.sel(lon=slice(190, 360))
model = dsp.MCA(2).fit(*(dsp.Rows(one, {ROWS}) for one in (west, east)))
found = model.to_xarray((west, east))
{COMPARED}{FIRST.format("found.scores2", "first")}answer = [found.squared_covariance_fraction.values.tolist(), first]
""",
        "xeofs": f"""{XEOFS}west, east = anomalies.sel(lon=slice(0, 180)), anomalies.sel(lon=slice(190, 360))
model = xe.cross.MCA(n_modes=2, use_coslat=True, use_pca=False).fit(west, east, dim="time")
maps, scores = model.components(), model.scores()
{COMPARED}{FIRST.format("scores[1]", "first")}answer = [model.squared_covariance_fraction().values.tolist(), first]
""",
    },
    "timescales": {
        "daskspectral": f"""{OURS}x = np.load(f"{{folder}}/path.npy")
model = dsp.Koopman({LAGS}, reversible=True, n_components=4).fit(x)
times, errors = model.timescales_, model.timescale_errors_
{COMPARED}answer = [times[0].tolist(), times.ravel().tolist()]
""",
        "deeptime": f"""import numpy as np
from deeptime.clustering import KMeans
from deeptime.markov import TransitionCountEstimator
from deeptime.markov.msm import BayesianMSM
from deeptime.util.validation import implied_timescales
# --
x = np.load(f"{{folder}}/path.npy")
states = KMeans(100, fixed_seed=0).fit_transform(x)
counts = [TransitionCountEstimator(lag, "effective").fit_fetch(states) for lag in {LAGS}]
models = [BayesianMSM(n_samples=50).fit_fetch(one.submodel_largest()) for one in counts]
found = implied_timescales(models, n_its=3)
{COMPARED}times = [found.timescales_for_process(i) for i in range(3)]
answer = [[float(one[0]) for one in times], np.transpose(times).ravel().tolist()]
""",
    },
    "metastable sets": {
        "daskspectral": f"{OURS}{KOOPMAN}sets = model.metastable_sets(4, x)\n"
        f"p, T = sets.probabilities, sets.transitions\n{COMPARED}{SETS}",
        "deeptime": f"{DEEPTIME}sets = msm.pcca(4)\n"
        f"p, T = sets.coarse_grained_stationary_probability, sets.coarse_grained_transition_matrix\n{COMPARED}{SETS}",
    },
    "committor": {
        "daskspectral": f"""{OURS}{CELLS}{KOOPMAN}a, b = {near("x", WELLS.first)}, {near("x", WELLS.second)}
found = model.first_passage(x, a, b).committor(cells)
{COMPARED}answer = [found[:, 0].tolist()]
""",
        "deeptime": f"""{DEEPTIME}{CELLS}centers = clustering.cluster_centers
a, b = {near("centers", WELLS.first)}, {near("centers", WELLS.second)}
flux = msm.reactive_flux(np.flatnonzero(a), np.flatnonzero(b))
found = flux.forward_committor[clustering.transform(cells)]
{COMPARED}answer = [found.tolist()]
""",
    },
    "oscillator": {
        "daskspectral": f"""{OURS}x = np.load(f"{{folder}}/oscillator.npy")
basis = dsp.basis.MonomialBasis(2, 1)
model = dsp.Koopman(method="eigen", n_components=3, basis=basis).fit(dsp.Rows(x[:, None], delays=2))
value = model.eigenvalues_[1]
{COMPARED}answer = [[abs(value)], [abs(np.angle(value))]]
""",
        "pydmd": f"""import numpy as np
from pydmd import DMD
from pydmd.preprocessing import hankel_preprocessing
# --
x = np.load(f"{{folder}}/oscillator.npy")
model = hankel_preprocessing(DMD(svd_rank=2), d=2)
model.fit(x[None])
value = model.eigs[0]
{COMPARED}answer = [[abs(value)], [abs(np.angle(value))]]
""",
    },
}
for name in ("timescales", "metastable sets", "committor"):  # with functions that are given, too
    given = JOBS[name]["daskspectral"].replace(
        "n_components=4", 'n_components=4, basis=dsp.basis.Landmarks("gaussian:0.5", 100)'
    )
    JOBS[name] = {"daskspectral": JOBS[name]["daskspectral"], "given": given, "deeptime": JOBS[name]["deeptime"]}


def write_data(folder: Path, quick: bool) -> dict[str, list[Any]]:
    """Write the data of all jobs, and return exact values."""
    folder.mkdir(parents=True, exist_ok=True)
    n = 2000 if quick else 20_000
    dsp.datasets.ocean(240 if quick else 1200).to_dataset(name="ocean").to_netcdf(folder / "ocean.nc")
    np.save(folder / "path.npy", chain("six jobs").draw(n, 0))
    filtered = ([1.0], [1.0, -2 * MODULUS * np.cos(ANGLE), MODULUS**2])
    np.save(folder / "oscillator.npy", scipy.signal.lfilter(*filtered, np.random.default_rng(0).standard_normal(2 * n)))
    cells, committor, _ = truth("six jobs")
    np.save(folder / "cells.npy", cells)
    times = -1 / np.log(chain("six jobs").values[1:4])
    exact = {"timescales": [times, np.tile(times, len(LAGS))], "committor": [committor]}
    return exact | {"oscillator": [[MODULUS], [ANGLE]]}


def difference(found: list[Any], wanted: list[Any]) -> float:
    """Return the largest difference of the quantities, over the largest value of each."""
    pairs = [(np.array(one), np.array(other)) for one, other in zip(found, wanted, strict=True)]
    return max(float(np.max(np.abs(one - other)) / np.max(np.abs(other))) for one, other in pairs)


def missing(peers: str, jobs: Iterable[str]) -> list[str]:
    """Return the packages of the other sides that this Python cannot import."""
    needed = dict.fromkeys([*JOBS[job]][-1] for job in jobs)
    command = [peers, "-c", f"from importlib.util import find_spec as f; print(*(n for n in {[*needed]} if not f(n)))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@click.command(help=__doc__)
@click.option("--peers", envvar="PEERS", default=sys.executable, help="a Python that has the other packages")
@click.option("--job", "jobs", multiple=True, type=click.Choice([*JOBS]), default=tuple(JOBS), help="only these")
@click.option("--show", is_flag=True, help="print the programs, and stop")
@folder_option
@options(3)
def main(
    peers: str, jobs: tuple[str, ...], show: bool, folder: Path, repeats: int, json_path: Path | None, quick: bool
) -> None:
    """Run both sides of the jobs, and compare."""
    if show:
        click.echo("".join(f"---- {job}, {by}\n{code}" for job in jobs for by, code in JOBS[job].items()))
        return
    if lacking := missing(peers, jobs):
        raise click.ClickException(f"{peers} cannot import {', '.join(lacking)}. Install them, or pass another --peers")
    folder = folder / "six_jobs"
    exact, table = write_data(folder, quick), []
    for job in jobs:
        sides = JOBS[job]
        *_, other = sides
        pythons = {by: peers if by == other else sys.executable for by in sides}
        rounds = [{by: run(pythons[by], code, folder) for by, code in sides.items()} for _ in range(repeats)]
        seconds = {by: statistics.median(one[by]["CPU s"] for one in rounds) for by in sides}
        for by, code in sides.items():
            lines = sum(bool(line.strip("# -")) for line in code.partition(COMPARED)[0].splitlines())
            answer = rounds[0][by]["answer"]
            row = {"job": job, "by": by, "lines": lines, "CPU s": seconds[by], "ratio": seconds[by] / seconds[other]}
            row["difference"] = None if by == other else difference(answer, rounds[0][other]["answer"])
            table.append({**row, "error": difference(answer, exact[job]) if job in exact else None})
    report("six jobs compared with other tools", table, json_path)


if __name__ == "__main__":
    main()
