"""A bar's total is the rows that its pass handles, and it ends full."""

from pathlib import Path

import numpy as np
import pytest

import daskspectral as dsp
from tests.common import doubtful
from tests.engine.common import model

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


@doubtful
def test_the_bars_of_rows_that_are_skipped_of_pairs_and_of_a_resumed_run(bars: Bars, tmp_path: Path) -> None:
    broken = X.copy()
    broken[::7, 1] = np.nan
    model().fit(dsp.Rows(broken, standardize=True, on_invalid="skip"), progress=True)
    assert {total for name, total, _ in bars if name in ("fit", "standardize")} == {N}
    bars.clear()
    model(operator=dsp.operators.Transfer(10)).fit([X[:1000], X[1000:]], progress=True)
    assert of(bars, "fit") == N - 20
    for _ in range(2):
        model().fit(X, checkpoint=tmp_path / "run", checkpoint_every=0, progress=True)
        assert of(bars, "fit") == N
