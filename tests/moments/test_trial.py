"""A basis on trial: half of the folds fit, the other half judges; and the search for the prior of a lattice by it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import daskspectral as dsp
from daskspectral.basis import Basis, FourierLattice, MonomialBasis
from daskspectral.choosing.candidates import Hyperparameters, Search
from daskspectral.choosing.spectral_density import choose_spectral_density, spectral_density_search
from daskspectral.kernels import Matern
from daskspectral.moments.summing import SumTask
from daskspectral.moments.trial import Trial, half_splits, merged
from daskspectral.operators import Cross, Generator, Laplacian, Operator, PartialDerivative, Schroedinger
from daskspectral.passes.sums import measure_of
from tests.moments.common import moments_of

FOLDS = 10
N = 300
X = np.random.default_rng(1).standard_normal((N, 1)) + 1
WEIGHT = np.random.default_rng(2).uniform(0.5, 2, N)
FOLD, LANDMARK = np.arange(N) % FOLDS, np.arange(N) < 60


def trial(basis: Basis, rows: dict[str, Any], operator: Operator, right: Basis | None = None) -> Trial:
    """Rows dealt to folds in turn; the first ones are landmarks."""
    task = SumTask(measure_of(basis, right, operator, "float64"), operator, None, None)
    return Trial.measure(task, rows, FOLD, LANDMARK, FOLDS)


def splits(times: int = 2) -> Any:
    return half_splits(FOLDS, times, np.random.default_rng(0))


@given(folds=st.integers(2, 30), times=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_halves_and_the_parts_that_they_make(folds: int, times: int, seed: int) -> None:
    found = half_splits(folds, times, np.random.default_rng(seed))
    assert len(found) == 2 * times
    part, halves = merged(found, folds)
    assert len(np.unique(part)) == part.max() + 1 <= 2**times
    for (a, b), (c, d) in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate([a, b])), np.arange(folds))
        assert 0 <= len(b) - len(a) <= 1
        np.testing.assert_array_equal(a, d)  # both ways
        np.testing.assert_array_equal(b, c)
    for (a, b), (c, d) in zip(found, halves, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(np.isin(part, c)), a)
        np.testing.assert_array_equal(np.flatnonzero(np.isin(part, d)), b)


@pytest.mark.parametrize("descending", [False, True])
def test_values_from_rows(descending: bool) -> None:
    """Polynomials fitted to some rows and judged on the others but landmarks, by arrays of values and slopes."""
    operator = Generator(diffusion=np.sqrt(2.0), reversible=True) if descending else Laplacian()
    there = trial(MonomialBasis(1, 3), {"x": X, "weight": WEIGHT}, operator)
    assert there.groups.weight[FOLDS:].sum() == pytest.approx(WEIGHT[:60].sum())
    assert there.moments.count == N
    phi, slope = X ** np.arange(4), np.arange(4) * X ** np.maximum(np.arange(4) - 1, 0)
    phi, slope = np.sqrt(WEIGHT)[:, None] * phi, np.sqrt(WEIGHT)[:, None] * slope
    for count, found in ((6, there.judged(splits(), 6, [1.0])[0]), (3, there.judged(splits(), 3, [1.0])[0])):
        for (fitted, judged), values in zip(splits(), found, strict=True):
            a, b = np.isin(FOLD, fitted), np.isin(FOLD, judged) & ~LANDMARK
            own, c = scipy.linalg.eigh(slope[a].T @ slope[a], phi[a].T @ phi[a])
            expected = scipy.linalg.eigvalsh(*(c[:, :count].T @ m[b].T @ m[b] @ c[:, :count] for m in (slope, phi)))
            beyond = np.maximum(expected[1:] / own[1 : len(expected)], 1)
            expected[1:] *= np.sqrt(beyond)  # by half of what a fit to its own rows leaves out
            np.testing.assert_allclose(values[:4], expected, rtol=1e-7, atol=1e-8)
            assert np.isinf(values[4:]).all()  # the basis has no more functions


def test_values_far_below_zero_fail_if_squares_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A potential may take values below 0, squared slopes never."""
    shifted = {"x": X, "potential": np.full(N, -5.0)}
    (values,) = trial(MonomialBasis(1, 3), shifted, Schroedinger("potential")).judged(splits(), 1, [1.0])
    assert (values < -1).all()
    there = trial(MonomialBasis(1, 3), {"x": X}, Laplacian())
    sums: Any = there.groups.arrays
    monkeypatch.setitem(sums, "form", sums["form"] - 10 * sums["gram"])
    with pytest.raises(np.linalg.LinAlgError, match="negative values"):
        there.judged(splits(), 4, [1.0])


def test_correlations_on_the_other_half() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((N, 2)) + 0.5 * (FOLD < 5)[:, None]
    y = 0.8 * x + 0.6 * rng.standard_normal((N, 2))
    left, right = MonomialBasis(2, 1), MonomialBasis(2, 1, constant=False)
    (found,) = trial(left, {"x": x, "y": y}, Cross(center=True), right).judged(splits(), 3, [1.0])
    assert found.shape == (len(splits()), 3)
    for (fitted, judged), values in zip(splits(), found, strict=True):
        a, b = np.isin(FOLD, fitted), np.isin(FOLD, judged) & ~LANDMARK
        (qx, rx), (qy, ry) = (np.linalg.qr(z[a] - z[a].mean(axis=0)) for z in (x, y))
        u, singular, vt = np.linalg.svd(qx.T @ qy)
        f = (x[b] - x[b].mean(axis=0)) @ np.linalg.solve(rx, u)
        g = (y[b] - y[b].mean(axis=0)) @ np.linalg.solve(ry, vt.T)
        f, g = (h / np.linalg.norm(h, axis=0) for h in (f, g))
        explained = 2 * singular * np.sum(f * g, axis=0)
        explained -= np.sum(np.outer(singular, singular) * (f.T @ f) * (g.T @ g), axis=1)
        np.testing.assert_allclose(values[:2] * np.abs(values[:2]), explained, atol=1e-6)
        assert values[2] * abs(values[2]) == pytest.approx(-0.1)  # there is no third function


# the prior of a lattice


LATTICE = FourierLattice((4, 4), box=[(-1.5, 1.5)] * 2, method="matmul")
ROWS = {"x": np.random.default_rng(4).uniform(-1.4, 1.4, (N, 2))}


def moments(operator: Operator | None = None, fold: Any = FOLD) -> Any:
    return moments_of(LATTICE, ROWS, fold, operator)


class Known:
    """Candidates whose scores are known, by how near the factor is to the best one; family 1 is worse, at two c."""

    def __init__(self, best: float):
        self.best = best

    def scores(self, candidate: Hyperparameters) -> Any:
        off = abs(np.log2(candidate.factor / self.best)) + candidate.family
        return {replace(candidate, penalty=c): np.full((1, 2), -off - c) for c in (0.1, 0.2)}

    def totals(self, found: Any) -> Any:
        return {s: float(values.mean()) for s, values in found.items()}


@pytest.mark.parametrize(
    ("best", "more", "edge"),
    [
        (1 / 32, [1 / 32, 1 / 64], ""),
        (1 / 1000, [1 / 32, 1 / 64, 1 / 128], "smallest"),
        (50.0, [1.0, 2.0], "largest"),
    ],
)
def test_scales_are_tried_until_the_best_is_inside(best: float, more: list[float], edge: str) -> None:
    search, usual = Search(Known(best)), [1 / 16, 1 / 8, 1 / 4, 1 / 2]
    for family in (0, 1):
        search.line_search(family, usual, 2.0)
        assert sorted(search.tried(family)) == sorted(usual + more)
    first = search.order[0]
    assert first == Hyperparameters(0, min(usual + more, key=lambda f: abs(np.log(f / best))), 0.1)
    assert search.at_search_boundary(first) == edge


def test_held_out_values_of_a_prior_are_those_of_the_weighed_functions() -> None:
    """Modes of parts of the folds, reduced, give what all functions give, measured row by row."""
    functions = dsp.basis.lattice.SpectralDensityBasis(LATTICE, Matern(1.5, 0.6))
    task = SumTask(measure_of(functions, None, Laplacian(), "float64"), Laplacian())
    there = Trial.measure(task, ROWS, FOLD, LANDMARK, FOLDS)
    modes = trial(LATTICE, ROWS, Laplacian())
    for c in (1.0, 0.1):
        search = spectral_density_search(*modes.merged(splits()), (Matern(1.5, 0.6),), (c,), 16)
        values = search.found[Hyperparameters(0, 1.0, c)]
        np.testing.assert_allclose(values, there.judged(splits(), 16, [c])[0], rtol=1e-5, atol=1e-7)


def test_without_comparable_values() -> None:
    for there, reason in (
        (moments(PartialDerivative(0)), "cannot be compared"),
        (moments(fold=FOLD % 3), "fewer than 4 folds have rows"),
    ):
        found = choose_spectral_density(there, kernel=None, penalty=None, count=3)
        assert reason in found.reason
        assert (found.kernel, found.penalty) == (Matern(1.5, 0.1 * LATTICE.period.max()), 10.0)
    kernel = Matern(1.5, 0.6)
    compared_c = choose_spectral_density(moments(fold=FOLD % 4), kernel=kernel, penalty=None, count=3).table
    assert sorted(tried.penalty for tried in compared_c) == [1e-4, 1e-3, 0.01, 0.1, 1.0]
