"""`jacobi` and `invariant --coordinates`: a potential with the symmetries of a molecule, from a shell."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.data.readers import open_zarr
from tests.cli.common import call, done

pytestmark = pytest.mark.usefixtures("folder")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 9))
PAIRS = [X[:, 3 * i : 3 * i + 3] - X[:, 3 * j : 3 * j + 3] for i, j in [(0, 1), (0, 2), (1, 2)]]
ENERGY = np.sum([np.exp(-np.sum(r**2, axis=1)) for r in PAIRS], axis=0)


@pytest.fixture(autouse=True)
def arrays(folder: object) -> None:
    swapped = np.concatenate([X[:, :3], X[:, 6:], X[:, 3:6]], axis=1)  # the two light atoms exchanged
    for name, data in {"x": X, "y": ENERGY, "swapped": swapped}.items():
        zarr.create_array(f"{name}.zarr", data=data, chunks=(100, *data.shape[1:]))


def test_a_potential_does_not_tell_identical_atoms_apart() -> None:
    said = done("jacobi x.zarr --masses 16,1,1 --species O,H,H --out c.zarr --embedding u.zarr")
    assert "embedding: u.zarr, 400 rows, 7 components" in said
    coordinates = dsp.JacobiCoordinates([16, 1, 1], species=["O", "H", "H"]).fit(X)
    np.testing.assert_allclose(open_zarr("u.zarr")[...], coordinates.transform(X), rtol=1e-12)
    done("invariant u.zarr y.zarr --coordinates c.zarr --functions 300 --out m.zarr")
    done("transform c.zarr swapped.zarr --out s.zarr")
    done("predict m.zarr u.zarr --out p.zarr")
    done("predict m.zarr s.zarr --out q.zarr")
    found, exchanged = open_zarr("p.zarr")[...], open_zarr("q.zarr")[...]
    model = dsp.InvariantRegressor(coordinates.manifold_, coordinates.group_, n_eigenfunctions=300)
    np.testing.assert_allclose(found, model.fit(coordinates.transform(X), ENERGY).predict(coordinates.transform(X)))
    np.testing.assert_allclose(exchanged, found, atol=1e-9)
    assert np.ptp(found) > 0.1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("jacobi x.zarr --masses 16,H,1 --out c.zarr", "--masses are numbers, such as 16,1,1; got 16,H,1"),
        ("jacobi x.zarr --out c.zarr --embedding c.zarr", "need places of their own"),
        (
            "invariant x.zarr y.zarr --coordinates w.zarr --group cyclic --out m.zarr",
            "leave --manifold and --group",
        ),
    ],
)
def test_usage(line: str, message: str) -> None:
    done("jacobi x.zarr --out w.zarr")
    result = call(line)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="X has 9 columns, and 2 atoms have 6 coordinates"):
        done("jacobi x.zarr --masses 16,1 --out c.zarr")
    done("regress x.zarr y.zarr --kernel gaussian:3 --landmarks 30 --alpha 0.01 --out m.zarr")
    with pytest.raises(ValueError, match=r"m\.zarr holds HermiteRegressor, and a model of .* is wanted"):
        done("invariant x.zarr y.zarr --coordinates m.zarr --out n.zarr")
