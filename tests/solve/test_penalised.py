"""Penalised solutions: spans of smooth functions, values without the penalty; closed forms, the solution by cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.moments import Measure, Moments
from daskspectral.moments.penalty import roughness
from daskspectral.moments.problem import Posed
from daskspectral.operators import Cross, Generator, Laplacian, Operator, Schroedinger, Transfer
from daskspectral.solve import Eigen, Penalty, Problem, Singular, Spectrum, Symmetric, whiten
from daskspectral.solve.penalised import InverseRoot, inverse_root, leading_functions, leading_pairs, ritz_size
from tests.solve.common import spd

Array = NDArray[Any]
CUT = 1e-10


def measured(
    basis: Basis, x: Array, operator: Operator | None = None, dtype: str = "float64", **fields: Any
) -> Moments:
    """The moments of rows in memory."""
    operator = Laplacian() if operator is None else operator
    measure = Measure(basis, basis, operator.forms, operator.functionals, operator, dtype)
    rows = {"x": x, **fields}
    weight = fields.get("weight", np.ones(len(x)))
    return Moments(measure([rows]), float(weight.sum()), len(x), basis, operator, dtype=dtype, preparation={})


def gaussian(x: Array, p: int = 60, kernel: Kernel | None = None, constant: bool = True) -> Basis:
    """Kernel functions at some of the rows, with the constant."""
    basis = LandmarkBasis(Gaussian(1.0) if kernel is None else kernel, x[:p])
    return Concatenated((ConstantBasis(x.shape[1]), basis)) if constant else basis


def solved(moments: Moments, count: int = 8, penalty: float | None = 1.0, rtol: float | None = None) -> Spectrum:
    posed = Posed(moments, count=count, rtol=rtol, ridge=0.0, min_support=0.0, penalty=penalty)
    return posed.solve(posed.means, posed.rows)


def uniform(n: int = 3000, d: int = 1, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0, np.pi, (n, d))


# -- what the values are -----------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.integers(2, 30), count=st.integers(1, 12))
def test_a_vanishing_penalty_gives_the_solution_by_cut(seed: int, p: int, count: int) -> None:
    """Of a Gram matrix that is well conditioned, with the signs of its functions; p exceeds no Ritz space."""
    rng = np.random.default_rng(seed)
    form, gram = spd(p, rng), spd(p, rng)
    for operator_descends in (False, True):
        sign = -1 if operator_descends else 1
        problem = {"form": sign * form, "gram": gram, "count": count, "cut": CUT, "descending": operator_descends}
        by_cut = Symmetric().solve(Problem(**problem))
        penalised = Symmetric().solve(Problem(**problem, penalty=Penalty(1e-12 * spd(p, rng))))
        np.testing.assert_allclose(penalised.values, by_cut.values, rtol=1e-9)
        assert penalised.rank == by_cut.rank == p
        gaps = np.diff(scipy.linalg.eigh(form, gram, eigvals_only=True), prepend=-1, append=9)
        apart = np.minimum(gaps[1:], gaps[:-1])[: len(by_cut.values)] > 1e-3
        np.testing.assert_allclose(penalised.right[:, apart], by_cut.right[:, apart], atol=1e-7)


def test_a_small_penalty_gives_the_solution_by_cut_of_more_functions_than_a_ritz_space_has() -> None:
    x = np.random.default_rng(1).standard_normal((4000, 3))
    moments = measured(gaussian(x, 80, Gaussian(0.6)), x)
    by_cut, penalised = solved(moments, penalty=None), solved(moments, penalty=1e-9)
    assert by_cut.rank == penalised.rank == 81
    np.testing.assert_allclose(penalised.values[1:], by_cut.values[1:], rtol=1e-9)
    np.testing.assert_allclose(penalised.right, by_cut.right, atol=1e-6 * np.abs(by_cut.right).max())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), c=st.sampled_from([1e-2, 1.0, 100.0]))
def test_values_are_ritz_values_and_carry_no_penalty(seed: int, c: float) -> None:
    x = uniform(500, 1, seed)
    moments = measured(gaussian(x, 50, Gaussian(0.2)), x)
    found = solved(moments, penalty=c)
    form, gram = moments.mean("form"), moments.mean("gram")
    np.testing.assert_allclose(found.right.T @ gram @ found.right, np.eye(8), atol=1e-6)
    np.testing.assert_allclose(found.right.T @ form @ found.right, np.diag(found.values), atol=1e-6 * found.values[-1])


@pytest.mark.parametrize("operator", [Laplacian(), Generator(diffusion=1.0, reversible=True)], ids=str)
def test_the_interval(operator: Operator) -> None:
    """k^2 on an interval of length pi; the generator of reflected Brownian motion has half of it, negated."""
    x = uniform(20_000)
    expected = np.arange(6) ** 2 * (1.0 if isinstance(operator, Laplacian) else -0.5)
    for kernel in (Gaussian(0.3), Gaussian(0.8), Matern(1.5, 1.0)):
        found = solved(measured(gaussian(x, 100, kernel), x, operator), count=6)
        assert found.values[0] == 0  # exactly
        np.testing.assert_allclose(found.values[1:], expected[1:], rtol=0.05)


# -- units -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**13])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(2.5, 0.5)], ids=repr)
def test_units_of_the_points_scale_eigenvalues(unit: float, kernel: Kernel) -> None:
    x = uniform(800, 2)
    plain = solved(measured(gaussian(x, 60, kernel), x))
    scaled = type(kernel)(**{**kernel.get_params(), "scale": kernel.get_params()["scale"] * unit})
    found = solved(measured(gaussian(unit * x, 60, scaled), unit * x))
    np.testing.assert_allclose(found.values[1:] * unit**2, plain.values[1:], rtol=1e-7)
    assert found.values[0] == 0
    np.testing.assert_allclose(np.abs(found.right[0]), np.abs(plain.right[0]), atol=1e-5)


def test_units_of_the_functions_do_not_matter() -> None:
    x = uniform(800, 2)
    moments = measured(gaussian(x, 30, constant=False), x)
    form, gram, norm = moments.mean("form"), moments.mean("gram"), moments.basis.norm(moments.mean("gram"))
    units = 10.0 ** np.random.default_rng(0).integers(-6, 7, 30)
    changed = [units[:, None] * m * units for m in (form, gram, norm)]
    one = Symmetric().solve(Problem(form, gram, 5, CUT, penalty=Penalty(1e-3 * norm)))
    other = Symmetric().solve(Problem(*changed[:2], 5, CUT, penalty=Penalty(1e-3 * changed[2])))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-7)


def test_weights_are_frequencies() -> None:
    x, rng = uniform(600, 2), np.random.default_rng(3)
    times = rng.integers(1, 4, 600)
    basis = gaussian(x, 50, Gaussian(0.5))
    weighted, repeated = measured(basis, x, weight=times.astype(float)), measured(basis, np.repeat(x, times, axis=0))
    np.testing.assert_allclose(solved(weighted).values[1:], solved(repeated).values[1:], rtol=1e-8)
    # the row twice halves the penalty: another solution than of each row once
    twice = solved(measured(basis, x, weight=np.full(600, 2.0)))
    assert np.abs(twice.values[1:] / solved(measured(basis, x)).values[1:] - 1).max() > 1e-6
    np.testing.assert_allclose(twice.values[1:], solved(measured(basis, x), penalty=0.5).values[1:], rtol=1e-8)


# -- spans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Matern(1.5, 1.0)], ids=repr)
def test_the_first_values_do_not_change_when_more_are_asked_for(kernel: Kernel) -> None:
    x = uniform(1000, 2)
    moments = measured(gaussian(x, 150, kernel), x)
    few = solved(moments, count=3).values
    for count in (8, 16, 24):
        np.testing.assert_allclose(solved(moments, count=count).values[:3], few, rtol=1e-10)
    more = solved(moments, count=30).values[:3]
    assert (more[1:] <= few[1:]).all()  # of a larger span
    np.testing.assert_allclose(more[1:], few[1:], rtol=0.01)


@pytest.mark.parametrize("scale", [1.0, 4.0, 16.0, 100.0])
@pytest.mark.parametrize("c", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("d", [1, 3])
def test_however_wide_the_kernel_no_value_is_rounding(scale: float, c: float, d: int) -> None:
    """Functions that are all but constant: what is left of them without the constant is rounding to that extent."""
    x = uniform(1500, d)
    found = solved(measured(gaussian(x, 100, Gaussian(scale)), x), count=6, penalty=c)
    assert found.values[0] == 0
    assert len(found.values) >= 2
    assert found.values[1] > 0.85  # 1 is the least there is


@pytest.mark.parametrize("count", [1, 24, 25, 60])
def test_the_span_has_so_many_functions(count: int) -> None:
    assert ritz_size(count) == max(32, count + 8)
    x = uniform(2000, 2)
    moments = measured(gaussian(x, 120, Gaussian(0.3)), x)
    form, gram = moments.mean("form"), moments.mean("gram")
    norm = moments.basis.norm(gram)
    found = leading_functions(form, gram, Penalty(1e-3 * norm), count, CUT)
    assert found.matrix.shape == (121, ritz_size(count))
    assert found.rank > ritz_size(count)
    np.testing.assert_allclose(found.matrix.T @ gram @ found.matrix, np.eye(ritz_size(count)), atol=1e-9)
    assert np.count_nonzero(found.matrix[1:, 0]) == 0  # the constant leads


def test_smoother_functions_than_those_of_the_cut() -> None:
    """On new rows the span of few rows and many wide kernel functions does better than a cut's."""
    x, new = uniform(150), uniform(50_000, seed=1)
    basis = gaussian(x, 75, Gaussian(0.1))
    there = measured(basis, new)

    def energy(functions: Array) -> float:
        forms = (functions.T @ there.mean(name) @ functions for name in ("form", "gram"))
        return float(scipy.linalg.eigvalsh(*forms).sum())

    moments = measured(basis, x)
    by_cut, penalised = (energy(solved(moments, count=5, penalty=c).right) for c in (None, 1.0))
    assert penalised < 0.95 * by_cut
    assert penalised > 0 + 1 + 4 + 9 + 16


# -- forms that are not positive ---------------------------------------------------------------------------------------


def test_potentials_with_wells() -> None:
    """-f'' + V f, V = -40 in the middle of an interval: bound states by finite differences."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-2, 2, (40_000, 1))

    def well(a: Array) -> Array:
        return np.where(np.abs(a) < 0.5, -40.0, 0.0)

    grid = (np.arange(4000) + 0.5) / 1000 - 2
    diagonal = np.full(4000, 2e6)
    diagonal[[0, -1]] = 1e6
    expected = scipy.linalg.eigh_tridiagonal(
        diagonal + well(grid), np.full(3999, -1e6), select="i", select_range=(0, 3), eigvals_only=True
    )
    assert expected[1] < 0
    for c in (0.01, 1.0):
        moments = measured(gaussian(x, 100, Gaussian(0.4)), x, Schroedinger(), potential=well(x[:, 0]))
        found = solved(moments, count=4, penalty=c).values
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.2)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.integers(2, 12))
def test_an_indefinite_form_on_few_functions_is_scipys(seed: int, p: int) -> None:
    """The shift sigma decides the span alone, which is everything here."""
    rng = np.random.default_rng(seed)
    form, gram, norm = rng.standard_normal((p, p)), spd(p, rng), spd(p, rng)
    form = 100 * (form + form.T)
    found = Symmetric().solve(Problem(form, gram, p, CUT, penalty=Penalty(1e-3 * norm)))
    np.testing.assert_allclose(found.values, scipy.linalg.eigh(form, gram, eigvals_only=True), atol=1e-8 * 1e3)


def test_constants_have_the_value_zero_wherever_they_stand() -> None:
    x = uniform(500, 2)
    for bases in (
        (ConstantBasis(2), LandmarkBasis(Gaussian(1.0), x[:40])),
        (LandmarkBasis(Gaussian(1.0), x[:40]), ConstantBasis(2)),
        (ConstantBasis(2), LandmarkBasis(Gaussian(1.0), x[:40]), ConstantBasis(2)),  # the same function twice
    ):
        found = solved(measured(Concatenated(bases), x))
        assert found.values[0] == 0
        assert found.values[1] > 0.5
        values = Concatenated(bases).values(x).T @ found.right[:, 0]
        np.testing.assert_allclose(values, 1, atol=1e-12)


# -- bases -------------------------------------------------------------------------------------------------------------


def test_polynomials_are_hermites_on_normal_data() -> None:
    """Their span has few functions, and no penalty stays: values equal those of a cut."""
    x = np.random.default_rng(5).standard_normal((30_000, 2))
    moments = measured(MonomialBasis(2, 3), x)
    by_cut, penalised = solved(moments, count=10, penalty=None), solved(moments, count=10)
    np.testing.assert_allclose(penalised.values[1:], by_cut.values[1:], rtol=1e-10)
    assert penalised.values[0] == 0
    np.testing.assert_allclose(penalised.values[:6], [0, 1, 1, 2, 2, 2], atol=0.06)


def test_landmarks_that_coincide() -> None:
    """Functions twice in the basis: the same spans, no value twice."""
    x = uniform(800, 2)
    once, twice = gaussian(x, 40), gaussian(np.concatenate([x[:40], x[:40], x]), 80)
    one, other = solved(measured(once, x)), solved(measured(twice, x))
    np.testing.assert_allclose(other.values[1:], one.values[1:], rtol=1e-6)
    assert other.rank <= 41
    close = gaussian(np.concatenate([x[:40], x[:40] + 1e-9, x]), 80)
    np.testing.assert_allclose(solved(measured(close, x)).values[1:], one.values[1:], rtol=0.02)


def test_directions_that_no_row_sees() -> None:
    x = uniform(300)
    far = gaussian(np.concatenate([x[:20], x[:20] + 30, x]), 40, Gaussian(0.3))
    near = gaussian(x, 20, Gaussian(0.3))
    found, expected = solved(measured(far, x)), solved(measured(near, x))
    np.testing.assert_allclose(found.values[1:], expected.values[1:], rtol=1e-3)  # distances lose digits
    np.testing.assert_array_equal(found.right[21:], 0)
    with pytest.raises(ValueError, match="every basis function is zero on every point; widen the kernel's scale"):
        solved(measured(gaussian(x + 1e4, 20, constant=False), x))


def test_fewer_rows_than_functions() -> None:
    x = uniform(20, 3)
    found = solved(measured(gaussian(x, 20), x), count=30)
    assert found.values[0] == 0
    assert len(found.values) == found.rank <= 20
    assert np.isfinite(found.values).all()
    assert (np.diff(found.values) >= -1e-9).all()


# -- two sides ---------------------------------------------------------------------------------------------------------


def pair(seed: int = 0, n: int = 20_000, d: int = 1) -> tuple[Array, Array, float]:
    """Jointly normal columns of one correlation: its powers are the singular values (Mehler)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    return x, 0.8 * x + 0.6 * rng.standard_normal((n, d)), 0.8


def views(x: Array, y: Array, operator: Operator, scale: float, p: int = 60) -> Moments:
    left, right = (gaussian(a, p, Gaussian(scale)) for a in (x, y))
    measure = Measure(left, right, operator.forms, operator.functionals, operator, "float64")
    return Moments(
        measure([{"x": x, "y": y}]), float(len(x)), len(x), left, operator,
        dtype="float64", preparation={}, right_basis=right,
    )  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 4.0, 12.0])
@pytest.mark.parametrize("c", [1e-3, 1.0, 100.0])
def test_powers_of_the_correlation(scale: float, c: float) -> None:
    """However wide the kernel, no value is rounding: none above 1."""
    x, y, rho = pair()
    found = solved(views(x, y, Cross(), scale), count=4, penalty=c).values
    assert len(found) >= (3 if scale > 10 else 4)
    assert found[0] == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(found, rho ** np.arange(len(found)), rtol=0.05, atol=0.02)
    centred = solved(views(x, y, Cross(center=True), scale), count=len(found) - 1, penalty=c).values
    np.testing.assert_allclose(centred, found[1:], atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 8), q=st.integers(1, 8), centre=st.booleans())
def test_sides_of_few_functions_are_taken_whole(seed: int, p: int, q: int, centre: bool) -> None:
    """Of whatever penalty: the solution by cut, also where the sides differ in size and the means matter."""
    rng = np.random.default_rng(seed)
    f, g = rng.standard_normal((50, p)) + 2, rng.standard_normal((50, q)) - 1
    problem: dict[str, Any] = {
        "form": f.T @ g / 50, "gram": f.T @ f / 50, "count": 8, "cut": CUT, "right_gram": g.T @ g / 50,
        "means": (f.mean(axis=0), g.mean(axis=0)) if centre else None,
    }  # fmt: skip
    by_cut = Singular().solve(Problem(**problem))
    found = Singular().solve(Problem(**problem, penalty=Penalty(0.1 * np.eye(p), 0.2 * np.eye(q))))
    np.testing.assert_allclose(found.values, by_cut.values, atol=1e-9)
    assert found.rank == by_cut.rank


def test_centring_within_a_span_of_leading_functions() -> None:
    """40 linear functions of 40 columns with means: no constant among them, and more than a Ritz space holds."""
    rng = np.random.default_rng(6)
    f = rng.standard_normal((4000, 40)) + rng.standard_normal(40)
    g = np.hstack([0.9 * f[:, :3] + 0.3 * rng.standard_normal((4000, 3)), rng.standard_normal((4000, 37))]) + 5
    n, a, b = len(f), f.mean(axis=0), g.mean(axis=0)
    problem = Problem(
        f.T @ g / n, f.T @ f / n, 3, CUT, right_gram=g.T @ g / n, means=(a, b),
        penalty=Penalty(1e-6 * np.eye(40), 1e-6 * np.eye(40)),
    )  # fmt: skip
    expected = np.linalg.svd(np.linalg.qr(f - a)[0].T @ np.linalg.qr(g - b)[0], compute_uv=False)[:3]
    np.testing.assert_allclose(Singular().solve(problem).values, expected, rtol=2e-3)
    left, right = leading_pairs(
        *(getattr(problem, k) for k in ("form", "gram", "right_gram", "penalty", "count", "cut"))
    )
    assert left.matrix.shape == right.matrix.shape == (40, 32)


def test_the_largest_whitened_coefficient_is_positive() -> None:
    x, y, _ = pair(n=3000)
    moments = measured(gaussian(x, 60), x)
    symmetric = solved(moments)
    cross = views(x, y, Cross(), 1.0)
    paired, gram = solved(cross, count=5), cross.mean("gram")
    for found, metric in ((symmetric.right, moments.mean("gram")), (paired.left, gram)):
        null = np.zeros(len(metric), dtype=bool)
        null[0] = found is symmetric.right
        whitened = whiten(metric, CUT, null).matrix.T @ metric @ found
        largest = np.abs(whitened).argmax(axis=0)
        assert (whitened[largest, np.arange(whitened.shape[1])] > 0).all()
    assert (np.einsum("ik,ij,jk->k", paired.left, cross.mean("form"), paired.right) > 0).all()


# -- eigenvalues of operators that are not symmetric -------------------------------------------------------------------


def test_a_turning_generator() -> None:
    """dX = A X dt + sqrt(2) dW with A = [[-1, 2], [-2, -1]] has -1 +- 2i, and sums of them; its law is normal."""
    x = np.random.default_rng(7).standard_normal((20_000, 2))
    turn = np.array([[-1.0, 2.0], [-2.0, -1.0]])
    operator = Generator(diffusion=float(np.sqrt(2)))
    moments = measured(gaussian(x, 80, Gaussian(2.0)), x, operator, drift=x @ turn.T)
    found = solved(moments, count=3)
    assert isinstance(operator.solver, Eigen)
    assert found.values[0] == 0
    np.testing.assert_allclose(found.values[1:], [-1 + 2j, -1 - 2j], atol=0.15)
    np.testing.assert_allclose(found.values[2], found.values[1].conj(), atol=1e-9)
    np.testing.assert_allclose(found.left.conj().T @ moments.mean("gram") @ found.right, np.eye(3), atol=1e-6)


def test_eigenvalues_of_a_transition() -> None:
    """exp(-k h) for the Ornstein-Uhlenbeck process over time h: 0.8^k for a step of correlation 0.8."""
    x, y, rho = pair()
    basis = gaussian(x, 60, Gaussian(3.0))
    operator = Transfer(solver="eigen")
    found = solved(measured(basis, x, operator, future=y), count=4)
    np.testing.assert_allclose(found.values, rho ** np.arange(4), atol=0.03)


# -- precision ---------------------------------------------------------------------------------------------------------


def test_single_precision_sees_fewer_directions_and_no_noise() -> None:
    x = uniform(5000)
    for scale, rank in ((0.3, 12), (2.0, 3)):
        basis = gaussian(x, 60, Gaussian(scale))
        double, single = (solved(measured(basis, x, dtype=dtype), count=4) for dtype in ("float64", "float32"))
        assert rank <= single.rank <= double.rank
        np.testing.assert_allclose(single.values[:3], double.values[:3], rtol=0.02)


def test_the_inverse_root() -> None:
    rng = np.random.default_rng(8)
    m = spd(6, rng)
    root = inverse_root(m, 1e-13)
    np.testing.assert_allclose(root.matrix.T @ m @ root.matrix, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(root.matrix @ root.matrix.T, np.linalg.inv(m), rtol=1e-9)
    correlation = m / np.sqrt(np.outer(np.diag(m), np.diag(m)))
    np.testing.assert_allclose([root.least, root.largest], np.linalg.eigvalsh(correlation)[[0, -1]])
    assert root.rounding == pytest.approx(1e-13)
    functions = rng.standard_normal((6, 2))
    blurred = 1e-16 * root.largest * np.sum(functions**2 * np.diag(m)[:, None], axis=0)
    np.testing.assert_allclose(root.blurred(functions, 1e-16), blurred)
    left = inverse_root(m, 1e-13, 1e6 * np.diag(m))  # of functions a million times as large
    assert left.rounding == pytest.approx(1e-7)
    np.testing.assert_allclose(left.blurred(functions, 1e-16), 1e6 * blurred)
    m[0, 0] = -1.0
    assert inverse_root(m, 1e-13).least == -1.0
    singular = np.diag([1.0, 1e-30, 0.0])
    assert inverse_root(singular, 1e-13).matrix.shape == (3, 2)  # brought to unit diagonal; 0 stays out
    empty = inverse_root(np.zeros((0, 0)), 1e-13)
    assert isinstance(empty, InverseRoot)
    assert empty.matrix.shape == (0, 0)


def test_the_penalty_is_c_times_kappa_by_n() -> None:
    x = uniform(700, 2)
    basis = gaussian(x, 40, Gaussian(0.5), constant=False)
    moments = measured(basis, x)
    posed = Posed(moments, count=4, rtol=None, ridge=0.0, min_support=0.0, penalty=3.0)
    penalty = posed._penalty(posed.means, posed.rows)
    assert penalty is not None
    gram = np.exp(-((x[:40, None] - x[None, :40]) ** 2).sum(axis=2) / (2 * 0.25))
    np.testing.assert_allclose(penalty.left, 3.0 * (2 / 0.25) / 700 * gram, rtol=1e-9)
    assert roughness(Laplacian(), basis, moments.mean("form"), np.zeros((40, 0))) == pytest.approx(2 / 0.25)
