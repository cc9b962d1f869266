"""SpectralDecomposition between two views, and with bases of the user's."""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import Rows
from daskspectral import operators as op
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from tests.common import assert_close, doubtful

Array = NDArray[Any]
N = 1000
RNG = np.random.default_rng(0)
X = RNG.normal([2.0, 0.0, -1.0], 1.0, (N, 3))
Y = np.tanh(X @ RNG.standard_normal((3, 4))) + 0.3 * RNG.standard_normal((N, 4)) - 2
WEIGHT = RNG.integers(0, 3, N)
GAUSSIAN = Gaussian(1.5)
UNIFORM = Landmarks(GAUSSIAN, 15, method="uniform")


def make(operator: Any = None, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"basis": UNIFORM, "n_components": 4, "random_state": 0}
    return dsp.SpectralDecomposition(op.Cross() if operator is None else operator, **(defaults | changes))


def vamp(f: Array, g: Array, weight: Array) -> tuple[Array, Array, Array]:
    """VAMP of features (n, p) and (n, q), row by row: singular values, and left and right functions at the rows."""
    root = np.sqrt(weight / weight.sum())[:, None]
    f, g = (root * (a - np.average(a, axis=0, weights=weight)) for a in (f, g))
    (q, _), (r, _) = (scipy.linalg.qr(a, mode="economic") for a in (f, g))
    u, values, vt = np.linalg.svd(q.T @ r, full_matrices=False)
    return values, q @ u / root, r @ vt.T / root


def test_canonical_correlations_are_those_of_vamp() -> None:
    weight, at, right_at = WEIGHT + 1.0, X[::99], Y[::90]
    f, g = (np.exp(-((a[:, None] - b) ** 2).sum(axis=-1) / 2 / 1.5**2) for a, b in ((X, at), (Y, right_at)))
    ours, theirs = (Landmarks(GAUSSIAN, points=points) for points in (at, right_at))
    model = make(op.Cross(center=True), n_components=3, basis=ours, right_basis=theirs)
    model.fit((X, Y), sample_weight=weight)
    values, left, right = vamp(f, g, weight)
    assert_close(model.singular_values_, values[:3], 1e-8)
    found, followed = model.transform(X), model.transform_right(Y)  # centred like VAMP's
    signs = np.sign(np.sum(found * left[:, :3], axis=0))
    assert_close(found * signs, left[:, :3], 1e-6)
    assert_close(followed * signs, right[:, :3], 1e-6)


# -- data --------------------------------------------------------------------------------------------------------------


@doubtful
def test_columns_and_standardization_of_each_side() -> None:
    model = make(basis=Landmarks(GAUSSIAN, points=X[:9]), right_basis=Landmarks(GAUSSIAN, points=Y[:7]))
    model.fit(Rows((X, Y), columns=[2, 0], standardize=True), sample_weight=WEIGHT)
    z = [(a - np.average(a, 0, WEIGHT)) / np.sqrt(np.cov(a.T, aweights=WEIGHT, ddof=0).diagonal()) for a in (X, Y)]
    manual = clone(model).set_params(basis__points=z[0][:9, [2, 0]], right_basis__points=z[1][:7])
    manual.fit((z[0][:, [2, 0]], z[1]), sample_weight=WEIGHT)
    assert_close(model.moments_.arrays["form"], manual.moments_.arrays["form"], 1e-10)
    assert_allclose(model.transform_right(Y), manual.transform_right(z[1]), rtol=1e-6, atol=1e-8)


# -- bases of the user -------------------------------------------------------------------------------------------------


# -- models ------------------------------------------------------------------------------------------------------------
