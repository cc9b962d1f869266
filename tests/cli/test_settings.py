"""Settings from a file or a result give the same result; what is printed as JSON, logged, or not at all."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import xarray
import yaml
import zarr

import daskspectral as dsp
from daskspectral.cli import command, settings
from tests.cli.common import call, done, facts

pytestmark = pytest.mark.usefixtures("folder")
FIT = "fit points.zarr --kernel gaussian:1 --landmarks 3e1 --components 4"


def points(path: str = "points.zarr", n: int = 300, d: int = 2) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((n, d))
    zarr.create_array(path, data=x, chunks=(100, d))
    return x


def refused(line: str, message: str) -> None:
    before = sorted(os.listdir())
    result = call(line)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert sorted(os.listdir()) == before


def arrays(path: str) -> dict[str, np.ndarray]:
    return {name: array[...] for name, array in zarr.open_group(path, mode="r").arrays()}


def same(left: str, right: str) -> None:
    one, other = arrays(left), arrays(right)
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


EVERY_KIND = "--columns 1,0 --periods 0:7.5 --no-constant --folds blocks --penalty 2 --seed 3"


def test_a_result_gives_back_its_settings_and_they_the_same_bits() -> None:
    points()
    done(f"{FIT} {EVERY_KIND} --out m.zarr")
    done("fit --config m.zarr --out again.zarr")
    same("m.zarr", "again.zarr")
    text = done("info m.zarr --settings")
    Path("run.yaml").write_text(text)
    done("fit --config run.yaml --out third.zarr")
    same("m.zarr", "third.zarr")
    kept = yaml.safe_load(text)
    assert kept["columns"] == "1,0"
    assert (kept["command"], kept["daskspectral"], kept["constant"]) == ("fit", dsp.__version__, False)
    assert kept["landmark-method"] == "kmeans++"  # a default
    assert not {"config", "json", "quiet", "progress", "weights", "overwrite"} & kept.keys()
    done("fit --config m.zarr --seed 4 --out other.zarr")  # the command line wins
    assert dsp.load("other.zarr").random_state == 4
    assert not np.array_equal(dsp.load("other.zarr").eigenvalues_, dsp.load("m.zarr").eigenvalues_)


def test_a_word_that_stands_for_nothing_is_kept() -> None:
    points()
    done(f"{FIT} --folds none --out m.zarr")
    assert yaml.safe_load(done("info m.zarr --settings"))["folds"] == "none"
    done("fit --config m.zarr --out again.zarr")
    same("m.zarr", "again.zarr")


def test_settings_written_by_hand() -> None:
    x = points()
    zarr.create_array("v.zarr", data=(x**2).sum(axis=1), chunks=(100,))
    hand = {"points": "points.zarr", "operator": "differential", "kernel": "gaussian:1", "landmarks": 30}
    hand |= {
        "coefficient": {"1,0:1,0": 1, "0,0:0,0": "w"},
        "field": {"w": "v.zarr"},
        "components": 4,
        "progress": False,
    }
    hand |= {"columns": [0, 1], "periods": {0: 12.5}, "landmark_sample": 200, "folds": "none", "rtol": 1e-9}
    Path("run.yml").write_text(yaml.safe_dump(hand))
    done("fit --config run.yml --out m.zarr")
    done(
        "fit points.zarr --operator differential --kernel gaussian:1 --landmarks 30 --coefficient 1,0:1,0=1 "
        "--coefficient 0,0:0,0=w --field w=v.zarr --components 4 --columns 0,1 --periods 0:12.5 --landmark-sample 200 "
        "--folds none --rtol 1e-9 --out typed.zarr"
    )
    same("m.zarr", "typed.zarr")


JOBS = {
    "sample": ("sample two-moons --n 100 --out out.zarr", "out.zarr"),
    "convert": ("convert x.npy --out out.zarr", "out.zarr"),
    "transform": ("transform m.zarr points.zarr --out out.zarr", "out.zarr"),
    "merge": ("merge m.zarr --out out.zarr", "out.zarr"),
    "regress": ("regress points.zarr y.zarr --kernel gaussian:1 --landmarks 30 --out out.zarr", "out.zarr"),
    "embed": ("embed points.zarr --bandwidth 1 --map diffusion --method exact --out out.zarr", "out.zarr"),
    "graph": ("graph points.zarr --landmarks 20 --out out.zarr", "out.zarr"),
    "plot": ("plot m.zarr --out out.svg", "out.svg"),
}


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
def test_every_result_keeps_its_settings(name: str) -> None:
    x = points()
    np.save("x.npy", x)
    zarr.create_array("y.zarr", data=x[:, 0], chunks=(100,))
    done(f"{FIT} --out m.zarr")
    line, out = JOBS[name]
    found = facts(line)
    assert out in found.values()
    source = f"{out}.yaml" if out.endswith("svg") else out
    other = "again.svg" if out.endswith("svg") else "again.zarr"
    done(f"{name} --config {source} --out {other} --quiet")
    if other.endswith("zarr"):
        one, two = zarr.open(out, mode="r"), zarr.open(other, mode="r")
        assert settings.kept(out) == (settings.kept(other) or "").replace("again.zarr", "out.zarr")
        if isinstance(one, zarr.Array):
            np.testing.assert_array_equal(one[...], two[...])  # type: ignore[index]
        else:
            same(out, other)


def test_a_group_of_results_still_opens_without_a_warning() -> None:
    points()
    done(f"{FIT} --out m.zarr")
    done("transform m.zarr points.zarr --out e.zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(zarr.open("e.zarr", mode="r"), zarr.Group):
            xarray.open_zarr("e.zarr").load()
            xarray.open_zarr("e.zarr", consolidated=True).load()
    assert settings.kept("e.zarr") is not None


WRONG: list[tuple[str, str]] = [
    ("landmark: 5", "run.yaml has the key landmark, which is no option of `fit` (did you mean landmarks?)"),
    ("zzz: 5", "run.yaml has the key zzz, which is no option of `fit`"),
    ("command: embed", "run.yaml is for `daskspectral embed`, not for `fit`"),
    ("- 5", "run.yaml holds no options: lines such as `landmarks: 500` are wanted"),
    ("a: [", "run.yaml is no YAML"),
    ("standardize: 3", "standardize of run.yaml is true or false; got 3"),
    ("kernel: true", "kernel of run.yaml is True, and no flag"),
    ("landmarks: many", "'many' is not a number"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_settings(text: str, message: str) -> None:
    points()
    Path("run.yaml").write_text(text)
    refused("fit points.zarr --config run.yaml --out m.zarr", message)


def test_settings_that_are_not_there() -> None:
    points()
    refused("fit --config no.yaml --out m.zarr", "no.yaml cannot be read: No such file or directory")
    refused("fit --config no.zarr --out m.zarr", "there is neither a YAML file nor a zarr store at no.zarr")
    refused("fit --config points.zarr --out m.zarr", "points.zarr does not say with which options it was made")
    refused("fit --kernel gaussian:1 --out m.zarr", "Missing argument 'POINTS'")
    dsp.SpectralDecomposition(n_landmarks=20).fit(points("x.zarr")).save("own.zarr")
    with pytest.raises(ValueError, match="it was not made by a command"):
        done("info own.zarr --settings")


def numbers(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return [n for value in found.values() for n in numbers(value)]
    return [n for value in found for n in numbers(value)] if isinstance(found, list) else [found]


def test_json_has_the_numbers_of_the_model() -> None:
    x = points()
    found = facts(f"{FIT} --out m.zarr")
    model = dsp.load("m.zarr")
    np.testing.assert_array_equal(found["eigenvalues"], model.eigenvalues_)
    np.testing.assert_array_equal(found["eigenvalue_errors"], model.eigenvalue_errors_)
    assert (found["rows"], found["rank"], found["model"]) == (300, model.rank_, "m.zarr")
    assert facts("info m.zarr").items() <= found.items()
    scored = facts("score m.zarr points.zarr")
    assert scored["score"] == model.score(x)
    planned = facts("plan fit points.zarr --kernel gaussian:1 --landmarks 30")
    assert (planned["tasks"], planned["rows"]) == (1, 300)
    assert planned == facts(f"{FIT} --plan") | {"memory": planned["memory"]}


def texts(found: Any) -> list[str]:
    """All texts in it, and all keys."""
    if isinstance(found, dict):
        return [*found, *(text for value in found.values() for text in texts(value))]
    return [text for value in found for text in texts(value)] if isinstance(found, list) else [str(found)]


MODELS = {
    "classify": "classify points.zarr labels.zarr --group signflips",
    "invariant": "invariant points.zarr y.zarr --group signflips",
    "regress": "regress points.zarr y.zarr --kernel gaussian:1 --landmarks 30",
    "sdp": "embed points.zarr --bandwidth 1",
    "diffusion": "embed points.zarr --bandwidth 1 --map diffusion",
    "graph": "graph points.zarr --landmarks 20",
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
def test_json_of_every_model_is_data(name: str) -> None:
    """Numbers under the public names of attributes, and no text that Python prints of an array."""
    x = points()
    zarr.create_array("y.zarr", data=x[:, 0] ** 2, chunks=(100,))
    zarr.create_array("labels.zarr", data=(x[:, 0] > 0).astype(int), chunks=(100,))
    found = facts(f"{MODELS[name]} --out m.zarr")
    for text in texts(found):
        assert not text.startswith("_")
        assert "array(" not in text
        assert "HeldOut(" not in text
        assert "Certificate(" not in text
    model = dsp.load("m.zarr")
    if name == "classify":
        assert found["classes"] == [0, 1]
        assert found["held_out"]["accuracy"] == model.held_out_.accuracy
    if name == "invariant":
        np.testing.assert_array_equal(np.concatenate(found["coef"]), np.concatenate(model.coef_))
    if name == "sdp":
        assert found["certificate"]["optimal"] is True
        assert found["certificate"]["gap"] == model.certificate_.gap


def test_json_of_complex_values_and_nan() -> None:
    points()
    line = "fit points.zarr --operator transfer:1:eigen --kernel gaussian:1 --landmarks 20 --components 3"
    found = facts(f"{line} --folds none --out m.zarr")
    assert np.shape(found["eigenvalues"]) == (3, 2)
    assert set(numbers(found["held_out"])) == {None}


def test_quiet_prints_errors_alone(caplog: pytest.LogCaptureFixture) -> None:
    points()
    assert done(f"{FIT} --out m.zarr --quiet") == ""
    assert done("info m.zarr --quiet --json") != ""
    with pytest.raises(FileNotFoundError, match="no saved model"):
        done("info no.zarr --quiet")


def test_a_log_file_has_settings_results_and_errors() -> None:
    points()
    done(f"{FIT} --out m.zarr --log-file run.log --quiet")
    with pytest.raises(FileExistsError):
        done(f"{FIT} --out m.zarr --log-file run.log")
    lines = Path("run.log").read_text().splitlines()
    assert sum('settings: {"command": "fit"' in line for line in lines) == 2
    assert any("INFO plan: 1 task in 1 epoch; " in line for line in lines)
    assert any("INFO model: m.zarr" in line for line in lines)
    assert any("INFO done in" in line for line in lines)
    assert "INFO failed: FileExistsError: m.zarr exists" in lines[-1]
    assert logging.getLogger("daskspectral").level == logging.NOTSET
    with pytest.raises(OSError, match=r"--log-file no/run\.log cannot be written: No such file"):
        done("info m.zarr --log-file no/run.log")


def test_a_key_for_every_option() -> None:
    for name, subcommand in command.commands.items():
        keys = [settings.key_of(parameter) for parameter in subcommand.params]
        assert len(set(keys)) == len(keys), name


def test_an_unknown_flag_names_the_nearest() -> None:
    points()
    refused("fit points.zarr --landmark-metod uniform --out m.zarr", "--landmark-method")


def test_a_model_of_a_newer_version() -> None:
    points()
    done(f"{FIT} --out m.zarr")
    group = zarr.open_group("m.zarr", mode="r+")
    group.attrs["daskspectral"] = {**dict(group.attrs["daskspectral"]), "format": 99}  # type: ignore[dict-item]
    for line in ("info m.zarr", "transform m.zarr points.zarr --out e.zarr", "plot m.zarr --out p.png"):
        with pytest.raises(ValueError, match="was written in format 99 and this daskspectral reads format 2: upgrade"):
            done(line)
    result = call("verify m.zarr")
    assert result.exit_code == 1
    assert "upgrade" in result.output


def test_click_is_what_refuses() -> None:
    with pytest.raises(click.BadParameter):
        settings.read("no.yaml", command.commands["fit"])
