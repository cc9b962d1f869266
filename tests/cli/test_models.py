"""Embeddings, regressions, atoms, lattices and networks from a shell are those of Python, and so is what follows."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.basis import Landmarks, NeuralBasis
from tests.cli.common import call, done, store
from tests.common import doubtful, written

RNG = np.random.default_rng(0)
PLANE = RNG.uniform(-2, 2, (300, 2))
SPHERE = RNG.standard_normal((300, 3))
SPHERE /= np.linalg.norm(SPHERE, axis=1, keepdims=True)
ARC = np.column_stack([np.cos(3 * np.linspace(0, 1, 120)), np.sin(3 * np.linspace(0, 1, 120)), np.zeros(120)])
VALUES = np.sin(PLANE[:, 0]) * PLANE[:, 1]
SLOPES = np.column_stack([np.cos(PLANE[:, 0]) * PLANE[:, 1], np.sin(PLANE[:, 0])])
QUARTIC = (SPHERE**4).sum(axis=1)


@pytest.fixture(autouse=True)
def arrays(folder: Path) -> None:
    store(arc=ARC, plane=PLANE, values=VALUES, slopes=SLOPES, sphere=SPHERE, quartic=QUARTIC, cubic=4 * SPHERE**3)


@doubtful
def test_the_semidefinite_embedding() -> None:
    told = done("embed arc.zarr --bandwidth 0.5 --method exact --columns 0:2 --seed 3 --tolerance 1e-6 --out m.zarr")
    model = dsp.load("m.zarr")
    ascent = dsp.solvers.Ascent(tolerance=1e-6)
    again = dsp.SDPEmbedding(0.5, method="exact", solver=ascent, random_state=3)
    again.fit(dsp.Rows("arc.zarr", columns=[0, 1]))
    np.testing.assert_array_equal(model.spectrum_, again.spectrum_)
    assert done("info m.zarr") in told
    done("transform m.zarr arc.zarr --out t.zarr")
    np.testing.assert_allclose(written("t.zarr"), np.asarray(again.embedding_), rtol=0, atol=1e-8)
    line = "embed arc.zarr --bandwidth 0.5 --method lowrank --landmarks 40 --max-passes 2 --checkpoint c --overwrite"
    for _ in range(2):  # the second goes on where the first stopped
        with pytest.warns(match="not proved optimal"):
            assert "of the objective, not proved optimal to 1e-10" in done(f"{line} --out l.zarr")


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")  # few rows
def test_metastable_sets_and_pictures_of_lags() -> None:
    path = np.cumsum(np.random.default_rng(0).standard_normal((600, 1)), axis=0) % 10
    store(path=path)
    done("fit path.zarr --operator transfer:1:reversible --further 2,5 --components 4 --landmarks 20 --out t.zarr")
    told, model = done("transform t.zarr path.zarr --sets 2 --out chi.zarr"), dsp.load("t.zarr")
    sets = model.metastable_sets(2, path)
    np.testing.assert_allclose(written("chi.zarr"), model.memberships(path), rtol=0, atol=1e-12)
    assert f"{sets.gap:.3g}" in told
    for kind in ("timescales", "chapman-kolmogorov"):
        done(f"plot t.zarr --kind {kind} --out {kind}.png")
        assert Path(f"{kind}.png").stat().st_size > 1000
    done("embed arc.zarr --map diffusion --bandwidth 0.5 --out d.zarr")
    assert "--sets" in call("transform d.zarr arc.zarr --sets 2 --out c.zarr").output


def test_a_diffusion_map() -> None:
    line = "embed arc.zarr --bandwidth median --map diffusion --components 3 --time 2 --density 1 --out m.zarr"
    described = done(line)
    done("transform m.zarr arc.zarr --out e.zarr")
    again = dsp.DiffusionMap("median", n_components=3, time=2, alpha=1, random_state=0).fit(ARC)
    np.testing.assert_allclose(written("e.zarr"), again.embedding_, rtol=0, atol=1e-10)
    assert f"method      exact, all 120 points\nbandwidth   {again.bandwidth_:g}, median\n" in described


def test_regression_on_values_and_gradients() -> None:
    fit = "regress plane.zarr values.zarr --kernel gaussian:2 --landmarks 60 --seed 1 --standardize"
    told = done(f"{fit} --gradients slopes.zarr --gradient-weight 0.5 --out m.zarr")
    model, landmarks = dsp.load("m.zarr"), Landmarks(dsp.kernels.Gaussian(2.0), 60)
    again = dsp.HermiteRegressor(landmarks, gradient_weight=0.5, random_state=1)
    again.fit(dsp.Rows(PLANE, standardize=True), VALUES, SLOPES)
    np.testing.assert_allclose(model.coef_.ravel(), again.coef_, rtol=1e-6)
    assert done("info m.zarr") in told
    done("predict m.zarr plane.zarr --out p.zarr")
    done("predict m.zarr plane.zarr --gradient --out g.zarr")
    np.testing.assert_allclose(written("p.zarr").ravel(), VALUES, rtol=0, atol=0.01)  # of 60 landmarks: 0.003
    np.testing.assert_allclose(written("g.zarr").reshape(300, 2), SLOPES, rtol=0, atol=0.05)


@doubtful
def test_two_fits_share_functions_and_are_merged() -> None:
    x = np.random.default_rng(0).standard_normal((900, 3))
    store(all=x, early=x[:500], late=x[500:])
    done("fit early.zarr --columns 2,0 --kernel gaussian:2 --landmarks 12 --components 3 --out early.model")
    done("fit late.zarr --functions-of early.model --components 3 --out late.model")
    assert "rows        900" in done("merge early.model late.model --out both.zarr")
    done("fit all.zarr --functions-of early.model --components 3 --out once.model")
    both, once = (dsp.load(path) for path in ("both.zarr", "once.model"))
    np.testing.assert_allclose(both.eigenvalues_, once.eigenvalues_, rtol=1e-9, atol=1e-12)
    done("fit early.zarr --standardize --kernel gaussian:2 --landmarks 12 --components 3 --out scaled.model")
    assert isinstance(call("fit late.zarr --functions-of scaled.model --out no.model").exception, ValueError)


def test_a_regressor_is_updated_and_merged() -> None:
    store(half=PLANE[:200], half_values=VALUES[:200])
    done("regress half.zarr half_values.zarr --kernel gaussian:2 --landmarks 30 --alpha 1e-6 --out half.model")
    assert "rows        300" in done("update half.model plane.zarr --targets values.zarr --out m.zarr")
    again = dsp.load("half.model").update(PLANE, VALUES)
    np.testing.assert_allclose(dsp.load("m.zarr").predict(PLANE), again.predict(PLANE), rtol=0, atol=1e-9)
    assert "rows        500" in done("merge half.model m.zarr --out both.zarr")


def test_invariant_regression() -> None:
    line = "invariant sphere.zarr quartic.zarr --manifold sphere --group permutations+signflips"
    told = done(f"{line} --functions 49 --alpha 0 --out m.zarr")
    assert "3 invariant ones of 49\n" in told  # Molien: 1 / ((1 - t^4) (1 - t^6))
    done("predict m.zarr sphere.zarr --out p.zarr")
    np.testing.assert_allclose(written("p.zarr").ravel(), QUARTIC, rtol=0, atol=1e-10)  # in their span
    degrees = np.array([line.split() for line in told.splitlines()[-8:-1]], dtype=float)
    np.testing.assert_array_equal(degrees[:, 1:3], [[k * (k + 1), 2 * k + 1] for k in range(7)])
    done(f"{line} --gradients cubic.zarr --gradient-weight 0.5 --functions 100 --out g.zarr")
    done("predict g.zarr sphere.zarr --gradient --out s.zarr")
    normal = SPHERE * np.sum(4 * SPHERE**4, axis=1, keepdims=True)
    np.testing.assert_allclose(written("s.zarr").reshape(300, 3), 4 * SPHERE**3 - normal, atol=1e-4)


@doubtful
def test_lattices_networks_densities_and_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    told = done("fit plane.zarr --lattice 4,3 --periods 0:6.25 --components 3 --penalty 1 --out m.zarr")
    assert "a lattice of Fourier functions" in told
    assert (dsp.load("m.zarr").basis_.orders, dsp.load("m.zarr").basis_.periods) == ((4, 3), (6.25, None))
    fit = "fit plane.zarr --kernel gaussian:1 --landmarks 20 --periods 0:6.25 --density 1 --out d.zarr"
    assert re.search(r"density     \d+ centres, bandwidth ", done(fit))
    pytest.importorskip("jax", reason="networks are trained by JAX: extra `neural`")
    defaults: Any = NeuralBasis.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "steps", 40)
    assert "a network of 2 hidden layers" in done("fit plane.zarr --network 12,10 --components 3 --out n.zarr")
    network = dsp.load("n.zarr").basis_.parts[-1]
    assert (network.hidden, network.steps, network.frozen) == ((12, 10), 40, True)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows
def test_a_labelled_field_is_that_of_python() -> None:
    """A NetCDF file and a zarr group give the model of the Python interface; land stays empty in what comes out."""
    coords = {"lat": [-60.0, -20.0, 20.0, 60.0], "lon": [0.0, 90.0, 180.0]}
    field = xr.DataArray(RNG.standard_normal((150, 4, 3)), coords, ("time", "lat", "lon"), name="t")
    field[:, 3, 0] = np.nan
    field.to_netcdf("t.nc", engine="h5netcdf")
    field.to_dataset().to_zarr("t.zarr", zarr_format=2)
    rows = dsp.Rows(field, sample_dims=("time",), latitude="lat", on_invalid="skip")
    wanted = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=3, random_state=0).fit(rows)
    for source in ("t.nc", "t.zarr"):
        line = f"fit {source} --operator covariance --sample-dims time --latitude lat --on-invalid skip --components 3"
        done(f"{line} --out m.zarr --overwrite")
        np.testing.assert_array_equal(dsp.load("m.zarr").eigenvalues_, wanted.eigenvalues_)
        done(f"transform m.zarr {source} --out f.zarr --overwrite")
        functions = xr.open_zarr("f.zarr")["eigenfunction"]
        assert functions.dims == ("time", "component")
        np.testing.assert_allclose(functions, wanted.transform(field), rtol=1e-12)
    assert "'latitude'" in str(call("fit t.nc --latitude latitude --on-invalid skip --out n.zarr").exception)


@doubtful
def test_anomalies_of_a_field() -> None:
    times = np.datetime64("2000-01", "ns") + np.arange(200) * np.timedelta64(30, "D")
    values = np.random.default_rng(0).standard_normal((200, 3)) + np.arange(200)[:, None] / 50
    field = xr.DataArray(values, {"time": times}, ("time", "lon"), name="t")
    field.to_netcdf("t.nc")
    asked = "--operator covariance --sample-dims time --anomaly season --detrend 1 --components 2"
    done(f"fit t.nc {asked} --out model.zarr")
    rows = dsp.Rows(field, sample_dims="time", anomaly="season", detrend=1)
    model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2).fit(rows)
    np.testing.assert_allclose(dsp.load("model.zarr").eigenvalues_, model.eigenvalues_, rtol=1e-10)
    assert "less the mean of each season and a trend of degree 1" in done("info model.zarr --details")
    done("transform model.zarr t.nc --out f.zarr")
    np.testing.assert_allclose(written("f.zarr"), model.transform(field), atol=1e-10)
