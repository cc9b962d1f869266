"""Penalised solutions: spans against dense pencils, values without the penalty, closed forms, and few good rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve import Penalty, Pencil, Problem, Symmetric, whiten
from daskspectral.solve.penalised import (
    InverseRoot,
    inverse_root,
    leading_functions,
    leading_pairs,
    orthonormal,
    ritz_size,
)
from tests.solve.common import Array, gaussian, positive, sine, spd, symmetric

CUT = 1e-10


class Dense:
    """Matrices (60, 60) of which the first functions are null, and what a pencil is made of, by formulas."""

    def __init__(self, nulls: int = 1, seed: int = 0, energy: Array | None = None, weight: float = 1e-3):
        rng = np.random.default_rng(seed)
        self.gram, self.energy = spd(60, rng), spd(60, rng, 0.1, 50) if energy is None else energy
        self.norm, self.nulls = weight * spd(60, rng), nulls
        for matrix in (self.energy, self.norm):
            matrix[:nulls] = matrix[:, :nulls] = 0
        self.lower = np.linalg.cholesky(self.gram)
        self.penalty = Penalty(self.norm)

    @property
    def quotient(self) -> tuple[Array, Array]:
        """A and L of the others, without what they have of the null ones."""
        k, a = self.nulls, self.gram
        schur = a[k:, k:] - a[k:, :k] @ np.linalg.solve(a[:k, :k], a[:k, k:]) if k else a
        return schur, self.energy[k:, k:]

    def span(self, count: int, factor: float = 1.0) -> Array:
        """The leading functions (60, q) in all functions, the null ones first."""
        k, (a, energy) = self.nulls, self.quotient
        vectors = scipy.linalg.eigh(energy + factor * self.norm[k:, k:], a)[1]
        full = np.zeros((60, ritz_size(count)))
        full[:k, :k] = np.eye(k)
        full[k:, k:] = vectors[:, : ritz_size(count) - k]
        full[:k, k:] = -np.linalg.solve(self.gram[:k, :k], self.gram[:k, k:] @ full[k:, k:]) if k else 0
        return full


@pytest.mark.parametrize(("nulls", "count"), [(0, 3), (1, 26), (2, 30)])
def test_the_span_is_that_of_the_dense_pencil(nulls: int, count: int) -> None:
    dense = Dense(nulls)
    pencil = Pencil.of(dense.energy, dense.gram, dense.penalty, count, CUT)
    found = leading_functions(dense.energy, dense.gram, dense.penalty, count, CUT)
    size = max(32, count + 8)
    assert found.matrix.shape == (60, size)
    assert found.rank == 60
    assert sine(found.matrix, dense.span(count), dense.gram) < 1e-6
    np.testing.assert_allclose(found.matrix.T @ dense.gram @ found.matrix, np.eye(size), atol=1e-10)
    assert not found.matrix[nulls:, :nulls].any()
    a, energy = dense.quotient
    b = energy + dense.norm[nulls:, nulls:]
    last = scipy.linalg.eigvalsh(energy, a)[size - 9]  # 8 functions of the space are a margin
    assert (pencil.last, pencil.t, pencil.sigma) == pytest.approx((last, 1 / last, 0))
    np.testing.assert_allclose(found.spectrum, scipy.linalg.eigvalsh(a, a + b / last)[::-1], rtol=1e-9)
    white = whiten(dense.gram, CUT, np.arange(60) < nulls).matrix
    np.testing.assert_allclose(white @ found.whitened(np.eye(size)), found.matrix, atol=1e-9)
    skew = np.triu(dense.gram, 1) - np.tril(dense.gram, -1)
    skew[:nulls] = skew[:, :nulls] = 0
    other = leading_functions(dense.energy - skew, dense.gram + skew, Penalty(dense.norm + skew), count, CUT)
    assert sine(found.matrix, other.matrix, dense.gram) < 1e-6
    other_pencil = Pencil.of(dense.energy - skew, dense.gram + skew, Penalty(dense.norm + skew), count, CUT)
    assert other_pencil.last == pytest.approx(last)


def test_a_form_of_small_values_is_scaled_by_its_trace() -> None:
    """t is 1000 tr A / tr B where the last value wanted is less than a thousandth of tr B / tr A."""
    dense = Dense(energy=spd(60, np.random.default_rng(1), 1e-6, 1e-5), weight=10.0)
    (a, energy), norm = dense.quotient, dense.norm[1:, 1:]
    found = Pencil.of(dense.energy, dense.gram, dense.penalty, 3, CUT)
    assert found.t == pytest.approx(1e3 * np.trace(a) / np.trace(energy + norm))
    other = Pencil.of(dense.energy, dense.gram, Penalty(2 * dense.norm), 3, CUT, like=found)
    assert (other.last, other.white is found.white) == (found.last, True)
    assert other.t == pytest.approx(1e3 * np.trace(a) / np.trace(energy + 2 * norm))


def test_wells_raise_sigma_until_the_sum_is_positive() -> None:
    rng = np.random.default_rng(2)
    wells = np.linalg.qr(rng.standard_normal((60, 2)))[0]
    dense = Dense(0, energy=spd(60, rng, 10, 50) - 300 * wells @ wells.T)
    found = Pencil.of(dense.energy, dense.gram, dense.penalty, 5, CUT)
    a, b = dense.gram, dense.energy + dense.norm
    steps = found.sigma * found.t
    assert steps >= 1
    assert np.log2(steps) == pytest.approx(round(np.log2(steps)))
    assert scipy.linalg.eigvalsh(a + found.t * (b + found.sigma * a))[0] > 0
    less = found.sigma / 2 if steps > 1.5 else 0
    assert scipy.linalg.eigvalsh(a + found.t * (b + less * a))[0] < 0
    span = leading_functions(dense.energy, dense.gram, dense.penalty, 5, CUT).matrix
    assert sine(span, dense.span(5), dense.gram) < 1e-6
    whole = Symmetric().solve(Problem(dense.energy, dense.gram, 5, CUT, penalty=dense.penalty))
    inside = scipy.linalg.eigvalsh(*(span.T @ matrix @ span for matrix in (dense.energy, dense.gram)))
    np.testing.assert_allclose(whole.values, inside[:5], rtol=1e-9)


@pytest.mark.parametrize("nulls", [0, 1])
def test_a_part_of_the_data_has_its_own_span(nulls: int) -> None:
    """Its own form and Gram matrix, and a penalty that is so much larger."""
    whole, part = Dense(nulls, 0), Dense(nulls, 1)
    part.norm = whole.norm
    pencil = Pencil.of(whole.energy, whole.gram, whole.penalty, 5, CUT)
    found = pencil.part(part.energy, part.gram, 30.0)
    assert sine(found.matrix, part.span(5, 30.0), part.gram) < 1e-6
    np.testing.assert_allclose(found.matrix.T @ part.gram @ found.matrix, np.eye(32), atol=1e-10)
    assert found.rank == nulls + 32
    skew = np.triu(part.gram, 1) - np.tril(part.gram, -1)
    skew[:nulls] = skew[:, :nulls] = 0
    other = pencil.part(part.energy + skew, part.gram + skew, 30.0)
    assert sine(found.matrix, other.matrix, part.gram) < 1e-6


def test_a_part_that_does_not_see_all_directions() -> None:
    dense = Dense(0)
    few = dense.lower[:, :20]
    pencil = Pencil.of(dense.energy, dense.gram, dense.penalty, 5, CUT)
    found = pencil.part(few @ few.T, few @ few.T, 0.0)
    assert found.rank == found.matrix.shape[1] == 20
    np.testing.assert_allclose(found.matrix.T @ (few @ few.T) @ found.matrix, np.eye(20), atol=1e-8)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), p=st.integers(2, 20), count=st.integers(1, 12), descending=st.booleans())
def test_few_functions_are_taken_whole(seed: int, p: int, count: int, descending: bool) -> None:
    """The solution by cut, with the signs of its functions, of whatever penalty, in whatever units of the functions."""
    rng = np.random.default_rng(seed)
    form, gram, norm = symmetric(p, rng), spd(p, rng), spd(p, rng)
    units = 10.0 ** rng.integers(-4, 5, p)
    problem: dict[str, Any] = {"count": count, "cut": CUT, "descending": descending}
    by_cut = Symmetric().solve(Problem(form, gram, **problem))
    penalised = Symmetric().solve(Problem(form, gram, **problem, penalty=Penalty(norm)))
    np.testing.assert_allclose(penalised.values, by_cut.values, atol=1e-9)
    assert penalised.rank == by_cut.rank == p
    gaps = np.diff(scipy.linalg.eigvalsh(form, gram), prepend=-99, append=99)
    gaps = gaps[::-1] if descending else gaps
    apart = np.minimum(gaps[1:], gaps[:-1])[: len(by_cut.values)] > 1e-3
    np.testing.assert_allclose(penalised.right[:, apart], by_cut.right[:, apart], atol=1e-6)
    changed = [m * np.outer(units, units) for m in (form, gram, norm)]
    other = Symmetric().solve(Problem(*changed[:2], **problem, penalty=Penalty(changed[2])))
    np.testing.assert_allclose(other.values, by_cut.values, atol=1e-7)


def test_largest_first_the_span_has_the_largest_values() -> None:
    dense = Dense(0)
    both = [
        Symmetric().solve(Problem(sign * dense.energy, dense.gram, 5, CUT, descending=sign < 0, penalty=dense.penalty))
        for sign in (1, -1)
    ]
    np.testing.assert_allclose(both[1].values, -both[0].values, rtol=1e-9)
    assert positive(np.linalg.solve(whiten(dense.gram, CUT).matrix, both[0].left))


# -- rows --------------------------------------------------------------------------------------------------------------


class Interval:
    """Gaussians at some of the rows on an interval of length pi, with the constant: values k^2."""

    def __init__(self, n: int, p: int, scale: float, seed: int = 0):
        x = np.random.default_rng(seed).uniform(0, np.pi, (n, 1))
        self.at, self.scale, self.n = x[:p], scale, n
        self.gram, self.form = self.sums(x)
        self.norm = scipy.linalg.block_diag(0.0, gaussian(self.at, self.at, scale))

    def sums(self, x: Array) -> tuple[Array, Array]:
        values = gaussian(x, self.at, self.scale)
        f = np.column_stack([np.ones(len(x)), values])
        slopes = np.column_stack([np.zeros(len(x)), (self.at.T - x) / self.scale**2 * values])
        return f.T @ f / len(x), slopes.T @ slopes / len(x)

    def solved(self, c: float | None, count: int = 5) -> Any:
        penalty = None if c is None else Penalty(c / self.scale**2 / self.n * self.norm)
        return Symmetric().solve(Problem(self.form, self.gram, count, CUT, penalty=penalty))


@pytest.mark.parametrize("scale", [0.3, 4.0, 100.0])
def test_however_wide_the_kernel_no_value_is_rounding(scale: float) -> None:
    """Functions that are all but constant: what is left of them without the constant is rounding to that extent."""
    problem = Interval(3000, 60, scale)
    for c in (0.01, 1.0, 100.0):
        found = problem.solved(c)
        assert Pencil.of(problem.form, problem.gram, Penalty(1e-9 * problem.norm), 5, CUT).sigma == 0
        assert found.values[0] == 0  # exactly
        assert found.values[1] > 0.9
        np.testing.assert_allclose(found.right[1:, 0], 0)
        if scale == 0.3 and c < 10:
            np.testing.assert_allclose(found.values[1:], [1, 4, 9, 16], rtol=0.05)


def test_smoother_functions_than_those_of_the_cut() -> None:
    """On new rows the span of few rows and many narrow kernel functions does better than a cut's."""
    problem = Interval(150, 75, 0.1)
    gram, form = problem.sums(np.random.default_rng(1).uniform(0, np.pi, (20_000, 1)))
    by_cut, penalised = (
        scipy.linalg.eigvalsh(*(f.T @ m @ f for m in (form, gram))).sum()
        for f in (problem.solved(c).right for c in (None, 1.0))
    )
    assert 30 < penalised < 0.95 * by_cut


# -- two sides ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centred", [False, True])
def test_pairs_are_the_singular_functions_of_the_penalised_form(centred: bool) -> None:
    """By symmetric inverse roots; with means first what these are, and what they are paired with."""
    rng = np.random.default_rng(4)
    gram, right_gram, form = spd(60, rng), spd(50, rng), rng.standard_normal((60, 50))
    k, right_k = spd(60, rng), spd(50, rng)
    means = 0.1 * rng.standard_normal(60), 0.1 * rng.standard_normal(50)
    left, right = leading_pairs(
        form, gram, right_gram, Penalty(0.3 * k, 0.5 * right_k), 5, CUT, means if centred else None
    )
    w, z = (np.linalg.inv(scipy.linalg.sqrtm(m).real) for m in (gram + 0.3 * k, right_gram + 0.5 * right_k))
    x, ahead, right_ahead = w @ form @ z, np.zeros((60, 0)), np.zeros((50, 0))
    if centred:
        mu, nu = w @ means[0], z @ means[1]
        x = x - np.outer(mu, nu)
        ahead = np.column_stack([mu, x @ nu])
        right_ahead = np.column_stack([nu, x.T @ mu])
        x = (np.eye(60) - np.outer(mu, mu) / (mu @ mu)) @ x @ (np.eye(50) - np.outer(nu, nu) / (nu @ nu))
    u, _, vt = np.linalg.svd(x)
    expected = w @ np.hstack([ahead, u[:, :32]]), z @ np.hstack([right_ahead, vt[:32].T])
    assert sine(left.matrix, expected[0], gram) < 1e-6
    assert sine(right.matrix, expected[1], right_gram) < 1e-6
    np.testing.assert_allclose(left.matrix.T @ gram @ left.matrix, np.eye(left.matrix.shape[1]), atol=1e-10)
    np.testing.assert_allclose(whiten(gram, CUT).matrix @ left.whitened(np.eye(left.matrix.shape[1])), left.matrix)
    assert (left.rank, right.rank) == (60, 50)
    skew = np.triu(gram, 1) - np.tril(gram, -1)
    again, _ = leading_pairs(
        form, gram + skew, right_gram, Penalty(0.3 * k, 0.5 * right_k), 5, CUT, means if centred else None
    )
    assert sine(again.matrix, expected[0], gram) < 1e-6


def test_functions_that_all_but_vanish_must_be_a_hundred_times_what_rounding_is() -> None:
    """The difference of two functions, a thousandth of them, of entries that are right to `precision`."""
    gram, norm = np.array([[1.0, 0.999], [0.999, 1.0]]), 1e-3 * np.eye(2)
    largest = Pencil.of(np.eye(2), gram, Penalty(norm), 2, CUT).root.largest
    for ratio, rank in ((150.0, 2), (70.0, 1)):
        one = Penalty(norm, precision=1e-3 / (ratio * largest))
        assert leading_functions(np.eye(2), gram, one, 2, CUT).rank == rank
        pair = Penalty(norm, precision=1e-3 / (ratio * inverse_root(gram + norm, 0).largest))
        assert [side.rank for side in leading_pairs(np.eye(2), gram, gram, pair, 2, CUT)] == [rank, rank]


def test_what_leaves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="beside the penalty every basis function is rounding on these data; lower"):
        leading_pairs(np.eye(2), np.eye(2), np.eye(2), Penalty(np.eye(2), precision=0.1), 2, CUT)
    for solve in (
        lambda: leading_pairs(np.eye(2), np.zeros((2, 2)), np.eye(2), Penalty(np.eye(2)), 2, CUT),
        lambda: leading_functions(np.eye(2), np.zeros((2, 2)), Penalty(np.eye(2)), 2, CUT),
    ):
        with pytest.raises(ValueError, match="every basis function is zero on every point; widen the kernel's scale"):
            solve()


# -- roots -------------------------------------------------------------------------------------------------------------


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
    skew = np.triu(m, 1) - np.tril(m, -1)
    np.testing.assert_allclose(inverse_root(m + skew, 1e-13).least, root.least)


def test_directions_that_an_inverse_root_leaves_out() -> None:
    negative = spd(3, np.random.default_rng(0))
    negative[0, 0] = -1.0
    assert inverse_root(negative, 1e-13).least == -1.0
    # brought to unit diagonal; 0 stays out, and what no row sees, whatever its norm
    assert inverse_root(np.diag([1.0, 1e-30, 0.0]), 1e-13).matrix.shape == (3, 2)
    assert not inverse_root(np.eye(2), 1e-13, np.array([1.0, 0.0])).matrix[1].any()
    q = scipy.linalg.hadamard(4) / 2
    small = q * [1.0, 1.0, 1.0, 1e-6] @ q.T
    assert [inverse_root(small, cut).matrix.shape[1] for cut in (0.7e-6, 1.4e-6)] == [4, 3]
    empty = inverse_root(np.zeros((0, 0)), 1e-13)
    assert isinstance(empty, InverseRoot)
    assert (empty.matrix.shape, empty.least, empty.largest) == ((0, 0), 0, 0)


def test_functions_are_made_orthonormal_with_little_change() -> None:
    rng = np.random.default_rng(9)
    gram, span = spd(6, rng), rng.standard_normal((6, 3))
    root = np.linalg.inv(scipy.linalg.sqrtm(span.T @ gram @ span).real)
    np.testing.assert_allclose(orthonormal(span, gram), span @ root, atol=1e-10)
    skew = np.triu(gram, 1) - np.tril(gram, -1)
    np.testing.assert_allclose(orthonormal(span, gram + skew), span @ root, atol=1e-10)
    for least, rank in ((1.5e-8, 3), (0.7e-8, 2)):  # of the squares: what is less is the same function twice
        found = orthonormal(np.eye(3), np.diag([1.0, 1.0, least]))
        assert found.shape == (3, rank)
        np.testing.assert_allclose(found.T @ np.diag([1.0, 1.0, least]) @ found, np.eye(rank), atol=1e-9)
