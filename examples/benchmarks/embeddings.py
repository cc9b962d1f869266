"""Embeddings beside their peers, with the defaults of each: how well neighbours keep their labels, and in what time.

Ten columns (or two) of `SDPEmbedding` and `DiffusionMap`, and of scikit-learn's SpectralEmbedding, Isomap and t-SNE and
of UMAP where it is installed; the features themselves come first. Labels are used for the table alone: the accuracy of
five nearest neighbours (five folds), trustworthiness (15 neighbours), seconds of wall time and of CPU (all threads of
the process) in a markdown table. scikit-learn's digits, its wine, two moons; any .npz with arrays X and y by --data.
--quick leaves out t-SNE and UMAP.

    python examples/benchmarks/embeddings.py [--data FILE.npz] [--columns 10] [--rows 2000] [--quick] [--json FILE]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.manifold import TSNE, Isomap, SpectralEmbedding, trustworthiness
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import daskspectral as dsp

MOST = 2000  # rows: t-SNE and Isomap take minutes beyond
QUICK = 200


def methods(columns: int, quick: bool) -> dict[str, Callable[[], Any]]:
    """Each method with its defaults, and this number of columns."""
    found: dict[str, Callable[[], Any]] = {
        "SDPEmbedding": lambda: dsp.SDPEmbedding(n_components=columns, random_state=0),
        "SDPEmbedding, the optimum's rank": lambda: dsp.SDPEmbedding(random_state=0),
        "DiffusionMap": lambda: dsp.DiffusionMap(n_components=columns, random_state=0),
        "SpectralEmbedding": lambda: SpectralEmbedding(n_components=columns, random_state=0),
        "Isomap": lambda: Isomap(n_components=columns),
    }
    if quick:
        return found
    found["t-SNE (2 columns)"] = lambda: TSNE(random_state=0)
    try:
        from umap import UMAP
    except ImportError:
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        UMAP(random_state=0, n_jobs=1).fit(np.random.default_rng(0).standard_normal((60, 3)))  # it compiles at first
    return found | {"UMAP (2 columns)": lambda: UMAP(random_state=0, n_jobs=1)}


def data(path: Path | None, most: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, X and labels of each data set, `most` rows of it."""

    def sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        if path is not None:
            with np.load(path) as file:
                yield path.stem, np.asarray(file["X"], dtype=float), np.asarray(file["y"])
            return
        yield "digits", *load_digits(return_X_y=True)
        x, y = load_wine(return_X_y=True)
        yield "wine, standardised", (x - x.mean(axis=0)) / x.std(axis=0), y
        yield "two moons", *make_moons(2000, noise=0.1, random_state=0)

    for name, x, y in sets():
        chosen = np.sort(np.random.default_rng(0).permutation(len(x))[:most])
        yield name, x[chosen], y[chosen]


def judged(x: np.ndarray, embedded: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy of five nearest neighbours over five folds, and trustworthiness."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return {
        "5-NN accuracy": float(cross_val_score(KNeighborsClassifier(5), embedded, y, cv=folds).mean()),
        "trustworthiness": float(trustworthiness(x, embedded, n_neighbors=15)),
    }


@click.command()
@options(repeats=None)
@click.option("--data", "path", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="an .npz of X and y")
@click.option("--columns", default=10, show_default=True)
@click.option("--rows", "most", default=MOST, show_default=True, help="of each data set, at most")
def main(quick: bool, json_path: Path | None, path: Path | None, columns: int, most: int) -> None:
    """Print the table."""
    rows: Rows = []
    compared = methods(columns, quick)
    for name, x, y in data(path, QUICK if quick else most):
        own = {"data": name, "rows": len(x), "method": f"the {x.shape[1]} features"}
        rows.append(own | judged(x, x, y) | {"wall s": None, "CPU s": None})
        for method, make in compared.items():
            start, used = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a graph in pieces, columns that the kernel does not hold
                embedded = np.asarray(make().fit_transform(x))
            seconds = {"wall s": time.perf_counter() - start, "CPU s": time.process_time() - used}
            rows.append(own | {"method": method} | judged(x, embedded, y) | seconds)
            click.echo(f"{name}, {method}: {seconds['wall s']:.1f} s", err=True)
    report("embeddings", rows, json_path, markdown=True)


if __name__ == "__main__":
    main()
