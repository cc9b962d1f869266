"""A network as the basis of an estimator: trained, frozen, measured, saved, and judged on rows that it did not see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import JaxBasis, NeuralBasis
from daskspectral.moments.dealing import mixed
from daskspectral.operators import BilinearForm, Cross, Laplacian, Transfer
from tests.common import assert_close, assert_same_bits
from tests.neural.common import network

pytest.importorskip("jax")
Array = NDArray[Any]
SMALL = {"hidden": (16, 16), "steps": 60, "batch": 64, "checks": 3}


def strip(n: int = 2000, seed: int = 0) -> Array:
    """A rectangle, whose first eigenvalues are 0, 1, 4 and 9 times (pi / 3)^2."""
    return np.random.default_rng(seed).uniform(0, 1, (n, 2)) * [3, 0.5]


def fitted(x: Any, operator: Any = None, **options: Any) -> Any:
    basis = NeuralBasis(**{**SMALL, **options.pop("network", {})})
    options = {"n_components": 4, "random_state": 0, **options}
    return dsp.SpectralDecomposition(operator, basis=basis, **options).fit(x)


@pytest.mark.slow
def test_a_trained_network_has_the_eigenvalues_of_a_strip() -> None:
    model = fitted(strip(8000), network={"steps": 800, "hidden": (32, 32)})
    exact = np.arange(4) ** 2 * (np.pi / 3) ** 2
    np.testing.assert_allclose(model.eigenvalues_, exact, rtol=0.1, atol=1e-8)
    np.testing.assert_allclose(model.held_out_, exact, rtol=0.12, atol=1e-8)
    assert model.basis_.parts[-1].frozen
    waves = np.cos(np.arange(1, 4) * np.pi / 3 * strip(500, 1)[:, :1])
    found = model.transform(strip(500, 1))[:, 1:]
    assert np.abs(np.diag(np.corrcoef(found.T, waves.T)[:3, 3:])).min() > 0.99


@pytest.mark.slow
def test_the_values_on_held_out_rows_are_of_two_folds_that_no_network_saw() -> None:
    """Rows outside the reserved folds may be changed; then the network changes. Rows inside leave it as it is."""
    x = strip()
    model = fitted(x)
    folds = model.moments_.folds
    assert folds.reserved == (8, 9)
    reserved = np.isin(_folds_of(len(x)), folds.reserved)
    assert reserved.mean() == pytest.approx(0.2, abs=0.02)
    moved = np.where(reserved[:, None], x[::-1], x)
    other = fitted(moved)
    for a, b in zip(_weights(model), _weights(other), strict=True):
        np.testing.assert_array_equal(a, b)
    changed = np.where(reserved[:, None], x, x[::-1])
    assert any((a != b).any() for a, b in zip(_weights(model), _weights(fitted(changed)), strict=True))


def _folds_of(n: int) -> Array:
    """The folds of rows in memory: a hash of their numbers."""
    return (mixed(np.arange(n)) % np.uint64(10)).astype(np.int64)


def _weights(model: Any) -> tuple[Array, ...]:
    network = model.basis_.parts[-1]
    return (*network.weights, *network.biases, network.centre, network.scale)


def test_a_trained_network_is_given_as_it_is_and_the_same_seed_trains_the_same() -> None:
    x = strip()
    model, again = fitted(x), fitted(x)
    assert_same_bits(model.moments_, again.moments_)
    repeated = dsp.SpectralDecomposition(**model.choice_.parameters).fit(da.from_array(x, chunks=(300, 2)))
    assert_close(repeated.eigenvalues_, model.eigenvalues_, 1e-9)
    known = dsp.SpectralDecomposition(basis=model.basis_.parts[-1], n_components=4).fit(x)
    assert_close(known.eigenvalues_, model.eigenvalues_, 1e-12)
    other = fitted(x, random_state=1)
    assert any((a != b).any() for a, b in zip(_weights(model), _weights(other), strict=True))


@pytest.mark.slow
def test_a_saved_network_loads_where_there_is_no_jax(tmp_path: Path) -> None:
    x = strip()
    model = fitted(x)
    model.save(tmp_path / "model.zarr")
    np.save(tmp_path / "x.npy", x[:50])
    np.save(tmp_path / "values.npy", model.transform(x[:50]))
    script = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "optax"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import numpy as np, daskspectral as dsp
model = dsp.load({str(tmp_path / "model.zarr")!r})
x = np.load({str(tmp_path / "x.npy")!r})
assert np.array_equal(model.transform(x), np.load({str(tmp_path / "values.npy")!r}))
model.fit_moments(model.moments_)
try:
    dsp.SpectralDecomposition(basis=dsp.basis.NeuralBasis(), n_components=2).fit(np.tile(x, (9, 1)))
except ImportError as error:
    assert "daskspectral[neural]" in str(error), error
else:
    raise AssertionError("a network was trained without jax")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


@pytest.mark.slow
def test_a_stopped_training_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, path = strip(), tmp_path / "run"
    whole = fitted(x)
    from daskspectral.passes.networks import Kept

    write, written = Kept.write, []

    def stopping(self: Kept, state: Any) -> None:
        write(self, state)
        written.append(state.step)
        if len(written) == 2:
            raise KeyboardInterrupt

    model = dsp.SpectralDecomposition(basis=NeuralBasis(**SMALL), n_components=4, random_state=0)
    monkeypatch.setattr(Kept, "write", stopping)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, checkpoint=path)
    with pytest.raises(ValueError, match="the training of another run"):
        clone(model).set_params(random_state=5).fit(x, checkpoint=path)
    model.fit(x, checkpoint=path)
    assert written == [20, 40, 60]
    assert_same_bits(model.moments_, whole.moments_)
    assert not (path / ".training").exists()


@pytest.mark.slow
def test_two_sides_share_a_network_or_have_one_each() -> None:
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(3000, 2))
    x = np.zeros((3000, 2))
    for t in range(1, 3000):
        x[t] = [0.9, 0.5] * x[t - 1] + steps[t] * np.sqrt([0.19, 0.75])
    model = fitted(x, Transfer(1), network={"steps": 300}, n_components=3)
    np.testing.assert_allclose(model.singular_values_, [1, 0.9, 0.81], atol=0.06)
    assert model.moments_.right_basis is None
    pair = x[:-1], np.column_stack([x[1:], rng.normal(size=2999)])
    both = fitted(pair, Cross(), network={"steps": 300}, n_components=2)
    np.testing.assert_allclose(both.singular_values_, [1, 0.9], atol=0.06)
    assert both.right_basis_.dimension == 3


def test_weights_and_outputs_as_functions() -> None:
    x = strip()
    model = fitted(x, network={"features": "outputs", "outputs": 6, "mu": 20.0})
    assert model.basis_.size == 7  # and the constant
    once = dsp.SpectralDecomposition(basis=model.basis_.parts[-1], n_components=3, folds=None)
    weights = np.random.default_rng(0).integers(0, 3, len(x)).astype(float)
    some = once.fit(x, sample_weight=weights).eigenvalues_
    whole = clone(once).fit(np.repeat(x, weights.astype(int), axis=0)).eigenvalues_
    assert_close(some, whole, 1e-10)


def waves(w: Any, x: Any) -> Any:
    """A user's own functions."""
    import jax.numpy as jnp

    return jnp.cos(x @ w["frequencies"] + w["phases"])


@pytest.mark.slow
def test_a_users_own_function_is_trained_saved_and_trusted_by_name(tmp_path: Path) -> None:
    rng, x = np.random.default_rng(0), strip(4000)
    start = {"frequencies": rng.normal(size=(2, 12)), "phases": rng.uniform(0, 6, 12)}
    basis = JaxBasis(waves, start, d=2, steps=200, checks=4, batch=64)
    model = dsp.SpectralDecomposition(basis=basis, n_components=3, random_state=0).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, [0, 1.0966, 4.3865], rtol=0.05, atol=1e-8)
    model.save(tmp_path / "model.zarr")
    with pytest.raises(dsp.errors.UntrustedError):
        dsp.load(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr", trusted=[waves])
    np.testing.assert_array_equal(again.transform(x[:20]), model.transform(x[:20]))


def test_second_derivatives_of_a_users_own_function() -> None:
    """f'' of cos(k x) is -k^2 cos(k x): the biharmonic form, to rounding."""
    w = {"frequencies": np.array([[1.0, 2.0]]), "phases": np.zeros(2)}
    basis = JaxBasis(waves, w, d=1, trained=True)
    form = dsp.form(lambda f, g, x: dsp.inner(dsp.second(f), dsp.second(g)))
    x = ((np.arange(500) + 0.5) * np.pi / 500)[:, None]
    model = dsp.SpectralDecomposition(
        dsp.operators.SymmetricForm(form), basis=basis, n_components=2, constant=False, folds=None, solver="cut"
    )
    np.testing.assert_allclose(model.fit(x).eigenvalues_, [1, 16], rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": ()}, "hidden has the number of neurons"),
        ({"hidden": (0,)}, "hidden of a NeuralBasis is a whole number of 1 or more"),
        ({"features": "last"}, "features must be 'hidden' or 'outputs'"),
        ({"activation": "relu"}, "activation must be"),
        ({"steps": 0}, "steps of a NeuralBasis is a whole number of 1 or more"),
        ({"batch": 3}, "batch of a NeuralBasis is a whole number of 4 or more"),
        ({"rate": -1.0}, "rate, the learning rate, is a positive number"),
        ({"mu": [1.0, 0.0]}, "mu is a positive number, or one for each output"),
        ({"mu": "x"}, "mu is a positive number, or one for each output"),
        ({"weights": ()}, "biases is missing"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeuralBasis(**options)


def test_arrays_that_do_not_fit_are_refused() -> None:
    known = network(3)
    with pytest.raises(ValueError, match=r"has weights of the shapes \[\(7, 3\), \(5, 7\)\] and \(outputs, 5\)"):
        NeuralBasis((7, 5), weights=known.weights[::-1], biases=known.biases, centre=np.zeros(3), scale=np.ones(3))
    with pytest.raises(ValueError, match="is not trained"):
        NeuralBasis().values(np.zeros((1, 2)))


def test_fits_that_cannot_work_are_refused_before_any_training() -> None:
    x = strip(400)
    with pytest.raises(ValueError, match="mu has 3 values, and 4 outputs are trained"):
        fitted(x, network={"mu": (1.0, 2.0, 3.0)})
    with pytest.raises(ValueError, match="mu is of the loss of symmetric operators"):
        fitted(x, Transfer(1), network={"mu": 2.0})
    drift = dsp.form(lambda f, g, x: dsp.inner(f, dsp.partial(g, 1, 0)))
    with pytest.raises(ValueError, match="no loss is known"):
        fitted(x, BilinearForm(drift, "eigen"))
    with pytest.raises(ValueError, match="91 of 110 rows are left to train a network on; 100 at least are needed"):
        fitted(x[:110])
    form = dsp.form(lambda f, g, x: dsp.inner(dsp.second(f), dsp.second(g)))
    with pytest.raises(dsp.errors.SmoothnessError, match="networks are differentiated once"):
        fitted(x, dsp.operators.SymmetricForm(form))
    with pytest.raises(ValueError, match="the networks of both sides are trained together"):
        dsp.SpectralDecomposition(Cross(), basis=NeuralBasis(), right_kernel=dsp.kernels.Gaussian(1.0)).fit((x, x))
    with pytest.raises(ValueError, match="takes the place of a kernel"):
        dsp.SpectralDecomposition(Laplacian(), basis=NeuralBasis(), kernel=dsp.kernels.Gaussian(1.0)).fit(x)
    with pytest.raises(ValueError, match="3 variables, and X has 2 columns"):
        dsp.SpectralDecomposition(basis=network(3)).fit(x)
    with pytest.raises(ValueError, match="leave dtype out"):
        fitted(x, dtype="float32")


@pytest.mark.slow
def test_thin_and_constant_columns_keep_their_units_where_slopes_count() -> None:
    rng, x = np.random.default_rng(0), strip(6000)
    wide = np.hstack([x, 0.01 * rng.normal(size=(6000, 4)), np.full((6000, 1), 7.0)])
    steps = {"steps": 500, "hidden": (32, 32)}
    model = fitted(wide, network=steps)
    np.testing.assert_allclose(model.eigenvalues_[1:3], [1.0966, 4.3865], rtol=0.2)
    np.testing.assert_allclose(model.basis_.parts[-1].scale[:6], x[:, 0].std(), rtol=0.05)


def test_a_training_that_leaves_every_minimum_says_so() -> None:
    with pytest.warns(dsp.errors.FitWarning, match="the loss of the network grew from .* lower the learning rate"):
        model = fitted(strip(), network={"rate": 100.0})
    assert model.eigenvalues_[1] > 0.5  # the functions at random weights, no steps


