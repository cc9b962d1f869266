"""The choice of a kernel for a trajectory: the automatic fit of Transfer against deeptime's `vamp_score_cv`.

Measured: the VAMP-2 score in the population of five pairs of functions and the constant, on trajectories independent
of the fit (`--test` rows in all), and the seconds until the final model. deeptime scores the same kernels, Gaussian
and Matern 3/2 at the scales 1/8 to 2 median distances, as features at 100 centres of k-means, by `vamp_score_cv` on
halves of ten contiguous blocks (10 repetitions), and is fitted again to all rows with the best; ours is
`SpectralDecomposition(Transfer(1), n_components=6)` with no other argument. "loss" is 1 - score / the best score of
any of deeptime's candidates and ours, in hindsight; "told" is the score that the method itself expects from the rows
of the fit: deeptime's mean over the repetitions, ours from the held-out values.

- autoregression: three independent columns, x' = rho x + (1 - rho^2)^(1/2) xi with rho = .9, .8, .6.
- double well: dX = -V' dt + 2^(1/2) dW in V = 4 (x^2 - 1)^2 at intervals of .1 (Euler's steps of .002), and a column of
  noise.

    python -m pip install --no-deps --target deeptime-0.4.5 deeptime==0.4.5
    python examples/benchmarks/vamp_choice.py --deeptime deeptime-0.4.5 --json vamp_choice.json
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from against_deeptime import load_deeptime
from common import Rows, options, report
from fitting import Settings, fit, settings_option, told
from problems import autoregression
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import KMeans

from daskspectral.operators import Transfer

FUNCTIONS = 5  # pairs besides the constant
CORRELATIONS = (0.9, 0.8, 0.6)
INTERVAL, STEPS = 0.1, 50
FEATURES = 100
SCALES = (0.125, 0.25, 0.5, 1.0, 2.0)

Array = np.ndarray
Pair = tuple[Array, Array]


# -- trajectories ----------------------------------------------------------------------------------------------------


def autoregressive(n: int, walkers: int, rng: np.random.Generator) -> list[Array]:
    return [np.hstack([autoregression(n, 1, rho, rng) for rho in CORRELATIONS]) for _ in range(walkers)]


def double_well(n: int, walkers: int, rng: np.random.Generator) -> list[Array]:
    """Trajectories (n, 2) from equilibrium, of walkers that move at once."""
    h = INTERVAL / STEPS
    x, paths = rng.choice([-1.0, 1.0], walkers), np.empty((n, walkers))
    for row in range(-20, n):  # 20 intervals to spread within the wells, which are equally likely from the start
        for kick in np.sqrt(2 * h) * rng.standard_normal((STEPS, walkers)):
            x = x - h * 16 * x * (x**2 - 1) + kick
        if row >= 0:
            paths[row] = x
    return [np.column_stack([path, rng.standard_normal(n)]) for path in paths.T]


PROCESSES = {"autoregression": autoregressive, "double well": double_well}


# -- the score -------------------------------------------------------------------------------------------------------


def vamp_2(f: Array, g: Array) -> float:
    """The VAMP-2 score of the span of f (n, k) and the constant at the starts, g and the constant at the ends."""
    f, g = orthonormal(f), orthonormal(g)
    return 1.0 + float(np.sum((f.T @ g) ** 2))


def orthonormal(f: Array) -> Array:
    """A centred orthonormal basis of the columns; what hardly varies is left out."""
    u, s, _ = np.linalg.svd(f - f.mean(axis=0), full_matrices=False)
    return u[:, s > 1e-3 * s[0]]


def pairs(trajectories: list[Array]) -> Pair:
    return np.concatenate([x[:-1] for x in trajectories]), np.concatenate([x[1:] for x in trajectories])


# -- the two choices -------------------------------------------------------------------------------------------------


def ours(x: Array, test: Pair, settings: Settings) -> dict[str, Any]:
    done = fit(x, **{"operator": Transfer(1), "n_components": FUNCTIONS + 1} | settings)
    if done.model is None:
        raise click.ClickException("; ".join(done.said))
    return {
        "by": "daskspectral",
        "score": vamp_2(done.model.transform(test[0]), done.model.transform_right(test[1])),
        "told": float(np.sum(np.asarray(done.model.held_out_) ** 2)),
        "seconds": done.seconds,
        "said": list(done.said),
    }


def candidates(x: Array) -> dict[str, Callable[[Array], Array]]:
    """The features of deeptime's candidates, all at the same centres."""
    median = float(np.median(pdist(x[:: max(1, len(x) // 1000)])))
    centres = KMeans(min(FEATURES, len(x) // 4), n_init=1, random_state=0).fit(x).cluster_centers_

    def gaussian(rows: Array, scale: float) -> Array:
        return np.exp(cdist(rows, centres, "sqeuclidean") / (-2 * scale**2))

    def matern(rows: Array, scale: float) -> Array:
        r = np.sqrt(3) * cdist(rows, centres) / scale
        return (1 + r) * np.exp(-r)

    return {
        f"{profile.__name__}, {factor:g} medians": lambda rows, f=profile, s=factor * median: f(rows, s)
        for profile in (gaussian, matern)
        for factor in SCALES
    }


def deeptimes(vamp: Any, x: Array, test: Pair, repetitions: int) -> tuple[dict[str, Any], float]:
    """The line of deeptime, and the best score of its candidates in hindsight."""
    cross_validated = importlib.import_module("deeptime.decomposition").vamp_score_cv
    start = time.perf_counter()
    models, scores = {}, {}
    for name, features in candidates(x).items():
        estimator = vamp(lagtime=1, observable_transform=features)
        scores[name] = cross_validated(
            estimator,
            [x],
            blocksize=len(x) // 10,
            n=repetitions,
            splitting_mode="sample",
            r=2,
            dim=FUNCTIONS,
            random_state=0,
        ).mean()
        models[name] = (features, vamp(lagtime=1, observable_transform=features))
    best = max(scores, key=lambda name: scores[name])
    models[best][1].fit([x]).fetch_model()
    seconds = time.perf_counter() - start
    found = {}
    for name, (features, estimator) in models.items():
        model = estimator.fit([x]).fetch_model()
        left, right = model.instantaneous_coefficients, model.timelagged_coefficients
        found[name] = vamp_2(features(test[0]) @ left[:, :FUNCTIONS], features(test[1]) @ right[:, :FUNCTIONS])
    line = {"by": f"deeptime ({best})", "score": found[best], "told": float(scores[best]), "seconds": seconds}
    return line, max(found.values())


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--deeptime", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="its folder")
@click.option("--n", "sizes", multiple=True, type=int, default=(2000, 10_000), show_default=True, help="rows")
@click.option("--test", "test_rows", default=200_000, show_default=True, help="rows of the population score")
@click.option("--repetitions", default=10, show_default=True, help="of vamp_score_cv")
@click.option("--seeds", default=3, show_default=True, help="trajectories of each process")
@settings_option
def main(
    quick: bool,
    json_path: Path | None,
    folder: Path | None,
    sizes: tuple[int, ...],
    test_rows: int,
    repetitions: int,
    seeds: int,
    settings: Settings,
) -> None:
    """Choose for every process, and compare in the population."""
    if quick:
        sizes, test_rows, repetitions, seeds = (600,), 5000, 2, 1
    vamp = None if folder is None else load_deeptime(folder)
    rows: Rows = []
    said: list[str] = []
    for process, draw in PROCESSES.items():
        test = pairs(draw(max(test_rows // 200, 2), 200, np.random.default_rng(10**6)))
        for n in sizes:
            for seed in range(seeds):
                x = draw(n, 1, np.random.default_rng(seed))[0]
                lines = [ours(x, test, settings)]
                said += lines[0].pop("said")
                best = lines[0]["score"]
                if vamp is not None:
                    theirs, hindsight = deeptimes(vamp, x, test, repetitions)
                    lines, best = [*lines, theirs], max(best, hindsight)
                rows += [
                    {"process": process, "n": n, "seed": seed, **line, "loss": 1 - line["score"] / best}
                    for line in lines
                ]
    report("the choice of a kernel for a trajectory, population VAMP-2", rows, json_path, ["", *told(said)])


if __name__ == "__main__":
    main()
