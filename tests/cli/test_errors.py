"""A line that cannot be is one message on the error stream, and leaves everything as it was."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.cli import main
from tests.cli.common import everything, store
from tests.common import small_model

FIT = "fit points.zarr --out o.zarr"
EMBED = "embed points.zarr --bandwidth 1 --out o.zarr"
ERRORS = [  # exit code 1: what is there does not do
    "fit g.zarr --out o.zarr",
    "fit x.h5 --out o.zarr",
    f"{FIT} --kernel rbf",
    f"{FIT} --lattice 4 --periods 2:7",
    f"{FIT} --plot e.bmp",
    f"{FIT.replace('points.zarr', 'table.csv')} --columns a,zinc",
    "transform no.zarr points.zarr --out o.zarr",
    "transform r.zarr points.zarr --out o.zarr",
    "update d.zarr points.zarr --out o.zarr",
    "invariant sphere.zarr y.zarr --out o.zarr --manifold sphere --group all",
    "score m.zarr few.zarr",
    f"{FIT} --operator schrodinger",
    f"{FIT} --operator transfer:2 --lag 3",
    f"{FIT} --operator augmentation",
    f"{FIT} --scheduler tcp://127.0.0.1:9 --connect-timeout 0.2",
]
REPLACING = [  # what is no result is never replaced, and no input
    f"{FIT} --plot e.png",
    *(f"fit points.zarr --out {place} --overwrite" for place in ("notes", "points.zarr", "./points.zarr")),
    "sample gaussian --n 50 --out notes --overwrite",
]
UNWRITABLE = [  # said before it is that there is no input
    "fit no.zarr --out file/o.zarr",
    "fit no.zarr --out m.zarr --checkpoint none/c",
    "fit no.zarr --out o.zarr --plot file/e.png",
    "embed no.zarr --bandwidth 1 --method lowrank --out o.zarr --checkpoint file/c",
    "regress no.zarr no.zarr --out none/o.zarr",
    "transform m.zarr no.zarr --out file/o.zarr",
    "sample gaussian --n 100 --out none/o.zarr",
]
USAGE = [  # exit code 2: the line itself does not do
    "fit points.zarr",
    f"{FIT} --landmark-metod uniform",
    f"{FIT} --landmarks 1.5",
    f"{FIT} --network 8 --lattice 4",
    f"{FIT} --rtol 1e-6",
    f"{FIT} --operator schroedinger",
    f"{FIT} --operator laplacian --potential y.zarr",
    f"{FIT} --operator schroedinger --potential y.zarr --field potential=y.zarr",
    f"{FIT} --operator differential --coefficient 1,0:1,0=w",
    f"{EMBED} --time 2",
    f"{EMBED} --map diffusion --checkpoint c",
    "regress points.zarr y.zarr --out o.zarr --gradient-weight 2",
    "transform d.zarr points.zarr --right --out o.zarr",
    "score m.zarr points.zarr --targets y.zarr",
    "plan embed points.zarr",
    "fit --config points.zarr --out o.zarr",
]


@pytest.fixture(scope="module", autouse=True)
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with what the lines read, which none of them changes."""
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path_factory.mktemp("errors"))
        rng = np.random.default_rng(0)
        x, sphere = rng.standard_normal((60, 2)), dsp.manifolds.Sphere(3).sample(60, rng)
        store(points=x, y=x[:, 0], sphere=sphere, few=x[:1])
        for name in "ab":
            zarr.open_group("g.zarr", mode="a").create_array(name, data=x)
        Path("x.h5").touch()
        for name in ("file", "e.png", "notes/mine.txt"):
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).touch()
        small_model().fit(x).save("m.zarr")
        Path("table.csv").write_text("a,c\n1,2\n3,4\n")
        dsp.DiffusionMap(1.0, random_state=0).fit(x).save("d.zarr")
        dsp.HermiteRegressor(alpha=0.1).fit(x, x[:, 0]).save("r.zarr")
        yield


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows
@pytest.mark.parametrize("line", [*ERRORS, *REPLACING, *UNWRITABLE, *USAGE], ids=lambda line: line[:60])
def test_an_invalid_command_leaves_no_file(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything()
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2 if line in USAGE else 1, "")
    assert line in USAGE or (err.startswith("Error: ") and err.count("\n") == 1)
    assert line not in UNWRITABLE or "no.zarr" not in err
    assert everything() == before
