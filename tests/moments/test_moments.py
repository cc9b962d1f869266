"""Moments add, know what they measured, and travel; and the problem that they pose to a solver, penalties included."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.errors import RankWarning
from daskspectral.forms import dirichlet
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.manifolds import Sphere
from daskspectral.moments.problem import inverse_norm, roughness, trace
from daskspectral.moments.solution import System, score_span
from daskspectral.operators import Covariance, Cross, Generator, Laplacian, Operator, SymmetricForm, TangentPropagation
from daskspectral.solve import NonNormal
from daskspectral.solvers import Regularized
from tests.common import unreliable
from tests.moments.common import moments_of, problem_of

RNG = np.random.default_rng(4)
X, Y = RNG.standard_normal((120, 3)), RNG.standard_normal((40, 3))
WEIGHT = RNG.uniform(0.5, 2, 120)
ROWS = {"x": X, "weight": WEIGHT}
FOLD = np.arange(120) % 4


def with_constant(kernel: Kernel, landmarks: Any) -> Concatenated:
    return Concatenated((ConstantBasis(3), LandmarkBasis(kernel, landmarks)))


KERNEL = with_constant(Matern(2.5, 1.0), Y)
PLAIN = moments_of(KERNEL, ROWS, FOLD)


@pytest.mark.parametrize(
    "changes",
    [
        {"basis": with_constant(Matern(2.5, 1.1), Y)},
        {"dtype": "float32"},
        {"preparation": {"columns": [0, 1, 2]}},
        {"operator": Laplacian(Sphere(3))},
        {"right_basis": LandmarkBasis(Gaussian(1.0), Y)},
    ],
    ids=list,
)
def test_moments_of_different_things_do_not_add(changes: dict[str, Any]) -> None:
    other = replace(PLAIN, folds=None, **changes)
    for one, two in ((PLAIN, other), (other, PLAIN)):
        with pytest.raises(ValueError, match="cannot add"):
            one + two
    assert PLAIN.fingerprint != other.fingerprint


# problems


@pytest.mark.parametrize(
    ("operator", "sign", "kappa"), [(Laplacian(), 1, 5.0), (Generator(diffusion=2.0, reversible=True), -1, 10.0)]
)
def test_the_penalty_of_a_form(operator: Operator, sign: int, kappa: float) -> None:
    """c kappa / n times the norm, with kappa = -2 d q'(0) for the Dirichlet form: 3 * 5/3 here."""
    problem = problem_of(moments_of(KERNEL, ROWS, FOLD, operator), 3, 7.0)
    np.testing.assert_allclose(problem.kind.energy(problem.system(problem.means)), sign * problem.means["form"])
    assert problem.rows == pytest.approx(max(WEIGHT.sum(), WEIGHT.sum() ** 2 / np.sum(WEIGHT**2)))
    for rows in (50.0, 25.0):
        found: Any = problem.system(problem.means, rows).within
        np.testing.assert_allclose(found.left, 7 * kappa / rows * problem.left.norm)
        assert (found.rounding, found.precision) == (1e-13, 2e-16)
        np.testing.assert_allclose(found.energy, sign * problem.means["form"])


def test_the_penalties_of_two_sides_and_of_values() -> None:
    """By tr(K^+ G), of each side."""
    right = LandmarkBasis(Gaussian(0.8), Y[:9])
    problem = problem_of(moments_of(KERNEL, {**ROWS, "y": X + 1}, FOLD, Cross(), right), 3, 2.0)
    found: Any = problem.system(problem.means, 50.0).within
    for side, matrix in ((problem.left, found.left), (problem.right, found.right)):
        own = np.trace(np.linalg.pinv(side.norm, rcond=1e-10, hermitian=True) @ side.gram)
        np.testing.assert_allclose(matrix, 2 * own / 50 * side.norm, rtol=1e-6)
    values = problem_of(moments_of(KERNEL, ROWS, FOLD, Covariance()), 3, 2.0)
    assert values.system(values.means, 1.0).within is None
    by_values: Any = partial(problem._by_values, problem.means, 50.0)
    for bounded in (True, False):  # of a user's operator without an energy
        system = replace(problem.system(problem.means), bounded=bounded)
        alone = NonNormal().penalty(system, by_values, by_values)
        assert (alone is None) != bounded
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


def test_functions_that_rest_on_few_rows_are_left_out() -> None:
    """(sum w f)^2 / sum w f^2; landmarks count from `min_support` on, and with half of them the first ones."""
    basis = with_constant(Gaussian(1.0), np.vstack([Y[:5], np.full((2, 3), 10.0), np.full((1, 3), 2.0)]))
    moments = moments_of(basis, ROWS, FOLD)
    phi, rows = basis.values(X), max(WEIGHT.sum(), WEIGHT.sum() ** 2 / np.sum(WEIGHT**2))
    squares = phi**2 @ WEIGHT
    support = np.divide((phi @ WEIGHT) ** 2, squares, out=np.zeros(9), where=squares > 0) / WEIGHT.sum() * rows
    least = problem_of(moments, 2).left.support[3]
    with pytest.warns(RankWarning, match=rf"{np.sum(support < least - 1e-9)} of 9 basis functions"):
        problem = problem_of(moments, 2, min_support=least)
    np.testing.assert_allclose(problem.left.support, support)
    np.testing.assert_array_equal(problem.left.kept[1:], support[1:] >= least - 1e-9)
    assert problem_of(moments, 2, half=True).left.kept.tolist() == [True] * 5 + [False] * 4
    assert problem_of(moments, 2).nulls == 1
    twice = Concatenated((with_constant(Gaussian(1.0), Y[:5]), ConstantBasis(3)))  # one 0 of two equal functions
    for operator, nulls in ((Laplacian(), 1), (SymmetricForm(dirichlet, descending=True), 0)):
        assert problem_of(moments_of(twice, ROWS, FOLD, operator), 2).nulls == nulls
    with pytest.raises(ValueError, match="min_support=1000"):
        problem_of(moments_of(LandmarkBasis(Gaussian(1.0), Y), ROWS, FOLD), 2, min_support=1000)


@unreliable
def test_half_of_the_landmarks_measure_their_influence() -> None:
    """From 16 on: the change of values on rows held out."""
    whole, half, few = (
        System(moments, 1.0).solve(Regularized(), 3)
        for moments in (moments_of(with_constant(Gaussian(2.0), Y[:p]), ROWS, FOLD) for p in (16, 8, 15))
    )
    wanted = np.abs(whole["validation_values_"] - half["validation_values_"])
    np.testing.assert_allclose(whole["discretization_errors_"], wanted, rtol=1e-5, atol=1e-9)
    assert np.isnan(few["discretization_errors_"]).all()


def test_functions_that_new_rows_do_not_separate_have_no_score() -> None:
    c = RNG.standard_normal((41, 3))
    assert np.isfinite(score_span(Laplacian(), PLAIN, {"right": c}, 3).score)
    with pytest.warns(RankWarning):
        assert score_span(Laplacian(), PLAIN, {"right": c[:, [0, 1, 1]]}, 3).score == -np.inf
