"""Bandwidths without labels: how near the classes, groups and neighbours of an embedding are to the best of a sweep.

A sweep of bandwidths from 1/16 to 2 median distances in steps of 2^(1/4), with the squared distances in common; at
each the exact SDP embedding and the ten leading columns of a diffusion map, scored by the accuracy of five nearest
neighbours in the columns (5-fold cross-validation), by the normalised mutual information of k-means with the classes,
and by the trustworthiness of the first three columns. Criteria that see no labels choose a bandwidth each, at which
scores are interpolated:

    auto, local, median   as in `SDPEmbedding`; also other multiples of the seventh neighbour's distance
    joined at t           the tenth eigenvalue of the normalised kernel has fallen to t ("auto" is t = 0.9)
    slope                 the steepest rise of log sum_ij K_ij with log bandwidth (Coifman and others 2008)
    likelihood            leave-one-out likelihood of the kernel density estimate
    perplexity 30         the median perplexity of a row of the kernel without its diagonal

The first table has the scores of each data set, the second how far the criteria stay below the best of the sweep.

    python examples/benchmarks/bandwidths.py --standardized htru2.npz --data mnist.npz --json bandwidths.json

Files are npz with X and y. Without any: digits, wine (standardised), two moons of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.linalg
from common import Rows, options, report
from scipy.spatial.distance import pdist, squareform
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.manifold import trustworthiness
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from daskspectral.data.source import open_source
from daskspectral.embedding.bandwidth import chosen_bandwidth
from daskspectral.embedding.diffusion_functions import JOINED, MODES
from daskspectral.embedding.problems import Deflated, ExactProblem
from daskspectral.embedding.stages import solve_accelerated

Scores = dict[str, float]
COLUMNS = 10
WORDS = ("auto", "local", "median")
LOSSES = ("sdp accuracy", "sdp nmi", "sdp trust", "map accuracy", "map nmi", "map trust")


def standardized(x: np.ndarray) -> np.ndarray:
    scale = x.std(axis=0)
    return np.asarray((x - x.mean(axis=0)) / np.where(scale > 0, scale, 1))


def data_sets(rows: int, plain: tuple[Path, ...], scaled: tuple[Path, ...]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Points (n, d) and classes (n,), `rows` at most, drawn uniformly."""
    wine, moons = load_wine(), make_moons(rows, noise=0.1, random_state=0)
    found = {
        "digits": load_digits(return_X_y=True),
        "wine": (standardized(wine.data), wine.target),
        "two moons": (standardized(moons[0]), moons[1]),
    }
    for paths, prepare in ((plain, np.asarray), (scaled, standardized)):
        for path in paths:
            with np.load(path) as file:
                found[path.stem] = (prepare(file["X"].astype(float)), file["y"])
    rng = np.random.default_rng(0)
    for name, (x, y) in found.items():
        kept = np.sort(rng.permutation(len(x))[:rows])
        found[name] = (np.asarray(x[kept], dtype=float), y[kept])
    return found


def scored(name: str, x: np.ndarray, y: np.ndarray, columns: np.ndarray) -> Scores:
    """Of an embedding (n, k), with its name before each score."""
    classes = len(np.unique(y))
    groups = KMeans(classes, n_init=3, random_state=0).fit_predict(columns[:, : max(2, classes - 1)])
    return {
        f"{name} accuracy": float(cross_val_score(KNeighborsClassifier(5), columns, y, cv=5).mean()),
        f"{name} nmi": float(normalized_mutual_info_score(y, groups)),
        f"{name} trust": float(trustworthiness(x, columns[:, :3], n_neighbors=10)),
    }


def at(x: np.ndarray, y: np.ndarray, squares: np.ndarray, bandwidth: float) -> tuple[Scores, np.ndarray]:
    """The scores at a bandwidth, and the leading eigenvalues of Abar."""
    gram = np.exp(-squares / bandwidth**2)
    matrix = Deflated(gram, gram.sum(axis=1))
    values, vectors = (found[..., -COLUMNS:] for found in scipy.linalg.eigh(matrix @ np.eye(len(x))))
    problem = ExactProblem(matrix, matrix.bound)
    start = np.random.default_rng(0).standard_normal((len(x), 6))
    found = solve_accelerated(problem, start, tolerance=1e-3, max_passes=400)
    scores = scored("sdp", x, y, problem.embedding(found.point))
    return scores | scored("map", x, y, (vectors * values)[:, ::-1]), values[::-1]


def criteria(x: np.ndarray, squares: np.ndarray, sweep: np.ndarray, last: np.ndarray) -> dict[str, float]:
    """A bandwidth from each criterion; `last` are the tenth eigenvalues along the sweep."""
    source = open_source(x)
    words = {word: chosen_bandwidth(source, word, 0) for word in WORDS}
    seventh = float(np.median(np.sort(np.sqrt(squares), axis=1)[:, 7]))
    found = {"auto": words["auto"], "local (0.6)": words["local"], "median": words["median"]}
    found |= {f"local ({multiple})": multiple * seventh for multiple in (0.5, 1.0, 1.5)}
    found |= {f"joined at {t}": _crossing(sweep, last, t) for t in (0.99, 0.97, 0.95, 0.7, 0.5)}
    slopes, likelihoods, perplexities = zip(*(_densities(x, squares, h) for h in sweep), strict=True)
    found |= {"slope": sweep[np.argmax(slopes)], "likelihood": sweep[np.argmax(likelihoods)]}
    rising = np.log(np.maximum.accumulate(perplexities))
    found["perplexity 30"] = float(np.exp(np.interp(np.log(30.0), rising, np.log(sweep))))
    return found


def _crossing(sweep: np.ndarray, last: np.ndarray, level: float) -> float:
    """Where the tenth eigenvalue falls below a level for good."""
    above = np.flatnonzero(last >= level)
    if not len(above) or above[-1] == len(sweep) - 1:
        return float(sweep[0] if not len(above) else sweep[-1])
    i = above[-1]
    share = (last[i] - level) / (last[i] - last[i + 1])
    return float(sweep[i] * (sweep[i + 1] / sweep[i]) ** share)


def _densities(x: np.ndarray, squares: np.ndarray, bandwidth: float) -> tuple[float, float, float]:
    """The slope of log sum K, the leave-one-out log-likelihood of a row, and the median perplexity."""
    exponents = squares / bandwidth**2
    k = np.exp(-exponents)
    slope = 2 * float(np.vdot(k, exponents) / k.sum())
    np.fill_diagonal(exponents, np.inf)
    masses = logsumexp(-exponents, axis=1)
    shares = np.exp(-exponents - masses[:, None])
    entropies = -np.sum(shares * np.log(np.maximum(shares, 1e-300)), axis=1)
    return slope, float(masses.mean()) - x.shape[1] * np.log(bandwidth), float(np.exp(np.median(entropies)))


def compared(sets: Mapping[str, tuple[np.ndarray, np.ndarray]], step: float) -> tuple[Rows, Rows]:
    """The scores of each data set at some bandwidths, and the mean and worst losses of the criteria."""
    factors = 2.0 ** np.arange(-4, 1 + step, step)
    table: Rows = []
    losses: dict[str, list[Scores]] = {}
    for name, (x, y) in sets.items():
        squares = squareform(pdist(x, "sqeuclidean"))
        median = float(np.median(np.sqrt(squares[np.triu_indices(len(x), 1)])))
        sweep = factors * median
        found = [at(x, y, squares, h) for h in sweep]
        last = np.array([values[MODES - 1] for _, values in found])
        best = {key: max(scores[key] for scores, _ in found) for key in LOSSES}
        chosen = criteria(x, squares, sweep, last)
        for criterion, h in chosen.items():
            scores = _interpolated(h, sweep, found)
            losses.setdefault(criterion, []).append({key: best[key] - scores[key] for key in LOSSES})
        shown: dict[str, float] = {"auto": chosen["auto"], "local": chosen["local (0.6)"]}
        shown |= {"median": median, "median / 2": median / 2, "median / 4": median / 4}
        raw = float(cross_val_score(KNeighborsClassifier(5), x, y, cv=5).mean())
        for which, h in shown.items():
            row: dict[str, Any] = {"data": name, "bandwidth": which, "over median": h / median}
            table.append(row | _interpolated(h, sweep, found))
        table.append({"data": name, "bandwidth": "best of each", "over median": None} | best | {"raw accuracy": raw})
    summary: Rows = []
    for criterion, each in losses.items():
        means = {key: float(np.mean([loss[key] for loss in each])) for key in LOSSES}
        summary.append({"criterion": criterion} | means | {"worst sdp": max(loss["sdp accuracy"] for loss in each)})
    return table, summary


def _interpolated(bandwidth: float, sweep: np.ndarray, found: list[tuple[Scores, np.ndarray]]) -> Scores:
    """The scores at a bandwidth, linear in its logarithm between those of the sweep."""
    where, points = np.log(bandwidth), np.log(sweep)
    return {key: float(np.interp(where, points, [scores[key] for scores, _ in found])) for key in LOSSES}


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--data", multiple=True, type=click.Path(exists=True, path_type=Path), help="an npz with X and y")
@click.option("--standardized", "scaled", multiple=True, type=click.Path(exists=True, path_type=Path),
              help="an npz with X and y, whose columns are standardised")  # fmt: skip
@click.option("--rows", default=1000, show_default=True, help="of each data set, at most")
def main(quick: bool, json_path: Path | None, data: tuple[Path, ...], scaled: tuple[Path, ...], rows: int) -> None:
    """Print the tables."""
    sets = data_sets(150 if quick else rows, data, scaled)
    table, summary = compared(dict(list(sets.items())[1:2]) if quick else sets, 1.0 if quick else 0.25)
    report("Bandwidths: scores", table, json_path, [f"auto: the tenth eigenvalue has fallen to {JOINED}"])
    path = None if json_path is None else json_path.with_stem(f"{json_path.stem}-criteria")
    report("Bandwidths: mean losses against the best of the sweep", summary, path)


if __name__ == "__main__":
    main()
