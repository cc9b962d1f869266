"""Functions that vanish at the ends of the data: derivatives, sums, Dirichlet spectra, and what is refused."""

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import (
    BallEdge,
    BoxEdge,
    Concatenated,
    ConstantBasis,
    LandmarkBasis,
    Landmarks,
    MonomialBasis,
    Vanishing,
)
from daskspectral.basis.edges import Edge
from daskspectral.errors import SmoothnessError
from daskspectral.forms import along, dirichlet, form, gram, inner, partial
from daskspectral.kernels import Exponential, Gaussian, Matern, Periodic
from daskspectral.moments import Measure
from daskspectral.testing import check_basis
from tests.basis.common import cauchy, triple_loop
from tests.common import assert_close

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, (30, 2))
Y = RNG.uniform(0.1, 0.9, (6, 2))
BOX, STRIP, BALL = BoxEdge([0, 0], [1, 1.2]), BoxEdge([0, -np.inf], [np.inf, 1]), BallEdge(2.0, (0.5, 0.1))
GAUSSIAN = LandmarkBasis(Gaussian(0.5), Y)


class Parabola(Edge):
    """x (1 - x) of the first column, an edge of a user."""

    def values(self, x: Any) -> Any:
        return x[:, 0] * (1 - x[:, 0])

    def gradient(self, x: Any) -> Any:
        return np.column_stack([1 - 2 * x[:, 0], np.zeros(len(x))])

    def hessian(self, x: Any) -> Any:
        return np.broadcast_to(np.diag([-2.0, 0.0]), (len(x), 2, 2))


class Valued(Edge):
    """One without a Hessian, 0 on a third of the data."""

    order = 1

    def values(self, x: Any) -> Any:
        return np.maximum(x[:, 0] - 1, 0)

    def gradient(self, x: Any) -> Any:
        return np.eye(x.shape[1])[np.zeros(len(x), int)] * (x[:, :1] > 1)


@pytest.mark.parametrize(
    ("basis", "edge"),
    [
        (LandmarkBasis(Exponential(0.5), Y), STRIP),
        (LandmarkBasis(Matern(2.5, 0.5), Y), BALL),
        (LandmarkBasis(Periodic(Gaussian(0.5), (1.0, None)), Y), BOX),
        (Concatenated((ConstantBasis(2), GAUSSIAN, MonomialBasis(2, 2))), BOX),
        (Vanishing(GAUSSIAN, BOX), BALL),
        (GAUSSIAN, Parabola()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_basis_times_any_edge(basis: dsp.basis.Basis, edge: Edge) -> None:
    whole = Vanishing(basis, edge)
    np.testing.assert_allclose(whole.values(X), basis.values(X) * edge.values(X), rtol=1e-12, atol=1e-15)
    check_basis(whole, X)
    assert whole.edges == (edge, *(basis.edges if isinstance(basis, Vanishing) else ()))


def test_derivatives_that_an_edge_or_a_basis_lacks() -> None:
    with pytest.raises(SmoothnessError, match="Valued"):
        Vanishing(GAUSSIAN, Valued()).check_order(2, "generator")
    with pytest.raises(SmoothnessError, match="Exponential"):
        Vanishing(LandmarkBasis(Exponential(0.5), Y), BOX).check_order(2, "generator")


def box(x: Any, edge: BoxEdge) -> Any:
    """Along each column 4 (x - a) (b - x) / (b - a)^2, or the distance to the only bound."""
    found: Any = 1.0
    for u, low, high in zip(x.T, edge.lower, edge.upper, strict=True):
        if np.isfinite([low, high]).all():
            found = found * 4 * (u - low) * (high - u) / (high - low) ** 2
        else:
            found = found * (u - low if np.isfinite(low) else high - u)
    return found


@form
def turned(f: Any, g: Any, x: Any) -> Any:
    return inner(f, along(g, x.u)) + inner(partial(f, 1, 1) - partial(f, 1, 0), partial(g, 0, 2))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_sums_against_a_triple_loop(dtype: str, tolerance: float) -> None:
    """A Gaussian beside a constant, times the edges of a box, of a strip and of a ball, by their formulas."""
    weight, u = RNG.uniform(0.1, 2, len(X)), RNG.standard_normal(X.shape)

    def plain(x: Any) -> Any:
        gauss = np.exp(-((x - Y[:, None]) ** 2).sum(axis=2) / 0.5)
        edges = box(x, BOX) * box(x, STRIP) * (1 - ((x - [0.5, 0.1]) ** 2).sum(axis=1) / 4)
        return np.vstack([np.ones((1, len(x))), gauss]) * edges

    value, first, second, twist, bend = (
        cauchy(plain, X, alpha, 0.2) for alpha in ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2))
    )
    basis = Vanishing(Vanishing(Vanishing(Concatenated((ConstantBasis(2), GAUSSIAN)), BOX), STRIP), BALL)
    forms = {"gram": gram, "dirichlet": dirichlet, "turned": turned}
    found = Measure(basis, basis, forms, dtype=dtype, rows=16)([{"x": X, "weight": weight, "u": u}])
    wanted = {
        "gram": triple_loop(value, value, weight),
        "dirichlet": triple_loop(first, first, weight) + triple_loop(second, second, weight),
        "turned": triple_loop(value, first * u[:, 0] + second * u[:, 1], weight)
        + triple_loop(twist - first, bend, weight),
    }
    assert_close(found, wanted, tolerance)


# -- spectra -----------------------------------------------------------------------------------------------------------

N = 8000
INTERVAL = np.random.default_rng(0).uniform(0, np.pi, (N, 1))
SQUARE = np.random.default_rng(1).uniform(0, np.pi, (N, 2))
ENDS = BoxEdge(0, np.pi)


def test_dirichlet_spectra() -> None:
    landmarks = Landmarks(Gaussian(0.7), 60)
    square = Vanishing(MonomialBasis(2, 8), BoxEdge([0, 0], [np.pi, np.pi]))
    for x, basis, size, values in (
        (INTERVAL, Vanishing(landmarks, ENDS), 60, [1, 4, 9, 16]),
        (SQUARE, square, square.size, [2, 5, 5, 8]),
    ):
        model = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
        np.testing.assert_allclose(model.eigenvalues_, values, rtol=0.04)
        np.testing.assert_allclose(np.mean(model.transform(x) ** 2, axis=0), 1, rtol=4e-2)
        assert model.basis_.size == size  # no constant beside them


def test_no_constant_joins_it() -> None:
    basis = Vanishing(MonomialBasis(1, 6), ENDS)
    both, beside = Concatenated((basis, basis)), Concatenated((ConstantBasis(1), basis))
    assert (both.vanishes, both.holds_constant, both.edges, beside.vanishes) == (True, False, (ENDS, ENDS), False)
    with pytest.raises(ValueError, match="constant"):
        dsp.SpectralDecomposition(basis=Vanishing(Landmarks(constant=True), ENDS), n_components=2).fit(INTERVAL)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_functions_that_do_not_vanish_where_the_data_end() -> None:
    landmarks = Landmarks(Gaussian(1.0), 20)
    model = dsp.SpectralDecomposition(n_components=2, random_state=0)
    for edge, message in (
        (BoxEdge(0.5, np.pi), "outside its domain"),
        (BoxEdge(-9, 12), "goes from"),
        (Valued(), r"0 on \d+ of 5000 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(basis=Vanishing(landmarks, edge)).fit(INTERVAL[:5000])
    model.set_params(basis=Vanishing(landmarks, BoxEdge([-0.05, -0.05], [np.pi + 0.05, np.pi + 0.05])))
    with pytest.warns(dsp.TrustWarning, match="without rows"):
        model.fit(SQUARE[:1500])


def test_arguments_that_cannot_work() -> None:
    with pytest.raises(TypeError, match="edge"):
        Vanishing(ConstantBasis(1), 3.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="BoxEdge"):
        Vanishing(ConstantBasis(2), ENDS)
    with pytest.raises(ValueError, match="standardize"):
        dsp.SpectralDecomposition(basis=Vanishing(Landmarks(), ENDS)).fit(dsp.Rows(INTERVAL, standardize=True))


def test_edges_are_told_before_the_landmarks_are() -> None:
    inner = Vanishing(Landmarks(), ENDS)
    assert Vanishing(inner, ENDS).edges == (ENDS, ENDS) == inner.edges * 2
