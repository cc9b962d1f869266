"""A line that cannot be is one message on the error stream, and leaves everything as it was."""

import re
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
ERRORS = {  # exit code 1: what is there does not do
    "fit g.zarr --out o.zarr": "g.zarr is a zarr group, .* name one of its arrays: g.zarr/a, g.zarr/b",
    "fit x.h5 --out o.zarr": "x.h5 is a file",
    "fit points.zarr --out no/o.zarr": "no, the directory for o.zarr, is missing",
    f"{FIT} --kernel rbf": "there is no kernel 'rbf'; the kernels are gaussian:scale, exp",
    f"{FIT} --kernel gaussian{'+gaussian' * 20_000}": "a kernel has at most 100 terms; got 20001: leave some out",
    f"{FIT} --periods 0:-1": "periods",
    f"{FIT} --lattice 0": "m must",
    f"{FIT} --network 0": "hidden must",
    f"{FIT} --lattice 4 --periods 2:7": "periods names the column 2, and X has 2 columns, 0 to 1",
    f"{FIT} --plot e.bmp": r"must end in \.png",
    "transform points.zarr points.zarr --out o.zarr": "points.zarr is an array, not a model or moments",
    "transform no.zarr points.zarr --out o.zarr": "there is no saved model at no.zarr",
    "transform r.zarr points.zarr --out o.zarr": "HermiteRegressor, which predicts: `daskspectral predict r.zarr po",
    "transform moments.zarr points.zarr --out o.zarr": "holds moments, not a model",
    "predict d.zarr points.zarr --out o.zarr": "DiffusionMap, .* no regressor: `daskspectral transform d.zarr points",
    "sample gaussian --n -5 --out o.zarr": "n must",
    "update d.zarr points.zarr --out o.zarr": "DiffusionMap, which cannot be updated",
    f"{EMBED} --embedding points.zarr --overwrite": "would replace the input",
    f"{EMBED} --embedding d.zarr": "d.zarr exists",
    f"{INVARIANT} --manifold sphere --group all": "no group 'all'; the groups are p",
    "plot r.zarr --out o.png": "pictures are drawn of a fitted SpectralDecomposition",
    "report m.zarr --out o.pdf": "a report's name must end in .html, .htm",
    "score d.zarr points.zarr": "d.zarr holds DiffusionMap, which has no score",
    "score m.zarr few.zarr": "a score of 2 functions needs more than 2 rows, and X has 1 rows",
    "verify no.zarr": "there is no zarr store at no.zarr",
    "info m.zarr --log-file no/run.log": "--log-file no/run.log cannot be written: No such file",
    f"{FIT} --scheduler tcp://127.0.0.1:9 --connect-timeout 0.2": "no dask scheduler answers at tcp://127.0.0.1:9",
}
USAGE = {  # exit code 2: the line itself does not do
    "fit points.zarr": "Missing option '--out'",
    "paint": "No such command 'paint'",
    "transfom points.zarr": "No such command 'transfom'. Did you mean 'transform'?",
    f"{FIT} --landmark-metod uniform": "--landmark-method",
    f"{FIT} --landmarks 1.5": "'1.5' is not a whole number",
    f"{FIT} --columns 0,x": "'0,x' is not a list of column numbers such as 0,2,5 or 0:8",
    f"{FIT} --columns 0:400000000": "'0:400000000' has more than 100000 column numbers",
    f"{FIT} --network 8 --lattice 4": "--network and --lattice are two bases",
    f"{FIT} --lattice 4 --landmark-method uniform": "--landmark-method is for landmarks, without --lattice or --netw",
    f"{FIT} --lattice auto --kernel gaussian:1": "--kernel is for landmarks, or for --lattice with its highest freq",
    f"{FIT} --network 8 --periods 0:7": "--periods is for landmarks, or for --lattice with its highest frequency",
    f"{FIT} --rotate 2": "--rotate is for the components of --operator covariance",
    f"{FIT} --ridge 1e-6": "--ridge is for --solver cut",
    f"{FIT} --rtol 1e-6": "--rtol is for --solver cut",
    f"{FIT} --solver cut --penalty 1": "--penalty is for --solver penalised",
    f"{EMBED} --cache always --cache-path c": "--cache and --cache-path are two places for kernel values",
    f"{EMBED} --time 2": "--time is for --map diffusion",
    f"{EMBED} --map diffusion --method sparse": "--method sparse and --landmarks auto are for",
    f"{EMBED} --map diffusion --checkpoint c": "--checkpoint is for --map sdp",
    f"{EMBED} --embedding o.zarr/e": "need places of their own",
    "embed points.zarr --bandwidth wide --out o.zarr": "'wide' is not a number, nor one of auto, median, local",
    f"{REGRESS} --gradient-weight 2": "--gradient-weight is for --gradients",
    f"{INVARIANT} --manifold sphere --alpha 1 --solver projection": "for --solver least-squares",
    "transform d.zarr points.zarr --right --out o.zarr": "d.zarr holds DiffusionMap",
    "score m.zarr points.zarr --targets y.zarr": "--targets is for regressors, and m.zarr",
    "plot m.zarr --kind functions --out o.png": "--kind functions needs POINTS",
    "plan": "Missing argument",
    "plan embed points.zarr": "'embed' is not one of 'fit', 'regress', 'invariant'",
    "plan --workers 3 fit points.zarr": "give --probe too",
    "report r.zarr --view y.zarr --out o.html": "--view goes with POINTS",
    "fit points.zarr --out o.zarr --config no.yaml": "no.yaml cannot be read: No such file or directory",
    "fit --config points.zarr --out o.zarr": "points.zarr does not say with which options it was made",
}


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
    assert re.search(ERRORS.get(line) or USAGE[line], " ".join(err.split()))
    if line in ERRORS:
        assert err.startswith("Error: ")
        assert err.count("\n") == 1
    assert everything() == before
