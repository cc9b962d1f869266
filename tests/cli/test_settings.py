"""Settings from a file or a result give the same result; what is printed as JSON, logged, or not at all."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import warnings
from collections.abc import Iterator
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
from daskspectral.data import replacing
from tests.cli.common import call, done, everything, facts

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
    done("fit points.zarr --config m.zarr --out again.zarr")
    same("m.zarr", "again.zarr")
    text = done("info m.zarr --settings")
    Path("run.yaml").write_text(text)
    done("fit points.zarr --config run.yaml --out third.zarr")
    same("m.zarr", "third.zarr")
    kept = yaml.safe_load(text)
    assert kept["columns"] == "1,0"
    assert (kept["command"], kept["daskspectral"], kept["constant"]) == ("fit", dsp.__version__, False)
    assert kept["landmark-method"] == "kmeans++"  # a default
    assert not {"config", "json", "quiet", "progress", "weights", "overwrite", "out"} & kept.keys()
    done("fit points.zarr --config m.zarr --seed 4 --out other.zarr")  # the command line wins
    assert dsp.load("other.zarr").random_state == 4
    assert not np.array_equal(dsp.load("other.zarr").eigenvalues_, dsp.load("m.zarr").eigenvalues_)


def test_a_word_that_stands_for_nothing_is_kept() -> None:
    points()
    done(f"{FIT} --folds none --out m.zarr")
    assert yaml.safe_load(done("info m.zarr --settings"))["folds"] == "none"
    done("fit points.zarr --config m.zarr --out again.zarr")
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


READ_AND_SET = {
    "fit": (
        "points.zarr --drift d.zarr --weights w.zarr --folds labels.zarr",
        f"{FIT.partition(' --')[1]}{FIT.partition(' --')[2]} --operator generator --diffusion 0.5 --seed 2",
    ),
    "regress": ("points.zarr y.zarr --gradients d.zarr", "--kernel gaussian:1 --landmarks 30 --alpha 1e-3 --seed 2"),
    "invariant": ("points.zarr y.zarr --weights w.zarr", "--manifold interval:-6:6 --functions 20 --group signflips"),
    "embed": ("points.zarr", "--bandwidth 1 --map diffusion --method exact --components 3"),
    "sample": ("", "two-moons --n 100 --noise 0.2 --seed 3"),
    "convert": ("x.npy", "--columns 1 --dtype float32"),
    "update": ("m.zarr more.zarr", "--on-invalid skip"),
    "merge": ("m.zarr", ""),
    "transform": ("m.zarr points.zarr", "--on-invalid skip"),
    "predict": ("r.zarr points.zarr --allow-missing", "--gradient"),
    "graph": ("points.zarr", "--landmarks 20 --neighbours 30"),
    "plot": ("m.zarr points.zarr", "--components 2"),
    "report": ("m.zarr", ""),
}
"""Of each command that writes a result, what it reads, and options that change what comes out."""
ENDINGS = {"plot": ".png", "report": ".html"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that these commands read."""
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path_factory.mktemp("made"))
        x = points()
        np.save("x.npy", x)
        more = np.concatenate([x, x[:50] + 0.1])
        arrays = {"y": x[:, 0], "d": -x, "w": 1.0 + np.arange(300) % 3, "labels": np.arange(300) % 4, "more": more}
        for name, array in arrays.items():
            zarr.create_array(f"{name}.zarr", data=array, chunks=(100, *array.shape[1:]))
        done(f"{FIT} --out m.zarr")
        done("regress points.zarr y.zarr --kernel gaussian:1 --landmarks 30 --alpha 1e-3 --out r.zarr")
        return Path().absolute()


@pytest.fixture
def among(made: Path, folder: Path) -> None:
    shutil.copytree(made, folder, dirs_exist_ok=True)


def content(path: str) -> dict[str, bytes]:
    if path.endswith(tuple(ENDINGS.values())):
        return {"": Path(path).read_bytes()}
    node = zarr.open(path, mode="r")
    found = {"": node[...]} if isinstance(node, zarr.Array) else arrays(path)
    return {name: np.asarray(array).tobytes() for name, array in found.items()}


@pytest.mark.parametrize("name", READ_AND_SET)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_result_gives_the_same_bits_again(name: str, among: None) -> None:
    read, options = READ_AND_SET[name]
    out, again = (f"{stem}{ENDINGS.get(name, '.zarr')}" for stem in ("out", "again"))
    assert out in facts(f"{name} {read} {options} --out {out}").values()
    source = f"{out}.yaml" if name in ENDINGS else out
    done(f"{name} {read} --config {source} --out {again} --quiet")
    assert content(again) == content(out)
    if name not in ENDINGS:
        assert settings.kept(again) == settings.kept(out)
    if read:
        refused(f"{name} --config {source} --out third{out}", f"{source} was made with ")


def test_what_was_read_is_told_and_is_to_be_given_anew(among: None) -> None:
    read = "--drift d.zarr --weights w.zarr --folds labels.zarr"
    done(f"{FIT} --operator generator --diffusion 0.5 {read} --out m2.zarr")
    told = "m2.zarr was made with POINTS points.zarr --drift d.zarr --folds labels.zarr --weights w.zarr: what a"
    refused("fit --config m2.zarr --out o.zarr", told)
    refused("fit points.zarr --weights w.zarr --folds 5 --config m2.zarr --out o.zarr", "made with --drift d.zarr:")
    kept = yaml.safe_load(settings.kept("m2.zarr") or "")
    del kept["daskspectral"]
    Path("own.yaml").write_text(yaml.safe_dump(kept))
    done("fit --config own.yaml --out o.zarr")  # a file of one's own gives paths, too
    same("m2.zarr", "o.zarr")


def test_every_parameter_is_of_one_kind() -> None:
    kinds = [settings.VALUES, settings.INPUTS, settings.OF_THE_CALL, settings.TYPED]
    named = [str(p.name) for subcommand in command.commands.values() for p in subcommand.params]
    assert {name: sum(name in kind for kind in kinds) for name in named} == dict.fromkeys(named, 1)
    assert frozenset().union(*kinds) == {*named, "help"}


@pytest.fixture
def listening() -> Iterator[tuple[str, socket.socket]]:
    """An address where nobody may call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield f"127.0.0.1:{server.getsockname()[1]}", server


TRANSFORM = "transform m.zarr points.zarr --out e.zarr --config"
HEAD = "command: transform\ndaskspectral: 1.0.0\n"
EVIL = "import pathlib\npathlib.Path('ran').touch()\nclass Kernel: pass\n"
TAG = "!!python/object/apply:os.system ['touch ran']"
BOMB = "\n".join(["on-invalid: &a0 [x, x]", *(f"k{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40))])
NOT_TAKEN = {  # of a result the same command goes on as if this were not there
    "scheduler": "scheduler: tcp://ADDRESS",
    "another scheduler": "scheduler: tls://ADDRESS\nconnect-timeout: 0.1",
    "trust": "trust: [evil.Kernel]",
    "log file": "log-file: log.txt",
    "endpoint": "storage-option: endpoint_url=http://ADDRESS",
    "overwrite": "overwrite: true",
    "out": "out: points.zarr",
    "both": "out: points.zarr\noverwrite: true",
    "wrong kinds": "overwrite: [1]\nthreads: {a: 1}\nprogress: 5\ntrust: 3\nlog-file: {}",
    "null": "points: null\nmodel: null",
    "quiet": "quiet: true\njson: true",
}
REFUSED = {
    "a path": ("points: /etc/passwd\nmodel: m.zarr", None),
    "a url": ("points: http://ADDRESS/x.zarr", None),
    "escapes in a key": ('"\\e]0;title\\a": 1', "which is no option of `transform`"),
    "another key": ("config: other.yaml", "which is no option"),
    "another command": ("command: fit", "is for `daskspectral fit`"),
    "a command of another kind": ("command: {a: b}", "is for `daskspectral {'a': 'b'}`"),
    "wrong kind": ("right: 3", "right of SOURCE is true or false; got 3"),
    "a word": ('on-invalid: "\\e[2J"', "is not one of 'raise', 'skip'"),
    "a tag": (f"on-invalid: {TAG}", "SOURCE is no YAML of settings: could not determine a constructor"),
    "a tag as key": (f"? {TAG}\n: 1", "SOURCE is no YAML of settings"),
    "a module": ("on-invalid: !!python/module:evil", "SOURCE is no YAML of settings"),
    "deep lists": (f"on-invalid: {'[' * 20000}", "SOURCE is no YAML of settings: settings are no deeper than lists"),
    "deep mappings": ("on-invalid: " + "{a: " * 20000, "SOURCE is no YAML of settings: settings are no deeper"),
    "references": (BOMB, "SOURCE is no YAML of settings: settings are no deeper than lists and mappings of values"),
    "itself": ("on-invalid: &a [*a]", "SOURCE is no YAML of settings"),
    "no date": ("on-invalid: 2001-13-45", "SOURCE is no YAML of settings: month must be in 1..12"),
    "long": ("on-invalid: " + "x" * 100_000, "SOURCE has settings of more than 100000 characters"),
    "no text": ("on-invalid: \x00", "SOURCE is no YAML of settings: unacceptable character"),
}


def test_a_result_has_its_settings_when_it_appears(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that was killed just after left a result without."""
    points()
    put, seen = replacing._put_in_place, []

    def watched(new: Path, target: Path, old: Path) -> None:
        put(new, target, old)
        seen.append(settings.kept(str(target)))

    monkeypatch.setattr(replacing, "_put_in_place", watched)
    done(f"{FIT} --out m.zarr")
    done("transform m.zarr points.zarr --out f.zarr")
    assert seen == [settings.kept("m.zarr"), settings.kept("f.zarr")]
    assert None not in seen


def hostile(source: str, text: str) -> None:
    if source.endswith(".yaml"):
        Path(source).write_text(text)
    else:
        zarr.create_group(source).attrs[settings.ATTRIBUTE] = text


@pytest.mark.parametrize("source", ["run.zarr", "run.svg.yaml"])
@pytest.mark.parametrize("name", [*NOT_TAKEN, *REFUSED])
def test_a_hostile_result_does_nothing(name: str, source: str, among: None, listening: Any, monkeypatch: Any) -> None:
    address, server = listening
    monkeypatch.syspath_prepend(Path().absolute())
    Path("evil.py").write_text(EVIL)
    text, message = REFUSED.get(name, (NOT_TAKEN.get(name, ""), None))
    hostile(source, HEAD + text.replace("ADDRESS", address))
    before = everything()
    if name in NOT_TAKEN:
        assert settings.read(source, command.commands["transform"]) == {}
        assert call(f"{TRANSFORM} {source}").exit_code == 0
        assert Path("e.zarr").is_dir()
        shutil.rmtree("e.zarr")
        before = [entry for entry in before if entry[0] != "."]
    elif message is None:  # points and a model of the result's own are not read
        refused(f"transform --out e.zarr --config {source}", f"{source} was made with ")
    else:
        refused(f"{TRANSFORM} {source}", message.replace("SOURCE", source))
    assert everything() == before
    assert "evil" not in sys.modules
    with pytest.raises(BlockingIOError):
        server.accept()


@pytest.mark.parametrize("name", [name for name, (_, message) in REFUSED.items() if message])
def test_a_hostile_file_is_refused(name: str, among: None) -> None:
    text, message = REFUSED[name]
    hostile("run.yaml", text)
    refused(f"{TRANSFORM} run.yaml", str(message).replace("SOURCE", "run.yaml"))


def test_trust_is_typed(among: None) -> None:
    Path("run.yaml").write_text("trust: [evil.Kernel]")
    refused(f"{TRANSFORM} run.yaml", "run.yaml has the key trust: --trust is given on the command line alone")


@pytest.mark.parametrize(
    "text", ["text: 1\n5: .nan", f"a: {'[' * 20000}", BOMB, f"a: {TAG}", "- 1", "a: " + "x" * 100_000]
)
@pytest.mark.parametrize("more", ["", " --json"])
def test_hostile_settings_are_shown_or_one_message(text: str, more: str) -> None:
    hostile("run.zarr", text)
    result = call(f"info run.zarr --settings{more}")
    if result.exception is not None:
        assert isinstance(result.exception, ValueError)
        assert str(result.exception).startswith("run.zarr ")


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
    ("a: [", "run.yaml is no YAML of settings"),
    ("standardize: 3", "standardize of run.yaml is true or false; got 3"),
    ("kernel: true", "kernel of run.yaml is True, and no flag"),
    ("landmarks: many", "'many' is not a number"),
    ("columns: 0:400000000", "'0:400000000' has more than 100000 column numbers"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_settings(text: str, message: str) -> None:
    points()
    Path("run.yaml").write_text(text)
    refused("fit points.zarr --config run.yaml --out m.zarr", message)


def test_a_kernel_of_endless_terms_is_one_message() -> None:
    points()
    error = call("fit points.zarr --out m.zarr --kernel " + "+".join(["gaussian:1"] * 20_000)).exception
    assert isinstance(error, ValueError)
    assert str(error) == "a kernel has at most 100 terms; got 20000: leave some out"


@pytest.mark.parametrize("source", ["fig.png.yaml", "FIG.HTM.yml"])
def test_settings_beside_a_picture_are_no_own_whatever_they_hold(source: str, among: None) -> None:
    Path(source).write_text("scheduler: tcp://nobody:1\nlog-file: log.txt\nseed: 5")
    assert settings.read(source, command.commands["fit"]) == {"seed": "5"}


def test_a_pipe_of_settings_is_not_waited_for() -> None:
    os.mkfifo("run.yaml")
    refused("fit points.zarr --config run.yaml --out m.zarr", "run.yaml is no regular file but a pipe")


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
