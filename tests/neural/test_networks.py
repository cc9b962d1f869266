"""A network as the basis of an estimator: trained, frozen, measured, saved, and judged on rows that it did not see."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import NeuralBasis
from daskspectral.moments.folds import hashed
from daskspectral.passes.session import TrainingState
from tests.common import assert_close, assert_same_bits

pytest.importorskip("jax", reason="networks are trained by JAX: extra `neural`")
BENDING = dsp.operators.SymmetricForm(
    dsp.forms.form(lambda f, g, x: dsp.forms.inner(dsp.forms.second(f), dsp.forms.second(g)))
)
SMALL = {"hidden": (16, 16), "steps": 60, "batch": 64, "checks": 3}


def strip(n: int = 2000, seed: int = 0) -> np.ndarray:
    """A rectangle, whose first eigenvalues are 0, 1, 4 and 9 times (pi / 3)^2."""
    return np.random.default_rng(seed).uniform(0, 1, (n, 2)) * [3, 0.5]


def fitted(x: Any, operator: Any = None, **options: Any) -> Any:
    basis = NeuralBasis(**{**SMALL, **options.pop("network", {})})
    options = {"n_components": 4, "random_state": 0, **options}
    return dsp.SpectralDecomposition(operator, basis=basis, **options).fit(x)


@pytest.mark.slow
def test_the_values_on_held_out_rows_are_of_two_folds_that_no_network_saw() -> None:
    """Rows of the reserved ones change nothing, others change the network."""
    x = strip()
    model = fitted(x)
    assert model.moments_.folds.reserved == (8, 9)
    reserved = hashed(np.arange(len(x)), 10) >= 8
    for own, same in ((reserved, True), (~reserved, False)):
        other = x.copy()
        other[own] = x[own][::-1]
        other = _weights(fitted(other))
        assert all((a == b).all() for a, b in zip(_weights(model), other, strict=True)) == same


def _weights(model: Any) -> tuple[np.ndarray, ...]:
    network = model.basis_.parts[-1]
    return (*network.weights, *network.biases, network.center, network.scale)


@pytest.mark.slow
def test_a_trained_network_has_the_eigenvalues_of_a_strip_again_and_as_it_is() -> None:
    x, exact = strip(4000), np.arange(4) ** 2 * (np.pi / 3) ** 2
    model = fitted(x, network={"steps": 400, "hidden": (32, 32)})
    np.testing.assert_allclose(model.eigenvalues_, exact, rtol=0.2, atol=1e-8)
    np.testing.assert_allclose(model.validation_values_, exact, rtol=0.2, atol=1e-8)
    repeated = dsp.SpectralDecomposition(**model.search_results_.best_params).fit(da.from_array(x, chunks=(300, 2)))
    assert_close(repeated.eigenvalues_, model.eigenvalues_, 1e-9)
    known = dsp.SpectralDecomposition(basis=model.basis_.parts[-1], n_components=4).fit(x)
    assert_close(known.eigenvalues_, model.eigenvalues_, 1e-12)


@pytest.mark.slow
def test_a_saved_network_loads_without_jax(tmp_path: Path) -> None:
    x = strip()
    model = fitted(x)
    model.save(tmp_path / "model.zarr")
    np.savez(tmp_path / "known.npz", x=x[:50], values=model.transform(x[:50]))
    script = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "optax"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import numpy as np, daskspectral as dsp
model = dsp.load({str(tmp_path / "model.zarr")!r})
known = np.load({str(tmp_path / "known.npz")!r})
assert np.array_equal(model.transform(known["x"]), known["values"])
try:
    dsp.SpectralDecomposition(basis=dsp.basis.NeuralBasis(), n_components=2).fit(np.tile(known["x"], (9, 1)))
except ImportError as error:
    assert "pip install jax optax" in str(error), error
else:
    raise AssertionError("a network was trained without jax")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


@pytest.mark.slow
def test_a_stopped_training_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, path = strip(), tmp_path / "run"
    whole = fitted(x)
    write, written = TrainingState.write, []

    def stopping(self: TrainingState, state: Any) -> None:
        write(self, state)
        written.append(state.step)
        if len(written) == 2:
            raise KeyboardInterrupt

    model = dsp.SpectralDecomposition(basis=NeuralBasis(**SMALL), n_components=4, random_state=0)
    monkeypatch.setattr(TrainingState, "write", stopping)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, checkpoint=path)
    with pytest.raises(ValueError, match="the training of another run"):
        clone(model).set_params(random_state=5).fit(x, checkpoint=path)
    model.fit(x, checkpoint=path)
    assert written == [20, 40, 60]
    assert_same_bits(model.moments_, whole.moments_)


@pytest.mark.parametrize(
    ("operator", "rows", "message"),
    [(BENDING, 400, "derivatives of order 2"), (None, 110, "of 110")],
)
def test_fits_that_cannot_work_are_refused_before_any_training(operator: Any, rows: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(strip(rows), operator)
