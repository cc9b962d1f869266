"""A basis on trial: half of the folds fit, the other half judges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Gaussian
from daskspectral.moments.summing import SumTask
from daskspectral.moments.trial import MISSING, Trial, half_splits, merged
from daskspectral.operators import Cross, Generator, Laplacian, Operator
from daskspectral.passes.sums import measure_of

Array = NDArray[Any]
FOLDS = 10


def trial(
    basis: Basis,
    rows: dict[str, Array],
    operator: Operator | None = None,
    landmarks: int = 0,
    right: Basis | None = None,
) -> Trial:
    """Rows dealt to folds in turn; the first ones are landmarks."""
    operator = Laplacian() if operator is None else operator
    task = SumTask(measure_of(basis, right, operator, "float64"), operator, None, None)
    n = len(rows["x"])
    landmark = np.arange(n) < landmarks
    return Trial.measure(task, rows, np.arange(n) % FOLDS, landmark, folds=FOLDS, preparation={})


def splits(times: int = 3) -> Any:
    return half_splits(FOLDS, times, np.random.default_rng(0))


@settings(max_examples=30, deadline=None)
@given(folds=st.integers(2, 30), times=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_halves(folds: int, times: int, seed: int) -> None:
    found = half_splits(folds, times, np.random.default_rng(seed))
    assert len(found) == 2 * times
    for (a, b), (c, d) in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate([a, b])), np.arange(folds))
        assert abs(len(a) - len(b)) <= 1
        np.testing.assert_array_equal(a, d)  # both ways
        np.testing.assert_array_equal(b, c)


def test_values_from_rows() -> None:
    """Polynomials fitted to some rows and judged on the others, by arrays of their values and slopes."""
    x = np.random.default_rng(1).standard_normal((400, 1))
    fold = np.arange(400) % FOLDS
    phi, slope = x ** np.arange(4), np.arange(4) * x ** np.maximum(np.arange(4) - 1, 0)
    (found,) = trial(MonomialBasis(1, 3), {"x": x}).judged(splits(), 6, [1.0])
    for (fitted, judged), values in zip(splits(), found, strict=True):
        a, b = np.isin(fold, fitted), np.isin(fold, judged)
        _, c = scipy.linalg.eigh(slope[a].T @ slope[a], phi[a].T @ phi[a])
        expected = scipy.linalg.eigvalsh(*(c.T @ m[b].T @ m[b] @ c for m in (slope, phi)))
        np.testing.assert_allclose(values[:4], expected, atol=1e-8)
        assert np.isinf(values[4:]).all()  # the basis has no more functions


@pytest.mark.parametrize("penalty", [None, 0.01, 1.0])
def test_held_out_values_bound_the_true_ones_from_above(penalty: float | None) -> None:
    """k^2 on an interval of length pi: in the mean over samples, whatever the basis and the penalty."""
    held, fitted = [], []
    for seed in range(15):
        x = np.random.default_rng(seed).uniform(0, np.pi, (150, 1))
        basis = Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(0.3), x[:40])))
        (values,) = trial(basis, {"x": x}, landmarks=40).judged(splits(1), 5, [penalty])
        held.append(values.mean(axis=0))
        (values,) = trial(basis, {"x": x}).judged([(np.arange(FOLDS), np.arange(FOLDS))], 5, [penalty])
        fitted.append(values[0])
    true = np.arange(1, 5) ** 2
    error = np.std(held, axis=0)[1:] / np.sqrt(15)
    assert (np.mean(held, axis=0)[1:] >= true - 2 * error).all()
    assert (np.mean(fitted, axis=0)[1:] < np.mean(held, axis=0)[1:]).all()  # values of the fit are too good
    assert np.mean(held, axis=0)[0] == pytest.approx(0, abs=1e-9)


def test_landmarks_are_fitted_to_and_never_judged_on() -> None:
    x = np.random.default_rng(2).standard_normal((300, 1))
    x[:60] += 1  # or the test would tell nothing
    there = trial(MonomialBasis(1, 3), {"x": x}, landmarks=60)
    assert (there.weight[:FOLDS].sum(), there.weight[FOLDS:].sum()) == (240, 60)
    gram = trial(MonomialBasis(1, 3), {"x": x}).moments.arrays["gram"]
    np.testing.assert_allclose(there.moments.arrays["gram"], gram, rtol=1e-12)
    phi, slope = x ** np.arange(4), np.arange(4) * x ** np.maximum(np.arange(4) - 1, 0)
    fold, landmark = np.arange(300) % FOLDS, np.arange(300) < 60
    (found,) = there.judged(splits(), 3, [1.0])
    for (fitted, judged), values in zip(splits(), found, strict=True):
        a, b = np.isin(fold, fitted), np.isin(fold, judged) & ~landmark
        c = scipy.linalg.eigh(slope[a].T @ slope[a], phi[a].T @ phi[a])[1][:, :3]
        expected = scipy.linalg.eigvalsh(*(c.T @ m[b].T @ m[b] @ c for m in (slope, phi)))
        np.testing.assert_allclose(values, expected, atol=1e-8)


def test_a_spike_at_each_landmark_is_not_chosen() -> None:
    """Judged on their own rows narrow functions look flat; on the others they do not."""
    x = np.random.default_rng(3).uniform(0, np.pi, (200, 1))
    wide, narrow = (Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(scale), x[:60]))) for scale in (0.5, 0.003))
    every = [(np.arange(FOLDS), np.arange(FOLDS))]
    sums = {
        (name, landmarks): trial(basis, {"x": x}, landmarks=landmarks).judged(every, 4, [1e-3])[0].sum()
        for name, basis in (("wide", wide), ("narrow", narrow))
        for landmarks in (0, 60)
    }
    assert sums["narrow", 0] < sums["wide", 0]
    assert sums["narrow", 60] > 10 * sums["wide", 60]


def test_weights_are_rows_repeated() -> None:
    rng = np.random.default_rng(4)
    x, times = rng.uniform(0, np.pi, (100, 1)), rng.integers(1, 4, 100)
    basis = LandmarkBasis(Gaussian(0.4), x[:12])
    weighted = trial(basis, {"x": x, "weight": times.astype(float)})
    task = SumTask(measure_of(basis, None, Laplacian(), "float64"), Laplacian(), None, None)
    rows, fold = np.repeat(x, times, axis=0), np.repeat(np.arange(100) % FOLDS, times)
    repeated = Trial.measure(
        task, {"x": rows}, fold, np.zeros(len(rows), bool), folds=FOLDS, preparation={}
    )  # fmt: skip
    np.testing.assert_allclose(weighted.weight, repeated.weight)
    one, other = (t.judged(splits(1), 4, [1.0])[0] for t in (weighted, repeated))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_descending_values_are_negated() -> None:
    x = np.random.default_rng(5).uniform(0, np.pi, (300, 1))
    basis = Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(0.4), x[:12])))
    (up,) = trial(basis, {"x": x}).judged(splits(1), 4, [1.0])
    generator = Generator(diffusion=float(np.sqrt(2)), reversible=True)
    (down,) = trial(basis, {"x": x}, generator).judged(splits(1), 4, [1.0])
    np.testing.assert_allclose(down, up, rtol=1e-6, atol=1e-9)


def test_correlations_on_the_other_half() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((400, 2))
    y = 0.8 * x + 0.6 * rng.standard_normal((400, 2))
    left, right = MonomialBasis(2, 1), MonomialBasis(2, 1, constant=False)
    (found,) = trial(left, {"x": x, "y": y}, Cross(center=True), right=right).judged(splits(), 3, [1.0])
    fold = np.arange(400) % FOLDS
    for (fitted, judged), values in zip(splits(), found, strict=True):
        a, b = np.isin(fold, fitted), np.isin(fold, judged)
        (qx, rx), (qy, ry) = (np.linalg.qr(z[a] - z[a].mean(axis=0)) for z in (x, y))
        u, singular, vt = np.linalg.svd(qx.T @ qy)
        f, g = (
            (x[b] - x[b].mean(axis=0)) @ np.linalg.solve(rx, u),
            (y[b] - y[b].mean(axis=0)) @ np.linalg.solve(ry, vt.T),
        )
        f, g = (h / np.linalg.norm(h, axis=0) for h in (f, g))
        for i in range(2):
            explained = 2 * singular[i] * (f[:, i] @ g[:, i])
            explained -= sum(singular[i] * singular[j] * (f[:, i] @ f[:, j]) * (g[:, i] @ g[:, j]) for j in range(2))
            assert values[i] * abs(values[i]) == pytest.approx(explained, abs=1e-6)
        assert values[2] * abs(values[2]) == pytest.approx(-MISSING)  # there is no third function


def test_penalties_are_compared_one_by_one() -> None:
    x = np.random.default_rng(7).uniform(0, np.pi, (200, 1))
    there = trial(Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(0.1), x[:60]))), {"x": x}, landmarks=60)
    together = there.judged(splits(1), 4, [1.0, 0.01, None, 100.0])
    for c, values in zip([1.0, 0.01, None, 100.0], together, strict=True):
        np.testing.assert_allclose(there.judged(splits(1), 4, [c])[0], values, rtol=1e-6, atol=1e-9)
    assert not np.allclose(together[0], together[3], rtol=1e-3)


def test_folds_that_no_split_parts_are_one() -> None:
    there = splits(3)
    part, halves = merged(there, FOLDS)
    assert len(np.unique(part)) <= 8
    assert merged(there[:2], FOLDS)[0].max() == 1
    for (fitted, judged), (a, b) in zip(there, halves, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(np.isin(part, a)), np.sort(fitted))
        np.testing.assert_array_equal(np.flatnonzero(np.isin(part, b)), np.sort(judged))
