"""The semidefinite program: a closed form, dense loops for each pass, and proofs from written-out matrices alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.solve import sdp
from daskspectral.solve.extremes import Largest
from daskspectral.solve.sdp import (
    Accelerated,
    Deflated,
    ExactProblem,
    Frame,
    Iterate,
    LowRankProblem,
    Power,
    Problem,
    Prove,
    Pull,
    accelerated,
    power_method,
    solve_stages,
)
from daskspectral.solve.sdp.certificate import certify_dense, certify_lanczos
from tests.solve.common import Array, gaussian, moons

ROOT2 = np.sqrt(2)  # exp(-r^2 / h^2) is a Gaussian of scale h / sqrt(2)


@dataclass(frozen=True)
class Case:
    """A problem, with Abar (n, n) and d (n,) written out; with landmarks the rows F (n, q), Abar = F F^T, too."""

    abar: Array
    d: Array
    problem: Any
    f: Array | None = None
    k: Array | None = None
    own: Array | None = None

    def embedding(self, point: Array) -> Array:
        rows = point if self.f is None else self.f @ point
        return np.asarray(np.sqrt(self.d)[:, None] * directions(rows))

    def draw(self, columns: int, seed: int = 0) -> Array:
        rows = len(self.d) if self.f is None else self.f.shape[1]
        return np.random.default_rng(seed).standard_normal((rows, columns))

    def solved(self, tolerance: float = 1e-10, columns: int = 6) -> Any:
        return Accelerated().solve(self.problem, self.draw(columns), tolerance=tolerance, max_passes=10_000)


@cache
def case(n: int = 40, bandwidth: float = 0.5, own: bool = False) -> Case:
    """Two moons, all points; `own` bounds on the diagonal instead of alpha(x)."""
    x = 2 * moons(n)
    k = gaussian(x, x, bandwidth / ROOT2)
    m = [sum(row) for row in k]
    abar = [[k[i, j] / np.sqrt(m[i] * m[j]) - np.sqrt(m[i] * m[j]) / sum(m) for j in range(n)] for i in range(n)]
    matrix = Deflated(lambda h: k @ h, k.sum(axis=1))
    d = np.random.default_rng(1).uniform(0.5, 2, n) if own else matrix.bound
    return Case(np.array(abar), d, ExactProblem(matrix, d))


def summed(block: Any, k: Array, v: Array, d: Array | None, cuts: list[int]) -> dict[str, Any]:
    """A block's sums over columns of k cut into chunks, one after the other."""
    total: dict[str, Any] = {}
    for a, b in pairwise([0, *cuts, k.shape[1]]):
        part = block(k[:, a:b], v, None if d is None else d[a:b])
        total = {name: total[name] + value for name, value in part.items()} if total else part
    return {name: value.value if isinstance(value, Largest) else value for name, value in total.items()}


@cache
def low_case(own: bool = False) -> Case:
    """Fifty points and twelve landmarks."""
    x = 2 * moons(50)
    gram, k = (gaussian(x[:48:4], y, 1 / ROOT2) for y in (x[:48:4], x))
    frame = Frame.of(gram, k.sum(axis=1))
    values, vectors = np.linalg.eigh(gram)  # psi of another whitening: the same up to a rotation
    psi = [vectors.T @ k[:, i] / np.sqrt(values) for i in range(50)]
    sigma = sum(psi)
    m = np.array([a @ sigma for a in psi])
    f = np.array([(a - sigma * (sigma @ a) / (sigma @ sigma)) / np.sqrt(b) for a, b in zip(psi, m, strict=True)])
    given = np.random.default_rng(1).uniform(0.5, 2, 50) if own else None
    d = np.array([1 / b - b / m.sum() for b in m]) if given is None else given
    pull, prove = Pull(frame.masses, frame.total), Prove(frame.masses, frame.total)
    problem = LowRankProblem(frame, lambda v: summed(pull, k, v, given, []), lambda v: summed(prove, k, v, given, []))
    turned = frame.projected(frame.whitening.T @ k).T / np.sqrt(m)[:, None]  # F in the coordinates of the frame
    np.testing.assert_allclose(turned @ turned.T, f @ f.T, atol=1e-10)
    return Case(f @ f.T, d, problem, turned, k, given)


CASES = {"all": case, "own": lambda: case(60, 0.3, True), "low": low_case, "low, own": lambda: low_case(True)}


def directions(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def numeric_gradient(problem: Problem, point: Array) -> Array:
    found = np.empty_like(point)
    for index in np.ndindex(point.shape):
        step = np.zeros_like(point)
        step[index] = 1e-5
        rise = problem.evaluate(point + step).objective - problem.evaluate(point - step).objective
        found[index] = rise / 2e-5
    return found


def test_a_tiny_program_by_hand() -> None:
    """C = [[a, c], [c, b]] and a diagonal d: Tr(C B) is at most a d_1 + b d_2 + 2 |c| sqrt(d_1 d_2), with rank 1."""
    c, d = np.array([[2.0, -0.7], [-0.7, 1.0]]), np.array([0.5, 2.0])
    problem = ExactProblem(c, d)
    for solver in (Accelerated(), Power()):
        start = np.random.default_rng(0).standard_normal((2, 2))
        found = solver.solve(problem, start, tolerance=1e-10, max_passes=1000)
        assert found.objective == pytest.approx(3 + 2 * 0.7)
        e = problem.embedding(found.point)
        np.testing.assert_allclose(e @ e.T, [[0.5, -1], [-1, 2]], atol=1e-6)
        np.testing.assert_allclose(problem.dual(e), [2 + 0.7 * 2, 1 + 0.7 / 2], atol=1e-6)
        assert found.certificate.optimal
    for y, least in (([3.4, 1.35], 0.0), ([3.0, 1.0], 0.5 - 0.25**0.5 * np.sqrt(1 + 4 * 0.49))):
        proof = certify_dense(c, np.array(y), d, 1e-8)
        assert proof.least_eigenvalue == pytest.approx(least, abs=1e-12)
        assert proof.gap == pytest.approx(2.5 * max(0, -least), abs=1e-12)
        assert proof.optimal == (least == 0)


@pytest.mark.parametrize("own", [False, True])
def test_a_pass_over_all_points(own: bool) -> None:
    one = case(own=own)
    point, abar, d = one.draw(3), one.abar, one.d
    e = one.embedding(point)
    for problem in (one.problem, ExactProblem.of(one.problem.matrix, d)):
        found = problem.evaluate(point)
        np.testing.assert_allclose(found.objective, np.trace(abar @ e @ e.T), rtol=1e-12)
        np.testing.assert_allclose(found.moment, e.T @ e, atol=1e-12)
        np.testing.assert_allclose(found.gradient, numeric_gradient(problem, point), atol=1e-7)
        pulled = np.sqrt(d)[:, None] * (abar @ e)
        np.testing.assert_allclose(directions(found.power), directions(pulled), atol=1e-12)
        norm = np.linalg.norm(pulled, axis=1)
        least = 0 if problem.own is None else 0.9 * d * np.diag(abar)
        np.testing.assert_allclose(np.sum(found.power**2, axis=1), np.maximum(norm - least, 0.1 * norm), rtol=1e-9)
        across = pulled - np.sum(pulled * directions(point), axis=1, keepdims=True) * directions(point)
        lost = np.sum(across**2 / norm[:, None])
        assert found.residual == pytest.approx(np.sqrt(lost / abs(found.objective)), rel=1e-9)
    np.testing.assert_allclose(problem.embedding(point), e, rtol=1e-14)
    np.testing.assert_allclose(problem.dual(e), np.diag(abar @ e @ e.T) / d, atol=1e-12)
    if not own:
        np.testing.assert_allclose(d, np.diag(abar), rtol=1e-12)  # the bound is the diagonal of the kernel
        np.testing.assert_allclose(one.problem.matrix @ np.eye(40), abar, atol=1e-14)
    widened = problem.widened(point, np.arange(40.0) - 39)
    np.testing.assert_array_equal(widened[:, :3], point)
    share = np.abs(widened[:, 3]) / np.linalg.norm(point, axis=1) * np.sqrt(d)
    np.testing.assert_allclose(share / share.max(), (39 - np.arange(40.0)) / 39, atol=1e-12)
    assert np.abs(widened[:, 3] / np.linalg.norm(point, axis=1)).max() == pytest.approx(0.1)


@pytest.mark.parametrize("own", [False, True])
def test_a_pass_with_landmarks(own: bool) -> None:
    one = low_case(own)
    point, root, f = one.draw(3), np.sqrt(one.d), one.f
    assert f is not None
    found = one.problem.evaluate(point)
    z = one.problem.frame.projected(point)
    # at the scale t at which 2 t sum_i sqrt(d_i) |F_i^T z| - t^2 |z|^2 is largest
    z *= sum(root[i] * np.linalg.norm(z.T @ f[i]) for i in range(50)) / np.sum(z**2)
    h = directions(f @ z)
    power = sum(root[i] * np.outer(f[i], h[i]) for i in range(50))
    length = sum(root[i] * np.linalg.norm(f[i] @ z) for i in range(50))
    np.testing.assert_allclose(found.power, power, atol=1e-10)
    np.testing.assert_allclose(found.moment, sum(one.d[i] * np.outer(h[i], h[i]) for i in range(50)), atol=1e-10)
    np.testing.assert_allclose(found.point, z, atol=1e-10)
    np.testing.assert_allclose(found.objective, 2 * length - np.sum(z**2), rtol=1e-10)
    np.testing.assert_allclose(found.gradient, numeric_gradient(one.problem, z), atol=1e-6)
    np.testing.assert_allclose(found.residual, np.linalg.norm(power - z) / np.linalg.norm(z), rtol=1e-10)
    # |P Z'|^2 after a power step is Tr(Abar B), and the next objective is no less
    e = root[:, None] * h
    np.testing.assert_allclose(np.sum(power**2), np.trace(one.abar @ e @ e.T), rtol=1e-10)
    assert found.objective <= np.sum(power**2) <= one.problem.evaluate(found.power).objective
    widened = one.problem.widened(point, f[0])
    np.testing.assert_allclose(widened, np.column_stack([point, 0.1 * np.linalg.norm(point) * f[0]]))


def test_both_problems_take_the_same_power_steps() -> None:
    """All points as landmarks: the low-rank iteration is the dense one."""
    x = 2 * moons(14)
    k = gaussian(x, x, 1 / ROOT2)
    frame = Frame.of(k, k.sum(axis=1))
    pull = Pull(frame.masses, frame.total)
    low = LowRankProblem(frame, lambda v: pull(k, v, None), lambda v: pytest.fail("no certificate"))
    matrix = Deflated(lambda h: k @ h, k.sum(axis=1))
    exact = ExactProblem(matrix, matrix.bound)
    z = np.random.default_rng(0).standard_normal((len(frame.sigma), 3))
    g = k.T @ frame.coefficients(z)
    for _ in range(9):
        now, dense = low.evaluate(z), exact.evaluate(g)
        np.testing.assert_allclose(now.moment, dense.moment, atol=1e-9)
        np.testing.assert_allclose(np.sum(now.power**2), dense.objective, rtol=1e-9)
        z, g = now.power, dense.power


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(1, 49), max_size=8), own=st.booleans(), seed=st.integers(0, 100))
def test_sums_add_under_any_chunking(cuts: list[int], own: bool, seed: int) -> None:
    one = low_case(own)
    v = one.problem.frame.coefficients(one.draw(3, seed))
    for kind in (Pull, Prove):
        block = kind(one.problem.frame.masses, one.problem.frame.total)
        whole, parts = (summed(block, one.k, v, one.own, some) for some in ([], sorted(cuts)))  # type: ignore[arg-type]
        for name in whole:
            np.testing.assert_allclose(parts[name], whole[name], rtol=1e-12, atol=1e-12 * np.abs(whole[name]).max())


@settings(max_examples=15)
@given(
    columns=st.integers(1, 4),
    seed=st.integers(0, 1000),
    low=st.booleans(),
    passes=st.integers(1, 60),
    warm_up=st.integers(0, 3),
)
def test_an_ascent_never_falls(columns: int, seed: int, low: bool, passes: int, warm_up: int) -> None:
    one = low_case() if low else case()
    start = one.draw(columns, seed)
    first = one.problem.evaluate(start).objective
    seen: list[Iterate] = []
    fast = accelerated(
        one.problem, start, residual=1e-11, max_passes=passes, warm_up=warm_up, stop=lambda now: bool(seen.append(now))
    )
    slow = power_method(one.problem, start, residual=1e-11, max_passes=passes)
    for found in (fast, slow):
        assert found.passes == len(found.objectives) <= passes
        assert found.objectives[0] == first
        assert found.last.objective >= first - 1e-12 * abs(first)
    taken = np.array([now.objective for now in seen])
    assert (np.diff(taken) >= -1e-12 * np.abs(taken[1:])).all()
    assert (fast.last.objective >= taken * (1 - 1e-12)).all()
    assert (np.diff(slow.objectives) >= -1e-12 * np.abs(slow.objectives[1:])).all()


@pytest.mark.parametrize("name", CASES)
def test_the_solution_is_optimal_from_any_start(name: str) -> None:
    """Primal feasible, dual feasible, and equal: from the written-out matrices alone. One column grows to the rank."""
    one = CASES[name]()
    found = one.solved()
    e = one.embedding(found.point)
    y = np.diag(one.abar @ e @ e.T) / one.d
    least = np.linalg.eigvalsh(np.diag(y) - one.abar)[0]
    assert -least * one.d.sum() <= 1e-9 * found.objective
    np.testing.assert_allclose(found.objective, np.trace(one.abar @ e @ e.T), rtol=1e-11)
    np.testing.assert_allclose(e.T @ e, np.diag(found.eigenvalues), atol=1e-9 * found.eigenvalues[0])
    assert (np.diff(found.eigenvalues) <= 0).all()
    assert found.certificate.optimal
    assert found.passes == len(found.objectives) < 400
    other = one.solved(columns=1)
    assert other.certificate.optimal
    np.testing.assert_allclose(found.objective, other.objective, rtol=1e-9)
    np.testing.assert_allclose(found.eigenvalues, other.eigenvalues, rtol=1e-4)
    assert found.point.shape[1] == len(found.eigenvalues)


@pytest.mark.parametrize("low", [False, True])
def test_passes_are_a_tenth_of_the_power_methods(low: bool) -> None:
    one = low_case() if low else case(80, 0.3)
    slow = Power().solve(one.problem, one.draw(6), tolerance=1e-9, max_passes=20_000)
    fast = one.solved(1e-9)
    assert fast.certificate.optimal
    assert slow.certificate.optimal
    assert slow.objective == pytest.approx(fast.objective, rel=1e-8)
    assert fast.passes < max(60, slow.passes / 4)
    few = Power().solve(one.problem, one.draw(6), tolerance=1e-9, max_passes=5)
    assert (few.passes, len(few.objectives)) == (5, 5)
    some = Accelerated().solve(one.problem, one.draw(6), tolerance=1e-9, max_passes=5)
    assert (some.passes, len(some.objectives)) == (5, 5)


# -- certificates ------------------------------------------------------------------------------------------------------


def certificates(one: Case, point: Array, tolerance: float) -> list[Any]:
    """That of all eigenvalues and that of Lanczos."""
    found = []
    for dense in (2000, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sdp.exact, "DENSE", dense)
            found.append(one.problem.certify(point, tolerance))
    return found


@settings(max_examples=15)
@given(columns=st.integers(1, 5), seed=st.integers(0, 1000), passes=st.integers(1, 40))
def test_the_gap_is_a_bound_at_every_point(columns: int, seed: int, passes: int) -> None:
    one = case(60, 0.5)
    best = one.solved().objective
    last = accelerated(one.problem, one.draw(columns, seed), residual=1e-11, max_passes=passes).last
    dense, lanczos = certificates(one, last.point, 1e-9)
    e = one.embedding(last.point)
    y = np.diag(one.abar @ e @ e.T) / one.d
    least = np.linalg.eigvalsh(np.diag(y) - one.abar)[0]
    assert dense.least_eigenvalue == pytest.approx(least, abs=1e-12)
    assert lanczos.least_eigenvalue <= least + 1e-12
    assert lanczos.products > 0
    for found in (dense, lanczos):
        assert found.gap == max(0.0, -found.least_eigenvalue) * one.d.sum()
        assert last.objective + found.gap >= best * (1 - 1e-11)
        assert found.optimal == (found.gap <= 1e-9 * last.objective)
        assert (found.direction is None) == found.optimal


@settings(max_examples=15)
@given(
    columns=st.integers(1, 5), seed=st.integers(0, 1000), passes=st.integers(1, 40), scale=st.sampled_from([0.1, 1, 30])
)
def test_the_low_rank_gap_is_a_bound_at_every_point(columns: int, seed: int, passes: int, scale: float) -> None:
    one = low_case()
    best = one.solved().objective
    last = accelerated(one.problem, scale * one.draw(columns, seed), residual=1e-11, max_passes=passes).last
    found = one.problem.certify(last.point, 1e-9)
    e, y = one.embedding(last.point), np.linalg.norm(one.f @ last.point, axis=1) / np.sqrt(one.d)  # type: ignore[operator]
    assert last.objective <= np.sum((one.f.T @ e) ** 2) * (1 + 1e-12)  # type: ignore[union-attr]
    largest = np.linalg.eigvalsh(one.f.T / y @ one.f)[-1]  # type: ignore[operator,union-attr]
    scale_of_y = one.d @ y / np.sum(one.problem.frame.projected(last.point) ** 2)
    expected = min(0.0, scale_of_y - largest) * y.max()
    assert found.least_eigenvalue == pytest.approx(expected, abs=1e-10)
    assert found.gap == pytest.approx(-expected * one.d.sum(), abs=1e-9)
    again = one.problem.certify(scale * last.point, 1e-9)  # B does not depend on the scale
    np.testing.assert_allclose(again.gap, found.gap, rtol=1e-9, atol=1e-12)
    assert last.objective + found.gap >= best * (1 - 1e-10)
    assert not found.optimal or last.objective >= best * (1 - 1.1e-9)


def test_lanczos_proves_what_is_optimal_and_is_not_deceived() -> None:
    """Neither by points of second order of too small a rank, from which no step rises, nor by a y below 0."""
    one = case(60, 0.5)
    best = one.solved(1e-11)
    dense, lanczos = certificates(one, best.point, 1e-8)
    assert dense.optimal
    assert lanczos.optimal
    stuck = [power_method(one.problem, one.draw(1, seed), residual=0.0, max_passes=200).last for seed in range(5)]
    stuck = [last for last in stuck if last.objective < best.objective * (1 - 1e-6)]
    assert stuck
    for last in stuck:
        assert last.residual < 1e-7  # signs that no power step changes
        for found in certificates(one, last.point, 1e-8):
            assert not found.optimal
            assert found.gap >= best.objective - last.objective
    y, e = np.ones(60), one.embedding(one.draw(2))
    y[3] = -0.5
    found = certify_lanczos(0.01 * one.abar, y, e, one.d, 1e-8)
    assert found.least_eigenvalue <= np.linalg.eigvalsh(np.diag(y) - 0.01 * one.abar)[0]
    assert not found.optimal


# -- stages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("low", [False, True])
def test_further_columns_are_of_what_the_first_leave(low: bool) -> None:
    """Abar - Abar E (E^T Abar E)^+ E^T Abar, written out; its rank falls by that of E."""
    one = low_case() if low else case(40, 1.5)
    stages = solve_stages(
        one.problem,
        lambda k: one.draw(4, k),
        lambda problem, start: Accelerated().solve(problem, start, tolerance=1e-8, max_passes=3000),
        5,
    )
    assert sum(stage.rank for stage in stages) >= 5 > sum(stage.rank for stage in stages[:-1])
    left = one.abar
    for stage, following in pairwise(stages):
        e = one.embedding(stage.solution.point)
        left = left - left @ e @ np.linalg.pinv(e.T @ left @ e, rcond=1e-9) @ e.T @ left
        solution = following.solution
        e = one.embedding(following.problem.frame.projected(solution.point) if low else solution.point)
        assert solution.objective == pytest.approx(np.trace(left @ e @ e.T), rel=1e-4)
        assert not following.problem.spent
        if not low:
            matrix = following.problem.matrix
            np.testing.assert_allclose(matrix @ np.eye(40), left, atol=1e-8)
            np.testing.assert_allclose(matrix.diagonal, np.diag(left), atol=1e-8)
            weights = case(40, 1.5).problem.matrix.product(matrix.weights(e)) / np.sqrt(matrix.m)[:, None]
            np.testing.assert_allclose(weights, left @ e, atol=1e-8)
    (alone,) = solve_stages(one.problem, lambda k: one.draw(4), lambda problem, start: one.solved(1e-8), None)
    assert alone.rank == len(alone.solution.eigenvalues)
