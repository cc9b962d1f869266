"""The choice of kernel, scale and penalty of a regression: errors over an oracle's, and the seconds that it takes.

The oracle knows the truth: of Gaussian and Matern 3/2 kernels at 1/8 to 4 median distances, and of penalties three a
decade, it takes what has the least error at 2000 fresh points, where the noise-free truth is known. "over" is the root
mean squared error there over the oracle's, for all rows as landmarks up to 500.

- daskspectral: `HermiteRegressor()` with no argument.
- penalty by GCV: the same with alpha="gcv": the kernel by cross-validation, its penalty by robust generalised one.
- GCV of all, p = n and p = n / 2: the least plain generalised cross-validation over the oracle's grid.
- KernelRidge: scikit-learn's, by `GridSearchCV` in ten folds over the Gaussians of the grid and ten penalties.
- GaussianProcess: scikit-learn's, Matern 3/2 or Gaussian with noise, by likelihood, up to 600 rows.

"error" is relative to the spread of the truth. The problem without noise is told by its error alone: all errors there
are of the order of rounding, of which sums of products keep half the digits, and ratios say little.

    python examples/benchmarks/regression_choice.py --json regression_choice.json
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from daskspectral import HermiteRegressor, landmarks

Array = np.ndarray
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
PENALTIES = np.logspace(-12, 2, 43)
MOST = 500
GP_ROWS = 600

Problem = tuple[int, Callable[[Array], Array], float]
PROBLEMS: dict[str, Problem] = {  # columns, uniform on [-1, 1]; the truth; the standard deviation of the noise
    "sine": (1, lambda x: np.sin(6 * x[:, 0]), 0.2),
    "steps": (1, lambda x: np.floor(3 * x[:, 0]), 0.1),
    "kink": (2, lambda x: np.abs(x[:, 0]) + np.abs(x[:, 1] - 0.3), 0.05),
    "waves": (2, lambda x: np.sin(5 * x[:, 0]) * np.cos(5 * x[:, 1]), 0.3),
    "smooth": (2, lambda x: np.exp(-2 * np.sum(x**2, axis=1)), 0.0),
    "plane": (3, lambda x: x @ np.array([1.0, -2.0, 0.5]), 0.5),
    "offset": (3, lambda x: 10 + x[:, 0] * x[:, 1] + x[:, 2], 0.1),
    "friedman": (
        5,
        lambda x: np.sin(np.pi * (x[:, 0] + 1) * (x[:, 1] + 1) / 4) + x[:, 2] ** 2 / 2 + x[:, 3] / 2 + x[:, 4] / 4,
        0.1,
    ),
    "ten columns": (10, lambda x: np.sin(x[:, 0] + x[:, 1]) + 0.3 * x[:, 2] * x[:, 3], 0.1),
}


# -- the grid --------------------------------------------------------------------------------------------------------


def profiles(distances: Array, scale: float) -> dict[str, Array]:
    """The kernels of the grid at these distances."""
    r = np.sqrt(3) * distances / scale
    return {"gaussian": np.exp(-(distances**2) / (2 * scale**2)), "matern": (1 + r) * np.exp(-r)}


def grid(x: Array, y: Array, points: Array, test: Array, truth: Array) -> Array:
    """For every kernel, scale and penalty: the error at the test points, and generalised cross-validation, (g, 2)."""
    median = float(np.median(pdist(x[:: max(1, len(x) // 1000)])))
    found = []
    for factor in FACTORS:
        scale = factor * median
        at_rows, at_test, between = (profiles(cdist(a, points), scale) for a in (x, test, points))
        for name in at_rows:
            values, vectors = np.linalg.eigh(between[name])
            kept = values > 1e-13 * values[-1]
            root = vectors[:, kept] / np.sqrt(values[kept])
            u, s, vt = np.linalg.svd(at_rows[name] @ root / np.sqrt(len(x)), full_matrices=False)
            target, new = u.T @ y / np.sqrt(len(x)), at_test[name] @ root @ vt.T
            missed = max(float(np.mean(y**2) - target @ target), 0.0)
            for alpha in PENALTIES:
                kept_share = s**2 / (s**2 + alpha)
                residual = np.sum(((1 - kept_share) * target) ** 2) + missed
                free = max(1 - kept_share.sum() / len(x), 1e-12)
                found.append((rmse(new @ (s / (s**2 + alpha) * target), truth), residual / free**2))
    return np.array(found)


def rmse(predicted: Array, truth: Array) -> float:
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


# -- the methods -----------------------------------------------------------------------------------------------------


def kernel_ridge(x: Array, y: Array) -> Any:
    median = float(np.median(pdist(x[:: max(1, len(x) // 1000)])))
    choices = {
        "gamma": [1 / (2 * (factor * median) ** 2) for factor in FACTORS],
        "alpha": np.logspace(-8, 1, 10),
    }
    folds = KFold(10, shuffle=True, random_state=0)
    return GridSearchCV(KernelRidge(kernel="rbf"), choices, scoring="neg_mean_squared_error", cv=folds).fit(x, y)


def gaussian_process(x: Array, y: Array) -> Any:
    noise = WhiteKernel(1e-2, (1e-10, 1e2))
    models = [
        GaussianProcessRegressor(ConstantKernel() * kernel + noise, normalize_y=True, n_restarts_optimizer=1)
        for kernel in (RBF(), Matern(nu=1.5))
    ]
    for model in models:
        model.random_state = 0
        model.fit(x, y)
    return max(models, key=lambda model: model.log_marginal_likelihood_value_)


METHODS: dict[str, Callable[[Array, Array], Any]] = {
    "daskspectral": lambda x, y: HermiteRegressor(random_state=0).fit(x, y),
    "penalty by GCV": lambda x, y: HermiteRegressor(alpha="gcv", random_state=0).fit(x, y),
    "KernelRidge": kernel_ridge,
    "GaussianProcess": gaussian_process,
}


def compare(problem: Problem, n: int, seed: int, fresh: int = 2000) -> Rows:
    """One sample of a problem: each method with its error and its seconds."""
    d, function, noise = problem
    rng = np.random.default_rng(seed)
    x, test = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (fresh, d))
    y, truth = function(x) + noise * rng.standard_normal(n), function(test)
    everywhere, half = (
        grid(x, y, x[landmarks.choose("kmeans++", x, min(MOST, p), rng)], test, truth) for p in (n, max(n // 2, 1))
    )
    least = float(everywhere[:, 0].min())
    lines = [{"by": "the oracle", "error": least, "seconds": 0.0}]
    for name, errors in {"GCV of all, p = n": everywhere, "GCV of all, p = n / 2": half}.items():
        lines.append({"by": name, "error": float(errors[np.argmin(errors[:, 1]), 0]), "seconds": 0.0})
    for name, fit in METHODS.items():
        if name == "GaussianProcess" and n > GP_ROWS:
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = fit(x, y)
        lines.append({"by": name, "seconds": time.perf_counter() - start, "error": rmse(model.predict(test), truth)})
    return [{**line, "error": line["error"] / truth.std(), "over": line["error"] / least} for line in lines]


def summary(rows: Rows) -> Rows:
    """For each size and method: the geometric mean over problems with noise and their seeds, the worst, the time."""
    found: Rows = []
    for n in sorted({row["n"] for row in rows}):
        for by in dict.fromkeys(row["by"] for row in rows if row["n"] == n):
            some = [row for row in rows if (row["n"], row["by"]) == (n, by)]
            noisy = [row for row in some if PROBLEMS[row["problem"]][2]]
            over = np.array([row["over"] for row in noisy])
            worst = noisy[int(np.argmax(over))]
            exact = [row["error"] for row in some if not PROBLEMS[row["problem"]][2]]
            found.append(
                {
                    "n": n,
                    "by": by,
                    "mean over": float(np.exp(np.log(over).mean())),
                    "median over": float(np.median(over)),
                    "worst over": float(over.max()),
                    "worst": worst["problem"],
                    "error without noise": float(np.median(exact)) if exact else None,
                    "seconds": float(np.median([row["seconds"] for row in some])),
                }
            )
    return found


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--n", "sizes", multiple=True, type=int, default=(50, 150, 600), show_default=True, help="rows")
@click.option("--seeds", default=3, show_default=True, help="samples of each problem")
def main(quick: bool, json_path: Path | None, sizes: tuple[int, ...], seeds: int) -> None:
    """Choose for every problem, and compare with the oracle."""
    problems = PROBLEMS
    if quick:
        sizes, seeds, problems = (40,), 1, {name: PROBLEMS[name] for name in ("sine", "smooth")}
    rows: Rows = [
        {"problem": name, "n": n, "seed": seed, **line}
        for n in sizes
        for name, problem in problems.items()
        for seed in range(seeds)
        for line in compare(problem, n, seed)
    ]
    report("the choice of a regression, each problem", rows, None)
    report("the choice of a regression, over the oracle", summary(rows), json_path)


if __name__ == "__main__":
    main()
