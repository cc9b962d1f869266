"""A bar's total is the rows that its pass handles, and it ends full."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.data.source import open_source
from daskspectral.engine import Plan, Run
from daskspectral.engine.sampling import Scan
from tests.common import Scheduling
from tests.engine.common import blocks, model, slow

N = 3000
X = np.random.default_rng(1).standard_normal((N, 2))
Bars = list[tuple[str, int, int]]
pytestmark = pytest.mark.usefixtures("short_epochs")


def of(bars: Bars, name: str) -> int:
    """Total of the one bar of that name, all bars being full; they are forgotten."""
    assert all(total == done for _, total, done in bars), bars
    (total,) = [total for description, total, _ in bars if description == name]
    bars.clear()
    return total


def test_the_bars_of_rows_that_are_skipped_of_pairs_and_of_a_resumed_run(bars: Bars, tmp_path: Path) -> None:
    broken = X.copy()
    broken[::7, 1] = np.nan
    model(standardize=True).fit(broken, on_invalid="skip", progress=True)
    assert {total for name, total, _ in bars if name in ("fit", "standardize")} == {N}
    bars.clear()
    model(operator=dsp.operators.Transfer(10)).fit([X[:1000], X[1000:]], progress=True)
    assert of(bars, "fit") == N - 20
    for _ in range(2):
        fitted = model().fit(X, checkpoint=tmp_path / "run", checkpoint_every=0, progress=True)
        assert of(bars, "fit") == N
    fitted.update(np.concatenate([X, X[:1000]]), progress=True)
    assert of(bars, "fit") == 1000
    fitted.transform(X, out=tmp_path / "out.zarr", progress=True)
    assert of(bars, "transform") == N


@pytest.mark.parametrize("scheduler", ["synchronous", "threads 2", slow("processes 2"), slow("cluster")])
def test_the_bar_is_full_on_any_scheduler(scheduler: str, bars: Bars, scheduling: Scheduling) -> None:
    plan = Plan(tuple((i, i + 750) for i in range(0, N, 750)), epoch=2)
    with scheduling(scheduler):
        Run(open_source(blocks(X, 750)), plan, progress=True, description="scan").reduce(Scan())
    assert of(bars, "scan") == N
