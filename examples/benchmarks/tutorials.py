"""The tutorials of xeofs 3 and deeptime 0.4.5, figure by figure, in ten lines or fewer of this package and of theirs.

Each side is shown by --show, its lines are counted (imports and data too), and it runs in a process of its own with one
BLAS thread. "difference" is the largest of any number of the answer from the other side's, relative to it where both
compute the same thing; "CPU s" is of a second, warm run, "MB" what the process takes beyond its imports.

- EOF, Hilbert EOF: a field like air temperature, 2920 times on 25 x 53 places (seasons, patterns that stay, a wave that
  travels, noise), weighted by latitude; the shares of the variance, and the largest number of each map.
- rotated EOF: varimax, there of rows of unit length (Kaiser), here of the rows as they are: two criteria.
- noise: how many components rise above noise, by a bootstrap there, by rule N here, of 20 samples each: two questions.
- double well: two columns at a lag of 20, VAMP of monomials, timescales and the Chapman-Kolmogorov test at three lags;
  singular values.
- torsions: two angles by their cosines and sines, TICA; eigenvalues.
- committor: twelve cells of the double well, from the left ones to the right ones, a Markov model there.

    python -m venv peers && peers/bin/pip install xeofs deeptime==0.4.5
    python examples/benchmarks/tutorials.py --peers peers/bin/python --json tutorials.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np
import xarray as xr
from beside_others import lines, measured_sides, print_programs
from common import folder_option, options, report
from scipy.signal import lfilter

OURS = """
import numpy as np
import xarray as xr
import daskspectral as dsp
dsp.SpectralDecomposition  # loads what it needs
# --
"""
XEOFS = """
import numpy as np
import xarray as xr
import xeofs
# --
"""
FIELD = """air = xr.open_dataarray(f"{folder}/air.nc")
"""
OUR_FIELD = f"""{FIELD}rows = dsp.Rows(air, sample_dims="time", latitude="lat")
model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=5).fit(rows)
"""
DEEPTIME = """
import numpy as np
import deeptime
# --
"""
WELL = """x = np.load(f"{folder}/well.npy")
"""
TORSIONS = """angles = np.load(f"{folder}/torsions.npy")
x = np.hstack([np.cos(angles), np.sin(angles)])
"""
CELLS = """cells = np.load(f"{folder}/cells.npy")
"""
TASKS = {
    "EOF": {
        "daskspectral": f"""{OURS}{OUR_FIELD}found = model.to_xarray(rows)
# ==
answer = np.hstack([found.explained_variance_ratio, abs(found.air_pattern).max(("lat", "lon"))]).tolist()
""",
        "xeofs": f"""{XEOFS}{FIELD}model = xeofs.single.EOF(n_modes=5, use_coslat=True).fit(air, dim="time")
maps, scores = model.components(), model.scores()
# ==
deviations = np.sqrt(model.explained_variance() * (1 - 1 / len(air)))
maps = maps * deviations / np.sqrt(np.cos(np.radians(air.lat)))
answer = np.hstack([model.explained_variance_ratio(), abs(maps).max(("lat", "lon"))]).tolist()
""",
    },
    "rotated EOF": {
        "daskspectral": f"""{OURS}{OUR_FIELD}found = model.rotated(5).to_xarray(rows)
# ==
answer = found.explained_variance_ratio.values.tolist()
""",
        "xeofs": f"""{XEOFS}{FIELD}model = xeofs.single.EOF(n_modes=5, use_coslat=True).fit(air, dim="time")
rotated = xeofs.single.EOFRotator(n_modes=5, rtol=1e-14).fit(model)
maps, scores = rotated.components(), rotated.scores()
# ==
answer = rotated.explained_variance_ratio().values.tolist()
""",
    },
    "Hilbert EOF": {
        "daskspectral": f"""{OURS}{OUR_FIELD}found = model.hilbert(rows, 5)
amplitude, phase = np.abs(found.air_pattern), xr.ufuncs.angle(found.air_pattern)
# ==
answer = found.explained_variance_ratio.values.tolist()
""",
        "xeofs": f"""{XEOFS}{FIELD}model = xeofs.single.HilbertEOF(n_modes=5, use_coslat=True, padding="none")
model.fit(air, dim="time")
amplitude, phase = model.components_amplitude(), model.components_phase()
# ==
answer = model.explained_variance_ratio().values.tolist()
""",
    },
    "noise": {
        "daskspectral": f"""{OURS}{OUR_FIELD}found = model.significance(rows, surrogates=20, random_state=0)
# ==
answer = [found.count]
""",
        "xeofs": f"""{XEOFS}{FIELD}model = xeofs.single.EOF(n_modes=5, use_coslat=True).fit(air, dim="time")
found = xeofs.validation.EOFBootstrapper(n_bootstraps=20, seed=0)
found.fit(model)
# ==
answer = []
""",
    },
    "double well": {
        "daskspectral": f"""{OURS}{WELL}transfer = dsp.operators.Transfer(20, further=(2, 5), center=True)
model = dsp.SpectralDecomposition(transfer, dsp.basis.MonomialBasis(2, 5), n_components=3, folds="blocks").fit(x)
test, times = model.chapman_kolmogorov(), model.timescales_
# ==
transfer = dsp.operators.Transfer(20, center=True)
alone = dsp.SpectralDecomposition(transfer, dsp.basis.MonomialBasis(2, 5), n_components=3)
answer = alone.fit(x).singular_values_.tolist()
""",
        "deeptime": f"""{DEEPTIME}{WELL}from deeptime.decomposition import VAMP
from deeptime.util.validation import implied_timescales
features = deeptime.basis.Monomials(5, 2)
models = [VAMP(lagtime=lag, dim=3, observable_transform=features).fit_fetch(x) for lag in (20, 40, 100)]
times, test = implied_timescales(models, n_its=3), models[0].ck_test(models, n_observables=3)
# ==
answer = models[0].singular_values[:3].tolist()
""",
    },
    "torsions": {
        "daskspectral": f"""{OURS}{TORSIONS}transfer = dsp.operators.Transfer(1, reversible=True)
model = dsp.SpectralDecomposition(transfer, dsp.basis.MonomialBasis(4, 1), n_components=5).fit(x)
# ==
answer = model.eigenvalues_[1:4].tolist()
""",
        "deeptime": f"""{DEEPTIME}{TORSIONS}model = deeptime.decomposition.TICA(lagtime=1).fit_fetch((x[:-2], x[1:-1]))
# ==
answer = model.singular_values[:3].tolist()
""",
    },
    "committor": {
        "daskspectral": f"""{OURS}{CELLS}x, states = cells[:, None].astype(float), np.arange(12.0)[:, None]
basis = dsp.basis.LandmarkBasis(dsp.kernels.Gaussian(0.05), states)
model = dsp.SpectralDecomposition(dsp.operators.Transfer(1), basis, n_components=5).fit(x)
model.first_passage(x, cells < 2, cells > 9)
committor, times = model.committor(states), model.passage_time(states)
# ==
answer = committor[2:10, 0].tolist()
""",
        "deeptime": f"""{DEEPTIME}{CELLS}from deeptime.markov.msm import MaximumLikelihoodMSM
model = MaximumLikelihoodMSM(reversible=False, lagtime=1).fit_fetch(cells)
flux = model.reactive_flux(np.arange(2), np.arange(10, 12))
# ==
answer = flux.forward_committor[2:10].tolist()
""",
    },
}


def write_data(folder: Path, times: int, rows: int) -> None:
    """A field like air temperature, and trajectories of so many rows."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    lat, lon, day = np.linspace(75.0, 15, 25), np.arange(200.0, 332.5, 2.5), np.arange(times) / 4
    red = lfilter([0.2], [1, -0.98], rng.standard_normal((times, 6)), axis=0)
    centres = [(60, 215), (30, 230), (50, 260), (25, 290), (65, 300), (40, 320)]
    bumps = [np.exp(-((lat[:, None] - y) ** 2) / 128 - (lon - x) ** 2 / 450) for y, x in centres]
    air = 280 + 10 * np.cos(2 * np.pi * day / 365)[:, None, None] * np.sin(np.radians(lat))[:, None]
    air = air + np.tensordot(red * [9, 7, 5, 4, 3, 2], np.stack(bumps), 1)
    air += 3 * np.cos(2 * np.pi * day[:, None, None] / 9 - np.radians(3 * lon)) * np.sin(np.radians(2 * lat))[:, None]
    air += 0.5 * rng.standard_normal(air.shape)
    time = np.datetime64("2013-01-01", "ns") + np.arange(times) * np.timedelta64(6, "h")
    field = xr.DataArray(air, {"time": time, "lat": lat, "lon": lon}, ("time", "lat", "lon"), name="air")
    field.to_netcdf(folder / "air.nc", engine="h5netcdf")
    x, angles, noise = np.zeros((rows, 2)), np.zeros((rows, 2)), np.sqrt(0.04) * rng.standard_normal((rows, 4))
    for t in range(1, rows):  # steps of .02 in 3 (x² - 1)² + 3 y², and in cos 3 a + cos a + cos b + cos (a - b) / 2
        (x1, x2), (a, b) = x[t - 1], angles[t - 1]
        x[t] = x1 - 0.02 * 12 * x1 * (x1 * x1 - 1), x2 - 0.02 * 6 * x2
        twist = np.sin(a - b) / 2
        angles[t] = a + 0.02 * (3 * np.sin(3 * a) + np.sin(a) + twist), b + 0.02 * (np.sin(b) - twist)
        x[t] += noise[t, :2]
        angles[t] += noise[t, 2:]
    np.save(folder / "well.npy", x)
    np.save(folder / "cells.npy", np.clip(np.floor((x[::10, 0] + 1.2) * 5), 0, 11).astype(int))
    np.save(folder / "torsions.npy", np.remainder(angles, 2 * np.pi))


@click.command(help=__doc__)
@click.option("--peers", default=sys.executable, show_default=True, help="a Python that has the other packages")
@click.option("--task", "tasks", multiple=True, type=click.Choice([*TASKS]), help="only these")
@click.option("--show", is_flag=True, help="print the programs, and stop")
@folder_option
@options(3)
def main(
    peers: str, tasks: tuple[str, ...], show: bool, folder: Path, repeats: int, json_path: Path | None, quick: bool
) -> None:
    """Run every tutorial in this package and in its own."""
    chosen = {name: TASKS[name] for name in tasks or TASKS}
    if show:
        return print_programs(chosen)
    folder = folder / "tutorials"
    write_data(folder, 400 if quick else 2920, 3000 if quick else 100_000)
    rows = []
    for name, sides in chosen.items():
        found = measured_sides(sides, peers, repeats, folder)
        (ours, theirs) = (np.array(measured.pop("answer")) for measured in found.values())
        alike = name not in ("rotated EOF", "noise")
        difference = float(np.abs(ours / theirs - 1).max()) if alike else None
        for side, measured in found.items():
            rows.append(
                {"tutorial": name, "by": side, "lines": lines(sides[side]), **measured, "difference": difference}
            )
    report("tutorials", rows, json_path)


if __name__ == "__main__":
    main()
