"""Every operator by its name in a shell gives what the same operator gives in Python."""

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral import operators
from daskspectral.cli.signatures import documented
from daskspectral.moments.attributes import Attributes
from daskspectral.operators.names import NAMES
from tests.cli.common import done, facts, failure, store

BASIS = "--kernel gaussian:1 --landmarks 25 --components 4 --folds none --out m.zarr"
N, D = 400, 2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
ARRAYS = {
    **{"x": X, "y": X[:, :1] + RNG.standard_normal((N, 1)), "v": (X**2).sum(axis=1), "b": -X},
    **{"x1": X + 0.1 * RNG.standard_normal((N, D)), "u": RNG.standard_normal((N, D))},
    "sigma": np.broadcast_to(np.eye(D), (N, D, D)) * (1 + 0.1 * X[:, :1, None] ** 2),
}
MIXED = operators.DifferentialOperator({((1, 0), (1, 0)): 2.0, ((0, 0), (0, 0)): "w"})
ELLIPTIC = operators.AnisotropicDiffusion
CASES: dict[str, tuple[operators.Operator, dict[str, str]]] = {  # with the fields that are read, or the view
    "laplacian --density 0.5": (operators.Laplacian(density=0.5), {}),
    "laplacian --manifold interval:-6:6": (operators.Laplacian(dsp.manifolds.Interval([-6] * D, [6] * D)), {}),
    "covariance": (operators.Covariance(), {}),
    "schroedinger --potential v.zarr": (operators.Schroedinger(), {"potential": "v"}),
    "anisotropic:factored --diffusion sigma.zarr": (ELLIPTIC(factored=True), {"diffusion": "sigma"}),
    "tangent --direction u.zarr": (operators.TangentPropagation(), {"direction": "u"}),
    "differential --coefficient 1,0:1,0=2 --coefficient 0,0:0,0=w --field w=v.zarr": (MIXED, {"w": "v"}),
    "partial:1": (operators.PartialDerivative(1), {}),
    "generator --drift b.zarr --diffusion 1.5": (operators.Generator("drift", 1.5), {"drift": "b"}),
    "generator:reversible --diffusion 2": (operators.Generator("drift", 2.0, True), {}),
    "transfer --lag 2": (operators.Transfer(2), {}),
    "transfer:2:eigen": (operators.Transfer(2, "eigen"), {}),
    "transfer:2,6:reversible": (operators.Transfer((2, 6), reversible=True), {}),
    "cross:center --view y.zarr": (operators.Cross(center=True), {"view": "y"}),
    "crosscovariance --view y.zarr": (operators.CrossCovariance(), {"view": "y"}),
    "augmentation --view x1.zarr": (operators.Augmentation(2), {"view": "x1"}),
}


@pytest.fixture(autouse=True)
def arrays(folder: object) -> None:
    store(**ARRAYS)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("line", CASES)
@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
def test_the_same_as_in_python(line: str) -> None:
    operator, fields = CASES[line]
    done(f"fit x.zarr --operator {line} {BASIS}")
    found = dsp.load("m.zarr")
    named = {name: ARRAYS[array] for name, array in fields.items()}
    view = named.pop("view", None)
    rows = dsp.Rows(X if view is None else (X, view), fields=named)
    landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 25)
    own = dsp.SpectralDecomposition(operator, landmarks, n_components=4, folds=None, random_state=0).fit(rows)
    assert type(found.operator) is type(operator)
    values = Attributes(own.solver_).values
    np.testing.assert_allclose(getattr(found, values), getattr(own, values), rtol=1e-9, atol=1e-11)
    given = " ".join(f"--view {a}.zarr" if n == "view" else f"--field {n}={a}.zarr" for n, a in fields.items())
    if not line.startswith(("generator", "anisotropic")):  # a score takes the fields and the views too
        assert facts(f"score m.zarr x.zarr {given}")["score"] == pytest.approx(own.score(rows))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_lag_in_time_needs_rows_with_times() -> None:
    times = np.datetime64("2000", "h") + 6 * np.arange(len(X))
    xr.DataArray(X, {"time": times.astype("M8[ns]")}, ("time", "place"), name="x").to_netcdf("t.nc")
    for operator in ("transfer --lag 1D", "transfer:24h"):
        done(f"fit t.nc --operator {operator} {BASIS} --overwrite")
        assert dsp.load("m.zarr").lags_.tolist() == [4]
    code, said = failure(f"fit x.zarr --operator transfer --lag 1D {BASIS} --overwrite")
    assert (code, "'1D'" in said) == (1, True)


def test_every_named_operator_is_tried() -> None:
    assert {line.split()[0].partition(":")[0] for line in CASES} == set(NAMES)
    usages = ", ".join(named.usage for named in NAMES.values())
    assert documented("operators.names:parse")["text"].sentence.partition(": ")[2] == usages


@pytest.mark.parametrize("solver", ["eig", "covariance", "principal", "symmetric"])
def test_solvers_of_operators_are_those_of_their_form(solver: str) -> None:
    with pytest.raises(ValueError, match=r"solver.* 'eigen' or 'singular'|solver.* 'singular' or 'eigen'"):
        operators.Transfer(5, solver)
