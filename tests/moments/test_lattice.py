"""From modes to a solution: against the same problem in all functions of the lattice, measured row by row."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.basis.lattice import SpectralDensityBasis
from daskspectral.kernels import Matern
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.lattice import ModeSystem
from daskspectral.moments.solution import System, extrapolated
from daskspectral.operators import Generator, Laplacian, PartialDerivative, Schroedinger
from daskspectral.solvers import Regularized, Truncated
from tests.common import unreliable
from tests.modes.common import waves
from tests.moments.common import moments_of

pytestmark = unreliable

RNG = np.random.default_rng(0)
N = 800
X = RNG.standard_normal((N, 2)).clip(-2.9, 2.9)
BOX: Any = [(-3.0, 3.0)] * 2
LATTICE = FourierLattice((3, 4), box=BOX, method="matmul")
ROWS = {
    "x": X,
    "weight": RNG.uniform(0.5, 2, N),
    "well": -10 * np.exp(-np.sum(X**2, axis=1)),
    "drift": -X @ np.array([[1.0, 0.5], [-0.5, 1.0]]),
}
FOLD = RNG.integers(0, 4, N)
MATERN = Matern(1.5, 1.0)
OPERATORS = {
    "laplacian": Laplacian(),
    "a well": Schroedinger("well"),
    "derivative": PartialDerivative(0),
    "generator": Generator("drift", 1.4),
    "reversible generator": Generator(diffusion=1.4, reversible=True),
}


def solving(penalty: float | None) -> Any:
    return Truncated(min_support=0) if penalty is None else Regularized(penalty)


def solved(moments: Any, penalty: float | None = 1.0, orders: Any = None) -> dict[str, Any]:
    return ModeSystem.of(moments, MATERN, orders, penalty, 5).solve(solving(penalty), 5)


@pytest.mark.parametrize(
    ("name", "penalty"), [*((name, 1.0) for name in OPERATORS), ("laplacian", 30.0), ("laplacian", None)]
)
def test_reduction_is_exact(name: str, penalty: float | None) -> None:
    """Values, error bars and held-out values are those of all functions: what the span leaves out is rounding."""
    operator = OPERATORS[name]
    found = solved(moments_of(LATTICE, ROWS, FOLD, operator), penalty)
    functions = SpectralDensityBasis(LATTICE, MATERN)
    every = moments_of(functions, ROWS, FOLD, operator)
    wanted = System(every, penalty).solve(solving(penalty), 5)
    names = Attributes(operator.solver)
    for key in (names.values, names.errors, "validation_values_", "standard_errors_", "function_errors_"):
        size = np.nanmax(np.abs(wanted[key]), initial=1e-300)
        np.testing.assert_allclose(found[key], wanted[key], rtol=0, atol=1e-6 * size, err_msg=key)
    assert found["multiplets_"].tolist() == wanted["multiplets_"].tolist()
    for key in names.functions:
        u = waves(LATTICE, X[:50]).T @ found[key]
        v = waves(LATTICE, X[:50]).T @ (np.sqrt(functions.weights)[:, None] * wanted[key])
        factor = np.sum(u.conj() * v, axis=0) / np.sum(np.abs(u) ** 2, axis=0)
        np.testing.assert_allclose(np.abs(factor), 1, atol=1e-5)
        np.testing.assert_allclose(u * factor, v, rtol=0, atol=1e-4 * np.abs(v).max())
    first, w = waves(LATTICE, X) @ ROWS["weight"], ROWS["weight"]
    squares = waves(LATTICE, X) ** 2 @ w
    support = first**2 / squares / w.sum() * max(w.sum(), w.sum() ** 2 / np.sum(w**2))
    np.testing.assert_allclose(found["support_"], support, rtol=1e-7, atol=1e-7)
    rank = wanted["rank_"]
    assert found["rank_"] == (rank if penalty is None else (63, 63) if isinstance(rank, tuple) else 63)


def test_lower_frequencies() -> None:
    """Their solution is that of a smaller lattice; the approximation follows from the differences."""
    moments, lower = moments_of(LATTICE, ROWS, FOLD), LATTICE.truncated((2, 3))
    found, small = solved(moments, orders=(2, 3)), solved(moments_of(lower, ROWS, FOLD))
    places = LATTICE.frequencies.places(lower.frequencies)
    for name in ("eigenvalues_", "validation_values_", "discretization_errors_"):
        np.testing.assert_allclose(found[name], small[name], rtol=1e-7, atol=1e-10)
    for name in ("coefficients_", "support_"):
        np.testing.assert_allclose(np.abs(found[name][places]), np.abs(small[name]), atol=1e-6)
        assert not np.delete(found[name], places, axis=0).any()
    whole, widths = solved(moments), [np.sqrt(n / 63) for n in (15, 35)]
    changes = [solved(moments, orders=few)["eigenvalues_"] - whole["eigenvalues_"] for few in ((1, 2), (2, 3))]
    np.testing.assert_allclose(
        whole["discretization_errors_"], extrapolated(widths, np.array(changes)), rtol=0.02, atol=1e-9
    )
    gram = moments.expanded().arrays["gram"]
    np.testing.assert_allclose(gram, (phi := waves(LATTICE, X)) * ROWS["weight"] @ phi.T, atol=1e-8)


def test_rows_that_fill_no_part_of_the_box() -> None:
    """Of equal rows there is the constant; of few rows as many functions, none with a value below 0."""
    for n in (1, 3, 20):
        x = X[:n].repeat(40 // n, axis=0) * (n > 1)  # one row at the center, where half of the functions are 0
        moments = moments_of(LATTICE, {"x": x}, np.zeros(len(x), dtype=int))
        with pytest.warns(dsp.RankWarning) if n < 5 else np.errstate():
            found = solved(replace(moments, folds=None))
        assert found["rank_"] == n
        assert len(found["eigenvalues_"]) == min(n, 5)
        assert found["eigenvalues_"].min() > -1e-12
