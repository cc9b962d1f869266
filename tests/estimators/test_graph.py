"""GraphLaplacian: against dense matrices of all pairs, and scikit-learn's neighbours."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr
from scipy.sparse import csgraph
from sklearn.neighbors import kneighbors_graph

import daskspectral as dsp
from daskspectral.kernels import Gaussian
from daskspectral.passes import pairs as pairing
from tests.common import assert_close

N = 120
X = np.random.default_rng(0).standard_normal((N, 3))


@pytest.mark.parametrize(("n_neighbors", "normalized"), [(None, True), (7, False)])
def test_against_the_matrix_of_all_pairs(
    n_neighbors: int | None, normalized: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "LEAST_TILE_ROWS", 30)
    model = dsp.GraphLaplacian(Gaussian(0.5), Gaussian(1.0), n_landmarks=9, n_components=4, random_state=0)
    model.set_params(normalized=normalized, n_neighbors=n_neighbors, rescale=[0.0, 1.0])
    model.fit(zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(47, 3)) if n_neighbors is None else X)
    w = Gaussian(0.5)(X, X)
    if n_neighbors is not None:
        near = kneighbors_graph(X, n_neighbors, include_self=False).toarray()
        w = np.where((near + near.T) > 0, w, 0)
    if normalized:
        w = N * w / np.sqrt(np.outer(w.sum(axis=1), w.sum(axis=1)))
    phi = model.basis_.values(X)
    assert_close(model.form_, 2 * phi @ csgraph.laplacian(w) @ phi.T / N**2)
    assert_close(model.gram_, phi @ phi.T / N)
    assert model.eigenvalues_[:2].sum() == pytest.approx(1)
    model.save(tmp_path / "graph.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "graph.zarr").transform(X), model.transform(X))


def test_weights_invalid_rows_and_what_is_refused() -> None:
    model = dsp.GraphLaplacian(Gaussian(0.5), Gaussian(1.0), landmarks=X[:9], n_landmarks=9, n_components=4)
    mass = np.random.default_rng(1).integers(0, 4, N)
    weighted = model.fit(X, sample_weight=mass).form_
    assert_close(weighted, model.fit(np.repeat(X, mass, axis=0)).form_)
    broken = np.concatenate([X, [[np.nan, 0, 0]]])
    assert_close(model.fit(broken, on_invalid="skip").form_, model.fit(X).form_)
    with pytest.raises(TypeError, match="cannot read one another's blocks: write X by"):
        model.fit(da.from_array(X))
