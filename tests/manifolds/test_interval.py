"""Intervals: Legendre polynomials and their order, reflections and permutations, ends, products with others."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre as polynomials
from numpy.typing import NDArray
from scipy.special import eval_legendre
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.errors import PointError
from daskspectral.groups import Generated, Permutations, SignFlips
from daskspectral.manifolds import Circle, Interval, Isometry, Manifold, PeriodicBox, Product, Sphere

Array = NDArray[Any]

CUBE = Interval([-1, -1, -1], [1, 1, 1])
UNEVEN = Interval([0, -1, 2], [1, 1, 5], lengths=[1, 2, 1.5])


def values(manifold: Manifold, levels: int, x: Array) -> Array:
    return np.concatenate([manifold.eigenfunctions(level).values(x) for level in range(levels)], axis=1)


def grid(interval: Interval, count: int) -> tuple[Array, Array]:
    """Gauss points and weights, exact for polynomials of degrees below 2 count."""
    t, w = polynomials.leggauss(count)
    axes = [a + (t + 1) * (b - a) / 2 for a, b in zip(interval.lower, interval.upper, strict=True)]
    x = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    weights = np.prod(np.stack([each.ravel() for each in np.meshgrid(*[w / 2] * len(axes), indexing="ij")]), axis=0)
    return x, weights


@pytest.mark.parametrize("interval", [Interval(-3, 5), CUBE, UNEVEN], ids=repr)
def test_functions_are_orthonormal_for_the_uniform_probability(interval: Interval) -> None:
    x, w = grid(interval, 9)
    found = values(interval, 9, x)
    assert np.abs((found * w[:, None]).T @ found - np.eye(found.shape[1])).max() < 1e-13


def test_functions_are_products_of_the_polynomials_of_legendre() -> None:
    x = UNEVEN.sample(7, np.random.default_rng(0))
    t = 2 * (x - UNEVEN.ends[0]) / UNEVEN.widths - 1
    for level in range(20):
        space: Any = UNEVEN.eigenfunctions(level)
        for column, degrees in zip(space.values(x).T, space.degrees, strict=True):
            expected = np.prod([np.sqrt(2 * k + 1) * eval_legendre(k, t[:, i]) for i, k in enumerate(degrees)], axis=0)
            np.testing.assert_allclose(column, expected, atol=1e-12)


def test_high_degrees_are_stable() -> None:
    x = np.linspace(-1, 1, 50)[:, None]
    found = Interval(-1, 1).eigenfunctions(800).values(x)[:, 0]
    np.testing.assert_allclose(found, np.sqrt(1601) * eval_legendre(800, x[:, 0]), atol=1e-10)


@pytest.mark.parametrize("level", range(6))
def test_functions_of_one_coordinate_are_eigenfunctions_of_the_operator(level: int) -> None:
    interval, x = Interval(1, 4), np.linspace(1, 4, 9)[:, None]
    t = (2 * x[:, 0] - 5) / 3
    series = np.eye(level + 1)[level] * np.sqrt(2 * level + 1)
    slope = polynomials.legder(series) if level else np.zeros(1)
    flux = polynomials.legmul(slope, [2 / 3, 0, -2 / 3])  # 1 - t^2 = 2/3 P_0 - 2/3 P_2
    applied = -4 / 9 * polynomials.legval(t, polynomials.legder(flux))
    found = interval.eigenfunctions(level).values(x)[:, 0]
    np.testing.assert_allclose(applied, interval.eigenvalue(level) * found, atol=1e-12)


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (1.0, 2.0), (1.0, 1.3, 0.4)])
def test_levels_by_enumeration(lengths: tuple[float, ...]) -> None:
    m = len(lengths)
    interval = Interval([0] * m, [7] * m, lengths=lengths)
    degrees = np.array([*product(range(16), repeat=m)])
    sums = ((2 * np.sqrt(degrees * (degrees + 1)) / lengths).sum(axis=1)) ** 2
    complete = np.sort(sums[sums < sums[degrees.max(axis=1) == 15].min()])
    np.testing.assert_allclose(interval.eigenvalues(min(60, len(complete))), complete[:60], rtol=1e-12)


def test_of_one_coordinate_first() -> None:
    space: Any = Interval([0, 0], [1, 1])
    found = [sorted(map(tuple, space.eigenfunctions(level).degrees.tolist())) for level in range(5)]
    assert found == [[(0, 0)], [(0, 1), (1, 0)], [(0, 2), (2, 0)], [(1, 1)], [(0, 3), (3, 0)]]
    assert Product(Interval(0, 1), Interval(0, 1)).eigenvalue(2) == pytest.approx(16)  # (1, 1), where sums are added


@pytest.mark.parametrize("manifold", [UNEVEN, Product(Interval(0, 5), Sphere(3))], ids=repr)
def test_derivatives_are_those_of_differences(manifold: Manifold) -> None:
    rng = np.random.default_rng(0)
    x, e = manifold.sample(6, rng), rng.standard_normal((6, manifold.ambient))
    for level in range(9):
        space = manifold.eigenfunctions(level)
        expected = (space.values(x + 1e-6 * e) - space.values(x - 1e-6 * e)) / 2e-6
        np.testing.assert_allclose(space.derivatives(x, e), expected, atol=1e-6)


def test_beyond_the_ends_functions_stay_and_at_the_ends_they_have_a_slope() -> None:
    interval, space = Interval(0, 3), Interval(0, 3).eigenfunctions(3)
    x, e = np.array([[-1.0], [0.0], [3.0], [3.5]]), np.ones((4, 1))
    np.testing.assert_array_equal(space.values(x), space.values(np.clip(x, 0, 3)))
    expected = np.sqrt(7) * 6 * 2 / 3  # P_3' = 6 at 1 and at -1
    np.testing.assert_allclose(space.derivatives(x, e)[:, 0], [0, expected, expected, 0], rtol=1e-12)
    np.testing.assert_allclose(interval.distance(x), [1, 0, 0, 0.5])


signed = st.tuples(st.permutations(range(3)), st.lists(st.sampled_from([-1.0, 1.0]), min_size=3, max_size=3))


def moved(interval: Interval, drawn: tuple[list[int], list[float]]) -> Isometry:
    """The signed permutation about the middle of equal sides."""
    order, signs = drawn
    a = np.zeros((3, 3))
    a[np.arange(3), order] = signs
    middle = interval.ends.mean(axis=0)
    return Isometry(a, middle - a @ middle)


@settings(max_examples=30, deadline=None)
@given(first=signed, second=signed, level=st.integers(0, 8))
def test_isometries_act_on_functions(first: Any, second: Any, level: int) -> None:
    interval = Interval([2, 2, 2], [3, 3, 3])
    g, h = moved(interval, first), moved(interval, second)
    interval.check_isometry(g)
    space, x = interval.eigenfunctions(level), interval.sample(5, np.random.default_rng(0))
    action: Any = space.action(g)
    np.testing.assert_allclose(space.values(g(x)), space.values(x) @ action.toarray().T, atol=1e-12)
    both: Any = space.action(g @ h)
    np.testing.assert_array_equal(both.toarray(), (action @ space.action(h)).toarray())


@pytest.mark.parametrize("reflected", [False, True])
def test_invariant_functions_are_counted_by_characters(reflected: bool) -> None:
    signs = [*product([-1.0, 1.0], repeat=3)] if reflected else [(1.0, 1.0, 1.0)]
    elements = [moved(CUBE, (list(order), list(s))) for order in permutations(range(3)) for s in signs]
    group = Generated([Permutations(3), SignFlips(3)] if reflected else [Permutations(3)])
    basis = InvariantBasis(HarmonicBasis(CUBE, 200), group)
    traces = [
        sum(CUBE.eigenfunctions(level).action(g).trace() for g in elements) / len(elements)  # type: ignore[union-attr]
        for level in range(len(basis.dimensions))
    ]
    np.testing.assert_allclose(basis.dimensions, traces, atol=1e-12)
    x = CUBE.sample(20, np.random.default_rng(0))
    harmonics = values(CUBE, len(basis.dimensions), x)
    np.testing.assert_allclose(basis.values(x).T, harmonics @ basis.coefficients.toarray(), atol=1e-12)
    for g in elements:
        np.testing.assert_allclose(basis.values(g(x)), basis.values(x), atol=1e-12)


@pytest.mark.parametrize(
    ("interval", "g", "message"),
    [
        (Interval(0, 1), Isometry([[-1]]), r"side 0, \[0, 1\] of length 1, to \[-1, 0\]"),
        (Interval(0, 1), Isometry([[1]], [0.5]), "to .0.5, 1.5."),
        (Interval([0, 0], [1, 2]), Isometry([[0, 1], [1, 0]]), "takes side 1"),
        (Interval([0, 0], [1, 1], lengths=[1, 2]), Isometry([[0, 1], [1, 0]]), "of length 2, to"),
        (Interval([-1, -1], [1, 1]), Isometry([[0.6, -0.8], [0.8, 0.6]]), "not a signed permutation"),
    ],
)
def test_maps_that_do_not_keep_an_interval_are_refused(interval: Interval, g: Isometry, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        interval.check_isometry(g)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 1), "lower < upper"),
        ((0, np.inf), "finite"),
        (([0, 0], [1]), "as many lower as upper"),
        (([], []), "as many lower as upper"),
        (([[0]], [[1]]), "as many lower as upper"),
    ],
)
def test_bounds_that_make_no_interval_are_refused(arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interval(*arguments)


@pytest.mark.parametrize("lengths", [0, -1, np.nan, [1, 1]])
def test_lengths_are_positive_numbers(lengths: Any) -> None:
    with pytest.raises(ValueError, match="a positive length for each of 1"):
        Interval(0, 1, lengths=lengths)


def test_points_beyond_the_ends_by_a_part_of_the_width_are_refused() -> None:
    wide, narrow = Interval(0, 1e6), Interval(0, 1e-6)
    wide.check([[1e6 + 0.5]], tolerance=1e-5)
    narrow.check([[1e-6]], tolerance=1e-5)
    with pytest.raises(PointError, match=r"distance 0\.5; project .* or widen the interval"):
        narrow.check([[0.5]], tolerance=1e-5)
    both = Product(Sphere(3), wide)
    with pytest.raises(PointError, match=r"row 1 at distance 5e\+05"):
        both.check([[1, 0, 0, 3], [1, 0, 0, 1.5e6]])
    with pytest.raises(PointError, match="row 0"):
        wide.check([[np.nan]])


@pytest.mark.parametrize("other", [Sphere(3), Circle(), PeriodicBox([0], [1]), Interval(0, 2)], ids=repr)
def test_products_with_other_manifolds(other: Manifold) -> None:
    both = Product(Interval(1, 4), other)
    np.testing.assert_array_equal(both.ends[:, 0], [1, 4])
    x = both.sample(200_000, np.random.default_rng(0))
    found = values(both, 4, x)
    assert np.abs(found.T @ found / len(x) - np.eye(found.shape[1])).max() < 0.03
    assert both.eigenvalues(5)[1] == pytest.approx(min(8 / 9, other.eigenvalue(1)))
    if not isinstance(other, Interval):
        assert not np.isfinite(both.ends[:, 1:]).any()


def test_samples_are_uniform_and_inside() -> None:
    x = UNEVEN.sample(50_000, np.random.default_rng(0))
    UNEVEN.check(x, tolerance=1e-15)
    np.testing.assert_allclose(x.mean(axis=0), UNEVEN.ends.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(x.std(axis=0), UNEVEN.widths / np.sqrt(12), rtol=0.02)


def test_a_repr_makes_the_interval_again() -> None:
    for interval in (Interval(0, 5), UNEVEN, Interval(-1, 1, lengths=3)):
        assert eval(repr(interval)) == interval
        assert clone(interval) == interval


def test_a_saved_model_has_the_same_functions(tmp_path: Path) -> None:
    manifold = Product(Interval([0, 0], [5, 5]), Sphere(3))
    x = manifold.sample(300, np.random.default_rng(0))
    model = dsp.InvariantRegressor(manifold, n_eigenfunctions=60).fit(x, x[:, 0] * x[:, 2] + x[:, 1])
    model.save(tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    assert again.manifold == manifold
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    plain = HarmonicBasis(UNEVEN, 40)
    x = UNEVEN.sample(9, np.random.default_rng(1))
    np.testing.assert_array_equal(HarmonicBasis.from_state(plain.state()).values(x), plain.values(x))


def test_the_laplacian_of_an_interval_has_free_ends() -> None:
    x = Interval(0, 2).sample(20_000, np.random.default_rng(0))
    operator = dsp.operators.Laplacian(manifold=Interval(0, 2))
    options: dict[str, Any] = {"basis": HarmonicBasis(Interval(0, 2), 12), "n_components": 4}
    found = dsp.SpectralDecomposition(operator, **options).fit(x).eigenvalues_
    plain = dsp.SpectralDecomposition(**options).fit(x).eigenvalues_
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found, (np.pi * np.arange(4) / 2) ** 2, rtol=0.03, atol=1e-9)
