"""Densities and periods from a shell: the same bits as from Python, and errors in one line."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.cli import main
from tests.cli.common import done

pytestmark = pytest.mark.usefixtures("folder")
FIT = ["--kernel", "gaussian:1", "--landmarks", "20", "--out", "model.zarr", "--no-progress"]
TURN = 2 * np.pi


def angles(n: int = 3000) -> np.ndarray:
    t = TURN * np.random.default_rng(0).random((3 * n, 1))
    x = t[np.random.default_rng(1).random(3 * n) < (2 + np.cos(t[:, 0])) / 3][:n]
    zarr.create_array("points.zarr", data=x, chunks=(500, 1))
    return x


def test_a_density_and_a_period() -> None:
    x = angles()
    options = ["--periods", f"0:{TURN!r}", *FIT]
    text = done("fit", "points.zarr", "--density", "1", "--components", "5", *options)
    assert "Laplacian(manifold=None, density=Density(exponent=1, 150 centres" in text
    assert "density     150 centres, bandwidth 0." in text
    assert "% of the rows" in text
    wanted = dsp.SpectralDecomposition(
        dsp.operators.Laplacian(density=1.0),
        dsp.kernels.Gaussian(1.0),
        n_landmarks=20,
        n_components=5,
        periods={0: TURN},
        random_state=0,
    ).fit("points.zarr")
    found = dsp.load("model.zarr")
    np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_)
    np.testing.assert_allclose(found.eigenvalues_[1:], [1, 1, 4, 4], rtol=0.15)
    zarr.create_array("y.zarr", data=np.sin(x[:, 0]))
    done("regress", "points.zarr", "y.zarr", *options, "--overwrite")
    np.testing.assert_allclose(dsp.load("model.zarr").predict(x[:5] + TURN), np.sin(x[:5, 0]), atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--density", "2"], "density is the power of the sampling density"),
        (["--density", "1", "--operator", "transfer", "--lag", "1"], "--density is for the operator laplacian"),
        (["--periods", "0"], "'0' is not a list of columns with their periods such as 0:6.283185"),
        (["--periods", "0:-1"], "a period is a positive number"),
        (["--periods", "4:1"], "periods names the column 4"),
    ],
)
def test_errors_in_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    angles(500)
    with pytest.raises(SystemExit):
        main(["fit", "points.zarr", *options, *FIT])
    assert message in capsys.readouterr().err
