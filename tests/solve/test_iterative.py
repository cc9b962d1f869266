"""Leading functions by iteration: those of the dense pencil, for any null functions and potentials."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

from daskspectral.solve import iterative
from daskspectral.solve.iterative import Coarse, IterativeSpan, leading_iterative
from tests.solve.common import sine, spd


class Pencil:
    """Waves whose energies grow, in a Gram matrix that couples them, with a prior that falls."""

    def __init__(self, nulls: int = 1, well: float = 0.0, p: int = 120, coarse: int = 60, mu: float = 1e-4):
        rng = np.random.default_rng(nulls)
        w = np.arange(p) * 0.2
        self.gram = np.eye(p) + 0.3 * spd(p, rng)
        self.energy = w[:, None] * (np.eye(p) + 0.2 * spd(p, rng)) * w - well * np.eye(p)
        self.scale, self.mu, self.nulls = (1 + w**2) ** -0.6, mu, np.arange(p) < nulls
        if nulls:
            self.energy[:nulls] = self.energy[:, :nulls] = 0
        self.coarse = np.flatnonzero(~self.nulls)[:coarse]

    def products(self, vectors: Any) -> Any:
        return self.gram @ vectors, self.energy @ vectors

    def fine(self, t: float, sigma: float) -> Any:
        """The inverse that knows only the diagonals, of functions beyond the coarse ones."""
        sums = self.scale**2 * ((1 + t * sigma) * np.diag(self.gram) + t * np.diag(self.energy)) + t * self.mu
        factor = 1 / np.maximum(sums, t * self.mu)
        factor[self.coarse] = 0.0
        return lambda residuals: factor[:, None] * residuals

    def iterate(self, count: int = 12, **options: Any) -> IterativeSpan:
        among = np.ix_(self.coarse, self.coarse)
        return leading_iterative(
            self.products, self.scale, self.mu, null=bool(self.nulls.any()), count=count,
            coarse=Coarse(self.coarse, self.gram[among], self.energy[among]),
            **{"fine": self.fine, "tolerance": 1e-7, **options},
        )  # fmt: skip

    @property
    def pair(self) -> tuple[Any, Any]:
        """A and B of the others, without what they have of the null ones."""
        n = int(self.nulls.sum())
        a, b = (self.scale[:, None] * m * self.scale for m in (self.gram, self.energy))
        return a[n:, n:] - a[n:, :n] @ np.linalg.solve(a[:n, :n], a[:n, n:]), b[n:, n:] + self.mu * np.eye(len(a) - n)

    def span(self, count: int) -> tuple[Any, Any]:
        """Penalised values, ascending, and orthonormal coefficients (p, count) with the null functions first."""
        n, s = int(self.nulls.sum()), self.scale
        a, b = self.pair
        values, vectors = scipy.linalg.eigh(b, a, subset_by_index=(0, count - n - 1))
        full = np.zeros((len(s), count))
        full[:n, :n] = np.linalg.inv(np.linalg.cholesky(self.gram[:n, :n])).T
        full[n:, n:] = s[n:, None] * vectors
        full[:n, n:] = -np.linalg.solve(self.gram[:n, :n], self.gram[:n, n:] @ full[n:, n:])
        return values, full


@pytest.mark.parametrize("nulls", [0, 1])
def test_functions_and_values_are_those_of_the_dense_pencil(nulls: int) -> None:
    problem = Pencil(nulls)
    found = problem.iterate()
    (values, span), (a, b) = problem.span(12), problem.pair
    assert found.converged
    assert len(found.history) <= 6
    assert found.status.startswith("a span of 12 of 120 functions, residuals up to ")
    assert found.status.endswith(f"after {len(found.history) - 1} iterations")
    np.testing.assert_allclose((1 / found.theta - 1) / found.t, values, rtol=1e-8)
    assert sine(found.functions, span, problem.gram) < 1e-5
    alike = span[:, nulls:].T @ problem.gram @ found.functions[:, nulls:]  # one by one, but for the sign
    np.testing.assert_allclose(np.abs(alike), np.eye(12 - nulls), atol=1e-4)
    np.testing.assert_allclose(found.functions.T @ problem.gram @ found.functions, np.eye(12), atol=1e-10)
    np.testing.assert_allclose(found.functions.T @ problem.energy @ found.functions, found.form, atol=1e-9)
    coarse_a, coarse_b = a[:60, :60], b[:60, :60]
    last = scipy.linalg.eigvalsh(coarse_b, coarse_a)[11 - nulls]
    assert found.t == pytest.approx(1 / max(last, 1e-3 * np.trace(coarse_b) / np.trace(coarse_a)))
    assert found.sigma == 0


def test_values_are_ritz_values_without_the_penalty() -> None:
    problem = Pencil(mu=0.1)
    found = problem.iterate()
    spectrum, span = found.spectrum(9), problem.span(12)[1]
    expected = scipy.linalg.eigvalsh(span.T @ problem.energy @ span, span.T @ problem.gram @ span)
    # unlike the penalised values, these have the error of the span, not its square
    np.testing.assert_allclose(spectrum.values, expected[:9], rtol=1e-6, atol=1e-9)
    assert spectrum.values[0] == 0  # of the null function: exactly
    np.testing.assert_array_equal(spectrum.left[1:, 0], 0)
    assert spectrum.rank == 120
    largest = np.abs(spectrum.left).argmax(axis=0)
    assert (spectrum.left[largest, np.arange(9)] > 0).all()
    assert spectrum.residuals.max() < 1e-12
    assert spectrum.status == found.status
    assert len(found.spectrum(50).values) == 12


def test_residuals_are_those_of_the_pencil() -> None:
    problem = Pencil()
    found = problem.iterate(tolerance=1e-4)
    a, b = problem.pair
    vectors = found.functions[1:, 1:] / problem.scale[1:, None]
    inner = [vectors.T @ m @ vectors for m in (a, a + found.t * b)]
    theta, turn = scipy.linalg.eigh(*inner)
    np.testing.assert_allclose(theta[::-1], found.theta, rtol=1e-10)
    left, right = a @ vectors @ turn, (a + found.t * b) @ vectors @ turn
    residuals = np.linalg.norm(left - right * theta, axis=0) / np.linalg.norm(left, axis=0)
    np.testing.assert_allclose(residuals[::-1], found.residuals, rtol=1e-4, atol=1e-9)
    assert found.residuals.max() == found.history[-1] <= 1e-4 < found.history[-2]


def test_a_form_of_small_values_is_scaled_by_its_trace() -> None:
    problem = Pencil()
    problem.energy[40, 40] = 1e9
    a, b = (matrix[:60, :60] for matrix in problem.pair)
    assert problem.iterate(iterations=1).t == pytest.approx(1e3 * np.trace(a) / np.trace(b))


def test_a_potential_well_raises_sigma() -> None:
    problem = Pencil(0, well=3.0)
    found = problem.iterate()
    values, span = problem.span(12)
    assert values[0] < -1
    assert found.converged
    assert 1 + found.t * found.sigma + found.t * values[0] > 0
    assert np.log2(found.sigma * found.t) == pytest.approx(0, abs=8)
    np.testing.assert_allclose((1 / found.theta - 1) / found.t - found.sigma, values, rtol=1e-7)
    assert sine(found.functions, span, problem.gram) < 1e-5
    problem.gram[5, 5] = -1.0  # of other rows
    with pytest.raises(ValueError, match="the form has values too far below 0"):
        problem.iterate()


def test_an_iteration_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Pencil().iterate(tolerance=1e-12, iterations=2)
    assert (len(found.history), found.converged) == (3, False)
    assert found.status.endswith("after 2 iterations, above the 1e-12 asked for")
    assert found.history[-1] < found.history[0]
    assert len(Pencil(coarse=119).iterate(tolerance=1e-9).history) <= 2  # where the coarse block is everything
    monkeypatch.setattr(iterative, "START", 30)  # functions of the block
    assert len(Pencil().iterate().history) <= 6


def test_a_coarse_block_that_does_not_fit_is_refused() -> None:
    problem = Pencil(coarse=18)
    with pytest.raises(ValueError, match="a coarse block of 19 functions or more; got 18"):
        problem.iterate()
    assert Pencil(coarse=19).iterate().functions.shape == (120, 12)
    assert Pencil(coarse=19).iterate(2).functions.shape == (120, 2)
    with pytest.raises(ValueError, match="needs count above these"):
        Pencil(coarse=19).iterate(1)


def test_the_accuracy_that_is_asked_for_by_default() -> None:
    problem = Pencil(0, p=30, coarse=20)
    coarse = Coarse(problem.coarse, problem.gram[:20, :20], problem.energy[:20, :20])
    options: Any = {"null": False, "count": 3, "coarse": coarse}
    idle = leading_iterative(
        problem.products, problem.scale, problem.mu, fine=lambda t, s: lambda r: 1e-3 * r, **options
    )
    assert idle.tolerance == 1e-6
    assert idle.converged
