"""Functions that vanish at the ends of the data: derivatives, sums, Dirichlet spectra, and what is refused."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import jn_zeros
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import (
    BallEdge,
    Basis,
    BoxEdge,
    CallableBasis,
    Concatenated,
    ConstantBasis,
    FourierBasis,
    HarmonicBasis,
    LandmarkBasis,
    MonomialBasis,
    Vanishing,
)
from daskspectral.basis.edges import Edge, GivenEdge
from daskspectral.errors import SmoothnessError
from daskspectral.forms import along, dirichlet, form, gram, inner, partial
from daskspectral.kernels import Exponential, Gaussian, Linear, Matern, Periodic, Polynomial
from daskspectral.manifolds import PeriodicBox
from daskspectral.moments import Measure
from daskspectral.testing import check_basis
from tests.basis.common import triple_loop
from tests.common import assert_close

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, (40, 2))
Y = RNG.uniform(0.1, 0.9, (6, 2))
EDGES: dict[str, Edge] = {
    "box": BoxEdge([0, 0], [1, 1.2]),
    "strip": BoxEdge([0, -np.inf], [np.inf, 1]),
    "ball": BallEdge(2.0, (0.5, 0.1)),
}
BASES: dict[str, Basis] = {
    "gaussian": LandmarkBasis(Gaussian(0.5), Y),
    "exponential": LandmarkBasis(Exponential(0.5), Y),
    "matern": LandmarkBasis(Matern(2.5, 0.5), Y),
    "polynomial": LandmarkBasis(Polynomial(3), Y),
    "sum of two families": LandmarkBasis(Gaussian(0.5) + Linear(), Y),
    "periodic": LandmarkBasis(Periodic(Gaussian(0.5), (1.0, None)), Y),
    "fourier": FourierBasis.draw(Gaussian(0.5), 2, 6, 0),
    "monomials": MonomialBasis(2, 3),
    "harmonics": HarmonicBasis(PeriodicBox([0, 0], [1, 1]), 4),
    "constant": ConstantBasis(2),
    "callable": CallableBasis(lambda x: np.sin(x).T, lambda x: np.cos(x).T[:, :, None] * np.eye(2)[:, None], d=2),
    "concatenated": Concatenated((ConstantBasis(2), LandmarkBasis(Gaussian(0.5), Y), MonomialBasis(2, 2))),
}


def square_edge(x: Any) -> Any:
    return x[:, 0] * (1 - x[:, 0])


def square_slope(x: Any) -> Any:
    return np.column_stack([1 - 2 * x[:, 0], np.zeros(len(x))])


def square_bend(x: Any) -> Any:
    found = np.zeros((len(x), 2, 2))
    found[:, 0, 0] = -2
    return found


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", BASES)
def test_any_basis_times_any_edge(name: str, edge: str) -> None:
    basis = Vanishing(BASES[name], EDGES[edge])
    np.testing.assert_allclose(basis.values(X), BASES[name].values(X) * EDGES[edge].values(X), rtol=1e-12, atol=1e-15)
    check_basis(basis, X)


def test_two_edges_one_after_the_other() -> None:
    check_basis(Vanishing(Vanishing(BASES["gaussian"], EDGES["box"]), EDGES["ball"]), X)
    assert Vanishing(Vanishing(BASES["gaussian"], EDGES["box"]), EDGES["ball"]).edges == (EDGES["ball"], EDGES["box"])


def test_a_function_with_its_derivatives_and_with_fewer() -> None:
    full = Vanishing(BASES["gaussian"], square_edge, square_slope, square_bend)
    check_basis(full, X)
    assert (full.order, Vanishing(BASES["gaussian"], square_edge, square_slope).order) == (2, 1)
    check_basis(Vanishing(BASES["gaussian"], square_edge, square_slope), X)
    check_basis(Vanishing(BASES["gaussian"], square_edge), X)
    with pytest.raises(SmoothnessError, match=r"order 1, .* give Vanishing the gradient of its function"):
        Vanishing(BASES["gaussian"], square_edge).check_order(1, "laplacian")
    with pytest.raises(SmoothnessError, match=r"order 2, .* give Vanishing the hessian of its function"):
        Vanishing(BASES["gaussian"], square_edge, square_slope).check_order(2, "generator")
    with pytest.raises(SmoothnessError, match="smoother kernel"):
        Vanishing(BASES["exponential"], EDGES["box"]).check_order(2, "generator")


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_derivatives_of_a_box(data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 4))
    lower = np.array(data.draw(st.lists(st.floats(-3, 0), min_size=d, max_size=d)))
    upper = lower + data.draw(st.lists(st.floats(0.5, 4), min_size=d, max_size=d))
    free = np.array(data.draw(st.lists(st.sampled_from([0, 1, 2]), min_size=d, max_size=d)))
    free[0] = 0
    edge = BoxEdge(np.where(free > 0, -np.inf, lower).tolist(), np.where(free > 1, np.inf, upper).tolist())
    x = lower + (upper - lower) * np.random.default_rng(d).uniform(0.1, 0.9, (5, d))
    plain = np.ones(5)
    for a in range(d):
        both = 4 * (x[:, a] - lower[a]) * (upper[a] - x[:, a]) / (upper[a] - lower[a]) ** 2
        plain *= [both, upper[a] - x[:, a], 1.0][free[a]]
    np.testing.assert_allclose(edge.values(x), plain, rtol=1e-12)
    step = 1e-5
    for a in range(d):
        shift = step * np.eye(d)[a]
        slope = (edge.values(x + shift) - edge.values(x - shift)) / (2 * step)
        np.testing.assert_allclose(edge.gradient(x)[:, a], slope, rtol=1e-6, atol=1e-6 * np.abs(edge.gradient(x)).max())
        bend = (edge.gradient(x + shift) - edge.gradient(x - shift)) / (2 * step)
        np.testing.assert_allclose(
            edge.hessian(x)[:, a], bend, rtol=1e-6, atol=1e-6 * max(1, np.abs(edge.hessian(x)).max())
        )


@pytest.mark.parametrize("name", ["gaussian", "matern", "polynomial", "periodic", "concatenated"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_against_a_triple_loop(name: str, dtype: str) -> None:
    basis, edge = BASES[name], EDGES["box"]
    batch = {"x": X, "weight": RNG.uniform(0.1, 2, len(X)), "u": RNG.standard_normal(X.shape)}
    phi, w, slope = basis.values(X), edge.values(X), edge.gradient(X)
    step, tables = 1e-6, {"value": phi * w}
    partials = []
    for a in range(2):  # of phi alone by differences: independent of the basis's own derivatives
        shift = step * np.eye(2)[a]
        partials.append(w * (basis.values(X + shift) - basis.values(X - shift)) / (2 * step) + slope[:, a] * phi)
    tables["along"] = np.sum([p * batch["u"][:, a] for a, p in enumerate(partials)], axis=0)

    @form
    def turned(f: Any, g: Any, x: Any) -> Any:
        return inner(f, along(g, x.u)) + inner(partial(f, 1, 0), partial(g, 0, 1))

    whole = Vanishing(basis, edge)
    found = Measure(whole, whole, {"gram": gram, "dirichlet": dirichlet, "turned": turned}, dtype=dtype, rows=16)(
        [batch]
    )
    weight = batch["weight"]
    wanted = {
        "gram": triple_loop(tables["value"], tables["value"], weight),
        "dirichlet": sum(triple_loop(p, p, weight) for p in partials),
        "turned": triple_loop(tables["value"], tables["along"], weight) + triple_loop(*partials, weight),
    }
    assert_close(found, wanted, 1e-8 if dtype == "float64" else 1e-5)


# -- spectra -----------------------------------------------------------------------------------------------------------

N = 20_000
SETTINGS: dict[str, Any] = {"landmarks": "kmeans++", "random_state": 0}


def interval() -> tuple[Any, Any, Any]:
    return np.random.default_rng(0).uniform(0, np.pi, (N, 1)), BoxEdge(0, np.pi), np.arange(1, 7) ** 2.0


def square() -> tuple[Any, Any, Any]:
    k = np.arange(1, 8)
    values = np.sort((k[:, None] ** 2 + k**2).ravel())[:6]
    return np.random.default_rng(1).uniform(0, np.pi, (N, 2)), BoxEdge([0, 0], [np.pi, np.pi]), values


def disc() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(2)
    angle, radius = rng.uniform(0, 2 * np.pi, N), 2 * np.sqrt(rng.random(N))
    zeros = np.concatenate([np.repeat(jn_zeros(m, 4), 1 if m == 0 else 2) for m in range(6)])
    x = np.column_stack([1 + radius * np.cos(angle), radius * np.sin(angle)])
    return x, BallEdge(2.0, (1.0, 0.0)), np.sort((zeros / 2) ** 2)[:6]


@pytest.mark.parametrize("problem", [interval, square, disc])
def test_dirichlet_spectra_of_landmarks_of_the_data(problem: Any) -> None:
    x, edge, values = problem()
    model = dsp.SpectralDecomposition(
        kernel=Gaussian(0.7), basis=Vanishing("landmarks", edge), n_landmarks=60, n_components=6, **SETTINGS
    ).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=0.02)
    assert isinstance(model.kernel_, Gaussian)
    assert model.transform(x[:9]).shape == (9, 6)
    np.testing.assert_allclose(np.mean(model.transform(x) ** 2, axis=0), 1, rtol=2e-2)


@pytest.mark.parametrize("basis", [MonomialBasis(2, 8), FourierBasis.draw(Gaussian(1.5), 2, 60, 0)])
def test_dirichlet_spectra_of_a_basis_that_is_given(basis: Basis) -> None:
    x, edge, values = square()
    model = dsp.SpectralDecomposition(basis=Vanishing(basis, edge), n_components=6).fit(x)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=0.02)
    assert model.basis_.size == basis.size  # no constant beside them


def test_functions_vanish_and_the_sine_is_found() -> None:
    x, edge, _ = interval()
    model = dsp.SpectralDecomposition(
        kernel=Gaussian(1.0), basis=Vanishing("landmarks", edge), n_landmarks=40, n_components=2, **SETTINGS
    ).fit(x)
    grid = np.linspace(0, np.pi, 33)[:, None]
    first = model.transform(grid)[:, 0]
    np.testing.assert_allclose(np.abs(first), np.sqrt(2) * np.sin(grid[:, 0]), atol=0.03)
    np.testing.assert_allclose(model.transform(grid[[0, -1]]), 0, atol=1e-12)


# -- estimators --------------------------------------------------------------------------------------------------------


def test_no_constant_joins_it() -> None:
    x, edge, _ = interval()
    basis = Vanishing(MonomialBasis(1, 6), edge)
    assert basis.vanishes
    assert not basis.holds_constant
    both = Concatenated((basis, basis))
    assert (both.vanishes, both.edges) == (True, (edge, edge))
    assert not Concatenated((ConstantBasis(1), basis)).vanishes
    with pytest.raises(ValueError, match="constant=True would add a function that does not vanish"):
        dsp.SpectralDecomposition(basis=basis, constant=True, n_components=2).fit(x)
    beside = Concatenated((ConstantBasis(1), basis))
    assert dsp.SpectralDecomposition(basis=beside, n_components=2).fit(x).eigenvalues_[0] < 1e-10


def test_a_model_is_saved_cloned_and_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, edge, _ = interval()
    x = x[:3000]
    model = dsp.SpectralDecomposition(
        kernel=Gaussian(1.0),
        basis=Vanishing("landmarks", edge),
        n_landmarks=20,
        n_components=3,
        solver="cut",
        random_state=0,
    )
    again = clone(model)
    assert again.basis.edge == edge
    model.fit(x[:2000])
    model.save(tmp_path / "m.zarr")
    loaded = dsp.load(tmp_path / "m.zarr")
    np.testing.assert_array_equal(loaded.transform(x), model.transform(x))
    assert loaded.basis.at_landmarks
    assert loaded.basis.edge == edge
    np.testing.assert_array_equal(again.fit(x[:2000]).eigenvalues_, model.eigenvalues_)
    whole = clone(model).set_params(landmarks=model.basis_.inner.landmarks, exclude_landmarks=False).fit(x)
    part = clone(whole).fit(x[:2000]).update(x)
    np.testing.assert_allclose(part.eigenvalues_, whole.eigenvalues_, rtol=1e-9)

    (tmp_path / "my_edge.py").write_text(
        "import numpy as np\ndef sine(x):\n    return np.sin(x[:, 0])\ndef cosine(x):\n    return np.cos(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import my_edge  # type: ignore[import-not-found]

    mine = clone(model).set_params(basis=Vanishing("landmarks", my_edge.sine, my_edge.cosine)).fit(x)
    np.testing.assert_allclose(mine.eigenvalues_, [1, 4, 9], rtol=0.1)
    mine.save(tmp_path / "mine.zarr")
    assert dsp.untrusted(tmp_path / "mine.zarr") == ["my_edge.cosine", "my_edge.sine"]
    with pytest.raises(dsp.UntrustedError):
        dsp.load(tmp_path / "mine.zarr")
    loaded = dsp.load(tmp_path / "mine.zarr", trusted=["my_edge.cosine", "my_edge.sine"])
    np.testing.assert_array_equal(loaded.transform(x), mine.transform(x))
    sys.modules.pop("my_edge")


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        (BoxEdge(0.5, np.pi), r"does not vanish where the data end: \d+ of 5000 rows lie outside its domain, row \d+"),
        (BoxEdge(-9, 12), r"does not vanish where the data end: over 5000 rows it goes from 0\.\d+ to"),
        (GivenEdge(lambda x: np.maximum(x[:, 0] - 1, 0), np.ones_like), r"is 0 on \d+ of 5000 rows"),
        (GivenEdge(lambda x: np.cos(x[:, 0]), lambda x: -np.sin(x)), r"\d+ of 5000 rows lie outside its domain"),
        (GivenEdge(lambda x: np.full(len(x), np.nan), np.ones_like), r"is nan at row 0 of the data"),
        (BoxEdge([0, 0], [1, 1]), r"has 2 columns, and the functions have 1 variables"),
    ],
)
def test_functions_that_do_not_vanish_where_the_data_end(edge: Edge, message: str) -> None:
    x = interval()[0][:5000]
    model = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=20, n_components=2, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.set_params(basis=Vanishing("landmarks", edge)).fit(x)


@pytest.mark.parametrize(("gap", "told"), [(0.0, False), (0.05, True), (0.3, True)])
def test_zeros_beyond_the_last_rows(gap: float, told: bool) -> None:
    """The eigenvalue 2 of a square of side pi is 1.66 with zeros .05 beyond it, and .25 with a gap of .3."""
    x = np.random.default_rng(0).uniform(0, np.pi, (1500, 2))
    ends = BoxEdge([-gap, -gap], [np.pi + gap, np.pi + gap])
    model = dsp.SpectralDecomposition(kernel=Gaussian(0.8), n_landmarks=60, n_components=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = model.set_params(basis=Vanishing("landmarks", ends)).fit(x).eigenvalues_[0]
    assert any("without rows, across which functions need no slope" in str(w.message) for w in caught) == told
    assert (abs(value / 2 - 1) > 0.1) == told


def test_arguments_that_cannot_work() -> None:
    x, edge, _ = interval()
    with pytest.raises(TypeError, match=r'a basis of daskspectral.basis, or "landmarks"'):
        Vanishing("landmark", edge)
    with pytest.raises(TypeError, match=r"an edge, such as BoxEdge\(lower, upper\), or a function"):
        Vanishing(ConstantBasis(1), 3.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the gradient is 1"):
        Vanishing(ConstantBasis(1), square_edge, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has its own derivatives"):
        Vanishing(ConstantBasis(1), edge, square_slope)
    with pytest.raises(ValueError, match="has 1 columns, and the functions have 2 variables"):
        Vanishing(ConstantBasis(2), edge)
    with pytest.raises(ValueError, match="is laid at the landmarks by an estimator"):
        _ = Vanishing("landmarks", edge).size
    with pytest.raises(ValueError, match=r"returned shape \(40, 1\); it must return \(40,\)"):
        Vanishing(ConstantBasis(2), lambda x: x[:, :1]).values(X)
    for lower, upper in ((1, 0), ([0, 0], [1]), (-np.inf, np.inf), (np.nan, 1)):
        with pytest.raises(ValueError, match="a BoxEdge has bounds lower < upper"):
            BoxEdge(lower, upper)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the radius of a BallEdge is a positive number"):
        BallEdge(0.0)
    with pytest.raises(ValueError, match="one finite number a column"):
        BallEdge(1.0, (np.nan,))
    with pytest.raises(ValueError, match="standardize=True would change the units of X, and a function that vanishes"):
        dsp.SpectralDecomposition(basis=Vanishing("landmarks", edge), n_landmarks=9, standardize=True).fit(x)
