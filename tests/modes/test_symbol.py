"""The inverse by bands: symmetric, positive, and close to the exact one beyond the coarse block."""

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

Array = NDArray[Any]
T = 0.05


def setting(d: int, least: float) -> tuple[FourierLattice, Array, Array, Array, Array]:
    """A density between least and 2 - least on the whole period; the pencil's sum, prior, modes, and L's diagonal."""
    m = {1: 60, 2: 9}[d]
    lattice = FourierLattice(m=(m,) * d, periods=(2 * np.pi,) * d).laid(d, None, None)
    modes = np.zeros((4 * m + 1,) * d, dtype=complex)
    centre = np.array((2 * m,) * d)
    modes[tuple(centre)] = 1
    for sign in (1, -1):
        modes[tuple(centre + sign * np.eye(d, dtype=int)[0])] = 0.5 * (1 - least)
    units = [tuple(int(a == b) for b in range(d)) for a in range(d)]
    forms = [[ModeTerm(1.0, ModeWeight(), (0,) * d, (0,) * d)], [ModeTerm(1.0, ModeWeight(), u, u) for u in units]]
    products = FormProducts(lattice, forms, {ModeWeight(): modes})
    gram, energy = products(np.eye(lattice.size))
    density = (3 / 0.6**2 + (lattice.frequencies**2).sum(axis=1)) ** -(1.5 + d / 2)
    scale = np.sqrt(density / density.sum())
    total = scale[:, None] * (gram + T * energy) * scale
    return lattice, total, scale, modes, np.diag(energy)


def both(d: int, least: float, mu: float) -> tuple[Array, Array, Array]:
    """The pencil's sum, its inverses by bands and by the diagonal, with the coarse block, beside the constant."""
    lattice, total, scale, modes, energy = setting(d, least)
    total = total + T * mu * np.eye(lattice.size)
    coarse = np.argsort(-scale, kind="stable")[1 : 1 + lattice.size // 8]
    bands = SymbolInverse(lattice, modes, scale, energy, mu, coarse, workers=2)(T, 0.0)(np.eye(lattice.size))
    assert not bands[0].any()
    np.testing.assert_allclose(bands, bands.T, atol=1e-12 * np.abs(bands).max())
    least_value = np.linalg.eigvalsh(bands)[0]
    assert least_value > -1e-12 * np.abs(bands).max()
    diagonal = np.diag(1 / np.diag(total))
    diagonal[coarse] = 0
    block = np.zeros_like(total)
    block[np.ix_(coarse, coarse)] = np.linalg.inv(total[np.ix_(coarse, coarse)])
    return total[1:, 1:], (bands + block)[1:, 1:], (diagonal + block)[1:, 1:]


def condition(inverse: Array, total: Array) -> float:
    values = scipy.linalg.eigvalsh(inverse, np.linalg.inv(total))
    return float(values[-1] / values[0])


@pytest.mark.parametrize("d", [1, 2])
def test_it_brings_eigenvalues_together_where_the_density_all_but_vanishes(d: int) -> None:
    """The diagonal knows no density: eigenvalues are apart as far as it varies."""
    total, bands, diagonal = both(d, 0.01, 1e-7)
    assert condition(bands, total) < 30
    assert condition(diagonal, total) > 2.5 * condition(bands, total)


def test_for_a_constant_density_it_is_the_inverse_but_for_the_width_of_bands() -> None:
    total, bands, _ = both(1, 1.0, 1e-7)
    np.testing.assert_allclose(bands, np.diag(np.diag(bands)), atol=1e-9 * bands.max())
    ratios = np.diag(bands) * np.diag(total)
    assert ratios.min() > 0.9
    assert ratios.max() < 5  # between the middles of bands, and twice where the first one meets the coarse block
