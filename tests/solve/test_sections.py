"""Kernels of manifolds averaged over a group, and bandwidths that join points: against sums written out."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from daskspectral.basis import HarmonicBasis
from daskspectral.groups import Generated, Isometry, Orthogonal, Permutations, SignFlips, Translations
from daskspectral.groups.elements import elements
from daskspectral.manifolds import SO3, Interval, Manifold, PeriodicBox, Sphere
from daskspectral.solve import sections as module
from daskspectral.solve.bandwidth import joining_bandwidth
from daskspectral.solve.sections import sections
from tests.solve.common import Array, moons

BOX = PeriodicBox([0.0, -1.0], [2.0, 1.0])
TURN = Isometry(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
CASES = {
    "sphere": (Sphere(3), Permutations(3), 60),
    "no group": (Sphere(3), [Isometry(np.eye(3)), TURN], 60),
    "constants": (Sphere(3), Permutations(3), 1),
    "box": (BOX, Generated([SignFlips(2), Translations([[1.0, 0.5]])]), 40),
    "rotations": (SO3(), Orthogonal([np.kron(np.diag([-1.0, -1.0, 1.0]), np.eye(3))]), 60),
    "interval": (Interval(-1.0, 3.0), [Isometry(np.eye(1))], 12),
}


def dense_kernel(manifold: Manifold, count: int, exponent: float, x: Array, y: Array) -> Array:
    """sum D_lambda^-exponent phi(x) phi(y), from the functions' values."""
    harmonic = HarmonicBasis(manifold, count)
    left, right = (np.concatenate([space.values(z) for space in harmonic.levels], axis=1) for z in (x, y))
    return np.asarray((left * harmonic.cumulative.astype(float) ** -exponent) @ right.T)


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_the_sum_over_functions_and_its_mean_over_the_group(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifold, group, count = CASES[name]
    monkeypatch.setattr(module, "_PANEL", 2 * count)  # several blocks
    monkeypatch.setattr(module, "_VALUES", 3 * count)
    x, z = manifold.sample(9, np.random.default_rng(1)), manifold.sample(7, np.random.default_rng(2))
    visited = group if isinstance(group, list) else elements(group, manifold, 100)
    found = sections(manifold, count, 1.5, x, visited, room=10**9)
    at_z, at_x = (
        np.mean([dense_kernel(manifold, count, 1.5, points, g(x)) for g in visited], axis=0) for points in (z, x)
    )
    np.testing.assert_allclose(found.combined(z, np.eye(9)), at_z, atol=1e-11)
    np.testing.assert_allclose(found.gram(), 0.5 * (at_x + at_x.T), atol=1e-11)


def test_functions_that_do_not_fit_are_refused() -> None:
    x = BOX.sample(9, np.random.default_rng(1))
    room = 8 * 9 * HarmonicBasis(BOX, 40).size
    sections(BOX, 40, 1.5, x, [Isometry(np.eye(2))], room=room)
    with pytest.raises(MemoryError, match=r"eigenfunctions at 9 points take 0.0 GB, and 0.0 GB are free"):
        sections(BOX, 40, 1.5, x, [Isometry(np.eye(2))], room=room - 1)


def test_blocks_of_rows() -> None:
    for given, ends in (((7, 3, 6), [2, 4, 6, 7]), ((2, 9, 3), [1, 2]), ((4, 1, 2), [2, 4]), ((0, 5, 9), [0])):
        blocks = module._blocks(*given)
        assert [block.stop for block in blocks] == ends
        assert [block.start for block in blocks] == [0, *ends[:-1]]


def test_points_are_joined_where_the_tenth_eigenvalue_has_fallen() -> None:
    """Of D^-1 K, from the non-symmetric matrix; of fewer than a hundred points a tenth of their number.

    The bandwidth is the first of 64 an octave, from the root of the median square on, that is above the crossing.
    """
    two, thrice = np.array([[0.0], [5.0]]), np.repeat(moons(15), 3, axis=0)
    for x, mode in ((moons(150), 10), (moons(37), 3), (thrice, 1), (1e3 * moons(20), 2), (two, 1)):
        squares = ((x[:, None] - x) ** 2).sum(axis=2)
        first = np.sqrt(np.median(squares[squares > 0]))

        def above(log: float, squares: Array = squares, mode: int = mode, first: float = first) -> float:
            k = np.exp(-squares / (first * 2**log) ** 2)
            return float(np.sort(scipy.linalg.eigvals(k / k.sum(axis=1, keepdims=True)).real)[-1 - mode]) - 0.9

        crossing = scipy.optimize.brentq(above, -6, 6, xtol=1e-9)
        assert joining_bandwidth(squares) == pytest.approx(first * 2 ** (np.ceil(64 * crossing) / 64))
    with pytest.raises(ValueError, match="expected points that differ"):
        joining_bandwidth(np.zeros((5, 5)))
