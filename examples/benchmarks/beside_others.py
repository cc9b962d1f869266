"""Compare with known tools on the same data in the same form: lines of code, seconds, memory, the answer.

Empirical orthogonal functions of a gridded field in a zarr group, and of fewer rows than columns (xeofs 3); slow modes
of a trajectory, by default and with functions that are given (deeptime 0.4.5); clusters of 28 tables and three more in
--tables, three seeds each, by the adjusted Rand index (scikit-learn, umap-learn); features of a table of which half of
the labels are known, and a first fit of a few thousand rows (scikit-learn); and the import alone. Each side is the
program that its documentation would have one write, with its defaults: it is shown by --show, its lines are counted
(imports too), and it runs in a separate process with one BLAS thread. "CPU s" is the time of all threads in the
second, warm run (of an import the first), and "ratio" that over the other side's; "MB" is what the process needs beyond
its imports. The sides run in turn, and medians are shown.

    python -m venv peers && peers/bin/pip install xeofs deeptime==0.4.5 scikit-learn umap-learn zarr dask
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
from cluster_tables import tables
from common import Rows, folder_option, options, report
from scipy.signal import lfilter
from sklearn.datasets import load_digits

HEAD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
folder = sys.argv[1]
def peak(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
"""
TAIL = """
before, cpu = peak(), time.process_time()
answer = work()
found = {"MB": peak() - before, "CPU s": time.process_time() - cpu}
if imports:
    cpu = time.process_time()
    work()
    found["CPU s"] = time.process_time() - cpu
print(json.dumps({**found, "answer": list(answer)}))
"""
OURS = (
    "import numpy as np\nimport daskspectral as dsp\ndsp.SpectralDecomposition, dsp.SDPEmbedding  # loads them\n# --\n"
)
SKLEARN = """
import numpy as np
from sklearn.manifold import Isomap, SpectralEmbedding
from sklearn.neighbors import KNeighborsClassifier
# --
"""
XEOFS = "import numpy as np\nimport xarray as xr\nimport xeofs\n# --\n"
DEEPTIME = "import numpy as np\nfrom deeptime.basis import Monomials\nfrom deeptime.decomposition import VAMP\n# --\n"
DIGITS = """x, y = np.load(f"{folder}/digits_x.npy"), np.load(f"{folder}/digits_y.npy")
"""
NEIGHBORS = """known, new = model.transform(x[::2]), model.transform(x[1::2])
score = KNeighborsClassifier().fit(known, y[::2]).score(new, y[1::2])
answer = [score]
"""
CLUSTERS = {  # the imports and the labels of each side
    "daskspectral": ("import daskspectral as dsp", "dsp.SpectralClustering(count, random_state=seed).fit_predict(x)"),
    "KMeans": ("from sklearn.cluster import KMeans", "KMeans(count, n_init=10, random_state=seed).fit_predict(x)"),
    "SpectralClustering": (
        "from sklearn.cluster import SpectralClustering",
        'SpectralClustering(count, affinity="nearest_neighbors", random_state=seed).fit_predict(x)',
    ),
    "UMAP + KMeans": (
        "from sklearn.cluster import KMeans\nfrom umap import UMAP",
        "KMeans(count, n_init=10, random_state=seed).fit_predict(UMAP(random_state=seed).fit_transform(x))",
    ),
    "HDBSCAN": ("from sklearn.cluster import HDBSCAN", "HDBSCAN(copy=True).fit_predict(x)"),
}
HERE = ("daskspectral", "scikit-learn", "KMeans", "SpectralClustering", "HDBSCAN")
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
KERNEL = "basis=dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0))"


def rows(count: int, given: str = "") -> dict[str, str]:
    """Return both sides of a fit to `count` rows, with these arguments here."""
    read = f'x = np.load(f"{{folder}}/normal.npy")[:{count}]\n'
    ours = f"{OURS}{read}model = dsp.SpectralDecomposition({given}).fit(x)\nanswer = model.eigenvalues_[1:4].tolist()\n"
    theirs = f"{SKLEARN}{read}model = SpectralEmbedding().fit(x)\nanswer = []\n"
    return {"daskspectral": ours, "scikit-learn": theirs}


def wide(n_rows: int, n_columns: int) -> dict[str, str]:
    """Return both sides of principal components of fewer rows than columns."""
    read = f'x = np.load(f"{{folder}}/wide.npy")[:{n_rows}, :{n_columns}]\n'
    ours = f"{OURS}{read}model = dsp.EOF(10).fit(x)\nanswer = model.eigenvalues_[:4].tolist()\n"
    theirs = f"""{XEOFS}{read}x = xr.DataArray(x, dict(time=np.arange(len(x))), ("time", "place"))
model = xeofs.single.EOF(n_modes=10).fit(x, dim="time")
answer = model.explained_variance().values[:4].tolist()
"""
    return {"daskspectral": ours, "xeofs": theirs}


def slow(given: str) -> dict[str, str]:
    """Return both sides of slow modes, with these arguments here."""
    read = 'x = np.load(f"{folder}/pair.npy")\n'
    return {
        "daskspectral": f"""{OURS}{read}model = dsp.Koopman({given}).fit(x)
answer = model.singular_values_[:3].tolist()
""",
        "deeptime": f"""{DEEPTIME}{read}features = Monomials(3, 2)
model = VAMP(lagtime=1, observable_transform=features).fit(x).fetch_model()
answer = model.singular_values[:3].tolist()
""",
    }


def clusters(side: str) -> str:
    """Return the program of a side: clusters of all tables of all seeds, with their index and CPU seconds."""
    imports, labels = CLUSTERS[side]
    return f"""{imports}
from pathlib import Path
import numpy as np
from sklearn.metrics import adjusted_rand_score
# --
answer, paths = [], sorted(Path(folder).glob("clusters/*.npz"))
for path in paths[:1] + paths:  # the first one compiles
    x, y = np.load(path)["x"], np.load(path)["y"]
    count, seed, cpu = len(np.unique(y)), int(path.stem[-1]), time.process_time()
    labels = {labels}
    answer.append([path.stem[:-2], adjusted_rand_score(y, labels), time.process_time() - cpu])
answer = answer[1:]
"""


TASKS = {
    "import": {
        "daskspectral": "# --\nimport daskspectral\ndaskspectral.SpectralDecomposition\nanswer = []\n",
        "scikit-learn": "# --\nimport sklearn.decomposition\nanswer = []\n",
    },
    **{f"{n} rows": rows(n) for n in (1000, 10_000)},
    **{f"{n} rows, kernel": rows(n, KERNEL) for n in (1000, 10_000)},
    **{f"{n} rows, no folds": rows(n, f"{KERNEL}, folds=None") for n in (1000, 10_000)},
    "clusters": {side: clusters(side) for side in CLUSTERS},
    "slow modes": slow(""),
    "slow modes, monomials": slow("basis=dsp.basis.MonomialBasis(2, 3)"),
    **{f"wide field, {n} x {d}": wide(n, d) for n, d in ((480, 2000), (1000, 5000), (1200, 10_000))},
    "field": {
        "daskspectral": f"""{OURS}model = dsp.EOF(4)
model.fit(dsp.Rows(f"{{folder}}/field.zarr", sample_dims=("time",), latitude="lat", on_invalid="skip"))
found = model.to_xarray()
answer = found.explained_variance_ratio.values.tolist()
""",
        "xeofs": f"""{XEOFS}field = xr.open_zarr(f"{{folder}}/field.zarr")["t"]
model = xeofs.single.EOF(n_modes=4, use_coslat=True).fit(field, dim="time")
maps, scores = model.components(), model.scores()
answer = model.explained_variance_ratio().values.tolist()
""",
    },
    "table": {
        "daskspectral": f"""from sklearn.neighbors import KNeighborsClassifier
{OURS}{DIGITS}model = dsp.SDPEmbedding(n_components=10, random_state=0).fit(x[::2])
{NEIGHBORS}""",
        "scikit-learn": f"{SKLEARN}{DIGITS}model = Isomap(n_components=10).fit(x[::2])\n{NEIGHBORS}",
    },
}


def write_data(folder: Path, months: int) -> None:
    """Write a field of `months` on a grid of 60 x 120 with land, and tables."""
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
    pair = [lfilter([1], [1, -a], rng.standard_normal(100_000) * np.sqrt(1 - a * a)) for a in (0.95, 0.8)]
    noise = np.random.default_rng(1)
    scores = noise.standard_normal((1200, 30)) * 8 * np.exp(-np.arange(30) / 6)
    arrays = {
        "wide": scores @ noise.standard_normal((30, 10_000)) + noise.standard_normal((1200, 10_000)),
        "normal": rng.standard_normal((10_000, 2)),
        "pair": np.stack(pair, axis=1),
        **dict(zip(("digits_x", "digits_y"), load_digits(return_X_y=True), strict=True)),
    }
    for name, table in arrays.items():
        np.save(folder / f"{name}.npy", table)


def compare_clusters(
    python: str, folder: Path, files: Path | None, seeds: int, quick: bool = False
) -> tuple[Rows, list[str]]:
    """Return a row for each table (of three if quick): the index of each side, ours less the better of two; notes."""
    (folder / "clusters").mkdir(parents=True, exist_ok=True)
    for seed in range(1 if quick else seeds):
        for name, (x, y) in list(tables(seed, files).items())[: 3 if quick else None]:
            np.savez(folder / "clusters" / f"{name} {seed}.npz", x=x, y=y)
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    notes, names = [], []
    for side in CLUSTERS:
        try:
            answer = run(sys.executable if side in HERE else python, clusters(side), folder, warm=False)["answer"]
        except click.ClickException as error:
            notes.append(f"{side} is left out: {error.message.splitlines()[-1]}")
            continue
        for name, index, cpu in answer:
            found.setdefault(name, {}).setdefault(side, []).append((index, cpu))
        names.append(side)
    rows = []
    for name, sides in found.items():
        index, cpu = (np.array([[one[i] for one in sides[side]] for side in names]) for i in range(2))
        means = dict(zip(names, index.mean(axis=1).round(3), strict=True))
        seconds = {f"{side}, CPU s": value for side, value in zip(names, np.median(cpu, axis=1).round(2), strict=True)}
        ahead = np.mean(index[0] - index[1:3].max(axis=0))
        rows.append({"table": name, **means, "ours - better of two": ahead, **seconds})
    keys = [key for key in rows[0] if key != "table"]
    rows.append({"table": "mean", **{key: np.mean([row[key] for row in rows]) for key in keys}})
    worst = min(rows[:-1], key=lambda row: row["ours - better of two"])
    notes.append(f"worst: {worst['ours - better of two']:.3f}, {worst['table']}")
    return rows, notes


def run(python: str, program: str, folder: Path, warm: bool = True) -> dict[str, Any]:
    """Return the measurements of a program, from a separate process, of its second run if it imports anything."""
    imports, _, work = program.partition("# --\n")
    code = f"{HEAD}{imports}\ndef work():\n{textwrap.indent(work, '    ')}    return answer\n"
    code += f"imports = {warm and bool(imports.strip())}\n{TAIL}"
    alone = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run([python, "-c", code, str(folder)], capture_output=True, text=True, check=False, env=alone)
    if done.returncode:
        raise click.ClickException(f"{python} could not run this program:\n{program}\n{done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@click.command(help=__doc__)
@click.option("--peers", default=sys.executable, show_default=True, help="a Python that has the other packages")
@click.option("--task", "tasks", multiple=True, type=click.Choice([*TASKS]), default=tuple(TASKS), help="only these")
@click.option("--show", is_flag=True, help="print the programs, and stop")
@click.option("--tables", "files", type=FOLDER, help="a folder with mnist.npz, htru2.npz, penguins.npz: X and y")
@click.option("--seeds", default=3, show_default=True, help="of the tables of clusters")
@folder_option
@options(3)
def main(
    peers: str,
    tasks: tuple[str, ...],
    show: bool,
    files: Path | None,
    seeds: int,
    folder: Path,
    repeats: int,
    json_path: Path | None,
    quick: bool,
) -> None:
    """Compare the same tasks in this package and in others."""
    folder, table = folder / "beside_others", []
    if not show:
        write_data(folder, 100 if quick else 3000)
    for name in tasks:
        sides = TASKS[name]
        if show:
            click.echo("".join(f"---- {name}, {side}\n{program}" for side, program in sides.items()))
            continue
        if name == "clusters":
            rows, notes = compare_clusters(peers, folder, files, seeds, quick)
            report("clusters", rows, json_path and json_path.with_stem(f"{json_path.stem}-clusters"), notes)
            continue
        pythons = {side: sys.executable if side in HERE else peers for side in sides}
        rounds = [{side: run(pythons[side], sides[side], folder) for side in sides} for _ in range(repeats)]
        cpu, memory = (
            {side: statistics.median(one[side][key] for one in rounds) for side in sides} for key in ("CPU s", "MB")
        )
        for side, program in sides.items():
            lines = sum(bool(line.strip()) and "# " not in line for line in program.splitlines()) - 1
            answer = " ".join(f"{value:.4g}" for value in rounds[0][side]["answer"])
            measured = {"lines": lines, "CPU s": cpu[side], "ratio": cpu["daskspectral"] / cpu[side]}
            table.append({"task": name, "by": side, **measured, "MB": memory[side], "answer": answer})
    if table:
        report("beside_others", table, json_path)


if __name__ == "__main__":
    main()
