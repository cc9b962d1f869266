"""From modes to a solution: against the same problem in all functions of the lattice, measured row by row."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.basis.prior import WeighedLattice
from daskspectral.kernels import Gaussian, Matern
from daskspectral.moments import Moments, lattice, modes
from daskspectral.moments.lattice import dense, solve_modes
from daskspectral.moments.modes import MODES, fold_orders
from daskspectral.operators import (
    AnisotropicDiffusion,
    DifferentialOperator,
    Generator,
    Laplacian,
    PartialDerivative,
    Schroedinger,
    TangentPropagation,
)
from tests.common import assert_close
from tests.modes.common import NUFFT

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2500, 2))
BOX = [(-4.5, 4.5)] * 2
FIELDS = {
    "potential": np.sum(X**2, axis=1),
    "well": -10 * np.exp(-np.sum(X**2, axis=1)),
    "direction": X[:, ::-1].copy(),
    "diffusion": np.eye(2) + X[:, :, None] * X[:, None] / 9,
    "drift": -X @ np.array([[1.0, 0.5], [-0.5, 1.0]]),
}
OPERATORS = {
    "laplacian": Laplacian(),
    "schroedinger": Schroedinger(),
    "a well": Schroedinger("well"),
    "diffusion": AnisotropicDiffusion(),
    "tangents": TangentPropagation(),
    "differential": DifferentialOperator({((1, 0), (1, 0)): 2.0, ((0, 1), (0, 1)): "potential"}),
    "second order": DifferentialOperator({((2, 0), (2, 0)): 2.0, ((0, 1), (0, 1)): 1.0}),
    "derivative": PartialDerivative(0),
    "generator": Generator("drift", 1.4),
    "reversible generator": Generator(diffusion=1.4, reversible=True),
}
NUMBERS = ("held_out_", "standard_errors_")


def fields_of(operator: Any) -> Any:
    return {name: FIELDS[name] for name in operator.data_fields} or None


def pair(operator: Any, kernel: Any, basis: FourierLattice, x: Any = X, fields: Any = None, **options: Any) -> Any:
    """The operator solved from modes, and in the same functions by the sums of their products over the rows."""
    options = {"n_components": 6, "penalty": 1.0} | options
    model = dsp.SpectralDecomposition(operator, kernel, basis=basis, **options).fit(x, fields=fields)
    functions = WeighedLattice(model.basis_, kernel)
    wanted = dsp.SpectralDecomposition(operator, basis=functions, **options).fit(x, fields=fields)
    return model, wanted


def assert_same_solution(found: Any, wanted: Any, tolerance: float, x: Any = X[:300]) -> None:
    solver = found.solver_
    for name in (solver.values, solver.errors, *NUMBERS):
        one, other = getattr(found, name), getattr(wanted, name)
        assert one.shape == other.shape
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        scale = np.nanmax(np.abs(other), initial=1e-300)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale, err_msg=name)
    assert found.groups_.tolist() == wanted.groups_.tolist()
    assert found.trusted_ == wanted.trusted_
    if not np.iscomplexobj(getattr(found, solver.values)):
        u, v = found.transform(x), wanted.transform(x)
        np.testing.assert_allclose(
            u * np.sign(np.sum(u * v, axis=0)), v, rtol=0, atol=1e3 * tolerance * np.abs(v).max()
        )


@pytest.mark.parametrize("name", OPERATORS)
def test_reduction_is_exact(name: str) -> None:
    """Values, error bars and held-out values are those of all functions: what the span leaves out is rounding."""
    operator = OPERATORS[name]
    m = 3 if name == "derivative" else 4  # its values hang on functions that the data hardly see
    basis = FourierLattice(m, box=BOX, method="matmul")
    found, wanted = pair(operator, Matern(1.5, 1.0), basis, fields=fields_of(operator))
    assert_same_solution(found, wanted, 1e-8)
    assert type(found.rank_) is type(wanted.rank_)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(1.5, 0.7)])
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_reduction_for_other_priors(kernel: Any, penalty: float) -> None:
    found, wanted = pair(Laplacian(), kernel, FourierLattice(5, box=BOX, method="matmul"), penalty=penalty)
    assert_same_solution(found, wanted, 1e-6)


@pytest.mark.parametrize("d", [1, 3])
def test_reduction_in_other_dimensions(d: int) -> None:
    x = np.random.default_rng(1).uniform(-4, 4, (2000, d))
    basis = FourierLattice({1: 15, 3: 2}[d], box=[(-5, 5)] * d, method="matmul")
    assert_same_solution(*pair(Laplacian(), Matern(1.5, 1.0), basis, x), 1e-7, x[:200])


@pytest.mark.parametrize("options", [{"solver": "cut"}, {"ridge": 1e-3}, {"folds": "blocks"}, {"folds": 3}], ids=str)
def test_reduction_with_options(options: dict[str, Any]) -> None:
    basis = FourierLattice(3, box=BOX, method="matmul")
    assert_same_solution(*pair(Laplacian(), Matern(1.5, 1.5), basis, **options), 1e-7)


def test_more_functions_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """120 of 361 functions hold the answer to far below its errors."""
    monkeypatch.setattr(lattice, "SPAN", 120)
    basis = FourierLattice(9, box=BOX, method="matmul")
    found, wanted = pair(Laplacian(), Matern(1.5, 1.5), basis, penalty=1.0)
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, atol=1e-9)
    assert (np.abs(found.held_out_ - wanted.held_out_)[:3] < wanted.standard_errors_[:3] + 1e-9).all()


def test_the_nonuniform_transform_changes_no_digit_that_counts() -> None:
    pytest.importorskip("finufft", reason="finufft is not installed")
    exact, quick = (
        dsp.SpectralDecomposition(
            kernel=Matern(1.5, 1.5), basis=FourierLattice(5, box=BOX, method=method), penalty=1.0, n_components=6
        ).fit(X)
        for method in ("matmul", "nufft")
    )
    np.testing.assert_allclose(quick.eigenvalues_, exact.eigenvalues_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(quick.standard_errors_, exact.standard_errors_, rtol=1e-3, atol=1e-9)


# folds


def modes_of(moments: Moments) -> dict[str, Any]:
    return {name: values for name, values in moments.arrays.items() if name.startswith(MODES)}


def test_folds_add_up_to_the_whole() -> None:
    model = dsp.SpectralDecomposition(Schroedinger(), basis=FourierLattice(4, box=BOX), n_components=3)
    moments = model.fit(X, fields={"potential": FIELDS["potential"]}).moments_
    assert moments.folds is not None
    assert len(modes_of(moments)) == 2
    for name, values in modes_of(moments).items():
        assert values.shape == (17, 17)
        assert values.dtype == np.complex128
        np.testing.assert_allclose(moments.folds.arrays[name].sum(axis=0), values, atol=1e-9)
    assert moments.folds.count.sum() == len(X)


def test_folds_of_many_functions_keep_the_lower_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the middle of the modes, and the full set is kept once."""
    options = {"kernel": Matern(1.5, 1.5), "penalty": 1.0, "n_components": 4}
    basis = FourierLattice(5, box=BOX, method="matmul")
    full = dsp.SpectralDecomposition(basis=basis, **options).fit(X)
    monkeypatch.setattr(modes, "MOST_BY_FOLD", 50)
    assert fold_orders(full.basis_) == (3, 3)
    model = dsp.SpectralDecomposition(basis=basis, **options).fit(X)
    (name,) = modes_of(model.moments_)
    np.testing.assert_allclose(model.moments_.arrays[name], full.moments_.arrays[name], rtol=0, atol=1e-9)
    few, many = model.moments_.folds.arrays[name], full.moments_.folds.arrays[name]
    assert few.shape == (10, 13, 13)
    np.testing.assert_array_equal(few, many[:, 4:-4, 4:-4])
    # error bars are those of as many functions as the folds have modes for
    np.testing.assert_allclose(model.eigenvalues_, full.eigenvalues_, atol=1e-9)
    np.testing.assert_allclose(model.held_out_[:3], full.held_out_[:3], rtol=0.05, atol=1e-9)
    np.testing.assert_allclose(model.standard_errors_[:3], full.standard_errors_[:3], rtol=0.2, atol=1e-9)


def test_a_group_of_rows_may_be_empty() -> None:
    """Labels of which one has no row inside the box, and tasks without rows."""
    x = np.concatenate([X, np.full((20, 2), 9.0)])
    labels = np.concatenate([np.arange(len(X)) % 5, np.full(20, 5)])
    basis = FourierLattice(3, box=BOX)
    model = dsp.SpectralDecomposition(kernel=Matern(1.5, 1.5), basis=basis, folds=labels, n_components=3).fit(x)
    assert model.moments_.count == len(X)
    assert model.moments_.folds.count.tolist() == [500] * 5 + [0]
    again = dsp.SpectralDecomposition(kernel=Matern(1.5, 1.5), basis=basis, folds=labels[: len(X)], n_components=3)
    np.testing.assert_allclose(model.eigenvalues_, again.fit(X).eigenvalues_, atol=1e-9)


# additivity


@settings(deadline=None, max_examples=8)
@given(cut=st.integers(50, len(X) - 50), method=st.sampled_from(["matmul", None]))
def test_moments_of_two_parts_are_those_of_the_whole(cut: int, method: Any) -> None:
    model = dsp.SpectralDecomposition(
        kernel=Matern(1.5, 1.5),
        basis=FourierLattice(3, box=BOX, method=method),
        folds=None,
        penalty=1.0,
        n_components=3,
    )
    whole = model.fit(X).moments_
    added = model.fit(X[:cut]).moments_ + model.fit(X[cut:]).moments_
    assert_close(modes_of(added), modes_of(whole), 1e-13, dtype=complex)
    assert (added.count, added.weight, added.rows) == (whole.count, whole.weight, whole.rows)


def test_moments_of_other_boxes_do_not_add() -> None:
    one = dsp.SpectralDecomposition(basis=FourierLattice(2, box=BOX), n_components=2).fit(X).moments_
    other = dsp.SpectralDecomposition(basis=FourierLattice(2, box=[(-5, 5)] * 2), n_components=2).fit(X).moments_
    with pytest.raises(ValueError, match=r"box=\(\(-4.5, 4.5\), .*\) and box=\(\(-5.0, 5.0\).*FourierLattice\(m, box="):
        _ = one + other
    more = dsp.SpectralDecomposition(basis=FourierLattice(3, box=BOX), n_components=2).fit(X).moments_
    with pytest.raises(ValueError, match=r"m=\(2, 2\) and m=\(3, 3\)"):
        _ = one + more
    scaled = dsp.SpectralDecomposition(basis=FourierLattice(2, box=BOX), n_components=2, standardize=True).fit(X)
    with pytest.raises(ValueError, match="different preparations of the columns"):
        _ = one + scaled.moments_


# what is written out, and what is too much


def test_dense_moments_are_matrices() -> None:
    model = dsp.SpectralDecomposition(basis=FourierLattice(3, box=BOX), n_components=3).fit(X)
    found = dense(model.moments_)
    values = model.basis_.values(X)
    np.testing.assert_allclose(found.mean("gram"), values @ values.T / len(X), atol=1e-8)
    np.testing.assert_allclose(found.mean("first"), values.mean(axis=1), atol=1e-8)
    many = replace(model.moments_, basis=FourierLattice(40, box=BOX))
    with pytest.raises(ValueError, match="the matrices of 6561 functions are too large"):
        dense(many)


@pytest.mark.parametrize("method", ["matmul", NUFFT])
@pytest.mark.parametrize("n", [2, 5, 20, 60])
def test_few_rows_have_as_many_functions(n: int, method: str) -> None:
    """No function is made of rounding, or of the errors of the transform: none has a value below 0."""
    basis = FourierLattice((5, 4), box=BOX, method=method)
    options: dict[str, Any] = {"kernel": Matern(1.5, 1.5), "penalty": 1.0, "folds": None}
    with pytest.warns(dsp.RankWarning) if n < 3 else nullcontext():
        model = dsp.SpectralDecomposition(basis=basis, n_components=3, **options).fit(X[:n])
    assert model.rank_ <= n
    assert len(model.eigenvalues_) == min(n, 3)
    assert model.eigenvalues_.min() > -1e-12
    assert (model.residuals_ < 1e-6).all()


def test_equal_rows_leave_the_constant() -> None:
    with pytest.warns(dsp.RankWarning):
        model = dsp.SpectralDecomposition(basis=FourierLattice(3, box=BOX), n_components=2).fit(np.ones((150, 2)))
    assert model.eigenvalues_.tolist() == [0.0]
    np.testing.assert_allclose(np.abs(model.transform(X[:5])), 1, atol=1e-9)


def test_weights_that_sum_to_zero() -> None:
    model = dsp.SpectralDecomposition(basis=FourierLattice(2, box=BOX), n_components=2)
    with pytest.raises(ValueError, match="the total sample weight is 0; some row needs a weight above zero"):
        model.fit(X, sample_weight=np.zeros(len(X)))


def test_a_solution_for_lower_frequencies_is_that_of_a_smaller_lattice() -> None:
    options: dict[str, Any] = {"kernel": Matern(1.5, 1.5), "penalty": 1.0, "n_components": 4}
    box = FourierLattice((5, 4), box=BOX, margin=0.2, method="matmul")
    model = dsp.SpectralDecomposition(basis=box, **options).fit(X)
    small = dsp.SpectralDecomposition(
        basis=FourierLattice((2, 3), box=BOX, margin=0.2, method="matmul"), **options
    ).fit(X)
    keywords: dict[str, Any] = {"rtol": None, "ridge": 0.0, "compared": False, "count": 4}
    found = solve_modes(model.moments_, kernel=Matern(1.5, 1.5), orders=(2, 3), penalty=1.0, **keywords)
    np.testing.assert_allclose(found["eigenvalues_"], small.eigenvalues_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["held_out_"], small.held_out_, rtol=1e-7, atol=1e-12)
    places = model.basis_.places(small.basis_)
    np.testing.assert_allclose(np.abs(found["coefficients_"][places]), np.abs(small.coefficients_), atol=1e-7)
    assert not np.delete(found["coefficients_"], places, axis=0).any()
