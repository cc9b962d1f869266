"""Settings from a file give the same result; what is printed as JSON."""

import importlib
import inspect
import json
import os
import re
import shutil
import socket
import sys
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr

import daskspectral as dsp
from daskspectral.cli import command, parameters, settings
from daskspectral.cli.options import OPTIONS, RARE, Option
from daskspectral.cli.signatures import Parameters, documented
from daskspectral.datasets import SAMPLES
from tests.cli.common import done, everything, facts, failure, store
from tests.common import small_model, unreliable

pytestmark = pytest.mark.usefixtures("points")
FIT = "fit points.zarr --kernel gaussian:1 --landmarks 2e1 --components 4"


@pytest.fixture
def points(folder: Path) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((200, 2))
    store(points=x, d=-x, w=1.0 + np.arange(200) % 3, labels=np.arange(200) % 4, v=(x**2).sum(axis=1))
    return x


def assert_same_model(left: str, right: str) -> None:
    one, other = (dict(zarr.open_group(path, mode="r").members(max_depth=None)) for path in (left, right))
    assert one.keys() == other.keys()
    arrays = [name for name, member in one.items() if isinstance(member, zarr.Array)]
    assert any(name.startswith("moments_/") for name in arrays)
    for name in arrays:
        np.testing.assert_array_equal(one[name][...], other[name][...])


def test_settings_of_a_result_reproduce_it_to_the_bit() -> None:
    done(f"{FIT} --columns 1,0 --periods 0:7.5 --no-constant --folds none --penalty 2 --seed 3 --out m.zarr")
    text = done("info m.zarr --settings")
    Path("run.yaml").write_text(text)
    done("fit --config run.yaml --out again.zarr")
    assert_same_model("m.zarr", "again.zarr")
    kept = yaml.safe_load(text)
    wanted = {"command": "fit", "daskspectral": dsp.__version__, "columns": "1,0", "constant": False, "folds": "none"}
    assert wanted.items() <= kept.items()
    assert kept["landmark-method"] == "kmeans++"  # a default
    assert not {"config", "json", "quiet", "progress", "weights", "overwrite", "out"} & kept.keys()
    done("fit points.zarr --config run.yaml --seed 4 --out other.zarr")  # the command line wins
    assert dsp.load("other.zarr").random_state == 4


@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")  # of few rows
def test_settings_written_by_hand() -> None:
    hand = {"points": "points.zarr", "operator": "differential", "kernel": "gaussian:1", "landmarks": 20}
    hand |= {"coefficient": {"1,0:1,0": 1, "0,0:0,0": "w"}, "field": {"w": "v.zarr"}, "progress": False}
    hand |= {"components": 4, "columns": [0, 1], "periods": {0: 12.5}, "folds": "none", "solver": "truncated"}
    hand |= {"rtol": 1e-9}
    Path("run.yml").write_text(yaml.safe_dump(hand))
    done("fit --config run.yml --out m.zarr")
    done(
        f"{FIT} --operator differential --coefficient 1,0:1,0=1 --coefficient 0,0:0,0=w --field w=v.zarr "
        "--columns 0,1 --periods 0:12.5 --folds none --solver truncated --rtol 1e-9 --out typed.zarr"
    )
    assert_same_model("m.zarr", "typed.zarr")


def test_options_are_of_commands_and_have_a_sentence() -> None:
    every = {p for subcommand in command.commands.values() for p in subcommand.params if isinstance(p, Option)}
    assert set(OPTIONS) <= every
    assert all(str(option.help).isascii() and str(option.help).endswith(".") for option in every)
    assert {option.key for option in every} >= set(RARE.split())
    assert re.findall('"(.+?)"', documented("datasets:draw")["name"].type) == [*SAMPLES]


@pytest.mark.parametrize("part", [found for found in vars(parameters).values() if isinstance(found, Parameters)])
def test_options_have_the_defaults_of_signatures(part: Parameters) -> None:
    module, _, name = part.path.partition(":")
    signature = inspect.signature(attrgetter(name)(importlib.import_module(f"daskspectral.{module}")))
    for name in part.options:
        default = signature.parameters[name].default
        assert documented(part.path)[name].default == (None if default is inspect.Parameter.empty else default)


TRANSFORM = "transform m.zarr points.zarr --out e.zarr --config run.yaml"
CALLS = {  # options of one call, which no result passes on
    "a scheduler": "scheduler: tls://ADDRESS\nconnect-timeout: 0.1",
    "trust": "trust: [evil.Kernel]",
    "an endpoint": "storage-option: endpoint_url=http://ADDRESS",
    "a result": "out: points.zarr\noverwrite: true",
}
REFUSED = {
    "escapes in a key": '"\\e]0;title\\a": 1',
    "another key": "config: other.yaml",
    "another command": "command: {a: b}",
    "wrong kind": "right: 3",
    "a word": 'on-invalid: "\\e[2J"',
    "a tag": "on-invalid: !!python/object/apply:os.system ['touch ran']",
    "deep lists": f"on-invalid: {'[' * 1000}",
    "references": "on-invalid: &a0 [x, x]\nright: [*a0, *a0]",
    "no text": "on-invalid: \x00",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.zarr"
    small_model().fit(np.random.default_rng(0).standard_normal((60, 2))).save(path)
    return path


@pytest.mark.parametrize("name", [*CALLS, *REFUSED])
def test_hostile_settings_are_harmless(name: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(model, "m.zarr")
    monkeypatch.syspath_prepend(Path().absolute())
    Path("evil.py").write_text("import pathlib\npathlib.Path('ran').touch()\nclass Kernel: pass\n")
    with socket.create_server(("127.0.0.1", 0)) as server:  # where nobody may call
        server.setblocking(False)
        text = (REFUSED | CALLS)[name].replace("ADDRESS", f"127.0.0.1:{server.getsockname()[1]}")
        zarr.create_group("run.zarr").attrs[settings.ATTRIBUTE] = f"daskspectral: 1.0.0\n{text}"
        Path("run.yaml").write_text(text)
        before = everything()
        if name in CALLS:
            assert done("info run.zarr --settings") == "daskspectral: 1.0.0\n"
        else:
            assert failure(TRANSFORM)[0] == 2
            code, said = failure("info run.zarr --settings --json")
            assert code == 0 or said.startswith("run.zarr ")
        with pytest.raises(BlockingIOError):
            server.accept()
    assert everything() == before
    assert "evil" not in sys.modules


WRONG = {
    "landmark: 5": "landmark",
    "command: embed": "embed",
    "- 5": "run.yaml",
    "kernel: true": "kernel",
    "landmarks: many": "many",
    "trust: [evil.Kernel]": "--trust",
    "a pipe": "run.yaml",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_settings(text: str) -> None:
    if text == "a pipe":
        os.mkfifo("run.yaml")
    else:
        Path("run.yaml").write_text(text)
    before = everything()
    code, said = failure("fit points.zarr --config run.yaml --out m.zarr")
    assert (code, WRONG[text] in said, everything()) == (2, True, before)


@unreliable
def test_json_has_the_numbers_of_the_model(points: np.ndarray) -> None:
    found = facts(f"{FIT} --out m.zarr")
    model = dsp.load("m.zarr")
    for name in ("eigenvalues", "eigenvalue_errors", "reliable", "n_constants"):
        np.testing.assert_array_equal(found[name], getattr(model, f"{name}_"))
    assert (found["rows"], found["rank"], found["model"]) == (200, model.rank_, "m.zarr")
    assert facts("info m.zarr").items() <= found.items()
    assert facts("score m.zarr points.zarr")["score"] == model.score(points)
    transfer = f"{FIT} --operator transfer:1:eigen --folds none"
    found = facts(f"{transfer} --out t.zarr")
    assert np.shape(found["eigenvalues"]) == (4, 2)  # real and imaginary parts
    assert {value for pair in found["validation_values"] for value in np.ravel(pair)} == {None}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows
def test_json_of_models_is_data() -> None:
    """Numbers under the public names of attributes, and no text that Python prints of an array."""
    sdp = facts("embed points.zarr --bandwidth 3 --landmarks 20 --out s.zarr")
    assert sdp["certificate"]["gap"] == dsp.load("s.zarr").certificate_.gap
    regression = facts("regress points.zarr v.zarr --kernel gaussian:1 --landmarks 9 --alpha 0.1 --out r.zarr")
    text = json.dumps([sdp, regression])
    assert not any(word in text for word in ('"_', "array(", "Certificate("))
