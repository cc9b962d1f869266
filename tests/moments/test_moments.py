"""Moments add, know what they measured, and travel; and the problem that they pose to a solver, penalties included."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.errors import RankWarning
from daskspectral.forms import dirichlet, functional, inner
from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.moments import Measure, Moments
from daskspectral.moments.problem import checked_means, inverse_norm, roughness, trace
from daskspectral.moments.solution import solve_moments
from daskspectral.operators import Covariance, Cross, Generator, Laplacian, Operator, SymmetricForm, TangentPropagation
from daskspectral.solvers import Cut, Penalised
from tests.common import doubtful
from tests.moments.common import moments_of, posed

RNG = np.random.default_rng(4)
X, Y = RNG.standard_normal((120, 3)), RNG.standard_normal((40, 3))
WEIGHT = RNG.uniform(0.5, 2, 120)
ROWS = {"x": X, "weight": WEIGHT}
FOLD = np.arange(120) % 4


def with_constant(kernel: Kernel, landmarks: Any) -> Concatenated:
    return Concatenated((ConstantBasis(3), LandmarkBasis(kernel, landmarks)))


def measure(
    rows: slice = slice(None),
    *,
    kernel: Kernel | None = None,
    landmarks: Any = Y[:5],
    operator: Operator | None = None,
    dtype: str = "float64",
    preparation: Any = None,
    functionals: Any = None,
) -> Moments:
    operator, basis = operator or Laplacian(), with_constant(kernel or Gaussian(0.8), landmarks)
    task = Measure(basis, basis, operator.forms, functionals or {}, operator, dtype)
    arrays = task([{"x": X[rows], "weight": WEIGHT[rows]}])
    weight, count = float(WEIGHT[rows].sum()), len(X[rows])
    return Moments(arrays, weight, count, basis, operator, dtype, preparation or {}, rows=count + 1, skipped=1)


def test_moments_add() -> None:
    a, b, c, whole = measure(slice(9)), measure(slice(9, 30)), measure(slice(30, None)), measure()
    total = sum([a, b, c])
    assert isinstance(total, Moments)
    assert (total.count, total.skipped, total.rows, total.seen) == (120, 3, 123, None)
    assert total.weight == pytest.approx(WEIGHT.sum(), rel=1e-15)
    assert total.fingerprint == whole.fingerprint
    for name in ("form", "gram"):
        np.testing.assert_allclose(total.mean(name), whole.arrays[name] / WEIGHT.sum(), rtol=0, atol=1e-12)
    ordered = [replace(m, order=np.full((5, 2), 2.0)) for m in (a, b)]
    assert (ordered[0] + ordered[1]).order.tolist() == np.full((5, 2), 4.0).tolist()  # type: ignore[union-attr]
    assert (ordered[0] + b).order is None
    with pytest.raises(TypeError):
        a + 1  # type: ignore[operator]


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Gaussian(0.9)},
        {"kernel": Exponential(0.8)},
        {"landmarks": Y[:5] + np.spacing(Y[:5])},
        {"dtype": "float32"},
        {"preparation": {"columns": [0, 1, 2]}},
        {"operator": Laplacian(Sphere(3))},
        {"operator": SymmetricForm(dirichlet)},
        {"functionals": {"mass": functional(lambda f, x: inner(f, 1))}},
    ],
    ids=str,
)
def test_moments_of_different_things_do_not_add(options: dict[str, Any]) -> None:
    same, other = measure(), measure(**options)
    for one, two in ((same, other), (other, same)):
        with pytest.raises(ValueError, match="do not add"):
            one + two
    assert (same.fingerprint == other.fingerprint) == ("functionals" in options)


def test_kinds_of_numbers_are_not_told_apart() -> None:
    numbers: list[Any] = [1, 1.0, np.float32(1), np.int64(1)]
    assert len({measure(kernel=Gaussian(scale)).fingerprint for scale in numbers}) == 1


# problems


KERNEL = with_constant(Matern(2.5, 1.0), Y)


@pytest.mark.parametrize(
    ("operator", "sign", "kappa"), [(Laplacian(), 1, 5.0), (Generator(diffusion=2.0, reversible=True), -1, 10.0)]
)
def test_the_penalty_of_a_form(operator: Operator, sign: int, kappa: float) -> None:
    """c kappa / n times the norm, with kappa = -2 d q'(0) for the Dirichlet form: 3 * 5/3 here."""
    problem = posed(moments_of(KERNEL, ROWS, FOLD, operator), 3, 7.0)
    np.testing.assert_allclose(problem.energy(problem.means), sign * problem.means["form"])
    assert problem.rows == pytest.approx(max(WEIGHT.sum(), WEIGHT.sum() ** 2 / np.sum(WEIGHT**2)))
    for rows in (50.0, 25.0):
        found: Any = problem._penalty(problem.means, rows)
        np.testing.assert_allclose(found.left, 7 * kappa / rows * problem.left.norm)
        assert (found.rounding, found.precision) == (1e-13, 2e-16)
        np.testing.assert_allclose(found.energy, sign * problem.means["form"])


def test_the_penalties_of_two_sides_and_of_values() -> None:
    """By tr(K^+ G), of each side."""
    right = LandmarkBasis(Gaussian(0.8), Y[:9])
    problem = posed(moments_of(KERNEL, {**ROWS, "y": X + 1}, FOLD, Cross(), right), 3, 2.0)
    found: Any = problem._penalty(problem.means, 50.0)
    for side, matrix in ((problem.left, found.left), (problem.right, found.right)):
        own = np.trace(np.linalg.pinv(side.norm, rcond=1e-10, hermitian=True) @ side.gram)
        np.testing.assert_allclose(matrix, 2 * own / 50 * side.norm, rtol=1e-6)
    assert posed(moments_of(KERNEL, ROWS, FOLD, Covariance()), 3, 2.0)._penalty({}, 1.0) is None
    solver = SimpleNamespace(by_norm=False, two_sided=False, needs_symmetry=False)
    for order in (0, 1):  # of a user's operator without an energy
        problem.operator = cast(Any, SimpleNamespace(solver=solver, derivative_order=order))
        alone = problem._penalty(problem.means, 50.0)
        assert (alone is None) == (order == 1)
        assert alone is None or (alone.left == found.left).all()


@pytest.mark.parametrize(("kernel", "expected"), [(Gaussian(0.7), 1 / 0.49), (Matern(2.5, 0.8), 5 / (3 * 0.64))])
def test_kappa_is_the_mean_squared_norm_of_functionals(kernel: Kernel, expected: float) -> None:
    """By a loop over rows and directions: in the span of p functions it is no more than kappa, tr(K^+ L) exactly."""
    x, y = RNG.standard_normal((20, 2)), 2 * RNG.standard_normal((6, 2))
    basis = LandmarkBasis(kernel, y)
    norm, form, total = basis.norm(np.eye(6)), np.zeros((6, 6)), 0.0
    for slope in np.hstack([kernel.partial(x, y, (1, 0)), kernel.partial(x, y, (0, 1))]).T:
        form += np.outer(slope, slope) / 20
        total += slope @ np.linalg.solve(norm, slope) / 20
    root = inverse_norm(norm)
    assert trace(root, form) == pytest.approx(total, rel=1e-6)
    assert total <= roughness(Laplacian(), basis, form, lambda: root) == pytest.approx(2 * expected)
    assert roughness(TangentPropagation(), basis, form, lambda: root) == pytest.approx(total)
    assert roughness(TangentPropagation(), basis, -form, lambda: root) == 0


def test_the_pseudo_inverse_of_a_norm() -> None:
    norm = with_constant(Gaussian(1.0), np.vstack([Y[:12], Y[:2]])).norm(np.eye(15))
    root = inverse_norm(norm + np.triu(np.ones((15, 15)), 1) - np.tril(np.ones((15, 15)), -1))  # of the symmetric part
    assert root.shape == (15, 12)  # neither the constant nor functions that come twice
    np.testing.assert_allclose(root @ root.T, np.linalg.pinv(norm, rcond=1e-10), rtol=1e-6, atol=1e-6)
    for dtype, cut in (("float64", 1e-10), ("float32", 1e-6)):
        assert [inverse_norm(np.diag([1.0, f * cut]), dtype).shape[1] for f in (0.9, 1.1)] == [1, 2]


def test_functions_that_rest_on_few_rows_are_left_out() -> None:
    """(sum w f)^2 / sum w f^2; landmarks count from `min_support` on, and with half of them the first ones."""
    basis = with_constant(Gaussian(1.0), np.vstack([Y[:5], np.full((2, 3), 10.0), np.full((1, 3), 2.0)]))
    moments = moments_of(basis, ROWS, FOLD)
    phi, rows = basis.values(X), max(WEIGHT.sum(), WEIGHT.sum() ** 2 / np.sum(WEIGHT**2))
    squares = phi**2 @ WEIGHT
    support = np.divide((phi @ WEIGHT) ** 2, squares, out=np.zeros(9), where=squares > 0) / WEIGHT.sum() * rows
    least = posed(moments, 2).left.support[3]
    with pytest.warns(RankWarning, match=rf"{np.sum(support < least - 1e-9)} of 9 basis functions rest on fewer than"):
        problem = posed(moments, 2, min_support=least)
    np.testing.assert_allclose(problem.left.support, support)
    np.testing.assert_array_equal(problem.left.kept[1:], support[1:] >= least - 1e-9)
    assert posed(moments, 2, half=True).left.kept.tolist() == [True] * 5 + [False] * 4
    assert posed(moments, 2).nulls == 1
    twice = Concatenated((with_constant(Gaussian(1.0), Y[:5]), ConstantBasis(3)))  # one 0 of two equal functions
    for operator, nulls in ((Laplacian(), 1), (SymmetricForm(dirichlet, constants=True, descending=True), 0)):
        assert posed(moments_of(twice, ROWS, FOLD, operator), 2).nulls == nulls
    with pytest.raises(ValueError, match="each of the 40 basis functions rests on fewer than min_support=1000"):
        posed(moments_of(LandmarkBasis(Gaussian(1.0), Y), ROWS, FOLD), 2, min_support=1000)


@pytest.mark.parametrize(
    "changes",
    [
        {"weight": 0.0},
        {"weight": np.inf},
        {"arrays": {"gram": np.array([[np.nan]])}},
    ],
    ids=str,
)
def test_moments_that_pose_no_problem(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"weight|finite"):
        checked_means(replace(measure(), **changes))


@pytest.mark.parametrize(
    ("basis", "operator", "count"),
    [
        (LandmarkBasis(Polynomial(2), Y), Laplacian(), 11),
        (MonomialBasis(3, 1), Laplacian(), 5),
        (LandmarkBasis(Linear(), np.eye(3)), Covariance(), 4),  # all there are
    ],
)
def test_fewer_values_than_were_wanted(basis: Any, operator: Any, count: int) -> None:
    moments = replace(moments_of(basis, ROWS, FOLD, operator), folds=None)
    with pytest.warns(RankWarning) if count > 4 else np.errstate():
        found = solve_moments(moments, count=count, solver=Cut(min_support=0), penalty=None)
    assert len(found["eigenvalues_"]) == count - 1


@doubtful
def test_half_of_the_landmarks_tell_how_much_they_decide() -> None:
    """From 16 on: the change of values on rows held out."""
    whole, half, few = (
        solve_moments(moments, count=3, solver=Penalised(), penalty=1.0)
        for moments in (moments_of(with_constant(Gaussian(2.0), Y[:p]), ROWS, FOLD) for p in (16, 8, 15))
    )
    wanted = np.abs(whole["held_out_"] - half["held_out_"])
    np.testing.assert_allclose(whole["approximation_"], wanted, rtol=1e-5, atol=1e-9)
    assert np.isnan(few["approximation_"]).all()


def test_sums_keep_the_lower_factors_of_rivals() -> None:
    """In either order; values that one side does not tell have 1."""
    plain = moments_of(KERNEL, ROWS, FOLD)
    one, other = (replace(plain, undercut=np.array(f)) for f in ([1.0, 0.9, 0.95], [0.8, 1.0]))
    for total in (one + other, other + one):
        assert total.undercut is not None
        np.testing.assert_array_equal(total.undercut, [0.8, 0.9, 0.95])
    assert (plain + one).undercut is not None
    assert (plain + plain).undercut is None
