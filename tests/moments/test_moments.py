"""Moments add, know what they measured, and travel; and the problem that they pose to a solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.errors import RankWarning
from daskspectral.forms import dirichlet, functional, inner
from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Matern, Polynomial
from daskspectral.manifolds import Implicit, Sphere
from daskspectral.moments import Measure, Moments, update_digest
from daskspectral.moments.problem import checked_means
from daskspectral.moments.solution import solve_moments
from daskspectral.operators import Covariance, Cross, Generator, Laplacian, Operator, SymmetricForm
from tests.moments.common import moments_of, posed

RNG = np.random.default_rng(4)
X, Y = RNG.standard_normal((120, 3)), RNG.standard_normal((40, 3))
WEIGHT = RNG.uniform(0.5, 2, 120)
ROWS = {"x": X, "weight": WEIGHT}
FOLD = np.arange(120) % 4


def flat(x: Any) -> Any:
    return np.tile([0.0, 0.0, 1.0], (len(x), 1))


def measure(
    rows: slice = slice(None),
    *,
    kernel: Kernel | None = None,
    landmarks: Any = Y[:5],
    operator: Operator | None = None,
    dtype: str = "float64",
    constant: bool = True,
    preparation: Any = None,
    functionals: Any = None,
) -> Moments:
    operator = operator or Laplacian()
    part = LandmarkBasis(kernel or Gaussian(0.8), landmarks)
    basis = Concatenated((ConstantBasis(3), part)) if constant else part
    task = Measure(basis, basis, operator.forms, functionals or {}, operator, dtype)
    arrays = task([{"x": X[rows], "weight": WEIGHT[rows]}])
    weight, count = float(WEIGHT[rows].sum()), len(X[rows])
    return Moments(arrays, weight, count, basis, operator, 1, dtype, preparation or {}, rows=count + 1)


def test_moments_add() -> None:
    a, b, c, whole = measure(slice(9)), measure(slice(9, 30)), measure(slice(30, None)), measure()
    total = sum([a, b, c])
    assert isinstance(total, Moments)
    assert (total.count, total.skipped, total.rows, total.digests) == (120, 3, 123, None)
    assert total.weight == pytest.approx(WEIGHT.sum(), rel=1e-15)
    assert total.fingerprint == whole.fingerprint
    for name in ("form", "gram"):
        np.testing.assert_allclose(total.arrays[name], whole.arrays[name], rtol=0, atol=1e-12)
        np.testing.assert_allclose(total.mean(name), whole.arrays[name] / WEIGHT.sum(), rtol=0, atol=1e-12)
    ordered = [replace(m, order=np.full((7, 2), 2.0)) for m in (a, b)]
    assert (ordered[0] + ordered[1]).order.tolist() == np.full((7, 2), 4.0).tolist()  # type: ignore[union-attr]
    assert (ordered[0] + b).order is None
    with pytest.raises(TypeError):
        a + 1  # type: ignore[operator]


OTHERS: dict[str, dict[str, Any]] = {
    "scale": {"kernel": Gaussian(0.9)},
    "kernel": {"kernel": Exponential(0.8)},
    "landmarks": {"landmarks": Y[:5] + np.spacing(Y[:5])},
    "constant": {"constant": False},
    "dtype": {"dtype": "float32"},
    "preparation": {"preparation": {"columns": [0, 1, 2]}},
    "operator": {"operator": Laplacian(Sphere(3))},
    "form": {"operator": SymmetricForm(dirichlet)},
    "surface": {"operator": Laplacian(Implicit(flat, 3))},
    "right-hand side": {"functionals": {"mass": functional(lambda f, x: inner(f, 1))}},
}


def test_moments_of_different_things_do_not_add() -> None:
    same, prints = measure(), {name: measure(**options) for name, options in OTHERS.items()}
    for name, other in prints.items():
        operators = name in ("operator", "form", "surface")
        what = {"dtype": "different dtypes, and", "preparation": "different preparations of the columns, and"}
        what["right-hand side"] = "moments of different forms do not add"
        match = "moments of different operators" if operators else what.get(name, r"different bases \(kernel, lan")
        for one, two in ((same, other), (other, same)):
            with pytest.raises(ValueError, match=match):
                one + two
    del prints["right-hand side"]
    assert len({same.fingerprint, *(m.fingerprint for m in prints.values())}) == 1 + len(prints)
    numbers: list[Any] = [1, 1.0, np.float32(1), np.int64(1)]
    assert len({measure(kernel=Gaussian(scale)).fingerprint for scale in numbers}) == 1
    assert measure(landmarks=Y[:5].tolist()).fingerprint == same.fingerprint


def test_digests_tell_structures_apart() -> None:
    def digest(value: Any) -> bytes:
        parts: list[bytes] = []

        class Hash:
            update = staticmethod(parts.append)

        update_digest(Hash, value)
        return b"".join(parts)

    values = [
        [1, 23], [12, 3], [[1], 23], [1, [23]], ["1", "23"], [], ["a"], [1.0, 1.0], None, True, 1, "1",
        {"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}, {}, {"a": []},
        np.ones(2), np.ones((1, 2)), np.ones(2, np.float32),
    ]  # fmt: skip
    assert len({digest(v) for v in values}) == len(values)
    assert digest({"a": 1, "b": 2.5}) == digest({"b": 2.5, "a": 1.0})


# problems


KERNEL = Concatenated((ConstantBasis(3), LandmarkBasis(Matern(2.5, 1.0), Y)))


@pytest.mark.parametrize(
    ("operator", "sign", "kappa"),
    [(Laplacian(), 1, 5.0), (Generator(diffusion=2.0, reversible=True), -1, 10.0)],
)
def test_the_penalty_of_a_form(operator: Operator, sign: int, kappa: float) -> None:
    """c kappa / n times the norm, with kappa = -2 d q'(0) for the Dirichlet form: 3 * 5/3 here."""
    problem = posed(moments_of(KERNEL, ROWS, FOLD, operator), 3, 7.0)
    np.testing.assert_allclose(problem.energy(problem.means), sign * problem.means["form"])
    found = problem._penalty(problem.means, 50.0)
    assert found is not None
    assert found.energy is not None
    np.testing.assert_allclose(found.left, 7 * kappa / 50 * problem.left.norm)
    np.testing.assert_allclose(found.energy, sign * problem.means["form"])
    assert problem.rows == pytest.approx(max(WEIGHT.sum(), WEIGHT.sum() ** 2 / np.sum(WEIGHT**2)))
    other = problem.penalised(14.0)._penalty(problem.means, 50.0)
    assert other is not None
    np.testing.assert_allclose(other.left, 2 * found.left)


def test_the_penalties_of_two_sides_and_of_values() -> None:
    """By tr(K^+ G), of each side."""
    right = LandmarkBasis(Gaussian(0.8), Y[:9])
    problem = posed(moments_of(KERNEL, {**ROWS, "y": X + 1}, FOLD, Cross(), right), 3, 2.0)
    found = problem._penalty(problem.means, 50.0)
    assert found is not None
    sides = problem.left, problem.right
    traces = [np.trace(np.linalg.pinv(side.norm, rcond=1e-10, hermitian=True) @ side.gram) for side in sides]
    np.testing.assert_allclose(found.left, 2 * traces[0] / 50 * problem.left.norm, rtol=1e-6)
    assert found.right is not None
    np.testing.assert_allclose(found.right, 2 * traces[1] / 50 * problem.right.norm, rtol=1e-6)
    assert posed(moments_of(KERNEL, ROWS, FOLD, Covariance()), 3, 2.0)._penalty({}, 1.0) is None


def test_functions_that_rest_on_few_rows_are_left_out() -> None:
    """(sum w f)^2 / sum w f^2; landmarks count from `min_support` on, and with half of them the first ones."""
    landmarks = np.vstack([Y[:5], np.full((2, 3), 10.0), np.full((1, 3), 2.0)])
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(1.0), landmarks)))
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
    with pytest.raises(ValueError, match="each of the 40 basis functions rests on fewer than min_support=1000"):
        posed(moments_of(LandmarkBasis(Gaussian(1.0), Y), ROWS, FOLD), 2, min_support=1000)


def test_moments_that_pose_no_problem() -> None:
    moments = measure()
    for changes, match in (
        ({"weight": 0.0}, "the total sample weight is 0; some row needs a weight above zero"),
        ({"weight": np.inf}, "the sample weights sum to infinity"),
        ({"arrays": {"gram": np.array([[np.nan]])}}, "the moments are not finite"),
    ):
        with pytest.raises(ValueError, match=match):
            checked_means(replace(moments, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("basis", "operator", "count", "match"),
    [
        (LandmarkBasis(Polynomial(2), Y), Laplacian(), 11, "polynomials of degree 2 in 3 variables have 10 dimensions"),
        (MonomialBasis(3, 1), Laplacian(), 5, "use more rows or a basis of more functions"),
        (LandmarkBasis(Gaussian(1.0), Y[:5]), Laplacian(), 6, "5 eigenvalues are returned; use more landmarks"),
        (LandmarkBasis(Linear(), np.eye(3)), Covariance(), 4, ""),  # all there are
    ],
)
def test_fewer_values_than_were_wanted(basis: Any, operator: Any, count: int, match: str) -> None:
    moments = replace(moments_of(basis, ROWS, FOLD, operator), folds=None)
    options: dict[str, Any] = {"rtol": None, "ridge": 0.0, "min_support": 0.0, "penalty": None}
    with pytest.warns(RankWarning, match=match) if match else np.errstate():
        found = solve_moments(moments, count=count, **options)
    assert len(found["eigenvalues_"]) == count - 1


def test_half_of_the_landmarks_tell_how_much_they_decide() -> None:
    """From 16 on: the change of values on rows held out."""
    for p in (15, 16):
        basis = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(2.0), Y[:p])))
        fewer = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(2.0), Y[:8])))
        options: dict[str, Any] = {"rtol": None, "ridge": 0.0, "min_support": 0.0, "penalty": 1.0, "compared": True}
        found = solve_moments(moments_of(basis, ROWS, FOLD), count=3, **options)
        half = solve_moments(moments_of(fewer, ROWS, FOLD), count=3, **options)
        if p == 15:
            assert np.isnan(found["approximation_"]).all()
        else:
            wanted = np.abs(found["held_out_"] - half["held_out_"])
            np.testing.assert_allclose(found["approximation_"], wanted, rtol=1e-5, atol=1e-9)
