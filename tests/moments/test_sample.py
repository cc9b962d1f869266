"""Samples of rows: uniform, additive, and independent of batches."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.moments import NUMBER
from daskspectral.moments.sample import Sample, reach_of
from tests.common import doubtful, reloaded

X = np.random.default_rng(0).standard_normal((5000, 2))
SMOOTH = Landmarks(Gaussian(1.5), 40)


def whole(size: int, x: Any, start: int = 0) -> Sample:
    batch = {"x": x, NUMBER: np.arange(start, start + len(x))}
    return Sample.of_batch(batch, reach_of(len(x), size), size)


def fitted(x: Any, **options: Any) -> Any:
    return dsp.SpectralDecomposition(basis=SMOOTH, n_components=4, random_state=0, **options).fit(x)


def assert_same(found: Any, wanted: Any) -> None:
    for name in ("points", "weights", "keys", "reach", "size"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def test_keys_are_the_lowest_of_uniform_ones() -> None:
    found = whole(500, np.ones((10_000, 1)), 100)
    assert len(found.keys) == 500
    assert found.keys.max() < found.reach == pytest.approx(0.05, rel=0.2)
    every = whole(500, np.ones((300, 1)))
    assert (len(every.keys), every.reach) == (300, 1.0)
    assert np.mean(every.keys) == pytest.approx(0.5, abs=0.08)


def test_samples_add_in_any_order_and_keep_the_lowest_keys() -> None:
    parts = [whole(400, X[a:b], a) for a, b in ((0, 1000), (1000, 1500), (1500, 5000))]
    total = parts[0] + parts[1] + parts[2]
    assert_same(parts[0] + (parts[1] + parts[2]), total)
    assert len(total.points) <= 400
    assert total.keys.max() < min(part.reach for part in parts)
    shares = [np.isin(total.points[:, 0], X[a:b, 0]).mean() for a, b in ((0, 1000), (1000, 1500), (1500, 5000))]
    np.testing.assert_allclose(shares, [0.2, 0.1, 0.7], atol=0.06)


def test_the_sample_of_a_fit_does_not_depend_on_chunks_or_scheduler() -> None:
    wanted = fitted(X).moments_.sample
    assert wanted.points.shape == (4000, 2)
    for chunks, scheduler in ((700, "threads"), (1250, "synchronous")):
        with dask.config.set(scheduler=scheduler):
            assert_same(fitted(da.from_array(X, chunks=(chunks, 2))).moments_.sample, wanted)


@doubtful
def test_samples_of_updates_and_of_saved_models() -> None:
    model = fitted(X[:4000])
    loaded = reloaded(model)
    assert_same(loaded.moments_.sample, model.moments_.sample)
    loaded.update(X)
    assert 0.1 < np.isin(loaded.moments_.sample.points[:, 0], X[4000:, 0]).mean() < 0.3
