"""Beside the tools that people know, on the same data in the same form: lines of code, seconds, memory, the answer.

Empirical orthogonal functions of a gridded field in a zarr group, and of a wide one in memory (xeofs 3); slow modes of
a trajectory, with functions that are given and by default (deeptime 0.4.5); features of a table of which half of the
labels are known, and what a newcomer tries first, a few thousand rows (scikit-learn); and the import alone. Each side
is the program that its own documentation would have one write, with its defaults: it is shown by --show, its lines are
counted (imports too, what prints the answer not), and it runs in a process of its own with one BLAS thread. "seconds"
is the wall time of the first run without imports, "CPU s" that of all threads in the second, warm one (of an import the
first), and "ratio" that over the other side's; "MB" is what the process takes beyond its imports. The sides run in
turn, and medians are shown.

    python -m venv peers && peers/bin/pip install xeofs deeptime==0.4.5 scikit-learn zarr dask
    python examples/benchmarks/beside_others.py --peers peers/bin/python --json beside_others.json
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import click
import numpy as np
import xarray as xr
from common import folder_option, options, report
from scipy.signal import lfilter
from sklearn.datasets import load_digits

from daskspectral import datasets

HEAD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
folder = sys.argv[1]
def peak(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
"""
TAIL = """
before, start, cpu = peak(), time.perf_counter(), time.process_time()
answer = work()
found = {"seconds": time.perf_counter() - start, "MB": peak() - before, "CPU s": time.process_time() - cpu}
if imports:
    cpu = time.process_time()
    work()
    found["CPU s"] = time.process_time() - cpu
print(json.dumps({**found, "answer": answer}))
"""
FIELD_OURS = """
import xarray as xr
import daskspectral as dsp
dsp.SpectralDecomposition, dsp.SDPEmbedding  # loads what they need
# --
model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=4)
model.fit(dsp.Rows(f"{folder}/field.zarr", sample_dims=("time",), latitude="lat", on_invalid="skip"))
found = model.to_xarray()
# ==
answer = found.explained_variance_ratio.values.tolist()
"""
FIELD_XEOFS = """
import xarray as xr
import xeofs
# --
field = xr.open_zarr(f"{folder}/field.zarr")["t"]
model = xeofs.single.EOF(n_modes=4, use_coslat=True)
model.fit(field, dim="time")
maps, scores = model.components(), model.scores()
model.compute()
# ==
answer = model.explained_variance_ratio().values.tolist()
"""
TRAJECTORY_OURS = """
import numpy as np
import daskspectral as dsp
dsp.SpectralDecomposition, dsp.SDPEmbedding  # loads what they need
# --
model = dsp.SpectralDecomposition(dsp.operators.Transfer(5), n_components=3, folds="blocks")
model.fit(np.load(f"{folder}/trajectory.npy", mmap_mode="r"))
# ==
answer = model.singular_values_.tolist()
"""
TRAJECTORY_DEEPTIME = """
import numpy as np
from deeptime.decomposition import VAMP
# --
x = np.load(f"{folder}/trajectory.npy")
centers, width = np.linspace(x.min(), x.max(), 30), 0.2
def features(x):
    return np.exp(-((x - centers) ** 2) / (2 * width**2))
model = VAMP(lagtime=5, dim=3, observable_transform=features).fit(x).fetch_model()
# ==
answer = [1.0, *model.singular_values[:2].tolist()]
"""
TABLE_OURS = """
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
import daskspectral as dsp
dsp.SpectralDecomposition, dsp.SDPEmbedding  # loads what they need
# --
x, y = np.load(f"{folder}/digits_x.npy"), np.load(f"{folder}/digits_y.npy")
model = dsp.SDPEmbedding(n_components=10, random_state=0).fit(x[::2])
score = KNeighborsClassifier().fit(model.embedding_, y[::2]).score(model.transform(x[1::2]), y[1::2])
# ==
answer = [score]
"""
TABLE_SKLEARN = """
import numpy as np
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsClassifier
# --
x, y = np.load(f"{folder}/digits_x.npy"), np.load(f"{folder}/digits_y.npy")
model = Isomap(n_components=10).fit(x[::2])
score = KNeighborsClassifier().fit(model.transform(x[::2]), y[::2]).score(model.transform(x[1::2]), y[1::2])
# ==
answer = [score]
"""
SMALL_OURS = """
import numpy as np
import daskspectral as dsp
dsp.SpectralDecomposition  # loads what it needs
# --
x = np.load(f"{folder}/normal.npy")[:ROWS]
model = dsp.SpectralDecomposition(GIVEN).fit(x)
# ==
answer = model.eigenvalues_[1:4].tolist()
"""
SMALL_SKLEARN = """
import numpy as np
from sklearn.manifold import SpectralEmbedding
# --
x = np.load(f"{folder}/normal.npy")[:ROWS]
model = SpectralEmbedding().fit(x)
# ==
answer = []
"""
WIDE_OURS = """
import numpy as np
import daskspectral as dsp
dsp.SpectralDecomposition  # loads what it needs
# --
x = np.load(f"{folder}/wide.npy")
model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=10).fit(x)
# ==
answer = model.eigenvalues_[:3].tolist()
"""
WIDE_XEOFS = """
import numpy as np
import xarray as xr
import xeofs
# --
x = np.load(f"{folder}/wide.npy")
x = xr.DataArray(x, {"time": np.arange(len(x)), "place": np.arange(x.shape[1])}, ("time", "place"))
model = xeofs.single.EOF(n_modes=10).fit(x, dim="time")
components, scores = model.components(), model.scores()
# ==
answer = model.explained_variance().values[:3].tolist()
"""
SLOW_OURS = """
import numpy as np
import daskspectral as dsp
dsp.SpectralDecomposition  # loads what it needs
# --
x = np.load(f"{folder}/pair.npy")
model = dsp.SpectralDecomposition(dsp.operators.Transfer(1), GIVEN).fit(x)
# ==
answer = model.singular_values_[:3].tolist()
"""
SLOW_DEEPTIME = """
import numpy as np
from deeptime.basis import Monomials
from deeptime.decomposition import VAMP
# --
x = np.load(f"{folder}/pair.npy")
model = VAMP(lagtime=1, observable_transform=Monomials(3, 2)).fit(x).fetch_model()
# ==
answer = model.singular_values[:3].tolist()
"""
IMPORT_OURS = """
# --
import daskspectral
daskspectral.SpectralDecomposition
# ==
answer = []
"""
IMPORT_SKLEARN = """
# --
import sklearn.decomposition
# ==
answer = []
"""
KERNEL = "basis=dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0))"


def small(rows: int, given: str = "") -> dict[str, str]:
    """Both sides of a fit to so many rows, with what is given here or nothing."""
    ours = SMALL_OURS.replace("GIVEN", given)
    return {
        side: one.replace("ROWS", str(rows))
        for side, one in {"daskspectral": ours, "scikit-learn": SMALL_SKLEARN}.items()
    }


TASKS = {
    "import": {"daskspectral": IMPORT_OURS, "scikit-learn": IMPORT_SKLEARN},
    "1000 rows": small(1000),
    "1000 rows, kernel": small(1000, KERNEL),
    "1000 rows, no folds": small(1000, f"{KERNEL}, folds=None"),
    "10 000 rows": small(10_000),
    "10 000 rows, kernel": small(10_000, KERNEL),
    "10 000 rows, no folds": small(10_000, f"{KERNEL}, folds=None"),
    "wide": {"daskspectral": WIDE_OURS, "xeofs": WIDE_XEOFS},
    "slow modes": {"daskspectral": SLOW_OURS.replace(", GIVEN", ""), "deeptime": SLOW_DEEPTIME},
    "slow modes, monomials": {
        "daskspectral": SLOW_OURS.replace("GIVEN", "dsp.basis.MonomialBasis(2, 3)"),
        "deeptime": SLOW_DEEPTIME,
    },
    "field": {"daskspectral": FIELD_OURS, "xeofs": FIELD_XEOFS},
    "trajectory": {"daskspectral": TRAJECTORY_OURS, "deeptime": TRAJECTORY_DEEPTIME},
    "table": {"daskspectral": TABLE_OURS, "scikit-learn": TABLE_SKLEARN},
}


def lines(program: str) -> int:
    """The lines of a program that do the work, imports included."""
    written = (line.strip() for line in program.partition("# ==")[0].splitlines())
    return sum(1 for line in written if line and line != "# --" and not line.endswith("# loads what they need"))


def write_data(folder: Path, months: int, rows: int) -> None:
    """A field of `months` on a grid of 60 x 120 with land, one of 1000 rows in 5000 columns, a trajectory of so many
    rows, one of two columns, normal rows, and the digits."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    lat, lon = np.linspace(-88.5, 88.5, 60), np.arange(0.0, 360, 3)
    waves = [np.outer(np.cos(np.radians(k * lat)), np.cos(np.radians((k + 1) * lon + 40 * k))) for k in range(6)]
    values = np.tensordot(rng.standard_normal((months, 6)) * [6, 5, 4, 3, 2, 1], np.stack(waves), 1)
    values += 280 + 0.5 * rng.standard_normal(values.shape)
    values[:, 20:30, 30:50] = np.nan
    time = np.datetime64("1900-01-01", "ns") + np.arange(months) * np.timedelta64(30, "D")
    field = xr.DataArray(values.astype("float32"), {"time": time, "lat": lat, "lon": lon}, ("time", "lat", "lon"))
    field.to_dataset(name="t").chunk(time=200).to_zarr(folder / "field.zarr", mode="w", zarr_format=2)
    np.save(folder / "trajectory.npy", datasets.langevin(rows))
    np.save(folder / "normal.npy", rng.standard_normal((10_000, 2)))
    patterns = rng.standard_normal((20, 5000)) * 0.8 ** np.arange(20)[:, None]
    np.save(folder / "wide.npy", rng.standard_normal((1000, 20)) @ patterns + 0.3 * rng.standard_normal((1000, 5000)))
    slow = [lfilter([1], [1, -a], rng.standard_normal(100_000) * np.sqrt(1 - a * a)) for a in (0.95, 0.8)]
    np.save(folder / "pair.npy", np.stack(slow, axis=1))
    digits = load_digits()
    np.save(folder / "digits_x.npy", digits.data)
    np.save(folder / "digits_y.npy", digits.target)


def run(python: str, program: str, folder: Path) -> dict[str, Any]:
    """What a program measures, in a process of its own."""
    imports, _, work = program.partition("# --\n")
    body = textwrap.indent(work, "    ")
    code = f"{HEAD}{imports}\ndef work():\n{body}    return answer\nimports = {bool(imports.strip())}\n{TAIL}"
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([python, "-c", code, str(folder)], capture_output=True, text=True, check=False, env=alone)
    if done.returncode:
        raise click.ClickException(f"{python} could not run this program:\n{program}\n{done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def print_programs(chosen: dict[str, dict[str, str]]) -> None:
    """Each program as one would write it, with its lines."""
    for name, sides in chosen.items():
        for side, program in sides.items():
            click.echo(f"---- {name}, {side}: {lines(program)} lines{program.replace('# --', '').split('# ==')[0]}")


def measured_sides(sides: dict[str, str], peers: str, repeats: int, folder: Path) -> dict[str, dict[str, Any]]:
    """The medians of what each side measures, the sides in turn, with the answer of its first run."""
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for _ in range(repeats):
        for side, program in sides.items():
            python = sys.executable if side in ("daskspectral", "scikit-learn") else peers
            found[side].append(run(python, program, folder))
    keys = ("seconds", "CPU s", "MB")
    return {
        side: {key: statistics.median(one[key] for one in runs) for key in keys} | {"answer": runs[0]["answer"]}
        for side, runs in found.items()
    }


@click.command()
@click.option("--peers", default=sys.executable, show_default=True, help="a Python that has the other packages")
@click.option("--task", "tasks", multiple=True, type=click.Choice([*TASKS]), help="only these")
@click.option("--show", is_flag=True, help="print the programs, and stop")
@folder_option
@options(3)
def main(
    peers: str, tasks: tuple[str, ...], show: bool, folder: Path, repeats: int, json_path: Path | None, quick: bool
) -> None:
    """Lines, seconds, memory and answers of the same task in this package and in others."""
    chosen = {name: TASKS[name] for name in tasks or TASKS}
    if show:
        return print_programs(chosen)
    folder = folder / "beside_others"
    write_data(folder, 100 if quick else 3000, 2000 if quick else 300_000)
    rows = []
    for name, sides in chosen.items():
        found = measured_sides(sides, peers, repeats, folder)
        for side, measured in found.items():
            ratio = found["daskspectral"]["CPU s"] / measured["CPU s"] if side != "daskspectral" else None
            told = {key: measured[key] for key in ("seconds", "CPU s")} | {"ratio": ratio, "MB": measured["MB"]}
            answer = " ".join(f"{value:.4g}" for value in measured["answer"])
            rows.append({"task": name, "by": side, "lines": lines(sides[side]), **told, "answer": answer})
    report("beside_others", rows, json_path)


if __name__ == "__main__":
    main()
