"""Leading functions by iteration: those of the dense pencil, for any density and form, to the tolerance asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.modes import ModeTerm, ModeWeight
from daskspectral.modes.products import FormProducts
from daskspectral.modes.symbol import SymbolInverse
from daskspectral.solve import Problem, Symmetric
from daskspectral.solve.iterative import IterativeSpan, diagonal_inverse, leading_iterative

Array = NDArray[Any]
DATA = ModeWeight()
DENSITIES = ["moons", "normal", "cube"]


def points(name: str, n: int = 20_000) -> Array:
    rng = np.random.default_rng(5)
    if name == "normal":
        return rng.standard_normal((n, 2))
    if name == "cube":
        return rng.uniform(0, np.pi, (n, 3)) ** [1, 1, 1.2]
    t = rng.uniform(0, np.pi, n)
    upper = np.stack([np.cos(t), np.sin(t)], axis=1)
    lower = np.stack([1 - np.cos(t), 0.5 - np.sin(t)], axis=1)
    return np.where(rng.random(n)[:, None] < 0.5, upper, lower) + 0.1 * rng.standard_normal((n, 2))


class Penalised:
    """The moments of some rows on a lattice, the Matern prior, and both ways to solve them."""

    def __init__(self, x: Array, m: int, coarse: int, potential: Array | None = None, factor: float = 1.0):
        d = x.shape[1]
        box = tuple((float(a), float(b)) for a, b in zip(x.min(axis=0), x.max(axis=0), strict=True))
        self.lattice = FourierLattice(m=(m,) * d, box=box).laid(d, None, None)
        self.x, self.potential = x, potential
        values = self.lattice.values(x)
        units = [tuple(int(a == b) for b in range(d)) for a in range(d)]
        forms = [[ModeTerm(1.0, DATA, (0,) * d, (0,) * d)], [ModeTerm(1.0, DATA, u, u) for u in units]]
        modes = {DATA: self.modes(np.ones(len(x)))}
        self.products = FormProducts(self.lattice, forms, modes)
        self.gram, self.energy = self.products(np.eye(self.lattice.size))
        if potential is not None:
            self.energy = self.energy + (values * potential) @ values.T / len(x)
        w2 = (self.lattice.frequencies**2).sum(axis=1)
        density = (3 / (0.1 * self.lattice.period.max()) ** 2 + w2) ** -(1.5 + d / 2)
        density /= density.sum()
        self.scale, self.mu = np.sqrt(density), factor * float(density @ w2) / len(x)
        self.nulls = np.zeros(self.lattice.size, dtype=bool)
        self.nulls[0] = potential is None
        order = np.argsort(-self.scale, kind="stable")
        self.coarse = order[~self.nulls[order]][:coarse]

    def modes(self, weight: Array) -> Array:
        grids = np.meshgrid(*(np.arange(-2 * m, 2 * m + 1) for m in self.lattice.orders), indexing="ij")
        total = np.zeros(grids[0].shape, dtype=complex)
        for part, weights in zip(np.array_split(self.x, 40), np.array_split(weight, 40), strict=True):
            waves = [
                np.exp(-1j * np.arange(-2 * m, 2 * m + 1) * t[:, None])
                for m, t in zip(self.lattice.orders, self.lattice.angles(part).T, strict=True)
            ]
            if len(waves) == 3:
                waves = [waves[0], (waves[1][:, :, None] * waves[2][:, None, :]).reshape(len(part), -1)]
            total += ((waves[0].T * weights) @ waves[1]).reshape(total.shape)
        return np.asarray(total / len(self.x))

    def iterate(self, count: int = 25, symbol: bool = True, **options: Any) -> IterativeSpan:
        among = np.ix_(self.coarse, self.coarse)
        diagonals = np.diag(self.gram), np.diag(self.energy)
        fine: Any = diagonal_inverse(self.scale, self.mu, *diagonals, self.coarse)
        if symbol:
            modes = self.products.modes[DATA]
            fine = SymbolInverse(self.lattice, modes, self.scale, diagonals[1], self.mu, self.coarse)
        return leading_iterative(
            lambda vectors: (self.gram @ vectors, self.energy @ vectors),
            self.scale,
            self.mu,
            nulls=self.nulls,
            count=count,
            coarse=self.coarse,
            coarse_gram=self.gram[among],
            coarse_energy=self.energy[among],
            fine=fine,
            **options,
        )

    def dense(self, count: int) -> tuple[Array, Array, Array]:
        """Penalised values, ascending, of the functions beside the null ones; the span (p, count), with them; A."""
        a = self.scale[:, None] * self.gram * self.scale
        b = self.scale[:, None] * self.energy * self.scale + self.mu * np.diag(~self.nulls)
        # the lowest values of (B, A) are the largest of (A, A + s B) with s of the order of their inverse
        lift = 0.0 if self.potential is None else 10.0
        theta, vectors = scipy.linalg.eigh(a, a + 0.1 * (b + lift * a))
        values = (1 / theta[::-1] - 1) / 0.1 - lift
        return values[self.nulls.sum() : count], vectors[:, ::-1][:, :count] * self.scale[:, None], a


def angle(first: Array, second: Array, gram: Array) -> float:
    """The sine of the largest angle between two spans, in the inner product of a Gram matrix."""
    u, v = (span @ np.linalg.inv(np.linalg.cholesky(span.T @ gram @ span)).T for span in (first, second))
    rest = v - u @ (u.T @ gram @ v)
    return float(np.sqrt(max(np.linalg.eigvalsh(rest.T @ gram @ rest)[-1], 0)))


def case(name: str, **options: Any) -> Penalised:
    return Penalised(points(name), 5 if name == "cube" else 16, 150, **options)


@pytest.fixture(scope="module", params=DENSITIES)
def problem(request: pytest.FixtureRequest) -> Penalised:
    return case(request.param)


def test_functions_and_values_are_those_of_the_dense_pencil(problem: Penalised) -> None:
    found = problem.iterate(tolerance=1e-7)
    values, span, _ = problem.dense(25)
    assert found.converged, found.status
    assert found.functions.shape == (problem.lattice.size, 25)
    np.testing.assert_allclose((1 / found.theta - 1) / found.t, values, rtol=1e-8)
    assert angle(found.functions[:, :10], span[:, :10], problem.gram) < 1e-5
    assert angle(found.functions, span, problem.gram) < 1e-5
    np.testing.assert_allclose(found.functions.T @ problem.gram @ found.functions, np.eye(25), atol=1e-10)
    np.testing.assert_allclose(found.functions.T @ problem.energy @ found.functions, found.form, atol=1e-9)


def test_values_are_ritz_values_without_the_penalty(problem: Penalised) -> None:
    found = problem.iterate(tolerance=1e-7)
    spectrum = found.spectrum(16)
    _, span, _ = problem.dense(25)
    expected = scipy.linalg.eigh(span.T @ problem.energy @ span, span.T @ problem.gram @ span, eigvals_only=True)
    # unlike the penalised values, these have the error of the span, not its square
    np.testing.assert_allclose(spectrum.values, expected[:16], rtol=1e-6, atol=1e-9)
    assert spectrum.values[0] == 0  # of the constant: exactly
    np.testing.assert_array_equal(spectrum.left[1:, 0], 0)
    same = Symmetric().solve(Problem(problem.energy, problem.gram, 16, 0.0, span=found.whitening))
    np.testing.assert_allclose(same.values, spectrum.values, rtol=1e-10, atol=1e-9)
    largest = np.abs(spectrum.left).argmax(axis=0)
    assert (spectrum.left[largest, np.arange(16)] > 0).all()
    assert spectrum.status == found.status


def test_residuals_are_those_of_the_pencil(problem: Penalised) -> None:
    """From the matrices, not from sums of products that the iteration keeps."""
    found = problem.iterate(tolerance=1e-5)
    a = problem.scale[:, None] * problem.gram * problem.scale
    b = problem.scale[:, None] * problem.energy * problem.scale + problem.mu * np.diag(~problem.nulls)
    vectors = found.functions[:, 1:] / problem.scale[:, None]
    basis = scipy.linalg.null_space(a[:1])  # orthogonal to the constant
    projected = [basis.T @ matrix @ vectors for matrix in (a, a + found.t * b)]
    inner = [vectors.T @ matrix @ vectors for matrix in (a, a + found.t * b)]
    theta, turn = scipy.linalg.eigh(*inner)
    np.testing.assert_allclose(theta[::-1], found.theta, rtol=1e-10)
    left, right = (matrix @ turn for matrix in projected)
    residuals = np.linalg.norm(left - right * theta, axis=0) / np.linalg.norm(left, axis=0)
    assert residuals.max() < 3 * found.residuals.max() + 1e-9
    assert found.residuals.max() <= 1e-5


def test_the_density_makes_the_inverse_of_high_frequencies_better_than_the_diagonal() -> None:
    """Of the normal distribution with little penalty, whose density is all but 0 on most of the box."""
    problem = case("normal", factor=0.1)
    by_density, by_diagonal = (problem.iterate(symbol=symbol, tolerance=1e-6) for symbol in (True, False))
    assert by_density.converged
    assert by_density.iterations < 0.6 * by_diagonal.iterations


def test_a_potential_well_raises_sigma_and_has_no_null_functions() -> None:
    x = points("normal", 4000)
    problem = Penalised(x, 10, 120, potential=-5 * np.exp(-(x**2).sum(axis=1)))
    found = problem.iterate(tolerance=1e-7)
    values, span, _ = problem.dense(25)
    assert values[0] < -0.5
    assert found.converged, found.status
    assert 1 + found.t * found.sigma + found.t * values[0] > 0
    np.testing.assert_allclose((1 / found.theta - 1) / found.t - found.sigma, values, rtol=1e-8)
    assert angle(found.functions, span, problem.gram) < 1e-5
    assert found.spectrum(3).values[0] < values[0]  # without the penalty


def test_an_iteration_that_ends_early_says_so() -> None:
    reported: list[tuple[int, float]] = []
    found = case("moons").iterate(tolerance=1e-9, iterations=2, report=lambda *step: reported.append(step))
    assert found.iterations == 2
    assert not found.converged
    assert "above the 1e-09 asked for" in found.status
    assert "after 2 iterations" in found.status
    assert [number for number, _ in reported] == [1, 2]
    assert [worst for _, worst in reported] == list(found.history[1:])


def test_a_coarse_block_that_is_everything_is_the_solution() -> None:
    problem = Penalised(points("moons", 2000), 4, 80)
    found = problem.iterate(count=20, tolerance=1e-10)
    assert found.iterations <= 1
    np.testing.assert_allclose((1 / found.theta - 1) / found.t, problem.dense(20)[0], rtol=1e-8)


def test_a_coarse_block_that_does_not_fit_is_refused() -> None:
    problem = Penalised(points("moons", 500), 4, 80)
    problem.coarse = problem.coarse[:20]
    with pytest.raises(ValueError, match="a coarse block of 32 functions or more; got 20"):
        problem.iterate()
    problem.coarse = np.arange(50)
    with pytest.raises(ValueError, match="null functions are deflated"):
        problem.iterate()
