"""Bandwidths that embeddings choose: the words of each estimator, what is kept of them, and what they are good for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import make_moons

import daskspectral as dsp
from daskspectral.data.source import open_source
from daskspectral.passes.bandwidth import chosen_bandwidth

Array = NDArray[Any]
X = make_moons(200, noise=0.1, random_state=0)[0]
ESTIMATORS: dict[str, Any] = {
    "exact": dsp.SDPEmbedding(method="exact", tolerance=1e-6, random_state=0),
    "lowrank": dsp.SDPEmbedding(method="lowrank", n_landmarks=150, tolerance=1e-6, random_state=0),
    "diffusion": dsp.DiffusionMap(random_state=0),
    "diffusion at landmarks": dsp.DiffusionMap(method="lowrank", n_landmarks=150, random_state=0),
}


def expected(x: Array, word: str) -> float:
    return chosen_bandwidth(open_source(x), word, 0, on_invalid="raise", progress=False)


@pytest.mark.parametrize(
    ("name", "word"),
    [("exact", "auto"), ("exact", "local"), ("lowrank", "median"), ("diffusion", "auto"), ("diffusion", "median")],
)
def test_a_word_is_the_number_that_it_stands_for(name: str, word: str, tmp_path: Path) -> None:
    est = clone(ESTIMATORS[name]).set_params(bandwidth=word).fit(X)
    assert est.bandwidth == word
    assert est.bandwidth_ == pytest.approx(expected(X, word), rel=1e-12)
    number = clone(est).set_params(bandwidth=est.bandwidth_).fit(X)
    assert number.bandwidth_ == est.bandwidth_
    np.testing.assert_allclose(est.spectrum_, number.spectrum_, rtol=1e-9)
    in_blocks = clone(est).fit(da.from_array(X, chunks=(70, 1)))
    assert in_blocks.bandwidth_ == est.bandwidth_
    dsp.save(est, tmp_path / "model.zarr")
    loaded = dsp.load(tmp_path / "model.zarr")
    assert loaded.bandwidth_ == est.bandwidth_
    np.testing.assert_array_equal(loaded.transform(X), est.transform(X))


def test_a_run_that_was_stopped_keeps_its_bandwidth(tmp_path: Path) -> None:
    """Without a seed, and drawn from more rows than the sample has."""
    x = make_moons(1500, noise=0.1, random_state=0)[0]
    options = {"bandwidth": "median", "method": "lowrank", "n_landmarks": 100, "tolerance": 1e-6}
    one = dsp.SDPEmbedding(**options).fit(x, checkpoint=tmp_path / "run")
    again = dsp.SDPEmbedding(**options).fit(x, checkpoint=tmp_path / "run")
    assert again.bandwidth_ == one.bandwidth_
    np.testing.assert_array_equal(again.spectrum_, one.spectrum_)


def test_auto_is_no_narrower_than_landmarks_cover() -> None:
    """Twenty landmarks cover two moons at a multiple of the bandwidth alone; other words are taken as they are."""
    few = clone(ESTIMATORS["diffusion at landmarks"]).set_params(n_landmarks=20)
    ratio = clone(few).fit(X).bandwidth_ / expected(X, "auto")
    assert ratio > 1
    assert 2 * np.log2(ratio) == pytest.approx(round(2 * np.log2(ratio)), abs=1e-9)
    for word in ("local", expected(X, "auto")):
        with pytest.raises(ValueError, match="are not covered by the 20 landmarks"):
            clone(few).set_params(bandwidth=word).fit(X)
