"""The slow variable of a trajectory in twenty dimensions: Transfer by a network, by landmarks, and by a VAMPnet.

The latent variable u moves in a double well, dX = -V' dt + 2^(1/2) dW in V = 4 (u^2 - 1)^2 (rows every .1, Euler's
steps of .002). Nineteen others, first-order autoregressions of correlation .5 between rows, hide it: two of them are
moved by u^2 and sin 3u, and all twenty are rotated. In distances between rows u is one column of twenty.

"score": VAMP-2 of three pairs of functions and the constant in the population, on trajectories independent of the fit
(`--test` rows). "correlation": squared, of the first function with the best function of u alone (a regression on
powers of u to the ninth). The VAMPnet is deeptime's: a lobe of the same layers, VAMP-2 as its score, Adam at the same
rate on batches of 4096, of the same rows, a tenth of them held out; three functions by VAMP of its outputs on all rows.
"seconds to ours" are until it first reaches the network's score, tried after every epoch (scoring is not timed).

    python -m pip install torch deeptime
    python examples/benchmarks/slow_variable.py --vampnet --json slow_variable.json
"""

from __future__ import annotations

import importlib
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
from common import Rows, options, report
from vamp_choice import double_well, vamp_2

from daskspectral import SpectralDecomposition
from daskspectral.basis import NeuralBasis
from daskspectral.errors import FitWarning
from daskspectral.operators import Transfer

Array = np.ndarray
FAST, CORRELATION, FUNCTIONS = 19, 0.5, 3
HIDDEN, RATE, VAMP_BATCH = (96, 96, 96), 2e-3, 4096


def trajectories(n: int, walkers: int, seed: int) -> tuple[list[Array], list[Array]]:
    """Trajectories (n, 20) as they are seen, and u (n,) of each."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((FAST + 1, FAST + 1)))[0]
    seen, slow = [], []
    for path in double_well(n, walkers, rng):
        u, fast = path[:, 0], rng.standard_normal((n, FAST))
        for row in range(1, n):
            fast[row] = CORRELATION * fast[row - 1] + np.sqrt(1 - CORRELATION**2) * fast[row]
        fast[:, 0] += 1.5 * u**2
        fast[:, 1] += np.sin(3 * u)
        seen.append(np.column_stack([u, fast]) @ turn)
        slow.append(u)
    return seen, slow


def pairs(parts: list[Array]) -> tuple[Array, Array]:
    """Starts and ends of all pairs of successive rows."""
    return np.concatenate([x[:-1] for x in parts]), np.concatenate([x[1:] for x in parts])


def judged(f: Array, g: Array, u: Array) -> dict[str, float]:
    """The population score, and the squared correlation of the first function with functions of u."""
    first = f[:, 0] - f[:, 0].mean()
    powers = np.vander(u, 10)
    best = powers @ np.linalg.lstsq(powers, first, rcond=None)[0]
    return {"score": vamp_2(f, g), "correlation": float(np.corrcoef(first, best)[0, 1] ** 2)}


def ours(parts: list[Array], test: tuple[Array, Array], u: Array, **more: Any) -> dict[str, Any]:
    """A fit of the transfer operator."""
    model = SpectralDecomposition(Transfer(1), n_components=FUNCTIONS + 1, random_state=0, **more)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        model.fit(parts)
    seconds = time.perf_counter() - start
    found = judged(model.transform(test[0])[:, 1:], model.transform_right(test[1])[:, 1:], u)
    return {"by": type(model.basis_.parts[-1]).__name__, **found, "seconds": seconds}


def vampnet(parts: list[Array], test: tuple[Array, Array], u: Array, goal: float, epochs: int) -> dict[str, Any]:
    """deeptime's VAMPnet, and when it reached the score `goal`."""
    torch = importlib.import_module("torch")
    deep, linear = (importlib.import_module(f"deeptime.decomposition{part}") for part in (".deep", ""))
    torch.manual_seed(0)
    sizes, layers = [FAST + 1, *HIDDEN], []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), torch.nn.Tanh()]
    lobe = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN[-1], FUNCTIONS))
    x, y = pairs(parts)
    held = np.random.default_rng(0).random(len(x)) < 0.1
    data = [
        torch.utils.data.TensorDataset(*(torch.from_numpy(v[w].astype(np.float32)) for v in (x, y)))
        for w in (~held, held)
    ]
    load = torch.utils.data.DataLoader
    train, validate = load(data[0], batch_size=VAMP_BATCH, shuffle=True), load(data[1], batch_size=len(data[1]))
    network = deep.VAMPNet(lobe=lobe, learning_rate=RATE, score_method="VAMP2")
    seconds, reached, best = 0.0, float("nan"), {"score": -np.inf}
    for _ in range(epochs):
        start = time.perf_counter()
        network.fit(train, n_epochs=1, validation_loader=validate)
        outputs = network.fetch_model().transform
        with torch.no_grad():
            model = linear.VAMP(lagtime=1).fit((outputs(x), outputs(y))).fetch_model()
        seconds += time.perf_counter() - start
        left, right = model.instantaneous_coefficients, model.timelagged_coefficients
        found = judged(outputs(test[0]) @ left[:, :FUNCTIONS], outputs(test[1]) @ right[:, :FUNCTIONS], u)
        if found["score"] > best["score"]:
            best = {**found, "seconds": seconds}
        if found["score"] >= goal and np.isnan(reached):
            reached = seconds
    return {"by": "VAMPnet, best epoch in hindsight", **best, "seconds to ours": reached}


@click.command(help=__doc__)
@options(repeats=None)
@click.option("--n", default=10_000, show_default=True, help="rows of a trajectory")
@click.option("--walkers", default=10, show_default=True, help="trajectories")
@click.option("--test", "test_rows", default=200_000, show_default=True, help="rows of the population score")
@click.option("--vampnet", "peer", is_flag=True, help="deeptime's VAMPnet too")
@click.option("--epochs", default=60, show_default=True, help="of the VAMPnet")
def main(quick: bool, json_path: Path | None, n: int, walkers: int, test_rows: int, peer: bool, epochs: int) -> None:
    """Fit by each, and compare in the population."""
    small: dict[str, Any] = {}
    if quick:
        n, walkers, test_rows, epochs, small = 600, 4, 2000, 2, {"steps": 40, "hidden": (16, 16)}
    parts, _ = trajectories(n, walkers, 0)
    fresh, slow = trajectories(test_rows // 100, 100, 10**6)
    test, u = pairs(fresh), np.concatenate([v[:-1] for v in slow])
    rows: Rows = [
        {"by": "u alone, powers to the ninth", **judged(*(np.vander(v, 10)[:, :-1] for v in pairs(slow)), u)},
        ours(parts, test, u),
        ours(parts, test, u, basis=NeuralBasis(**small)),
    ]
    if peer:
        rows.append(vampnet(parts, test, u, rows[-1]["score"], epochs))
    report(f"{walkers} trajectories of {n} rows in {FAST + 1} dimensions, population VAMP-2", rows, json_path)


if __name__ == "__main__":
    main()
