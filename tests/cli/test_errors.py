"""A line that cannot be is one message on the error stream, and leaves everything as it was."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.cli import main
from tests.cli.common import everything, store

FIT = "fit points.zarr --out o.zarr"
EMBED = "embed points.zarr --bandwidth 1 --out o.zarr"
REGRESS = "regress points.zarr y.zarr --out o.zarr"
INVARIANT = "invariant sphere.zarr y.zarr --out o.zarr"
ERRORS = [  # exit code 1: what is there does not do
    "fit g.zarr --out o.zarr",
    "fit x.h5 --out o.zarr",
    "fit points.zarr --out no/o.zarr",
    f"{FIT} --kernel rbf",
    f"{FIT} --periods 0:-1",
    f"{FIT} --lattice 4 --periods 2:7",
    f"{FIT} --plot e.bmp",
    "transform points.zarr points.zarr --out o.zarr",
    "transform no.zarr points.zarr --out o.zarr",
    "transform r.zarr points.zarr --out o.zarr",
    "transform moments.zarr points.zarr --out o.zarr",
    "predict d.zarr points.zarr --out o.zarr",
    "sample gaussian --n -5 --out o.zarr",
    "update d.zarr points.zarr --out o.zarr",
    f"{INVARIANT} --manifold sphere --group all",
    "plot r.zarr --out o.png",
    "report m.zarr --out o.pdf",
    "score d.zarr points.zarr",
    "score m.zarr few.zarr",
    "verify no.zarr",
    f"{FIT} --scheduler tcp://127.0.0.1:9 --connect-timeout 0.2",
]
USAGE = [  # exit code 2: the line itself does not do
    "fit points.zarr",
    "transfom points.zarr",
    f"{FIT} --landmark-metod uniform",
    f"{FIT} --landmarks 1.5",
    f"{FIT} --columns 0,x",
    f"{FIT} --network 8 --lattice 4",
    f"{FIT} --lattice 4 --landmark-method uniform",
    f"{FIT} --lattice auto --kernel gaussian:1",
    f"{FIT} --network 8 --periods 0:7",
    f"{FIT} --rotate 2",
    f"{FIT} --ridge 1e-6",
    f"{FIT} --rtol 1e-6",
    f"{FIT} --solver cut --penalty 1",
    f"{EMBED} --time 2",
    f"{EMBED} --map diffusion --landmarks auto",
    f"{EMBED} --map diffusion --checkpoint c",
    "embed points.zarr --bandwidth wide --out o.zarr",
    f"{REGRESS} --gradient-weight 2",
    f"{INVARIANT} --manifold sphere --alpha 1 --solver projection",
    "transform d.zarr points.zarr --right --out o.zarr",
    "score m.zarr points.zarr --targets y.zarr",
    "plot m.zarr --kind functions --out o.png",
    "plan embed points.zarr",
    "plan --workers 3 fit points.zarr",
    "report r.zarr --view y.zarr --out o.html",
    "fit points.zarr --out o.zarr --config no.yaml",
    "fit --config points.zarr --out o.zarr",
]


@pytest.fixture(scope="module", autouse=True)
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with what the lines read, which none of them changes."""
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path_factory.mktemp("errors"))
        rng = np.random.default_rng(0)
        x, sphere = rng.standard_normal((60, 2)), dsp.manifolds.Sphere(3).sample(60, rng)
        store(points=x, y=x[:, 0], sphere=sphere, ones=np.ones(60), few=x[:1])
        for name in "ab":
            zarr.open_group("g.zarr", mode="a").create_array(name, data=x)
        Path("x.h5").touch()
        landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 20)
        model = dsp.SpectralDecomposition(basis=landmarks, n_components=2, folds=None, random_state=0).fit(x)
        model.save("m.zarr")
        dsp.save(model.moments_, "moments.zarr")
        dsp.DiffusionMap(1.0, random_state=0).fit(x).save("d.zarr")
        dsp.HermiteRegressor(landmarks, alpha=0.1).fit(x, x[:, 0]).save("r.zarr")
        yield


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows
@pytest.mark.parametrize("line", [*ERRORS, *USAGE], ids=lambda line: line[:60])
def test_a_line_that_cannot_be_leaves_nothing(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything()
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (1 if line in ERRORS else 2, "")
    if line in ERRORS:
        assert err.startswith("Error: ")
        assert err.count("\n") == 1
    assert everything() == before
