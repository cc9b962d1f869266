"""Every option of every command is given once, and does what it is there for: another result, the same one, a file."""

import functools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import xarray as xr
import zarr
from distributed import LocalCluster

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.data.stores import open_zarr
from tests.cli.common import call, store

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # few rows; the values are not judged here
N = 60
KERNEL = "--kernel gaussian:1 --landmarks 10"
MANY = "embed many.zarr --bandwidth 0.5 --method lowrank"
LEARNED = "embed few.zarr --map kernel --bandwidth 1"
BASES = {
    "fit": f"fit points.zarr {KERNEL} --components 3 --folds none",
    "regress": f"regress points.zarr y.zarr {KERNEL} --alpha 1e-3",
    "invariant": "invariant points.zarr y.zarr --manifold interval:-6:6 --functions 20",
    "embed": "embed points.zarr --bandwidth 4 --method lowrank --landmarks 10",
    "plan": f"plan fit points.zarr {KERNEL}",
    "plot": "plot model.zarr points.zarr",
    "verify": "verify points.zarr",
    "report": "report model.zarr points.zarr",
    "transform": "transform model.zarr points.zarr",
    "predict": "predict regressor.zarr points.zarr",
    "score": "score model.zarr points.zarr",
    "info": "info model.zarr",
    "sample": "sample two-moons --n 60",
    "update": "update model.zarr more.zarr",
    "merge": "merge model.zarr other.zarr",
}
OUTS = {"plot": "o.png", "report": "o.html", "plan": "", "verify": "", "score": "", "info": ""}
"""Where a result goes, if not to o.zarr."""
# What gives another result than the base of its command, or than the line after "|". Options alone follow the base.
LANDMARKS = ("--landmarks 15", "--landmark-method uniform", "--landmark-sample 30")
LATTICE = "--landmarks auto --lattice 3"
BASIS = (
    *LANDMARKS,
    *("--kernel gaussian:2", "--columns 1", "--standardize", "--dtype float32", "--seed 1"),
    *(LATTICE, f"{LATTICE} --lattice-box -5:5,-6:6 | {LATTICE}", f"{LATTICE} --lattice-margin 0.9 | {LATTICE}"),
    "--periods 0:12.5",
)
OTHER: dict[str, tuple[str, ...]] = {
    "fit": (
        *BASIS,
        *("--operator covariance", "--operator covariance --rotate 2 | --operator covariance", "--no-constant"),
        "fit points.zarr --operator covariance --components 0.5 | fit points.zarr --operator covariance --components 2",
        "fit path.zarr --operator transfer:1 --constant | fit path.zarr --operator transfer:1 --no-constant",
        "fit path.zarr --operator transfer --lag 2 | fit path.zarr --operator transfer --lag 1",
        "fit path.zarr --operator transfer:1:reversible --further 2,5 | fit path.zarr --operator transfer:1:reversible",
        "fit path.zarr --operator transfer:1 --trajectory htap.zarr | fit path.zarr --operator transfer:1",
        "fit sphere.zarr --landmarks 10 --manifold sphere | fit sphere.zarr --landmarks 10",
        "fit few.zarr --functions-of model.zarr | fit few.zarr",
        *("--density 1", "--operator schroedinger --potential y.zarr", "--operator tangent --direction b.zarr"),
        "--operator generator --drift b.zarr --diffusion 2.0 | --operator generator --drift b.zarr --diffusion 1.0",
        *("--operator differential --coefficient 1,0:1,0=2", "--operator augmentation --view near.zarr"),
        "--landmarks 5 --exclude-landmarks | --landmarks 5 --keep-landmarks",
        *("--spread 0.5", "--solver cut", "--penalty 3", "--folds 5", "--components 2"),
        "--solver cut --ridge 0.1 | --solver cut",
        "--solver cut --rtol 1e-1 | --solver cut",
    ),
    "regress": (
        *BASIS,
        *("--gradients b.zarr", "--gradients b.zarr --gradient-weight 3 | --gradients b.zarr"),
        *("--alpha gcv", "--alpha gcv --rtol 1e-2 | --alpha gcv"),
    ),
    "invariant": (
        *("--manifold interval:-7:7", "--group signflips", "--smoothness 3", "--functions 30", "--alpha 0.1"),
        *("--gradients b.zarr", "--gradients b.zarr --gradient-weight 3 | --gradients b.zarr"),
        "--solver projection",
    ),
    "embed": (
        *LANDMARKS,
        *("--bandwidth 5", "--tolerance 1e-30", "--max-passes 3", "--columns 1", "--standardize", "--seed 1"),
        *("--map diffusion", "--map diffusion --method exact | --map diffusion", "--components 1"),
        "--map diffusion --time 2 --embedding e.zarr | --map diffusion --embedding e.zarr",
        "--map diffusion --density 1 | --map diffusion",
        f"{MANY} --accuracy 1e-12 | {MANY}",
        f"{LEARNED} --kernel matern:2.5:auto | {LEARNED}",
        f"{LEARNED} --regularization 0.1 | {LEARNED}",
    ),
    "plot": ("plot model.zarr --kind spectrum", "--components 2"),
    "report": ("report cross.zarr points.zarr --view near.zarr | report cross.zarr points.zarr",),
    "transform": (
        "transform koopman.zarr path.zarr --right | transform koopman.zarr path.zarr",
        "transform koopman.zarr path.zarr --sets 2 | transform koopman.zarr path.zarr",
        "transform koopman.zarr path.zarr --committor low.zarr,high.zarr | transform koopman.zarr path.zarr",
        "transform koopman.zarr path.zarr --equilibrium | transform koopman.zarr path.zarr",
        "transform koopman.zarr path.zarr --passage-time low.zarr | transform koopman.zarr path.zarr",
        "transform sdp.zarr far.zarr --extrapolate nan | transform sdp.zarr far.zarr",
    ),
    "predict": ("--gradient",),
    "score": (
        "score regressor.zarr points.zarr --targets y.zarr",
        "score schroedinger.zarr points.zarr --field potential=y.zarr",
        "score augmentation.zarr points.zarr --view near.zarr",
        "score koopman.zarr path.zarr --trajectory htap.zarr | score koopman.zarr path.zarr",
    ),
    "sample": (
        *("--n 50", "sample gaussian --n 60 --dimension 3", "--noise 0.1", "--dtype float32", "--chunk-rows 10"),
        "--seed 1",
    ),
    "update": (
        "update regressor.zarr more.zarr --targets more-y.zarr",
        "update hermite.zarr more.zarr --targets more-y.zarr --gradients more-b.zarr",
        "update schroedinger.zarr more.zarr --field potential=more-y.zarr",
        "update augmentation.zarr more.zarr --view more-near.zarr",
    ),
}
SAME = {
    "fit": (
        "--device auto",
        "--operator schroedinger --field potential=y.zarr | --operator schroedinger --potential y.zarr",
    ),
    "embed": ("--device auto --cache never", "--cache always"),
}
LEAVES = {  # an option, and what it prints or leaves
    "fit": {"--plot picture.png": "picture.png"},
    "embed": {
        "--cache-path cache.zarr": "cache.zarr",
        "--extrapolate nan --embedding e.zarr": "e.zarr",
    },
    "regress": {"--device auto": "held out"},
    "info": {"--details": "residual", "--settings": "command: fit"},
}
ELSEWHERE = {
    "fit": {"--network"},  # test_models.py, where jax is installed
    "plan": {"--probe", "--workers"},  # test_inspecting.py
}
LABELLED = {  # of each command that takes labelled points
    "fit": "fit field.zarr --operator covariance",
    "regress": f"regress field.zarr y.zarr {KERNEL} --alpha 1e-3",
    "invariant": "invariant field.zarr y.zarr --functions 20",
    "embed": "embed field.zarr --bandwidth 3 --method exact",
}
CONFIGS = {  # settings of commands that write no result
    "plan": "points: points.zarr\nkernel: gaussian:1\nlandmarks: 10",
    "verify": "store: points.zarr",
    "score": "model: model.zarr\npoints: points.zarr",
    "info": "model: model.zarr",
}
EVERYWHERE = {"--config", "--json", "--quiet", "--log-file", "--help", "--help-all"}
HARMLESS = (
    *("--threads 1", "--progress", "--no-progress", "--storage-option anon=true", "--trust module.Name"),
    "--checkpoint run --checkpoint-every 0",
)
SHARED = {word for words in HARMLESS for word in words.split() if word.startswith("--")} | {
    *("--out", "--overwrite", "--weights", "--on-invalid", "--allow-missing", "--scheduler", "--connect-timeout"),
    *("--sample-dims", "--latitude", "--anomaly", "--detrend"),
}
PATHS = {"model", "points", "embedding", "prediction", "gradient", "picture", "moments", "memory"}


def given(name: str) -> set[str]:
    """The options of a command, on and off."""
    options = [p for p in command.commands[name].params if isinstance(p, click.Option)]
    return {max(words, key=len) for o in options for words in (o.opts, o.secondary_opts) if words}


@pytest.mark.parametrize("name", command.commands)
def test_no_option_is_left_out(name: str) -> None:
    lines = [*OTHER.get(name, ()), *SAME.get(name, ()), *LEAVES.get(name, {})]
    run = {word for line in lines for word in line.split() if word.startswith("--")} | ELSEWHERE.get(name, set())
    assert given(name) - run - SHARED == EVERYWHERE - {"--help"}
    assert run <= given(name) | EVERYWHERE
    assert name in BASES


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = np.clip(rng.standard_normal((N + 40, 2)), -4, 4)
    path = np.zeros((N, 1))
    for t in range(1, N):
        path[t] = 0.8 * path[t - 1] + 0.6 * rng.standard_normal()
    y = (x**2).sum(axis=1) + x[:, 0]
    near = x + 0.1 * rng.standard_normal(x.shape)
    weights = rng.integers(1, 4, len(x)).astype(float)
    own = {"points": x, "y": y, "b": -x, "near": near, "weights": weights}
    bad, bad_more = x[:N].copy(), x.copy()
    bad[25, 0] = bad_more[N + 5, 0] = np.nan
    return {
        **{name: array[:N] for name, array in own.items()},
        **{f"more-{name}": array for name, array in own.items()},
        **{
            "more": x,
            "few": x[:40],
            "path": path,
            "htap": path[::-1].copy(),
            "low": path[:, 0] < -0.5,
            "high": path[:, 0] > 0.5,
        },
        "many": np.random.default_rng(0).standard_normal((1000, 2)),
        **{"bad": bad, "bad-more": bad_more, "sphere": dsp.manifolds.Sphere(3).sample(N, rng)},
        "far": np.concatenate([x[:40], [[90.0, 90.0]]]),
    }


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with all that the lines read."""
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path_factory.mktemp("options"))
        found = arrays()
        store(20, **found)
        for path in ("bad.zarr/c/2", "bad-more.zarr/c/4"):
            shutil.rmtree(path)
        field = np.random.default_rng(1).standard_normal((N, 2, 1))
        times = np.datetime64("2000-01-01", "ns") + np.arange(len(field)) * np.timedelta64(1, "h")
        fields = {"field": xr.DataArray(field, {"time": times, "lat": [0.0, 60.0]}, ("time", "lat", "lon"), name="t")}
        fields["wide-y"] = xr.DataArray(np.repeat(found["y"][:, None], 2, axis=1), dims=("time", "lat"))
        for name, array in fields.items():
            array.rename(name).to_dataset().to_zarr(f"{name}.zarr", zarr_format=2)
        for line in (
            f"{BASES['fit']} --out model.zarr",
            f"{BASES['fit']} --out other.zarr",
            f"{BASES['fit']} --weights weights.zarr --out weighted.zarr",
            f"fit path.zarr {KERNEL} --components 3 --operator transfer:1 --out koopman.zarr",
            f"{BASES['fit']} --operator schroedinger --potential y.zarr --out schroedinger.zarr",
            f"{BASES['fit']} --operator augmentation --view near.zarr --out augmentation.zarr",
            f"{BASES['fit']} --operator cross --view near.zarr --out cross.zarr",
            f"{BASES['regress']} --out regressor.zarr",
            f"{BASES['regress']} --gradients b.zarr --out hermite.zarr",
            "embed few.zarr --bandwidth 1 --method exact --out sdp.zarr",
        ):
            assert call(line).exit_code == 0, line
        yield


def runs(test: Any) -> Any:
    return pytest.mark.slow(pytest.mark.usefixtures("prepared")(test))


def placed(line: str) -> list[str]:
    """The words of a line, with a place for its result."""
    out = OUTS.get(line.split()[0], "o.zarr")
    return [*line.split(), *(["--out", out, "--overwrite"] if out else [])]


@functools.cache
def ran(line: str) -> dict[str, Any]:
    """What a line says as JSON, without paths, and what is in the array or the picture that it writes."""
    shutil.rmtree("e.zarr", ignore_errors=True)
    shutil.rmtree("run", ignore_errors=True)
    result = call(*placed(line), "--json")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, (line, result.output)
    facts = json.loads(result.stdout)
    found = {key: value for key, value in facts.items() if key not in PATHS}
    out = OUTS.get(line.split()[0], "o.zarr")
    if out.endswith(("png", "html")):
        found[out] = Path(out).read_bytes()
    elif out and "kind" not in facts and "fitted" not in str(zarr.open(out, mode="r").attrs.asdict()):
        array = open_zarr(out)
        found[out] = (array.chunks, array.dtype.str, array[...].tobytes())
    if Path("e.zarr").exists():
        found["e.zarr"] = open_zarr("e.zarr")[...].tobytes()
    return found


def both(name: str, line: str) -> list[dict[str, Any]]:
    """What a line gives, and what the one gives that it is compared with."""
    one, _, other = (part.strip() for part in line.partition("|"))
    return [ran(part if part.startswith(f"{name} ") else f"{BASES[name]} {part}".strip()) for part in (one, other)]


def each(table: dict[str, Any]) -> list[Any]:
    return [pytest.param(name, line, id=f"{name} {line}") for name, lines in table.items() for line in lines]


@runs
@pytest.mark.parametrize(("name", "line"), each(OTHER))
def test_another_result(name: str, line: str) -> None:
    one, other = both(name, line)
    assert one != other


@runs
@pytest.mark.parametrize(("name", "line"), each(SAME))
def test_the_same_result(name: str, line: str) -> None:
    one, other = both(name, line)
    assert one == other


@runs
@pytest.mark.parametrize(("name", "line"), each(LEAVES))
def test_what_an_option_prints_or_leaves(name: str, line: str) -> None:
    result = call(*placed(f"{BASES[name]} {line}"))
    assert result.exit_code == 0, result.output
    effect = LEAVES[name][line]
    assert effect in result.stdout or Path(effect).exists()


@runs
@pytest.mark.parametrize("name", LABELLED)
def test_the_options_of_labelled_points(name: str) -> None:
    line = LABELLED[name]
    wide = line.replace("y.zarr", "wide-y.zarr")
    plain = ran(f"{line} --sample-dims time")
    assert ran(f"{line} --sample-dims time --latitude lat") != plain
    assert ran(f"{wide} --sample-dims time,lat") != plain
    assert ran(f"{line} --sample-dims time --anomaly hour") != plain
    assert ran(f"{line} --sample-dims time --detrend 1") != plain


@runs
@pytest.mark.parametrize("name", BASES)
def test_options_that_change_nothing(name: str) -> None:
    """Those of several commands together; a result is replaced only when asked, and its settings give it again."""
    options = [words for words in HARMLESS if words.split()[0] in given(name)]
    base = f"{BASES[name]} --max-passes 3" if name == "embed" else BASES[name]  # each is a checkpoint
    wanted = ran(base)
    assert ran(" ".join([base, *options])) == wanted
    assert Path("run").exists() == ("--checkpoint" in given(name))
    out, words = OUTS.get(name, "o.zarr"), BASES[name].split()
    written = [*words, "--out", f"{name}-{out}"] if out else words
    quiet = call(*written, "--quiet", "--log-file", f"{name}.log")
    assert (quiet.exit_code, quiet.output) == (0, "")
    logged = Path(f"{name}.log").read_text()
    assert "INFO settings: " in logged
    assert "INFO done in " in logged
    if out:
        assert isinstance(call(*written).exception, FileExistsError)
        count = 2 if name == "merge" else sum(isinstance(p, click.Argument) for p in command.commands[name].params)
        again = [*words[: 1 + count], "--config", f"{name}-{out}{'' if out == 'o.zarr' else '.yaml'}"]
    else:
        Path(f"{name}.yaml").write_text(CONFIGS[name])
        again = [*words[: 1 + (name == "plan")], "--config", f"{name}.yaml"]
    assert ran(" ".join(again)) == ran(BASES[name])


WITH_DATA = [name for name in BASES if given(name) & {"--on-invalid", "--allow-missing", "--weights"}]


@runs
@pytest.mark.parametrize("name", WITH_DATA)
def test_the_options_of_rows_that_are_invalid_missing_or_weighted(name: str) -> None:
    needed = [words for words in ("--on-invalid skip", "--allow-missing") if words.split()[0] in given(name)]
    line = BASES[name]
    for points, bad in {"points.": "bad.", "more.": "bad-more."}.items():
        line = line.replace(f" {points}", f" {bad}")
    if name == "update":  # weights belong to all rows of a fit and its updates
        line = line.replace("model.zarr", "weighted.zarr") + " --weights more-weights.zarr"
    for left in needed:
        assert call(*placed(" ".join([line, *(words for words in needed if words != left)]))).exit_code != 0, left
    plain = ran(" ".join([line, *needed]))
    if "--weights" in given(name) and "--weights" not in line:
        assert ran(" ".join([line, *needed, "--weights weights.zarr"])) != plain


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as found:
        yield found.scheduler_address


@runs
@pytest.mark.parametrize("name", [name for name in BASES if "--scheduler" in given(name)])
def test_a_scheduler(name: str, address: str) -> None:
    assert ran(f"{BASES[name]} --scheduler {address} --connect-timeout 20") == ran(BASES[name])
