"""A bar's total is the rows that its pass handles, and it ends full."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from tqdm import tqdm

import daskspectral as dsp
from daskspectral.data.source import open_source
from daskspectral.engine import Run, progress
from daskspectral.engine import plan as planning
from daskspectral.engine.plan import plan_run
from daskspectral.engine.sampling import Scan, take_rows

N = 3000
X = np.random.default_rng(1).standard_normal((N, 2))
Bars = list[tuple[str, int, int]]


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Bars:
    """Of every bar that was closed: what it was of, its total, and how far it came."""
    closed: Bars = []

    class Recorded(tqdm):
        def close(self) -> None:
            if not self.disable:
                closed.append((self.desc, self.total, self.n))
            super().close()

    monkeypatch.setattr(progress, "tqdm", lambda **options: Recorded(**{**options, "file": io.StringIO()}))
    for name, value in (("EPOCH", 2), ("TASK_FLOPS", 1e6), ("LEAST_FLOPS", 1e6)):
        monkeypatch.setattr(planning, name, value)
    return closed


def model(**changes: Any) -> dsp.SpectralDecomposition:
    settings = {"kernel": dsp.kernels.Gaussian(1.0), "n_landmarks": 15, "n_components": 4, "random_state": 0}
    return dsp.SpectralDecomposition(**(settings | changes))


def of(bars: Bars, name: str) -> tuple[int, int]:
    """Total and end of the one bar of that name, all others being full."""
    assert all(total == done for _, total, done in bars), bars
    ((total, done),) = [(total, done) for description, total, done in bars if description == name]
    return total, done


@pytest.mark.parametrize("kind", [lambda x: x, lambda x: da.from_array(x, chunks=(500, 2))])
def test_the_bar_of_a_fit_and_of_an_update_has_the_rows_that_are_read(kind: Callable[..., Any], bars: Bars) -> None:
    fitted = model().fit(kind(X[:2000]), progress=True)
    assert of(bars, "fit") == (2000, 2000)
    bars.clear()
    fitted.update(kind(X), progress=True)
    assert of(bars, "fit") == (1000, 1000)


def test_the_bar_of_a_fit_counts_rows_that_are_skipped(bars: Bars) -> None:
    broken = X.copy()
    broken[::7, 1] = np.nan
    model(standardize=True).fit(broken, on_invalid="skip", progress=True)
    assert of(bars, "fit") == of(bars, "standardize") == (N, N)


def test_the_bar_of_trajectories_has_their_pairs(bars: Bars) -> None:
    model(operator=dsp.operators.Transfer(10)).fit([X[:1000], X[1000:]], progress=True)
    assert of(bars, "fit") == (N - 20, N - 20)


def test_the_bar_of_a_sample_has_the_rows_of_its_chunks(bars: Bars, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TASK_FLOPS", "LEAST_FLOPS"):
        monkeypatch.setattr(planning, name, 1e5)
    take_rows(open_source(da.from_array(X, chunks=(500, 2))), np.array([3, 2600]), progress=True)
    assert of(bars, "sample") == (1000, 1000)


def test_the_bar_of_a_resumed_run_ends_full(bars: Bars, tmp_path: Path) -> None:
    for _ in range(2):
        bars.clear()
        model().fit(X, checkpoint=tmp_path / "run", checkpoint_every=0, progress=True)
        assert of(bars, "fit") == (N, N)


def test_the_bars_of_transforms_and_embeddings_end_full(bars: Bars, tmp_path: Path) -> None:
    model().fit(X).transform(X, out=tmp_path / "out.zarr", progress=True)
    assert of(bars, "transform") == (N, N)
    bars.clear()
    embedding = dsp.SDPEmbedding(2.0, method="lowrank", n_landmarks=60, tolerance=1e-4, random_state=0)
    embedding.set_params(cache_path=str(tmp_path / "features.zarr")).fit(X[:800], progress=True)
    embed = {(total, done) for name, total, done in bars if name == "embed"}
    assert embed == {(800, 800)}
    assert all(total == done for _, total, done in bars)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
@pytest.mark.parametrize("ranges", [1, 4])
def test_the_bar_is_full_on_any_scheduler(scheduler: str, ranges: int, bars: Bars) -> None:
    source = open_source(da.from_array(X, chunks=(N // ranges, 2)))
    plan = plan_run(source.edges, flops_per_row=1e6 * ranges / N, row_bytes=16, splittable=False)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        Run(source, plan, progress=True, description="scan").reduce(Scan())
    assert len(plan.ranges) == ranges
    assert of(bars, "scan") == (N, N)
