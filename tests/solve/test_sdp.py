"""The semidefinite program against dense loops: objective, ascent, staircase of ranks, certificate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import load_wine, make_moons

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
)
from daskspectral.solve.sdp.certificate import certify_dense, certify_lanczos

Array = NDArray[np.floating[Any]]


def moons(n: int, noise: float = 0.1, seed: int = 0) -> Array:
    x = make_moons(n, noise=noise, random_state=seed)[0]
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def gaussian(x: Array, y: Array, bandwidth: float) -> Array:
    """exp(-r^2 / bandwidth^2), entry by entry."""
    k = np.empty((len(x), len(y)))
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            k[i, j] = np.exp(-sum((a - b) ** 2) / bandwidth**2)
    return k


def deflated(k: Array) -> Array:
    """Abar_ij = k_ij / sqrt(m_i m_j) - sqrt(m_i m_j) / sum m, entry by entry."""
    m = [sum(row) for row in k]
    return np.array(
        [[k[i, j] / np.sqrt(m[i] * m[j]) - np.sqrt(m[i] * m[j]) / sum(m) for j in range(len(m))] for i in range(len(m))]
    )


@dataclass(frozen=True)
class Case:
    """A problem over all points, with Abar (n, n) and d (n,) written out."""

    abar: Array
    d: Array
    problem: ExactProblem


@cache
def case(n: int = 40, bandwidth: float = 0.5, own: bool = False) -> Case:
    """Two moons; `own` bounds on the diagonal instead of alpha(x)."""
    k = gaussian(moons(n), moons(n), bandwidth)
    matrix = Deflated(lambda h: k @ h, k.sum(axis=1))
    d = np.random.default_rng(1).uniform(0.5, 2, n) if own else matrix.bound
    return Case(deflated(k), d, ExactProblem(matrix, d))


@dataclass(frozen=True)
class LowCase:
    """A problem with landmarks, with its rows F (n, q), Abar = F F^T and d (n,) written out."""

    f: Array
    d: Array
    k: Array
    own: Array | None
    problem: LowRankProblem


def summed(block: Any, k: Array, v: Array, d: Array | None, cuts: list[int]) -> dict[str, Any]:
    """A block's sums over columns of k cut into chunks, one after the other."""
    total: dict[str, Any] = {}
    for a, b in pairwise([0, *cuts, k.shape[1]]):
        part = block(k[:, a:b], v, None if d is None else d[a:b])
        total = {name: total[name] + value for name, value in part.items()} if total else part
    return {name: value.value if isinstance(value, Largest) else value for name, value in total.items()}


@cache
def low_case(n: int = 50, p: int = 12, bandwidth: float = 1.0, own: bool = False) -> LowCase:
    x = moons(n)
    landmarks = x[:: n // p][:p]
    gram, k = gaussian(landmarks, landmarks, bandwidth), gaussian(landmarks, x, bandwidth)
    frame = Frame.of(gram, k.sum(axis=1))
    values, vectors = np.linalg.eigh(gram)  # psi of another whitening: the same up to a rotation
    psi = [vectors.T @ k[:, i] / np.sqrt(values) for i in range(n)]
    sigma = sum(psi)
    m = np.array([a @ sigma for a in psi])
    f = np.array([(a - sigma * (sigma @ a) / (sigma @ sigma)) / np.sqrt(b) for a, b in zip(psi, m, strict=True)])
    given = np.random.default_rng(1).uniform(0.5, 2, n) if own else None
    d = given if own else np.array([1 / b - b / m.sum() for b in m])
    pull, prove = Pull(frame.masses, frame.total), Prove(frame.masses, frame.total)
    problem = LowRankProblem(frame, lambda v: summed(pull, k, v, given, []), lambda v: summed(prove, k, v, given, []))
    # the rows of F in the coordinates of the frame
    turned = np.array([frame.projected((frame.whitening.T @ k[:, i])[:, None])[:, 0] for i in range(n)])
    turned /= np.sqrt(m)[:, None]
    np.testing.assert_allclose(turned @ turned.T, f @ f.T, rtol=0, atol=1e-10)
    return LowCase(turned, np.asarray(d), k, given, problem)


def directions(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def numeric_gradient(problem: Problem, point: Array) -> Array:
    found = np.empty_like(point)
    for index in np.ndindex(point.shape):
        step = np.zeros_like(point)
        step[index] = 1e-5
        rise = problem.evaluate(point + step).objective - problem.evaluate(point - step).objective
        found[index] = rise / 2e-5
    return found


def draw(problem: Problem, columns: int, seed: int = 0) -> Array:
    rows = len(problem.d) if isinstance(problem, ExactProblem) else len(problem.frame.sigma)  # type: ignore[attr-defined]
    return np.random.default_rng(seed).standard_normal((rows, columns))


@pytest.mark.parametrize("own", [False, True])
def test_a_pass_over_all_points(own: bool) -> None:
    abar, d, problem = case(own=own).abar, case(own=own).d, case(own=own).problem
    point = draw(problem, 3)
    found = problem.evaluate(point)
    e = np.sqrt(d)[:, None] * directions(point)
    np.testing.assert_allclose(found.objective, np.trace(abar @ e @ e.T), rtol=1e-12)
    np.testing.assert_allclose(found.moment, e.T @ e, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.gradient, numeric_gradient(problem, point), rtol=0, atol=1e-7)
    np.testing.assert_allclose(
        directions(found.power), directions(np.sqrt(d)[:, None] * (abar @ e)), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(problem.embedding(point), e, rtol=1e-14)
    np.testing.assert_allclose(problem.dual(e), np.diag(abar @ e @ e.T) / d, rtol=0, atol=1e-12)


def test_the_bound_is_the_diagonal_of_the_kernel() -> None:
    np.testing.assert_allclose(case().d, np.diag(case().abar), rtol=1e-12)
    np.testing.assert_allclose(case().problem.matrix @ np.eye(40), case().abar, rtol=0, atol=1e-14)


@pytest.mark.parametrize("own", [False, True])
def test_a_pass_with_landmarks(own: bool) -> None:
    one = low_case(own=own)
    point = draw(one.problem, 3)
    found = one.problem.evaluate(point)
    root = np.sqrt(one.d)
    z = one.problem.frame.projected(point)
    # at the scale t at which 2 t sum_i sqrt(d_i) |F_i^T z| - t^2 |z|^2 is largest
    z *= sum(root[i] * np.linalg.norm(z.T @ one.f[i]) for i in range(len(root))) / np.sum(z**2)
    u = [z.T @ row for row in one.f]
    h = [a / np.linalg.norm(a) for a in u]
    power = sum(root[i] * np.outer(one.f[i], h[i]) for i in range(len(root)))
    length = sum(root[i] * np.linalg.norm(u[i]) for i in range(len(root)))
    moment = sum(one.d[i] * np.outer(h[i], h[i]) for i in range(len(root)))
    np.testing.assert_allclose(found.power, power, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.moment, moment, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.point, z, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.objective, 2 * length - np.sum(z**2), rtol=1e-10)
    np.testing.assert_allclose(found.gradient, numeric_gradient(one.problem, z), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.residual, np.linalg.norm(power - z) / np.linalg.norm(z), rtol=1e-10)
    # |P Z'|^2 after a power step is Tr(Abar B), and the next objective is no less
    e = root[:, None] * np.array(h)
    np.testing.assert_allclose(np.sum(power**2), np.trace(one.f @ one.f.T @ e @ e.T), rtol=1e-10)
    assert found.objective <= np.sum(power**2) <= one.problem.evaluate(found.power).objective


def test_both_problems_take_the_same_power_steps() -> None:
    """All points as landmarks: the low-rank iteration is the dense one."""
    x = moons(14)
    k = gaussian(x, x, 1.0)
    frame = Frame.of(k, k.sum(axis=1))
    pull = Pull(frame.masses, frame.total)
    low = LowRankProblem(frame, lambda v: pull(k, v, None), lambda v: pytest.fail("no certificate"))
    matrix = Deflated(lambda h: k @ h, k.sum(axis=1))
    exact = ExactProblem(matrix, matrix.bound)
    z = draw(low, 3)
    g = k.T @ frame.coefficients(z)
    for _ in range(20):
        now, dense = low.evaluate(z), exact.evaluate(g)
        np.testing.assert_allclose(now.moment, dense.moment, rtol=0, atol=1e-9)
        np.testing.assert_allclose(np.sum(now.power**2), dense.objective, rtol=1e-9)
        z, g = now.power, dense.power


@settings(max_examples=40)
@given(cuts=st.lists(st.integers(1, 49), max_size=8), own=st.booleans(), seed=st.integers(0, 100))
def test_sums_add_under_any_chunking(cuts: list[int], own: bool, seed: int) -> None:
    one = low_case(own=own)
    v = one.problem.frame.coefficients(draw(one.problem, 3, seed))
    for kind in (Pull, Prove):
        block = kind(one.problem.frame.masses, one.problem.frame.total)
        whole, parts = summed(block, one.k, v, one.own, []), summed(block, one.k, v, one.own, sorted(cuts))
        assert whole.keys() == parts.keys()
        for name in whole:
            np.testing.assert_allclose(parts[name], whole[name], rtol=1e-12, atol=1e-12 * np.abs(whole[name]).max())


@settings(max_examples=40)
@given(columns=st.integers(1, 5), seed=st.integers(0, 1000), low=st.booleans())
def test_a_rotation_of_the_coordinates_changes_nothing(columns: int, seed: int, low: bool) -> None:
    problem: Problem = low_case().problem if low else case().problem
    point = draw(problem, columns, seed)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((columns, columns)))[0]
    plain, turned = problem.evaluate(point), problem.evaluate(point @ turn)
    np.testing.assert_allclose(turned.objective, plain.objective, rtol=1e-11)
    np.testing.assert_allclose(turned.residual, plain.residual, rtol=1e-9)
    np.testing.assert_allclose(turned.power, plain.power @ turn, rtol=0, atol=1e-9)
    np.testing.assert_allclose(turned.gradient, plain.gradient @ turn, rtol=0, atol=1e-9 * np.abs(plain.gradient).max())
    np.testing.assert_allclose(turned.moment, turn.T @ plain.moment @ turn, rtol=0, atol=1e-9)


@settings(max_examples=30)
@given(
    columns=st.integers(1, 4),
    seed=st.integers(0, 1000),
    low=st.booleans(),
    passes=st.integers(1, 60),
    warm_up=st.integers(0, 3),
)
def test_an_ascent_never_falls(columns: int, seed: int, low: bool, passes: int, warm_up: int) -> None:
    problem: Problem = low_case().problem if low else case().problem
    start = draw(problem, columns, seed)
    first = problem.evaluate(start).objective
    seen: list[Iterate] = []

    def note(now: Iterate) -> bool:
        seen.append(now)
        return False

    fast = accelerated(problem, start, residual=1e-11, max_passes=passes, warm_up=warm_up, stop=note)
    slow = power_method(problem, start, residual=1e-11, max_passes=passes)
    for found in (fast, slow):
        assert found.passes == len(found.objectives) <= passes
        assert found.objectives[0] == first
        assert found.last.objective >= first - 1e-12 * abs(first)
    taken = np.array([now.objective for now in seen])
    assert (np.diff(taken) >= -1e-12 * np.abs(taken[1:])).all()
    assert (fast.last.objective >= taken * (1 - 1e-12)).all()
    rises = np.diff(slow.objectives)
    assert (rises >= -1e-12 * np.abs(slow.objectives[1:])).all()


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("bandwidth", [0.2, 0.5, 2.0])
def test_the_solution_is_optimal(bandwidth: float, own: bool) -> None:
    """Primal feasible, dual feasible, and equal: from the written-out matrices alone."""
    one = case(60, bandwidth, own)
    found = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-10, max_passes=10_000)
    e = one.problem.embedding(found.point)
    y = np.diag(one.abar @ e @ e.T) / one.d
    least = np.linalg.eigvalsh(np.diag(y) - one.abar)[0]
    np.testing.assert_allclose(np.sum(e**2, axis=1), one.d, rtol=1e-12)
    assert -least * one.d.sum() <= 1e-10 * found.objective
    np.testing.assert_allclose(found.objective, np.trace(one.abar @ e @ e.T), rtol=1e-12)
    np.testing.assert_allclose(e.T @ e, np.diag(found.eigenvalues), rtol=0, atol=1e-11 * found.eigenvalues[0])
    assert (np.diff(found.eigenvalues) <= 0).all()
    assert found.certificate.optimal
    assert found.passes == len(found.objectives)
    np.testing.assert_allclose(found.certificate.least_eigenvalue, least, rtol=0, atol=1e-13 * np.abs(y).max())
    assert found.certificate.gap == max(0.0, -found.certificate.least_eigenvalue) * one.d.sum()


@pytest.mark.parametrize("own", [False, True])
def test_the_low_rank_solution_is_optimal(own: bool) -> None:
    one = low_case(own=own)
    found = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-10, max_passes=10_000)
    e = np.sqrt(one.d)[:, None] * directions(one.f @ found.point)
    abar = one.f @ one.f.T
    y = np.diag(abar @ e @ e.T) / one.d
    assert -np.linalg.eigvalsh(np.diag(y) - abar)[0] * one.d.sum() <= 1e-9 * found.objective
    assert found.certificate.optimal
    np.testing.assert_allclose(found.objective, np.trace(abar @ e @ e.T), rtol=1e-11)
    exact = ExactProblem(abar, one.d)
    dense = Accelerated().solve(exact, draw(exact, 6), tolerance=1e-10, max_passes=10_000)
    np.testing.assert_allclose(found.objective, dense.objective, rtol=1e-10)
    np.testing.assert_allclose(found.eigenvalues, dense.eigenvalues, rtol=1e-6)


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 6])
def test_the_rank_is_found_from_any_start(columns: int, low: bool) -> None:
    """From one column every choice of signs is stationary: only the certificate leads on."""
    problem: Problem = low_case().problem if low else case(60).problem
    found = Accelerated().solve(problem, draw(problem, columns), tolerance=1e-9, max_passes=10_000)
    other = Accelerated().solve(problem, draw(problem, 6, seed=9), tolerance=1e-9, max_passes=10_000)
    assert found.certificate.optimal
    assert other.certificate.optimal
    np.testing.assert_allclose(found.objective, other.objective, rtol=1e-9)
    np.testing.assert_allclose(found.eigenvalues, other.eigenvalues, rtol=1e-4)
    assert found.point.shape[1] == len(found.eigenvalues) == len(other.eigenvalues)


def certificates(one: Case, point: Array, tolerance: float, patch: pytest.MonkeyPatch) -> list[Any]:
    """That of all eigenvalues and that of Lanczos."""
    found = []
    for dense in (2000, 0):
        patch.setattr(sdp.exact, "DENSE", dense)
        found.append(one.problem.certify(point, tolerance))
    return found


@pytest.mark.parametrize("n", [10, 60, 200])
def test_lanczos_bounds_the_least_eigenvalue(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = case(n, 0.6)
    found = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-10, max_passes=10_000)
    dense, lanczos = certificates(one, found.point, 1e-8, monkeypatch)
    assert dense.optimal
    assert lanczos.optimal
    assert lanczos.least_eigenvalue <= dense.least_eigenvalue + 1e-13
    assert lanczos.products > 0


@pytest.mark.parametrize("size", [1e-1, 1e-3, 1e-5])
def test_a_perturbed_solution_is_not_optimal(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    one = case(60, 0.5)
    best = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-11, max_passes=10_000)
    point = directions(best.point)
    point = point + size * np.random.default_rng(3).standard_normal(point.shape)
    lost = best.objective - one.problem.evaluate(point).objective
    for found in certificates(one, point, 1e-12, monkeypatch):
        assert not found.optimal
        assert found.gap >= lost > 0
        assert found.direction is not None


@settings(max_examples=40)
@given(columns=st.integers(1, 5), seed=st.integers(0, 1000), passes=st.integers(1, 40))
def test_the_gap_is_a_bound_at_every_point(columns: int, seed: int, passes: int) -> None:
    one = case(60, 0.5)
    best = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-11, max_passes=10_000).objective
    for ascent in (accelerated, power_method):
        last = ascent(one.problem, draw(one.problem, columns, seed), residual=1e-11, max_passes=passes).last
        with pytest.MonkeyPatch.context() as patch:
            dense, lanczos = certificates(one, last.point, 1e-9, patch)
            assert lanczos.least_eigenvalue <= dense.least_eigenvalue + 1e-12
            for found in (dense, lanczos):
                assert last.objective + found.gap >= best * (1 - 1e-11)
                assert not found.optimal or last.objective >= best * (1 - 1e-9)


@settings(max_examples=60)
@given(
    columns=st.integers(1, 5), seed=st.integers(0, 1000), passes=st.integers(1, 40), scale=st.sampled_from([0.1, 1, 30])
)
def test_the_low_rank_gap_is_a_bound_at_every_point(columns: int, seed: int, passes: int, scale: float) -> None:
    one = low_case()
    best = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-11, max_passes=10_000).objective
    for ascent in (accelerated, power_method):
        last = ascent(one.problem, scale * draw(one.problem, columns, seed), residual=1e-11, max_passes=passes).last
        e = np.sqrt(one.d)[:, None] * directions(one.f @ last.point)
        found = one.problem.certify(last.point, 1e-9)
        objective = np.sum((one.f.T @ e) ** 2)
        assert last.objective <= objective * (1 + 1e-12)
        again = one.problem.certify(scale * last.point, 1e-9)  # B does not depend on the scale
        np.testing.assert_allclose(again.gap, found.gap, rtol=1e-9, atol=1e-12)
        assert last.objective + found.gap >= best * (1 - 1e-10)
        assert not found.optimal or last.objective >= best * (1 - 1.1e-9)


def test_points_of_second_order_of_too_small_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step from them rises, and they are no optimum: neither certificate is deceived."""
    one = case(60, 0.5)
    best = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-11, max_passes=10_000).objective
    count = 0
    for seed in range(5):
        last = power_method(one.problem, draw(one.problem, 1, seed), residual=0.0, max_passes=200).last
        assert last.residual < 1e-7  # signs that no power step changes
        if last.objective < best * (1 - 1e-6):
            count += 1
            for found in certificates(one, last.point, 1e-8, monkeypatch):
                assert not found.optimal
                assert found.gap >= best - last.objective
    assert count


def test_a_certificate_is_that_of_written_out_matrices() -> None:
    """Lanczos on matrices of which the least eigenvalue is known."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        one = case(60, float(rng.uniform(0.3, 1)))
        found = Accelerated().solve(one.problem, draw(one.problem, 6), tolerance=1e-11, max_passes=10_000)
        e = one.problem.embedding(found.point)
        y = one.problem.dual(e)
        tight = certify_dense(one.abar, y, one.d, 1e-8)
        least = np.linalg.eigvalsh(np.diag(y) - one.abar)[0]
        np.testing.assert_allclose(tight.gap, max(0.0, -least) * one.d.sum(), rtol=0, atol=1e-13)
        loose = certify_lanczos(one.abar, y, e, one.d, 1e-8)
        assert tight.gap - 1e-12 <= loose.gap <= 1e-8 * found.objective


def test_a_dual_that_is_not_positive() -> None:
    """No solution has one, but a run that ends early can: the bound holds there too."""
    one = case(60, 0.5)
    y, e = np.ones(60), one.problem.embedding(draw(one.problem, 2))
    y[3] = -0.5
    found = certify_lanczos(0.01 * one.abar, y, e, one.d, 1e-8)
    assert found.least_eigenvalue <= np.linalg.eigvalsh(np.diag(y) - 0.01 * one.abar)[0]
    assert not found.optimal


@pytest.mark.parametrize("own", [False, True])
def test_the_low_rank_certificate(own: bool) -> None:
    """Its eigenvalue bounds that of diag(y) - F F^T from below, at points that are no optimum too."""
    one = low_case(own=own)
    abar = one.f @ one.f.T
    point = power_method(one.problem, draw(one.problem, 3), residual=0.0, max_passes=3).last.point
    found = one.problem.certify(point, 1e-8)
    y = np.linalg.norm(one.f @ point, axis=1) / np.sqrt(one.d)
    assert not found.optimal
    assert found.least_eigenvalue <= np.linalg.eigvalsh(np.diag(y) - abar)[0] < 0
    assert found.direction is not None
    assert one.problem.widened(point, found.direction).shape == (len(point), 4)


@cache
def wine(bandwidth: float) -> ExactProblem:
    x = load_wine().data
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    squared = np.maximum(np.sum(x**2, axis=1)[:, None] + np.sum(x**2, axis=1) - 2 * x @ x.T, 0)
    k = np.exp(-squared / bandwidth**2)
    matrix = Deflated(lambda h: k @ h, k.sum(axis=1))
    return ExactProblem(matrix, matrix.bound)


CASES = {f"wine {b:g}": lambda b=b: wine(b) for b in (1.5, 2.0, 3.0, 4.0, 10.0)} | {
    f"moons {b:g}": lambda b=b: case(80, b).problem for b in (0.25, 0.3, 0.5, 1.0, 3.0)
}


@pytest.mark.parametrize("name", CASES)
def test_passes_are_a_tenth_of_the_power_methods(name: str) -> None:
    problem = CASES[name]()
    start = draw(problem, 6)
    fast = Accelerated().solve(problem, start, tolerance=1e-10, max_passes=10_000)
    slow = Power().solve(problem, start, tolerance=1e-10, max_passes=20_000)
    assert fast.certificate.optimal
    assert fast.passes <= slow.passes
    if slow.passes > 1000:
        assert fast.passes <= slow.passes / 10
