"""How often rule N calls red noise a signal, and intervals of patterns hold the truth, over many sets of rows.

- red noise: sets of independent AR(1) columns, n rows in d columns with autocorrelations of .2 to .8; the share of them
  in which `significance` takes the first component for more than noise, at 5 %, and the mean `count`.
- patterns: rows of a normal distribution of known components; the shares of the entries of the first three patterns
  within `pattern_errors_`, and of the variances within `eigenvalue_errors_`.

    python examples/benchmarks/components.py --processes 2 --json components.json
"""

from __future__ import annotations

import warnings
from pathlib import Path

import click
import numpy as np
from common import Rows, options, report
from fitting import parallel, processes_option

import daskspectral as dsp
from daskspectral.operators import Covariance
from daskspectral.spectral.components import red_noise

VARIANCES = np.array([9, 4, 2, *[0.5] * 9])


def alarms(n: int, d: int, seed: int) -> tuple[bool, int]:
    """Whether the first component of a set of red noise counts as a signal, and how many do."""
    rng = np.random.default_rng(seed)
    x = red_noise(n, rng.uniform(0.2, 0.8, d), rng) * rng.uniform(0.5, 2, d)
    warnings.simplefilter("ignore")
    model = dsp.SpectralDecomposition(Covariance(), n_components=5, folds=None).fit(x)
    found = model.significance(x, random_state=seed)
    return bool(found.p_values[0] <= 0.05), found.count


def held(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The shares of entries of three patterns within their intervals, and whether their variances are."""
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0]
    true, rng = (q * np.sqrt(VARIANCES)).T[:3], np.random.default_rng(seed)
    warnings.simplefilter("ignore")
    model = dsp.SpectralDecomposition(Covariance(), n_components=3, random_state=0)
    model.fit(rng.normal(size=(n, 12)) @ (q * np.sqrt(VARIANCES)).T)
    true = true * np.sign(np.sum(model.patterns_.single * true, axis=1))[:, None]
    low, high = np.moveaxis(model.pattern_errors_, -1, 0)
    below, above = model.eigenvalue_errors_.T
    return np.mean((low <= true) & (true <= high), axis=1), (below <= VARIANCES[:3]) & (VARIANCES[:3] <= above)


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--sets", default=1000, show_default=True, help="sets of rows")
@processes_option(1)
def main(quick: bool, json_path: Path | None, sets: int, processes: int) -> None:
    """Draw many sets, and count."""
    sets = 4 if quick else sets
    rows: Rows = []
    for n, d in ((200, 20), (100, 50)):
        found = parallel(alarms, [(n, d, seed) for seed in range(sets)], processes, f"red noise, {n} x {d}")
        first, count = (float(np.mean([one[i] for one in found])) for i in (0, 1))
        rows.append({"what": "red noise", "n": n, "d": d, "false alarms": first, "mean count": count})
    for n in (300, 3000):
        done = parallel(held, [(n, seed) for seed in range(sets)], processes, f"patterns, {n} rows")
        patterns, variances = (np.mean([one[i] for one in done], axis=0) for i in (0, 1))
        inside = {
            "patterns": " ".join(f"{v:.3f}" for v in patterns),
            "variances": " ".join(f"{v:.3f}" for v in variances),
        }
        rows.append({"what": "within intervals", "n": n, "d": 12, **inside})
    titles = dict.fromkeys(key for row in rows for key in row)
    report("principal components of many sets", [{**dict.fromkeys(titles), **row} for row in rows], json_path)


if __name__ == "__main__":
    main()
