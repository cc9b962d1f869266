"""InvariantFeatures: harmonics averaged over a finite group, rows in any container, a pipeline of scikit-learn."""

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.groups import Generated, Permutations, SignFlips
from daskspectral.groups.elements import orthogonal_elements
from daskspectral.manifolds import Sphere

S2 = Sphere(3)
CUBE = Generated([Permutations(3), SignFlips(3)])
X = S2.sample(300, np.random.default_rng(0))


def test_they_span_the_harmonics_averaged_over_the_group() -> None:
    """Polynomials up to degree 6, averaged one element after another: the harmonics to degree 6 on the sphere."""
    found = dsp.InvariantFeatures(S2, CUBE, n_eigenfunctions=49).fit(X)
    every = orthogonal_elements(np.array([g.matrix for g in CUBE.generators]), 100)
    assert every is not None
    assert len(every) == 48
    powers = [(i, j, k) for i in range(7) for j in range(7) for k in range(7) if i + j + k <= 6]
    averaged = np.mean([np.stack([np.prod((X @ g.T) ** p, axis=1) for p in powers], axis=1) for g in every], axis=0)
    values = found.transform(X)
    assert np.linalg.matrix_rank(averaged, tol=1e-8) == values.shape[1] == 3  # of degrees 0, 4, 6
    for one, other in ((averaged, values), (values, averaged)):
        np.testing.assert_allclose(other @ np.linalg.lstsq(other, one, rcond=1e-10)[0], one, atol=1e-8)
    for g in every[:: len(every) // 8]:
        np.testing.assert_allclose(found.transform(X @ g.T), values, atol=1e-10)
    assert np.ptp(found.transform(X @ np.roll(np.eye(3), 1, axis=0)[:, ::-1]) - values) < 1e-10
    many = found.transform(S2.sample(200_000, np.random.default_rng(1)))
    np.testing.assert_allclose(many.T @ many / len(many), np.eye(3), atol=0.02)


def test_smoothness_makes_a_ridge_penalty_the_sobolev_norm() -> None:
    plain = dsp.InvariantFeatures(S2, Permutations(3), 49).fit(X)
    smooth = dsp.InvariantFeatures(S2, Permutations(3), 49, smoothness=3.0).fit(X)
    degrees = np.repeat(np.arange(7), plain.invariant_dimensions_)
    np.testing.assert_allclose(smooth.transform(X) * (degrees + 1.0) ** 3, plain.transform(X), rtol=1e-12)
    with pytest.raises(ValueError, match="smoothness"):
        dsp.InvariantFeatures(S2, smoothness=-1.0).fit(X)


def test_columns_without_a_manifold_end_where_the_rows_do() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    model = dsp.InvariantFeatures(group=SignFlips(2), n_eigenfunctions=40).fit(x)
    ends = model.manifold_.ends
    with pytest.warns(dsp.TrustWarning, match=r"1 of 2 rows lie beyond the end of an interval .* values at the end"):
        found = model.transform([[5.0, 0.2], [0.3, -0.1]])
    np.testing.assert_allclose(found[0], model.transform([[ends[0, 0], -0.2]])[0], atol=1e-12)
