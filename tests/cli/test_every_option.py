"""Every option of every command is given once, and does what it is there for: another result, the same one, a file."""

from __future__ import annotations

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
from daskspectral.data.readers import open_zarr
from tests.cli.common import call

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # few rows; the values are not judged here
KERNEL = "--kernel gaussian:1 --landmarks 20"
BASES = {
    "fit": f"fit points.zarr {KERNEL} --components 3 --folds none",
    "regress": f"regress points.zarr y.zarr {KERNEL} --alpha 1e-3",
    "invariant": "invariant points.zarr y.zarr --manifold interval:-6:6 --functions 20",
    "classify": "classify points.zarr labels.zarr --manifold interval:-6:6 --functions 20",
    "embed": "embed points.zarr --bandwidth 4 --method lowrank --landmarks 20",
    "graph": "graph points.zarr --landmarks 20 --components 3",
    "jacobi": "jacobi atoms.zarr",
    "plan": f"plan fit points.zarr {KERNEL}",
    "plot": "plot model.zarr points.zarr",
    "verify": "verify points.zarr",
    "report": "report model.zarr points.zarr",
    "transform": "transform model.zarr points.zarr",
    "predict": "predict regressor.zarr points.zarr",
    "score": "score model.zarr points.zarr",
    "info": "info model.zarr",
    "sample": "sample two-moons --n 300",
    "convert": "convert x.npy",
    "update": "update model.zarr more.zarr",
    "merge": "merge model.zarr other.zarr",
}
OUTS = {"plot": "o.png", "report": "o.html", "plan": "", "verify": "", "score": "", "info": ""}
"""Where a result goes, if not to o.zarr."""
OTHER, SAME = "another result", "the same result"
LABELLED = {
    "--sample-dims": ("field.zarr --sample-dims time,lat", "field.zarr --sample-dims time", OTHER),
    "--latitude": ("field.zarr --sample-dims time --latitude lat", "field.zarr --sample-dims time", OTHER),
}
Case = tuple[str, ...]  # words after those of the base, or a whole line, or a line and the one that it is compared with
SPECIFIC: dict[str, dict[str, Case]] = {
    "fit": {
        "--operator": ("--operator covariance", OTHER),
        "--lag": ("fit path.zarr --operator transfer --lag 2", "fit path.zarr --operator transfer --lag 1", OTHER),
        "--manifold": ("fit sphere.zarr --manifold sphere", "fit sphere.zarr", OTHER),
        "--density": ("--density 1", OTHER),
        "--potential": ("--operator schroedinger --potential v.zarr", OTHER),
        "--drift": ("--operator generator --drift b.zarr --diffusion 1.0", OTHER),
        "--diffusion": (
            "fit points.zarr --operator generator --drift b.zarr --diffusion 2.0",
            "fit points.zarr --operator generator --drift b.zarr --diffusion 1.0",
            OTHER,
        ),
        "--direction": ("--operator tangent --direction b.zarr", OTHER),
        "--coefficient": ("--operator differential --coefficient 1,0:1,0=2", OTHER),
        "--field": (
            "fit points.zarr --operator schroedinger --field potential=v.zarr",
            "fit points.zarr --operator schroedinger --potential v.zarr",
            SAME,
        ),
        "--view": ("--operator augmentation --view other-points.zarr", OTHER),
        "--trajectory": (
            "fit path.zarr --operator transfer:1 --trajectory other-path.zarr",
            "fit path.zarr --operator transfer:1",
            OTHER,
        ),
        "--kernel": ("--kernel gaussian:2", OTHER),
        "--landmarks": ("--landmarks 30", OTHER),
        "--landmark-method": ("--landmark-method uniform", OTHER),
        "--landmark-sample": ("--landmark-sample 100", OTHER),
        "--lattice": ("--lattice 3", OTHER),
        "--lattice-box": ("--lattice 3 --lattice-box -5:5,-6:6", "--lattice 3", OTHER),
        "--lattice-margin": ("--lattice 3 --lattice-margin 0.9", "--lattice 3", OTHER),
        "--network": ("", "tested in test_network.py, where jax is installed"),
        "--exclude-landmarks": ("--exclude-landmarks", OTHER),
        "--keep-landmarks": (
            "fit points.zarr --kernel exponential:1 --keep-landmarks",
            "fit points.zarr --kernel exponential:1",
            OTHER,
        ),
        "--spread": ("--spread 0.5", OTHER),
        "--solver": ("--solver cut", OTHER),
        "--penalty": ("--penalty 3", OTHER),
        "--folds": ("--folds 5", OTHER),
        "--components": ("--components 2", OTHER),
        "--columns": ("--columns 1", OTHER),
        "--periods": ("--periods 0:12.5", OTHER),
        "--standardize": ("--standardize", OTHER),
        "--constant": ("--operator covariance --constant", OTHER),
        "--no-constant": ("--no-constant", OTHER),
        "--ridge": ("--ridge 0.1", OTHER),
        "--rtol": ("--solver cut --rtol 1e-2", OTHER),
        "--dtype": ("--dtype float32", OTHER),
        "--device": ("--device auto", SAME),
        "--seed": ("--seed 1", OTHER),
        "--plan": ("--plan", "plan: "),
        "--plot": ("--plot picture.png", "picture.png"),
    },
    "regress": {
        "--gradients": ("--gradients b.zarr", OTHER),
        "--gradient-weight": ("--gradients b.zarr --gradient-weight 3", "--gradients b.zarr", OTHER),
        "--kernel": ("--kernel gaussian:2", OTHER),
        "--landmarks": ("--landmarks 30", OTHER),
        "--landmark-method": ("--landmark-method uniform", OTHER),
        "--landmark-sample": ("--landmark-sample 100", OTHER),
        "--lattice": ("--lattice 3", OTHER),
        "--lattice-box": ("--lattice 3 --lattice-box -5:5,-6:6", "--lattice 3", OTHER),
        "--lattice-margin": ("--lattice 3 --lattice-margin 0.9", "--lattice 3", OTHER),
        "--alpha": ("--alpha gcv", OTHER),
        "--columns": ("--columns 1", OTHER),
        "--periods": ("--periods 0:12.5", OTHER),
        "--standardize": ("--standardize", OTHER),
        "--rtol": ("--rtol 1e-2", OTHER),
        "--dtype": ("--dtype float32", OTHER),
        "--device": ("", "tested in tests/moments/test_devices.py; here the parameters that are told differ"),
        "--seed": ("--seed 1", OTHER),
    },
    "invariant": {
        "--manifold": ("--manifold interval:-7:7", OTHER),
        "--group": ("--group signflips", OTHER),
        "--coordinates": (
            "invariant coordinates.zarr y.zarr --coordinates water.zarr --functions 200",
            "invariant coordinates.zarr y.zarr --coordinates alike.zarr --functions 200",
            OTHER,
        ),
        "--smoothness": ("--smoothness 3", OTHER),
        "--functions": ("--functions 30", OTHER),
        "--gradients": ("--gradients b.zarr", OTHER),
        "--gradient-weight": ("--gradients b.zarr --gradient-weight 3", "--gradients b.zarr", OTHER),
        "--solver": ("--solver projection", OTHER),
        "--sampling": ("--sampling estimated", OTHER),
        "--alpha": ("--alpha 0.1", OTHER),
    },
    "classify": {
        "--manifold": ("--manifold interval:-7:7", OTHER),
        "--group": ("--group signflips", OTHER),
        "--coordinates": (
            "classify coordinates.zarr labels.zarr --coordinates water.zarr --functions 200",
            "classify coordinates.zarr labels.zarr --coordinates alike.zarr --functions 200",
            OTHER,
        ),
        "--smoothness": ("--smoothness 3", OTHER),
        "--functions": ("--functions 30", OTHER),
        "--alpha": ("--alpha 0.1", OTHER),
    },
    "embed": {
        "--bandwidth": ("--bandwidth 5", OTHER),
        "--map": ("--map diffusion", OTHER),
        "--method": ("--map diffusion --method exact", "--map diffusion --method lowrank", OTHER),
        "--landmarks": ("--landmarks 30", OTHER),
        "--accuracy": (
            "embed many.zarr --bandwidth 1 --method lowrank --accuracy 1e-12",
            "embed many.zarr --bandwidth 1 --method lowrank",
            OTHER,
        ),
        "--landmark-method": ("--landmark-method uniform", OTHER),
        "--landmark-sample": ("--landmark-sample 100", OTHER),
        "--tolerance": ("--tolerance 1e-30", OTHER),
        "--max-passes": ("--max-passes 3", OTHER),
        "--columns": ("--columns 1", OTHER),
        "--standardize": ("--standardize", OTHER),
        "--cache": ("--cache never", SAME),
        "--cache-path": ("--cache always --cache-path cache.zarr", "cache.zarr"),
        "--components": ("--components 1", OTHER),
        "--time": ("--map diffusion --time 2 --embedding e.zarr", "--map diffusion --embedding e.zarr", OTHER),
        "--density": ("--map diffusion --density 1", "--map diffusion", OTHER),
        "--kernel": (
            "embed few.zarr --map kernel --bandwidth 1 --kernel matern:2.5:auto",
            "embed few.zarr --map kernel --bandwidth 1",
            OTHER,
        ),
        "--regularization": (
            "embed few.zarr --map kernel --bandwidth 1 --regularization 0.1",
            "embed few.zarr --map kernel --bandwidth 1",
            OTHER,
        ),
        "--device": ("--device auto", SAME),
        "--on-uncovered": ("--on-uncovered nan --embedding e.zarr", "e.zarr"),
        "--seed": ("--seed 1", OTHER),
        "--embedding": ("--embedding e.zarr", "e.zarr"),
    },
    "graph": {
        "--weight-kernel": ("--weight-kernel gaussian:1", OTHER),
        "--kernel": ("--kernel gaussian:1", OTHER),
        "--landmarks": ("--landmarks 30", OTHER),
        "--landmark-method": ("--landmark-method cholesky", OTHER),
        "--landmark-sample": (
            "graph points.zarr --landmarks 20 --landmark-method kmeans++ --landmark-sample 100",
            "graph points.zarr --landmarks 20 --landmark-method kmeans++",
            OTHER,
        ),
        "--neighbours": ("--neighbours 5", OTHER),
        "--normalized": ("--normalized", SAME),
        "--unnormalized": ("--unnormalized", OTHER),
        "--components": ("--components 2", OTHER),
        "--rtol": ("--rtol 1e-2", OTHER),
        "--seed": ("--seed 1", OTHER),
    },
    "jacobi": {
        "--masses": ("--masses 16,1,1", OTHER),
        "--species": ("--species H,H,O", OTHER),
        "--embedding": ("--embedding e.zarr", "e.zarr"),
    },
    "plan": {
        "--calibrate": ("", "tested in test_plan.py"),
        "--calibration": ("", "tested in test_plan.py"),
        "--workers": ("", "tested in test_plan.py"),
        "--threads-per-worker": ("", "tested in test_plan.py"),
    },
    "plot": {
        "--kind": ("plot model.zarr --kind spectrum", OTHER),
        "--components": ("--components 2", OTHER),
    },
    "verify": {},
    "report": {"--view": ("", "tested in test_report.py")},
    "transform": {
        "--right": ("transform koopman.zarr path.zarr --right", "transform koopman.zarr path.zarr", OTHER),
        "--on-uncovered": (
            "transform sdp.zarr far.zarr --on-uncovered nan",
            "transform sdp.zarr far.zarr",
            OTHER,
        ),
    },
    "predict": {"--gradient": ("--gradient", OTHER)},
    "score": {
        "--targets": ("score regressor.zarr points.zarr --targets y.zarr", OTHER),
        "--field": ("score schroedinger.zarr points.zarr --field potential=v.zarr", OTHER),
        "--view": ("score augmentation.zarr points.zarr --view other-points.zarr", OTHER),
        "--trajectory": (
            "score koopman.zarr path.zarr --trajectory other-path.zarr",
            "score koopman.zarr path.zarr",
            OTHER,
        ),
    },
    "info": {"--details": ("--details", "residual"), "--settings": ("--settings", "command: fit")},
    "sample": {
        "--n": ("--n 200", OTHER),
        "--dimension": ("sample gaussian --n 300 --dimension 3", OTHER),
        "--noise": ("--noise 0.1", OTHER),
        "--dtype": ("--dtype float32", OTHER),
        "--chunk-rows": ("--chunk-rows 100", OTHER),
        "--seed": ("--seed 1", OTHER),
    },
    "convert": {
        "--dataset": ("convert x.npz --dataset b", "convert x.npz --dataset a", OTHER),
        "--columns": ("--columns 1", OTHER),
        "--dtype": ("--dtype float32", OTHER),
        "--chunk-rows": ("--chunk-rows 100", OTHER),
        "--flatten": ("convert cube.npy --flatten", OTHER),
    },
    "update": {
        "--targets": ("update regressor.zarr more.zarr --targets more-y.zarr", OTHER),
        "--gradients": ("update hermite.zarr more.zarr --targets more-y.zarr --gradients more-b.zarr", OTHER),
        "--field": ("update schroedinger.zarr more.zarr --field potential=more-y.zarr", OTHER),
        "--view": ("update augmentation.zarr more.zarr --view more-views.zarr", OTHER),
    },
    "merge": {},
}
EVERYWHERE = ("--config", "--json", "--quiet", "--log-file", "--help")
SHARED = {  # options of several commands, which do the same in all of them
    "--out": "out",
    "--overwrite": "overwrite",
    "--weights": "weights",
    "--on-invalid": "invalid",
    "--allow-missing": "missing",
    "--checkpoint": "checkpoint",
    "--checkpoint-every": "checkpoint",
    "--checkpoint-device": "checkpoint",
    "--scheduler": "scheduler",
    "--connect-timeout": "scheduler",
    "--threads": "--threads 1",
    "--progress": "--progress",
    "--no-progress": "--no-progress",
    "--storage-option": "--storage-option anon=true",
    "--trust": "--trust module.Name",
}
PATHS = {"model", "points", "embedding", "prediction", "gradient", "probabilities", "picture", "moments", "memory"}


def given(name: str) -> set[str]:
    """The options of a command, on and off."""
    options = [p for p in command.commands[name].params if isinstance(p, click.Option)]
    return {max(o.opts, key=len) for o in options} | {
        max(o.secondary_opts, key=len) for o in options if o.secondary_opts
    }


@pytest.mark.parametrize("name", command.commands)
def test_no_option_is_left_out(name: str) -> None:
    known = {*SPECIFIC[name], *EVERYWHERE, *SHARED, *(LABELLED if name in LINES_WITH_LABELS else ())}
    assert given(name) - known == set()
    assert SPECIFIC[name].keys() - given(name) == set()
    assert set(BASES) == set(SPECIFIC) == set(command.commands)


LINES_WITH_LABELS = {
    "fit": "--operator covariance",
    "regress": KERNEL,
    "invariant": "--functions 20",
    "classify": "--functions 20",
    "embed": "--bandwidth 3 --method exact",
    "graph": "--landmarks 20 --components 3",
}
"""What follows labelled points."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the lines read."""
    folder = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(0)
    x = np.clip(rng.standard_normal((400, 2)), -4, 4)
    path = np.zeros((300, 1))
    for t in range(1, 300):
        path[t] = 0.8 * path[t - 1] + 0.6 * rng.standard_normal()
    y = (x**2).sum(axis=1) + x[:, 0]
    arrays: dict[str, Any] = {
        "points": x[:300],
        "few": x[:40],
        "many": np.random.default_rng(0).standard_normal((1000, 2)),
        "path": path,
        "other-path": path[::-1].copy(),
        "y": y[:300],
        "v": y[:300],
        "b": -x[:300],
        "labels": (y[:300] + rng.normal(size=300) > 2).astype(int),
        "weights": rng.integers(1, 4, 300).astype(float),
        "sphere": dsp.manifolds.Sphere(3).sample(300, rng),
        "other-points": x[:300] + 0.1 * rng.standard_normal((300, 2)),
        "more": x,
        "more-y": y,
        "more-b": -x,
        "atoms": rng.standard_normal((300, 9)),
        "bad-atoms": np.full((300, 9), np.nan),
        "far": np.concatenate([x[:40], [[90.0, 90.0]]]),
    }
    arrays["more-weights"] = np.concatenate([arrays["weights"], np.full(100, 2.0)])
    arrays["more-views"] = np.concatenate([arrays["other-points"], x[300:]])
    for name, array in arrays.items():
        zarr.create_array(folder / f"{name}.zarr", data=array, chunks=(100, *array.shape[1:]))
    for name, array in {"bad": x[:300].copy(), "bad-more": x.copy()}.items():
        array[350 if name == "bad-more" else 150, 0] = np.nan
        zarr.create_array(folder / f"{name}.zarr", data=array, chunks=(100, 2))
    field = xr.DataArray(rng.standard_normal((300, 2, 1)), {"lat": [0.0, 60.0]}, ("time", "lat", "lon"), name="t")
    field.to_dataset().to_zarr(folder / "field.zarr", zarr_format=2)
    for name, array in {"y": y[:300], "labels": arrays["labels"]}.items():
        wide = xr.DataArray(np.repeat(array[:, None], 2, axis=1), dims=("time", "lat"), name=name)
        wide.to_dataset().to_zarr(folder / f"{name}-field.zarr", zarr_format=2)
    np.save(folder / "x.npy", x)
    np.save(folder / "bad.npy", np.concatenate([x, [[np.nan, 0.0]]]))
    np.save(folder / "cube.npy", x.reshape(100, 2, 4))
    np.savez(folder / "x.npz", a=x, b=2 * x)
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        for line in (
            f"{BASES['fit']} --out model.zarr",
            f"fit path.zarr {KERNEL} --components 3 --operator transfer:1 --out koopman.zarr",
            f"{BASES['fit']} --operator schroedinger --potential v.zarr --out schroedinger.zarr",
            f"{BASES['fit']} --operator augmentation --view other-points.zarr --out augmentation.zarr",
            f"{BASES['regress']} --out regressor.zarr",
            f"{BASES['regress']} --gradients b.zarr --out hermite.zarr",
            "embed few.zarr --bandwidth 1 --method exact --out sdp.zarr",
        ):
            assert call(line).exit_code == 0, line
    atoms = arrays["atoms"]
    arrays["bad-atoms"][1:] = atoms[1:]
    zarr.open_array(folder / "bad-atoms.zarr", mode="r+")[...] = arrays["bad-atoms"]
    water = dsp.JacobiCoordinates([16, 1, 1]).fit(atoms)
    water.save(folder / "water.zarr")
    water.transform(atoms, out=folder / "coordinates.zarr")
    alike = dsp.JacobiCoordinates([16, 1, 1], species=["O", "H", "D"]).fit(atoms)
    alike.save(folder / "alike.zarr")
    shutil.copytree(folder / "model.zarr", folder / "other.zarr")
    return folder


@pytest.fixture(autouse=True)
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as found:
        yield found.scheduler_address


def ran(line: str) -> dict[str, Any]:
    """What a line says as JSON, without paths, and what is in the array or the picture that it writes."""
    name = line.split()[0]
    out = OUTS.get(name, "o.zarr")
    words = [*line.split(), *(["--out", out, "--overwrite"] if out else []), "--json"]
    result = call(*words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, (line, result.output)
    assert result.stdout.count("\n") == 1
    facts = json.loads(result.stdout)
    found = {key: value for key, value in facts.items() if key not in PATHS}
    written = [path for path in (out, "e.zarr") if path and Path(path).exists()]
    for path in written:
        if path.endswith(("png", "html")):
            found[path] = Path(path).read_bytes()
        elif (
            "fitted" not in str(zarr.open(path, mode="r").attrs.asdict().get("daskspectral", ""))
            and "kind" not in facts
        ):
            array = open_zarr(path)
            found[path] = (array.chunks, array.dtype.str, array[...].tobytes())
        elif path == "e.zarr":
            found[path] = open_zarr(path)[...].tobytes()
    return found


def failed(line: str) -> None:
    result = call(*line.split(), *(["--out", "o.zarr"] if OUTS.get(line.split()[0], "o.zarr") else []))
    assert result.exit_code != 0, line


CASES = [(name, option) for name, cases in SPECIFIC.items() for option in cases]


@pytest.mark.parametrize(("name", "option"), CASES, ids=lambda v: v)
def test_an_option_of_one_command(name: str, option: str) -> None:
    *lines, effect = SPECIFIC[name][option]
    if not lines[0]:
        return

    def whole(words: str) -> str:
        return words if words.startswith(f"{name} ") else f"{BASES[name]} {words}"

    assert option in lines[0].split()
    if effect in (OTHER, SAME):
        one, other = ran(whole(lines[0])), ran(whole(lines[1]) if len(lines) > 1 else BASES[name])
        assert (one == other) is (effect == SAME)
        return
    words = whole(lines[0]).split()
    out = [] if name == "info" or option == "--plan" else ["--out", "o.zarr"]
    result = call(*words, *out)
    assert result.exit_code == 0, result.output
    assert effect in result.stdout or Path(effect).exists()


@pytest.mark.parametrize("option", LABELLED)
@pytest.mark.parametrize("name", LINES_WITH_LABELS)
def test_the_options_of_labelled_points(name: str, option: str) -> None:
    one, other, _ = LABELLED[option]
    rest = LINES_WITH_LABELS[name]
    target = {"regress": "y.zarr", "invariant": "y.zarr", "classify": "labels.zarr"}.get(name, "")

    def line(text: str) -> str:
        points, _, words = text.partition(" ")
        wide = f"{target[:-5]}-field.zarr" if target and "time,lat" in words else target
        return f"{name} {points} {wide} {words} {rest}"

    assert ran(line(one)) != ran(line(other))


COMMON = [
    (name, option) for name in BASES for option in sorted(given(name) & SHARED.keys()) if option not in SPECIFIC[name]
]


@pytest.mark.parametrize(("name", "option"), COMMON, ids=lambda v: v)
def test_an_option_of_several_commands(name: str, option: str, cluster: str) -> None:
    base, how = BASES[name], SHARED[option]
    out = OUTS.get(name, "o.zarr")
    if how.startswith("--"):
        assert ran(f"{base} {how}") == ran(base)
    elif how == "scheduler":
        assert ran(f"{base} --scheduler {cluster} --connect-timeout 20") == ran(base)
        with pytest.raises(OSError, match=r"no dask scheduler answers at tcp://127.*--connect-timeout 0\.2 s"):
            ran(f"{base} --scheduler tcp://127.0.0.1:9 --connect-timeout 0.2")
    elif how == "weights":
        line = "score regressor.zarr points.zarr --targets y.zarr" if name == "score" else base
        if name == "update":  # weights belong to all rows of a fit and its updates, or to none
            assert call(f"{BASES['fit']} --weights weights.zarr --out weighted.zarr").exit_code == 0
            assert ran("update weighted.zarr more.zarr --weights more-weights.zarr") != ran(line)
        else:
            assert ran(f"{line} --weights weights.zarr") != ran(line)
    elif how == "invalid":
        bad = base.replace("points.zarr", "bad.zarr").replace("more.zarr", "bad-more.zarr").replace("x.npy", "bad.npy")
        bad = bad.replace("atoms.zarr", "bad-atoms.zarr")
        failed(f"{bad} --on-invalid raise")
        assert ran(f"{bad} --on-invalid skip")
    elif how == "missing":
        shutil.rmtree("points.zarr/c/1")
        shutil.rmtree("more.zarr/c/3")
        shutil.rmtree("atoms.zarr/c/1")
        failed(base)
        assert ran(f"{base} --allow-missing")
    elif how == "checkpoint":
        assert ran(f"{base} --checkpoint run --checkpoint-every 0") == ran(base)
        assert list(Path("run").iterdir())
    elif how == "out":
        assert call(*base.split(), "--out", f"new-{out}").exit_code == 0
        assert Path(f"new-{out}").exists()
    else:
        assert how == "overwrite"
        assert call(*base.split(), "--out", out).exit_code == 0
        assert isinstance(call(*base.split(), "--out", out).exception, FileExistsError)
        assert call(*base.split(), "--out", out, "--overwrite").exit_code == 0


@pytest.mark.parametrize("name", BASES)
def test_the_options_of_all_commands(name: str) -> None:
    out = OUTS.get(name, "o.zarr")
    words = BASES[name].split()
    wanted = ran(BASES[name])
    placed = ["--out", out, "--overwrite"] if out else []
    shown = call(*words, *placed, "--log-file", "run.log")
    assert shown.stdout
    assert "INFO settings: " in Path("run.log").read_text()
    assert "INFO done in " in Path("run.log").read_text()
    quiet = call(*words, *placed, "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")
    if name == "plan":
        Path("run.yaml").write_text("command: fit\npoints: points.zarr\nkernel: gaussian:1\nlandmarks: 20\n")
        words = ["plan", "fit", "--config", "run.yaml"]
    else:
        arguments = [p for p in command.commands[name].params if isinstance(p, click.Argument)]
        values = {str(a.name): words[1 + i] for i, a in enumerate(arguments)}
        if name == "merge":
            values = {"parts": ["model.zarr", "other.zarr"]}
        given = words[1 + sum(len(v) if isinstance(v, list) else 1 for v in values.values()) :]
        pairs = dict(zip(given[::2], given[1::2], strict=True))
        settings = {**values, **{key[2:]: value for key, value in pairs.items()}}
        Path("run.yaml").write_text(json.dumps(settings))
        words = [name, "--config", "run.yaml"]
    assert ran(" ".join(words)) == wanted
    assert f"daskspectral {name}" in call(name, "--help").stdout
