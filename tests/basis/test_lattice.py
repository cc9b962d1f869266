"""A Fourier lattice: its functions against closed forms, its box, and kernels as priors of its coefficients."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.basis import Block, FourierLattice
from daskspectral.basis.lattice import spectral_weights
from daskspectral.forms import Atom, Field
from daskspectral.kernels import Exponential, Gaussian, Matern, Radial
from daskspectral.workspace import Workspace
from tests.common import named
from tests.modes.common import waves

LATTICES = [
    FourierLattice(4, box=[(-2, 3)]),
    FourierLattice((3, 1), box=[(-2, 3), (1e3, 1e3 + 4)], margin=0.3),
    FourierLattice((1, 2, 1), box=[(-2, 3), None, (0, 1)], periods=[None, 2 * np.pi, None]),
    FourierLattice(1, periods=[1.0, 2.0, 3.0]),
]


def points(lattice: FourierLattice, n: int = 7) -> Any:
    return lattice.domain.center + lattice.period * np.random.default_rng(1).uniform(-0.6, 0.6, (n, lattice.dimension))


@pytest.mark.parametrize("lattice", LATTICES, ids=lambda b: f"d={b.dimension}")
def test_functions_and_derivatives_are_waves(lattice: FourierLattice) -> None:
    x, d = points(lattice), lattice.dimension
    u = np.random.default_rng(0).standard_normal(x.shape)
    block = Block({"x": x, "u": u}, np.dtype(float), Workspace())
    np.testing.assert_allclose(lattice.values(x), waves(lattice, x, (0,) * d), atol=1e-11)
    found = lattice.at(block, []).feature(Atom("along", direction=Field("u")))
    wanted = sum(u[:, a] * waves(lattice, x, tuple(e)) for a, e in enumerate(np.eye(d, dtype=int).tolist()))
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    for alpha in itertools.product(range(4), repeat=d):
        if 0 < sum(alpha) < 5:
            found = lattice.at(block, []).feature(Atom("partial", alpha=alpha))
            wanted = waves(lattice, x, alpha)
            np.testing.assert_allclose(found, wanted, atol=1e-10 * max(1, np.abs(wanted).max()), err_msg=str(alpha))


def test_the_period_is_the_box_and_its_margin() -> None:
    """The gap between opposite edges is 1.15 of the shortest wavelength, within bounds, along no periodic axis."""
    lattice = FourierLattice((4, 9), box=[(-2, 3), (0, 1)], margin=0.3)
    np.testing.assert_allclose(lattice.period, [6.5, 1.3])
    np.testing.assert_allclose(lattice.domain.center, [0.5, 0.5])
    closed = FourierLattice((1, 9), box=[None, (0, 1)], periods=[2 * np.pi, None])
    assert (closed.period[0], closed.domain.center[0]) == (2 * np.pi, 0)
    margins = {m: FourierLattice(m, box=[(0, 1)]).margin for m in (1, 4, 6, 9, 100)}
    assert (margins[1], margins[100], closed.margin) == (0.5, 0.2, margins[9])
    for m in (4, 6):
        period = FourierLattice(m, box=[(0, 1)]).period[0]
        assert (period - 1) * m / period == pytest.approx(1.15)


def test_what_lies_inside() -> None:
    box = FourierLattice(2, box=[None, (0, 1)], periods=[1.0, None]).domain
    assert not box(np.array([[9.0, 0.0], [-9.0, 1.0]])).any()
    assert box(np.empty((0, 2))).shape == (0,)
    assert np.array_equal(box(np.array([[9.0, 0.5], [0.0, -1e-9], [0.0, 1.1]])), [False, True, True])
    nearest, outside = box.nearest(np.array([[9.0, 0.5], [0.5, -3.0]]))
    assert nearest.tolist() == [[9.0, 0.5], [0.5, 0.0]]
    assert np.array_equal(outside, [[False, False], [False, True]])


def test_a_truncated_lattice_has_some_of_the_functions() -> None:
    lattice = FourierLattice((4, 2), box=[(0, 1), (0, 2)])
    lower, x = lattice.truncated([2, 3]), points(lattice)
    assert lower.period.tolist() == lattice.period.tolist()
    np.testing.assert_allclose(
        lattice.values(x)[lattice.frequencies.places(lower.frequencies)], lower.values(x), atol=1e-12
    )


# priors: sum_k S_k^2 phi_k(x) phi_k(y) is the kernel over its value at 0, on a period that it does not feel

LINE = FourierLattice(300, box=[(0, 40)], margin=0.1)
PLANE = FourierLattice(24, box=[(0, 16), (0, 14)], margin=0.1)
OWN = Radial(lambda s: np.exp(-0.5 * s), [lambda s: -0.5 * np.exp(-0.5 * s)])


@pytest.mark.parametrize(
    ("kernel", "lattice", "tolerance"),
    [
        (3.0 * Gaussian(0.5), LINE, 1e-10),
        (Matern(2.5, 1.5), PLANE, 1e-4),
        (Matern(3.5, 1.3), FourierLattice(8, box=[(0, 8)] * 3), 2e-2),
        (Exponential(1.0), LINE, 2e-2),
        (Gaussian(1.0) * Matern(2.5, 2.0) + Gaussian(1.0), LINE, 1e-7),
        (OWN + Gaussian(2.0), PLANE, 1e-8),
    ],
    ids=named,
)
def test_a_prior_reproduces_its_kernel(kernel: Any, lattice: FourierLattice, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    x, y = (lattice.domain.center + rng.uniform(-1, 1, (n, lattice.dimension)) for n in (20, 15))
    found = lattice.values(y).T @ (spectral_weights(kernel, lattice)[:, None] * lattice.values(x))
    np.testing.assert_allclose(found, kernel.values(x, y) / kernel.diagonal(x[:1]), atol=tolerance)


@given(
    kernel=st.sampled_from([Gaussian, Exponential, lambda s: Matern(1.5, s), lambda s: Matern(2.5, s)]),
    scale=st.floats(1e-3, 1e3),
    unit=st.floats(1e-6, 1e6),
)
def test_weights_do_not_depend_on_the_unit(kernel: Any, scale: float, unit: float) -> None:
    """Positive, of sum 1, and the same where scale and box are in another unit."""
    lattice = FourierLattice((3, 4), box=[(-1, 2), (0, 5)])
    other = FourierLattice((3, 4), box=[(-unit, 2 * unit), (0, 5 * unit)])
    weights = spectral_weights(kernel(scale), lattice)
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()
    np.testing.assert_allclose(spectral_weights(kernel(scale * unit), other), weights, rtol=1e-9, atol=1e-15)
    h = len(lattice.frequencies.half)
    np.testing.assert_array_equal(weights[1 : h + 1], weights[h + 1 :])
