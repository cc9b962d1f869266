"""The semidefinite program: a closed form, dense loops for each pass, and proofs from written-out matrices alone."""

from collections import deque
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from daskspectral.embedding.ascent import AscentProblem, Iterate, _two_loop, maximize_lbfgs
from daskspectral.embedding.certificate import certify_dense
from daskspectral.embedding.problems import (
    CertificateTask,
    DeflatedKernel,
    ExactProblem,
    GradientTask,
    LandmarkWhitening,
    LowRankProblem,
    Maximum,
)
from daskspectral.embedding.stages import _reduced, solve_accelerated, solve_power
from tests.embedding.moons import Array, gaussian, normalized
from tests.solve.common import moons, skew, spd


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
        return solve_accelerated(self.problem, self.draw(columns), tolerance=tolerance, max_passes=10_000)


@cache
def case(n: int = 40, bandwidth: float = 0.5, own: bool = False) -> Case:
    """Two moons, all points; `own` bounds on the diagonal instead of alpha(x)."""
    x = 2 * moons(n)
    k = gaussian(x, x, bandwidth)
    matrix = DeflatedKernel(k, k.sum(axis=1))
    d = np.random.default_rng(1).uniform(0.5, 2, n) if own else matrix.bound
    return Case(normalized(k), d, ExactProblem(matrix, d))


def summed(block: Any, k: Array, v: Array, d: Array | None, cuts: list[int]) -> dict[str, Any]:
    """A block's sums over columns of k cut into chunks, one after the other."""
    total: dict[str, Any] = {}
    for a, b in pairwise([0, *cuts, k.shape[1]]):
        part = block(k[:, a:b], v, None if d is None else d[a:b])
        total = {name: total[name] + value for name, value in part.items()} if total else part
    return {name: value.value if isinstance(value, Maximum) else value for name, value in total.items()}


@cache
def low_case(own: bool = False) -> Case:
    """Fifty points and twelve landmarks."""
    x = 2 * moons(50)
    gram, k = (gaussian(x[:48:4], y, 1.0) for y in (x[:48:4], x))
    whitened = LandmarkWhitening.of(gram, k.sum(axis=1))
    values, vectors = np.linalg.eigh(gram)  # psi of another whitening: the same up to a rotation
    psi = [vectors.T @ k[:, i] / np.sqrt(values) for i in range(50)]
    sigma = sum(psi)
    m = np.array([a @ sigma for a in psi])
    f = np.array([(a - sigma * (sigma @ a) / (sigma @ sigma)) / np.sqrt(b) for a, b in zip(psi, m, strict=True)])
    given = np.random.default_rng(1).uniform(0.5, 2, 50) if own else None
    d = np.array([1 / b - b / m.sum() for b in m]) if given is None else given
    pull, prove = GradientTask(whitened.masses), CertificateTask(whitened.masses)
    problem = LowRankProblem(
        whitened, lambda v: summed(pull, k, v, given, [7, 30]), lambda v: summed(prove, k, v, given, [20])
    )
    turned = whitened.projected(whitened.whitening.T @ k).T / np.sqrt(m)[:, None]  # F in whitened coordinates
    np.testing.assert_allclose(turned @ turned.T, f @ f.T, atol=1e-10)
    return Case(f @ f.T, d, problem, turned, k, given)


CASES = {"all": case, "own": lambda: case(60, 0.3, True), "low": low_case, "low, own": lambda: low_case(True)}


def directions(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def numeric_gradient(problem: AscentProblem, point: Array) -> Array:
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
    for solver in (solve_accelerated, solve_power):
        start = np.random.default_rng(0).standard_normal((2, 2))
        found = solver(problem, start, tolerance=1e-10, max_passes=1000)
        assert found.objective == pytest.approx(3 + 2 * 0.7)
        e = problem.embedding(found.point)
        np.testing.assert_allclose(e @ e.T, [[0.5, -1], [-1, 2]], atol=1e-6)
        np.testing.assert_allclose(problem.dual(e), [2 + 0.7 * 2, 1 + 0.7 / 2], atol=1e-6)
        assert found.certificate.optimal
    for y, least in (([3.4, 1.35], 0.0), ([3.0, 1.0], 0.5 - 0.25**0.5 * np.sqrt(1 + 4 * 0.49))):
        proof = certify_dense(c + skew(c), np.array(y), d, 1e-8)  # the symmetric part counts
        assert proof.least_eigenvalue == pytest.approx(least, abs=1e-12)
        assert proof.gap == pytest.approx(2.5 * max(0, -least), abs=1e-12)
        assert proof.optimal == (least == 0)


@pytest.mark.parametrize("own", [False, True])
def test_a_pass_over_all_points(own: bool) -> None:
    one = case(own=own)
    point, abar, d = one.draw(3), one.abar, one.d
    e = one.embedding(point)
    problem = one.problem
    found = problem.evaluate(point)
    np.testing.assert_allclose(found.objective, np.trace(abar @ e @ e.T), rtol=1e-12)
    np.testing.assert_allclose(found.moment, e.T @ e, atol=1e-12)
    np.testing.assert_allclose(found.gradient, numeric_gradient(problem, point), atol=1e-7)
    pulled = np.sqrt(d)[:, None] * (abar @ e)
    np.testing.assert_allclose(directions(found.power), directions(pulled), atol=1e-12)
    norm = np.linalg.norm(pulled, axis=1)
    least = 0.9 * d * np.diag(abar)
    np.testing.assert_allclose(np.sum(found.power**2, axis=1), np.maximum(norm - least, 0.1 * norm), rtol=1e-9)
    across = pulled - np.sum(pulled * directions(point), axis=1, keepdims=True) * directions(point)
    lost = np.sum(across**2 / norm[:, None])
    assert found.residual == pytest.approx(np.sqrt(lost / abs(found.objective)), rel=1e-9)
    np.testing.assert_allclose(problem.embedding(point), e, rtol=1e-14)
    np.testing.assert_allclose(problem.dual(e), np.diag(abar @ e @ e.T) / d, atol=1e-12)
    if not own:
        np.testing.assert_allclose(d, np.diag(abar), rtol=1e-12)  # the bound is the diagonal of the kernel
        np.testing.assert_allclose(one.problem.matrix @ np.eye(40), abar, atol=1e-14)
    widened = problem.with_column(point, np.arange(40.0) - 39)
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
    z = one.problem.whitened.projected(point)
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
    widened = one.problem.with_column(point, f[0])
    np.testing.assert_allclose(widened, np.column_stack([point, 0.1 * np.linalg.norm(point) * f[0]]))


def test_a_step_is_that_of_bfgs() -> None:
    rng = np.random.default_rng(0)
    bend, gradient = spd(6, rng), rng.standard_normal(6)
    pairs = deque((step, step @ bend) for step in rng.standard_normal((3, 6)))
    metric = np.vdot(*pairs[-1]) / np.vdot(pairs[-1][1], pairs[-1][1]) * np.eye(6)
    for step, change in pairs:  # the matrix, update by update
        turn = np.eye(6) - np.outer(step, change) / (step @ change)
        metric = turn @ metric @ turn.T + np.outer(step, step) / (step @ change)
    np.testing.assert_allclose(_two_loop(gradient, pairs), metric @ gradient, rtol=1e-9)


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
    assert found.passes == len(found.objectives) < {"all": 120, "own": 300, "low": 45, "low, own": 50}[name]
    other = one.solved(columns=1)
    assert other.certificate.optimal
    np.testing.assert_allclose(found.objective, other.objective, rtol=1e-9)
    np.testing.assert_allclose(found.eigenvalues, other.eigenvalues, rtol=1e-4)
    assert found.point.shape[1] == len(found.eigenvalues)


# -- certificates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "columns", "passes", "scale"),
    [(False, 1, 3, 1.0), (False, 5, 30, 1.0), (True, 1, 3, 0.1), (True, 4, 40, 30.0)],
)
def test_the_gap_is_a_bound_at_every_point(low: bool, columns: int, passes: int, scale: float) -> None:
    """With landmarks by the eigenvalues of sum F_i F_i^T / y_i, whatever the scale of the state."""
    one = low_case() if low else case(60, 0.5)
    best = one.solved().objective
    last, _ = maximize_lbfgs(one.problem, scale * one.draw(columns), residual=1e-11, max_passes=passes)
    found, e = one.problem.certify(last.point, 1e-9), one.embedding(last.point)
    y = np.diag(one.abar @ e @ e.T) / one.d
    if one.f is not None:
        y = np.linalg.norm(one.f @ last.point, axis=1) / np.sqrt(one.d)
        values, vectors = np.linalg.eigh(one.f.T / y @ one.f)
        scale_of_y = one.d @ y / np.sum(one.problem.whitened.projected(last.point) ** 2)
        least, direction = min(0.0, scale_of_y - values[-1]) * y.max(), vectors[:, -1]
        np.testing.assert_allclose(one.problem.certify(9 * last.point, 1e-9).gap, found.gap, rtol=1e-8, atol=1e-11)
    else:
        values, vectors = np.linalg.eigh(np.diag(y) - one.abar)
        least, direction = values[0], vectors[:, 0]
    assert found.least_eigenvalue == pytest.approx(least, rel=1e-8, abs=1e-10)
    assert found.gap == pytest.approx(max(0.0, -least) * one.d.sum(), rel=1e-8, abs=1e-9)
    assert last.objective <= np.trace(one.abar @ e @ e.T) * (1 + 1e-11)
    assert last.objective + found.gap >= best * (1 - 1e-10)
    assert found.optimal == (found.gap <= 1e-9 * last.objective) == (found.direction is None)
    if not found.optimal:  # it leads up
        np.testing.assert_allclose(np.abs(found.direction @ direction), 1, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_columns_are_small_relative_to_the_largest(unit: float) -> None:
    e = unit * np.linalg.qr(np.random.default_rng(0).standard_normal((9, 3)))[0] * [1.0, 0.2, 0.05]
    last = Iterate(e, 0.0, e, e, 0.0, e.T @ e)
    assert [_reduced(last, cut).shape[1] for cut in (0.01, 0.1, 0.5)] == [3, 2, 1]
