"""Models of every kind from a shell are those of Python, and so is what follows."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral.basis import FourierBasis, Landmarks, NeuralBasis
from daskspectral.groups.names import parse_group
from daskspectral.kernels import Gaussian
from daskspectral.operators import Laplacian
from tests.cli.common import call, done, failure, store
from tests.common import unreliable, written

pytestmark = [unreliable, pytest.mark.filterwarnings("ignore::UserWarning")]  # few rows
RNG = np.random.default_rng(0)
PLANE = RNG.uniform(-2, 2, (300, 2))
SPHERE = RNG.standard_normal((300, 3))
SPHERE /= np.linalg.norm(SPHERE, axis=1, keepdims=True)
ARC = np.column_stack([np.cos(3 * np.linspace(0, 1, 120)), np.sin(3 * np.linspace(0, 1, 120)), np.zeros(120)])
VALUES = np.sin(PLANE[:, 0]) * PLANE[:, 1]
SLOPES = np.column_stack([np.cos(PLANE[:, 0]) * PLANE[:, 1], np.sin(PLANE[:, 0])])
QUARTIC = (SPHERE**4).sum(axis=1)
FRAME = pd.DataFrame({"iron": QUARTIC, "ash": PLANE[:, 1], "malt": PLANE[:, 0]})
TIMES = np.datetime64("2000-01", "ns") + np.arange(150) * np.timedelta64(30, "D")
COORDS: dict[str, Any] = {"time": TIMES, "lat": [-60.0, -20.0, 20.0, 60.0], "lon": [0.0, 90.0, 180.0]}
FIELD = xr.DataArray(RNG.standard_normal((150, 4, 3)), COORDS, ("time", "lat", "lon"), name="t")
FIELD[:, 3, 0] = np.nan


@pytest.fixture(autouse=True)
def arrays(folder: Path) -> None:
    store(arc=ARC, plane=PLANE, values=VALUES, slopes=SLOPES, sphere=SPHERE, quartic=QUARTIC, cubic=4 * SPHERE**3)
    FRAME.to_csv("table.csv", index=False)
    FRAME.assign(city="Ulm").to_parquet("table.parquet")
    FIELD.to_netcdf("t.nc", engine="h5netcdf")
    FIELD.to_dataset().to_zarr("t.zarr", zarr_format=2)


def spectral(basis: Any, operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    given: dict[str, Any] = {"n_components": 3, "random_state": 0} | options
    return dsp.SpectralDecomposition(operator, basis, **given)


def field() -> dsp.Rows:
    options: dict[str, Any] = {"latitude": "lat", "on_invalid": "skip", "anomaly": "season", "detrend": 1}
    return dsp.Rows(FIELD, sample_dims="time", **options)


OF_FIELD = "--operator covariance --sample-dims time --latitude lat --on-invalid skip --anomaly season --detrend 1"
INVARIANT = "invariant sphere.zarr quartic.zarr --manifold sphere --group permutations+signflips --functions 100"
CUBE = parse_group("permutations+signflips", 3)
CASES: dict[str, tuple[Callable[[], Any], str, Any]] = {  # with an attribute, and points
    "embed arc.zarr --bandwidth 0.5 --method exact --columns 0:2 --seed 3 --tolerance 1e-6": (
        lambda: dsp.SDPEmbedding(
            0.5, method="exact", solver=dsp.solvers.BurerMonteiro(tolerance=1e-6), random_state=3
        ).fit(dsp.Rows(ARC, columns=[0, 1])),
        "spectrum_",
        ARC,
    ),
    "embed arc.zarr --bandwidth median --map diffusion --components 3 --time 2 --density 1": (
        lambda: dsp.DiffusionMap("median", n_components=3, time=2.0, alpha=1.0, random_state=0).fit(ARC),
        "bandwidth_",
        ARC,
    ),
    "embed arc.zarr --bandwidth 0.5 --map kernel": (lambda: dsp.KernelEmbedding(bandwidth=0.5).fit(ARC), "dual_", ARC),
    "regress plane.zarr values.zarr --kernel gaussian:2 --landmarks 60 --seed 1 --standardize "
    "--gradients slopes.zarr --gradient-weight 0.5": (
        lambda: dsp.HermiteRegressor(Landmarks(Gaussian(2), 60), gradient_weight=0.5, random_state=1).fit(
            dsp.Rows(PLANE, standardize=True), VALUES, SLOPES
        ),
        "coef_",
        PLANE,
    ),
    f"{INVARIANT} --gradients cubic.zarr --gradient-weight 0.5": (
        lambda: dsp.InvariantRegressor(dsp.manifolds.Sphere(3), CUBE, n_eigenfunctions=100, gradient_weight=0.5).fit(
            SPHERE, QUARTIC, 4 * SPHERE**3
        ),
        "alpha_",
        SPHERE,
    ),
    "fit plane.zarr --lattice 4,3 --periods 0:6.25 --components 3 --penalty 1": (
        lambda: spectral(FourierBasis((4, 3), periods=(6.25, None)), solver=dsp.solvers.Regularized(1.0)).fit(PLANE),
        "eigenvalues_",
        PLANE,
    ),
    "fit plane.zarr --kernel gaussian:1 --landmarks 20 --periods 0:6.25 --density 1 --components 3": (
        lambda: spectral(Landmarks(Gaussian(1), 20, periods={0: 6.25}), Laplacian(density=1.0)).fit(PLANE),
        "eigenvalues_",
        PLANE,
    ),
    **{
        f"fit table.{kind} --columns malt,ash --kernel gaussian:1 --landmarks 20 --components 3": (
            lambda: spectral(Landmarks(Gaussian(1), 20)).fit(PLANE),
            "eigenvalues_",
            PLANE,
        )
        for kind in ("csv", "parquet")
    },
    f"fit t.nc {OF_FIELD} --components 3": (lambda: dsp.EOF(3, random_state=0).fit(field()), "eigenvalues_", FIELD),
    **{
        f"fit plane.zarr --view slopes.zarr --operator {operator} --components 1": (
            partial(lambda kind: kind(1, random_state=0).fit(PLANE, SLOPES), kind),
            "singular_values_",
            PLANE,
        )
        for operator, kind in (("cross:center --kernel linear", dsp.CCA), ("crosscovariance --kernel linear", dsp.MCA))
    },
    f"fit t.zarr {OF_FIELD} --components 3": (lambda: dsp.EOF(3, random_state=0).fit(field()), "eigenvalues_", FIELD),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("line", CASES)
def test_the_same_as_in_python(line: str) -> None:
    """Parameters and defaults too; what is printed is what `info` prints; values are written as Python returns them."""
    make, attribute, points = CASES[line]
    told, again = done(f"{line} --out m.zarr"), make()
    model = dsp.load("m.zarr")
    assert type(model) is type(again)
    found, wanted = (one.get_params(deep=False) for one in (model, again))
    decided = {name: value for name, value in wanted.items() if value is not None}  # others are filled in
    assert {name: str(found[name]) for name in decided} == {name: str(value) for name, value in decided.items()}
    one, other = (np.ravel(getattr(fitted, attribute)) for fitted in (model, again))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    assert done("info m.zarr") in told
    evaluate = "predict" if hasattr(again, "predict") else "transform"
    done(f"{evaluate} m.zarr {line.split()[1]} --out e.zarr")
    wanted = np.asarray(getattr(again, evaluate)(points))
    np.testing.assert_allclose(written("e.zarr").reshape(wanted.shape), wanted, rtol=0, atol=1e-6)
    if points is FIELD:
        assert xr.open_zarr("e.zarr")[again._values_name].dims == ("time", again._numbering[0])
    if evaluate == "predict":
        done(f"predict m.zarr {line.split()[1]} --gradient --out g.zarr")
        slopes = np.asarray(again.predict_gradient(points))
        np.testing.assert_allclose(written("g.zarr").reshape(slopes.shape), slopes, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_metastable_sets_and_pictures_of_lags() -> None:
    path = np.cumsum(np.random.default_rng(0).standard_normal((600, 1)), axis=0) % 10
    store(path=path)
    done("fit path.zarr --operator transfer:1,2,5:reversible --components 4 --landmarks 20 --out k.zarr")
    told, model = done("transform k.zarr path.zarr --sets 2 --out chi.zarr"), dsp.load("k.zarr")
    sets = model.metastable_sets(2, path)
    np.testing.assert_allclose(written("chi.zarr"), sets.memberships(path), rtol=0, atol=1e-12)
    assert repr(sets) in told
    for kind in ("timescales", "chapman-kolmogorov"):
        done(f"plot k.zarr --kind {kind} --out {kind}.png")
        assert Path(f"{kind}.png").stat().st_size > 1000


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="networks are trained by JAX: extra `neural`")
    defaults: Any = NeuralBasis.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "steps", 40)
    done("fit plane.zarr --network 12,10 --components 3 --out n.zarr")
    network = dsp.load("n.zarr").basis_.parts[-1]
    assert [len(b) for b in network.biases] == [12, 10, 3]


def test_clusters_from_a_shell_are_those_of_python() -> None:
    assert "3 clusters" in done("cluster plane.zarr --clusters 3 --centroids 60 --out labels.zarr")
    model = dsp.SpectralClustering(3, n_centroids=60, random_state=0).fit(PLANE)
    np.testing.assert_array_equal(xr.open_zarr("labels.zarr").cluster, model.labels_)
    done("cluster plane.zarr --clusters 3 --centroids 60 --assign-labels raw --save-model c.zarr --out raw.zarr")
    done("predict c.zarr plane.zarr --out again.zarr")
    np.testing.assert_array_equal(xr.open_zarr("again.zarr").cluster, xr.open_zarr("raw.zarr").cluster)
    assert dsp.load("c.zarr").assign_labels == "raw"
    assert "for regressors" in failure("predict c.zarr plane.zarr --gradient --out g.zarr")[1]
