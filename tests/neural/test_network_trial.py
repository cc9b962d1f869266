"""The choice among landmarks, a lattice and a network, on a half of the pilot that no basis saw."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis, NeuralBasis
from daskspectral.operators import Cross, Laplacian
from daskspectral.passes import deciding, network_trial, pilot
from daskspectral.passes.network_trial import Halves, suits_network
from tests.common import assert_same_bits

pytest.importorskip("jax")
Array = NDArray[Any]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Pilots of few rows, networks of few neurons, short trainings."""
    steps = getattr(request, "param", 100)
    monkeypatch.setattr(pilot, "ROWS", 4000 if steps > 100 else 2000)
    monkeypatch.setattr(deciding, "LEAST_HALVED", 1000)
    monkeypatch.setattr(network_trial, "NeuralBasis", partial(NeuralBasis, (48, 48, 48), steps=steps, checks=5))


def moons(n: int, seed: int = 0) -> Array:
    """Two moons, and eight columns of noise."""
    rng = np.random.default_rng(seed)
    t, upper = np.pi * rng.random(n), rng.random(n) < 0.5
    moon = np.column_stack([np.where(upper, np.cos(t), 1 - np.cos(t)), np.where(upper, np.sin(t), 0.5 - np.sin(t))])
    return np.hstack([moon + 0.05 * rng.standard_normal((n, 2)), 0.3 * rng.standard_normal((n, 8))])


def fitted(x: Array, **options: Any) -> Any:
    return dsp.SpectralDecomposition(basis="auto", n_components=5, random_state=0, **options).fit(x)


@pytest.mark.slow
@pytest.mark.parametrize("small", [1000], indirect=True)
@pytest.mark.usefixtures("small")
def test_a_network_wins_where_it_is_better_and_the_fit_repeats() -> None:
    x = moons(10_000)
    model = fitted(x)
    best, *others = model.choice_.candidates
    assert best.kernel == "network, 48-48-48"
    assert any("at landmarks, on the half that no basis saw" in c.why for c in others)
    assert isinstance(model.basis_.parts[-1], NeuralBasis)
    assert model.moments_.folds.reserved == (8, 9)
    again = dsp.SpectralDecomposition(**model.choice_.parameters)
    assert not again.basis.frozen
    assert model.held_out_[1:].sum() < dsp.SpectralDecomposition(n_components=5, random_state=0).fit(x).held_out_.sum()


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_landmarks_win_on_a_sphere() -> None:
    x = np.random.default_rng(0).standard_normal((4000, 5))
    model = fitted(x / np.linalg.norm(x, axis=1, keepdims=True))
    assert isinstance(model.basis_.parts[-1], LandmarkBasis)
    assert "network, 48-48-48" in [c.kernel for c in model.choice_.candidates[:3]]
    again = dsp.SpectralDecomposition(**model.choice_.parameters)
    assert_same_bits(again.fit(x / np.linalg.norm(x, axis=1, keepdims=True)).moments_, model.moments_)


def test_the_halves_are_folds_of_the_pilot() -> None:
    found = pilot.Pilot(
        None,
        Laplacian(),
        {"x": np.arange(40.0)[:, None]},
        {"x": np.arange(40.0)[:, None]},
        np.arange(40) % 20,
        20,
    )
    halves = Halves.of(found, np.random.default_rng(0))
    assert halves.seen.folds == 10
    assert np.bincount(halves.seen.fold).tolist() == [2] * 10
    np.testing.assert_array_equal(halves.seen.fields["x"], found.fields["x"][halves.whole.fold == 0])
    marks = halves.marked(np.arange(20) < 5)
    assert marks.sum() == 5
    assert not marks[halves.whole.fold == 1].any()


def test_networks_are_compared_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert suits_network(Laplacian())
    assert not suits_network(Cross())
    second = dsp.form(lambda f, g, x: dsp.inner(dsp.second(f), dsp.second(g)))
    assert not suits_network(dsp.operators.SymmetricForm(second))
    monkeypatch.setattr(network_trial, "available", lambda: False)  # without jax
    assert not suits_network(Laplacian())
