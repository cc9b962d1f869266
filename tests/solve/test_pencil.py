"""Regularized solutions: spans against dense pencils, and values without the penalty."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from daskspectral.devices import HOST
from daskspectral.solve import GalerkinSystem, Penalty, Pencil, SymmetricPencil, Whitening, whiten
from daskspectral.solve.pencil import InverseRoot, last_value, leading_pairs, ritz_size
from tests.solve.common import Array, sine, skew, spd, symmetric

CUT = 1e-10


class Dense:
    """Matrices (60, 60) of which the first functions are null, and what a pencil is made of, by formulas."""

    def __init__(self, nulls: int = 1, seed: int = 0, energy: Array | None = None, weight: float = 1e-3):
        rng = np.random.default_rng(seed)
        self.gram, self.energy = spd(60, rng), spd(60, rng, 0.1, 50) if energy is None else energy
        self.norm, self.nulls = weight * spd(60, rng), nulls
        for matrix in (self.energy, self.norm):
            matrix[:nulls] = matrix[:, :nulls] = 0
        self.penalty = Penalty(self.norm)

    @property
    def asymmetric(self) -> Dense:
        """The same with an asymmetric part, which is 0 at the null functions."""
        other, change = copy(self), skew(self.gram)
        change[: self.nulls] = change[:, : self.nulls] = 0
        other.gram, other.energy, other.norm = self.gram + change, self.energy - change, self.norm + change
        return other

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
    pencil = Pencil(dense.energy, dense.gram, dense.penalty, count, CUT)
    found = pencil.leading(dense.gram)
    size = max(32, count + 8)
    assert found.matrix.shape == (60, size)
    assert found.rank == 60
    assert sine(found.matrix, dense.span(count), dense.gram) < 1e-6
    np.testing.assert_allclose(found.matrix.T @ dense.gram @ found.matrix, np.eye(size), atol=1e-10)
    assert not found.matrix[nulls:, :nulls].any()
    a, energy = dense.quotient
    b = energy + dense.norm[nulls:, nulls:]
    last = scipy.linalg.eigvalsh(energy, a)[size - 9]  # 8 functions of the space are a margin
    assert (pencil.t, pencil.sigma) == pytest.approx((1 / last, 0))
    np.testing.assert_allclose(found.spectrum, scipy.linalg.eigvalsh(a, a + b / last)[::-1], rtol=1e-9)
    white = whiten(dense.gram, CUT, np.arange(60) < nulls).matrix
    np.testing.assert_allclose(white @ found.whitened(np.eye(size)), found.matrix, atol=1e-9)
    changed = dense.asymmetric
    other = Pencil(changed.energy, changed.gram, Penalty(changed.norm), count, CUT).leading(changed.gram)
    assert sine(found.matrix, other.matrix, dense.gram) < 1e-6
    assert Pencil(changed.energy, changed.gram, Penalty(changed.norm), count, CUT).t == pytest.approx(1 / last)


def test_wells_raise_sigma_until_the_sum_is_positive() -> None:
    rng = np.random.default_rng(2)
    wells = np.linalg.qr(rng.standard_normal((60, 2)))[0]
    dense = Dense(0, energy=spd(60, rng, 10, 50) - 300 * wells @ wells.T)
    found = Pencil(dense.energy, dense.gram, dense.penalty, 5, CUT)
    a, b = dense.gram, dense.energy + dense.norm
    steps = found.sigma * found.t
    assert steps >= 1
    assert np.log2(steps) == pytest.approx(round(np.log2(steps)))
    assert scipy.linalg.eigvalsh(a + found.t * (b + found.sigma * a))[0] > 0
    less = found.sigma / 2 if steps > 1.5 else 0
    assert scipy.linalg.eigvalsh(a + found.t * (b + less * a))[0] < 0
    span = Pencil(dense.energy, dense.gram, dense.penalty, 5, CUT).leading(dense.gram).matrix
    assert sine(span, dense.span(5), dense.gram) < 1e-6
    whole = SymmetricPencil().solve(GalerkinSystem(dense.energy, dense.gram, count=5, cut=CUT, within=dense.penalty))
    inside = scipy.linalg.eigvalsh(*(span.T @ matrix @ span for matrix in (dense.energy, dense.gram)))
    np.testing.assert_allclose(whole.values, inside[:5], rtol=1e-9)


@pytest.mark.parametrize("left", [0.0, 2e-16, -2e-16])
def test_a_constant_up_to_rounding_is_excluded(left: float) -> None:
    """What is left of the variance of a constant says nothing about the rounding of other functions."""
    matrix = np.diag([left, 0.3, 2.0])
    found = InverseRoot(matrix, 1e-13, np.array([1.0, 0.5, 2.5]), HOST)
    np.testing.assert_allclose(found.matrix.T @ matrix @ found.matrix, np.eye(2), atol=1e-12)
    assert found.least == 0
    assert found.rounding < 1e-12


def within(pencil: Pencil, energy: Array, gram: Array, factor: float) -> tuple[Whitening, Array]:
    """What a pencil gives for a part of the data, and the functions (60, q)."""
    span = pencil.span
    found = pencil.part(span.T @ energy @ span, span.T @ gram @ span, factor)
    return found, span @ found.matrix


def test_the_value_of_a_number() -> None:
    energy = np.diag([3.0, 1.0, 2.0])
    assert [last_value(energy, np.eye(3), count) for count in (0, 1, 2, 9)] == [0, 1, 2, 3]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("nulls", "depth"), [(0, 0.0), (1, 0.0), (0, 300.0)])
def test_a_part_of_the_data_has_a_smaller_span(nulls: int, depth: float, alone: bool) -> None:
    """Its own form and Gram matrix, and a penalty that is so much larger, of wells too."""
    whole, part = Dense(nulls, 0), Dense(nulls, 1)
    part.norm = whole.norm
    well = np.linalg.qr(np.random.default_rng(2).standard_normal((60, 1)))[0]
    for one in (whole, part):
        one.energy = one.energy - depth * well @ well.T
    pencil = Pencil(whole.energy, whole.gram, whole.penalty, 5, CUT, whole=not alone)
    assert (pencil.sigma > 0) == (depth > 0)
    a, energy = part.quotient
    outer = a + pencil.t * (energy + 30.0 * part.norm[nulls:, nulls:] + pencil.sigma * a)
    for one in (part, part.asymmetric):
        found, functions = within(pencil, one.energy, one.gram, 30.0)
        assert sine(functions, part.span(5, 30.0), part.gram) < 1e-6
        np.testing.assert_allclose(found.spectrum, scipy.linalg.eigvalsh(a, outer)[::-1][:32], rtol=1e-8)
    assert found.rank == nulls + 32
    np.testing.assert_allclose(functions.T @ part.gram @ functions, np.eye(32), atol=1e-10)


@pytest.mark.parametrize(("p", "count", "descending"), [(2, 1, False), (7, 12, True), (20, 5, False)])
def test_few_functions_are_taken_whole(p: int, count: int, descending: bool) -> None:
    """The solution by cut, with the signs of its functions, of whatever penalty, in whatever units of the functions."""
    rng = np.random.default_rng(p)
    form, gram, norm = symmetric(p, rng), spd(p, rng), spd(p, rng)
    wanted: dict[str, Any] = {"count": count, "cut": CUT}
    kind = SymmetricPencil(descending)
    by_cut = kind.solve(GalerkinSystem(form, gram, **wanted))
    for units in (np.ones(p), 10.0 ** rng.integers(-4, 5, p)):
        changed = [m * np.outer(units, units) for m in (form, gram, norm)]
        found = kind.solve(GalerkinSystem(*changed[:2], **wanted, within=Penalty(changed[2])))
        np.testing.assert_allclose(found.values, by_cut.values, atol=1e-7)
        np.testing.assert_allclose(found.right * units[:, None], by_cut.right, atol=1e-6)
        assert found.rank == by_cut.rank == p


def test_the_scale_of_parts_is_near_that_of_the_whole() -> None:
    """For a kernel whose functions are nearly dependent, too, of which traces say little."""
    x = np.random.default_rng(0).random((400, 1))
    y, scale = np.linspace(0, 1, 30), 0.3
    phi = np.exp(-((x - y) ** 2) / (2 * scale**2))
    slopes = phi * (y - x) / scale**2
    gram, energy = phi.T @ phi / 400, slopes.T @ slopes / 400
    for count in (1, 3):
        t = [Pencil(energy, gram, Penalty(1e-6 * gram), count, CUT, whole=whole).t for whole in (True, False)]
        assert 0.1 < t[1] / t[0] < 10


# -- two sides ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centered", [False, True])
def test_pairs_are_the_singular_functions_of_the_penalized_form(centered: bool) -> None:
    """By symmetric inverse roots; with means of the covariances."""
    rng = np.random.default_rng(4)
    gram, right_gram, form = spd(60, rng), spd(50, rng), rng.standard_normal((60, 50))
    k, right_k = spd(60, rng), spd(50, rng)
    means = 0.1 * rng.standard_normal(60), 0.1 * rng.standard_normal(50)
    raw = form, gram, right_gram
    if centered:
        pairs = means, (means[0], means[0]), (means[1], means[1])
        raw = form + np.outer(*pairs[0]), gram + np.outer(*pairs[1]), right_gram + np.outer(*pairs[2])
    w, z = (np.linalg.inv(scipy.linalg.sqrtm(m).real) for m in (gram + 0.3 * k, right_gram + 0.5 * right_k))
    u, _, vt = np.linalg.svd(w @ form @ z)
    expected = w @ u[:, :32], z @ vt[:32].T
    for rounding in (skew(gram), 0):
        relation = GalerkinSystem(raw[0], raw[1] + rounding, raw[2], means if centered else None)
        left, right = leading_pairs(relation, Penalty(0.3 * k, 0.5 * right_k), 5, CUT)
        assert sine(left.matrix, expected[0], gram) < 1e-6
        assert sine(right.matrix, expected[1], right_gram) < 1e-6
    np.testing.assert_allclose(left.matrix.T @ gram @ left.matrix, np.eye(left.matrix.shape[1]), atol=1e-10)
    np.testing.assert_allclose(whiten(gram, CUT).matrix @ left.whitened(np.eye(left.matrix.shape[1])), left.matrix)
    assert [(one.rank, one.spectrum.size) for one in (left, right)] == [(60, 0), (50, 0)]


# -- roots -------------------------------------------------------------------------------------------------------------
