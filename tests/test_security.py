"""A file executes nothing: it names daskspectral's own classes, and those that the caller trusts by name."""

import contextlib
import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import registry
from daskspectral.basis import CallableBasis, Landmarks
from daskspectral.data import stores
from daskspectral.errors import UntrustedError
from daskspectral.manifolds import Implicit
from daskspectral.store import load, read_state, save, untrusted
from tests.common import places, unreliable

pytestmark = unreliable

X = np.random.default_rng(0).standard_normal((400, 2))
PLAIN = dsp.kernels.Gaussian(1.0)
MINE = """
import numpy as np

def q(s):
    return np.exp(-s)

def slope(s):
    return -np.exp(-s)

def features(x):
    return np.concatenate([x.T, x.T ** 2])

def slopes(x):
    return np.concatenate([np.eye(2)[:, None] * np.ones((len(x), 1)), 2 * np.eye(2)[:, None] * x])

def normals(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)

class Plain:
    def __init__(self, **state):
        raise RuntimeError("this must never be called")
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of a user's own."""
    (tmp_path / "users_module.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("users_module")
    sys.modules.pop("users_module", None)


def unfitted(kernel: Any = PLAIN, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(**{"basis": Landmarks(kernel, 12), "n_components": 3, "random_state": 0} | options)


def small(kernel: Any = PLAIN, **options: Any) -> dsp.SpectralDecomposition:
    return unfitted(kernel, **options).fit(X)


def forge(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the header of a saved model, and give it the right digest."""
    group = zarr.open_group(path, mode="r+")
    header: Any = dict(group.attrs)["daskspectral"]
    change(header)
    parts = {key: value for key, value in header.items() if key != "digest"}
    header["digest"] = registry.digest_of(json.dumps(parts, sort_keys=True))
    group.attrs["daskspectral"] = header


def objects(data: Any) -> list[dict[str, Any]]:
    """Every object of encoded data."""
    entries = [data, *(within[key] for within, (*_, key) in places(data))]
    return [entry for entry in entries if isinstance(entry, dict) and "$class" in entry]


MODELS: dict[str, Callable[[], Any]] = {
    "spectral": lambda: small("auto"),
    "hermite": lambda: dsp.HermiteRegressor(Landmarks(n_landmarks=10), random_state=0).fit(X, X[:, 0]),
    "sdp": lambda: dsp.SDPEmbedding(2.0, random_state=0).fit(X[:60]),
    "diffusion": lambda: dsp.DiffusionMap(2.0, random_state=0).fit(X[:60]),
    "learned": lambda: dsp.KernelEmbedding().fit(X[:30]),
    "invariant": lambda: dsp.InvariantRegressor(
        dsp.manifolds.Sphere(2), dsp.groups.Permutations(2), n_eigenfunctions=9
    ).fit(X / np.linalg.norm(X, axis=1, keepdims=True), X[:, 0] + X[:, 1]),
    "moments": lambda: small().moments_,
}


@cache
def model(name: str) -> Any:
    """A fitted model by its name, which no test changes."""
    return MODELS[name]()


HOSTILE = ["subprocess.Popen", "os.system", "builtins.eval", "daskspectral.cli.main", "operator.attrgetter"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["learned", "invariant", "moments"])
def test_loading_executes_no_code_of_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(model(name), tmp_path / "m.zarr")
    load(tmp_path / "m.zarr")
    imported: list[str] = []
    by_name = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: imported.append(name) or by_name(name))
    for number, _ in enumerate(objects(read_state(tmp_path / "m.zarr")[1])):
        hostile = HOSTILE[number % len(HOSTILE)]

        def change(header: dict[str, Any], number: int = number, hostile: str = hostile) -> None:
            target = objects(header["state"])[number]
            target["$class"], target["state"] = hostile, {"args": ["touch", str(tmp_path / "owned")]}

        shutil.copytree(tmp_path / "m.zarr", tmp_path / f"{number}.zarr")
        forge(tmp_path / f"{number}.zarr", change)
        assert untrusted(tmp_path / f"{number}.zarr") == [hostile]
        imported.clear()
        with pytest.raises(UntrustedError, match=r"load it with trusted=\['"):
            load(tmp_path / f"{number}.zarr")
        assert not imported
        with pytest.raises(ValueError, match=re.escape(hostile)):
            load(tmp_path / f"{number}.zarr", trusted=[hostile])
    assert number > 0
    assert not (tmp_path / "owned").exists()


KERNELS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("kernels.Radial", {"q": {"$function": "os.getcwd"}}, UntrustedError, r"os\.getcwd"),
    ("kernels.Radial", {"q": {"$function": "users_module.Plain"}}, ValueError, r"users_module\.Plain"),  # a class
    ("manifolds.Sphere", {"d": 3}, ValueError, r"manifolds\.Sphere"),
    ("a..b", {}, ValueError, r"a\.\.b"),
]


@pytest.mark.usefixtures("mine")
def test_another_thing_in_the_place_of_a_kernel_is_refused_before_it_is_made(tmp_path: Path) -> None:
    save(model("moments"), tmp_path / "m.zarr")
    for number, (name, state, error, message) in enumerate(KERNELS):

        def change(header: dict[str, Any], name: str = name, state: Any = state) -> None:
            kernel = next(o for o in objects(header["state"]) if o["$class"] == "kernels.Gaussian")
            kernel["$class"], kernel["state"] = name, state

        shutil.copytree(tmp_path / "m.zarr", tmp_path / f"{number}.zarr")
        forge(tmp_path / f"{number}.zarr", change)
        with pytest.raises(error, match=message):
            dsp.load(tmp_path / f"{number}.zarr", trusted=["users_module.Plain"])


def test_trusted_functions_load(tmp_path: Path, mine: Any) -> None:
    circle = dsp.operators.Laplacian(Implicit(mine.normals, 2))
    models = {
        "radial": small(dsp.kernels.Radial(mine.q, [mine.slope])),
        "callable": small(basis=CallableBasis(mine.features, mine.slopes, d=2)),
        "implicit": small(operator=circle),
    }
    for name, fitted in models.items():
        fitted.save(tmp_path / f"{name}.zarr")
        asked = dsp.untrusted(tmp_path / f"{name}.zarr")
        assert asked
        with pytest.raises(dsp.UntrustedError):
            dsp.load(tmp_path / f"{name}.zarr", trusted=asked[1:])
        again = dsp.load(tmp_path / f"{name}.zarr", trusted=asked)
        np.testing.assert_array_equal(again.transform(X[:5]), fitted.transform(X[:5]))


def test_a_checkpoint_names_only_the_functions_and_classes_of_the_run(tmp_path: Path, mine: Any) -> None:
    own = unfitted(dsp.kernels.Radial(mine.q, [mine.slope]))
    fitted, again = (clone(own).fit(X, checkpoint=tmp_path / "run.zarr") for _ in range(2))
    np.testing.assert_array_equal(again.eigenvalues_, fitted.eigenvalues_)
    for epoch in (tmp_path / "run.zarr").glob("epoch-*"):

        def change(header: dict[str, Any]) -> None:
            for kernel in objects(header["state"]["constants"]):
                if kernel["$class"] == "kernels.Radial":
                    kernel["$class"], kernel["state"] = "subprocess.Popen", {"args": ["touch", str(tmp_path / "owned")]}

        forge(epoch, change)
    with pytest.raises((ValueError, OSError), match=r"subprocess\.Popen"):
        own.fit(X, checkpoint=tmp_path / "run.zarr")
    assert not (tmp_path / "owned").exists()


@pytest.mark.slow
def test_an_edit_of_metadata_is_detected_or_harmless(tmp_path: Path) -> None:
    model("spectral").save(tmp_path / "m.zarr")
    wanted = model("spectral").transform(X[:5])
    file = tmp_path / "m.zarr" / "zarr.json"
    text = file.read_text()
    first, end = text.index('"daskspectral"'), text.index('"consolidated_metadata"')
    assert first < end
    places = [match.start() for match in re.finditer(r"\d+", text) if match.start() > first]
    for start in [*[i for i in places if i < end][::5], *[i for i in places if i > end][::20]]:
        file.write_text(f"{text[:start]}{(int(text[start]) + 1) % 10}{text[start + 1 :]}")
        noticed: Any = contextlib.suppress(ValueError, OSError)  # of the array that is described
        if start < end:
            noticed = pytest.raises((ValueError, OSError), match=r"m\.zarr")
        with noticed:
            np.testing.assert_array_equal(dsp.load(tmp_path / "m.zarr").transform(X[:5]), wanted)


@pytest.mark.parametrize("name", ["__class__", "fit", "_rows", "others_"])
def test_a_file_sets_only_fitted_attributes(name: str, tmp_path: Path) -> None:
    model("spectral").save(tmp_path / "m.zarr")
    forge(tmp_path / "m.zarr", lambda header: header["state"]["state"].update({name: 1}))
    with pytest.raises(ValueError, match=rf"m\.zarr .*{name}"):
        dsp.load(tmp_path / "m.zarr")


DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]
WRONG: list[Any] = [None, -1, 1e300, "x", [], {}, [None], {"$number": [1]}, {"$tuple": 3}, np.full((2, 2), np.nan)]
WRONG += [{"$class": "solve.InvariantSolver", "state": {}}, {"$class": "manifolds.Sphere", "state": {"d": 2}}, DEEP]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MODELS)
def test_wrong_parts_of_a_file_are_value_errors(name: str) -> None:
    data = registry.encode(model(name))

    refused = 0
    for number, (within, (*_, key)) in enumerate([*places(data)]):  # one of WRONG at each, in turn
        whole = within[key]
        within[key] = WRONG[number % len(WRONG)]
        with contextlib.suppress(ValueError):
            registry.decode(data, registry.Registered)
            refused -= 1
        refused += 1
        within[key] = whole
    assert refused > 10
    registry.decode(data, registry.Registered)


def test_what_could_not_be_read_back_is_not_saved() -> None:
    for value in (dsp.kernels.Radial(lambda s: s), {"a": object()}, {1: "$class"}):
        with pytest.raises((ValueError, TypeError)):
            registry.encode(value)
    for key in ("$class", "$function", "$tuple", "$$tuple", "$"):
        value = {key: [1], "a": {key: (2,)}}
        assert registry.decode(registry.encode(value), dict) == value


# parameters that name places


@pytest.mark.one_in(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in MODELS if name != "moments"])
def test_no_parameter_in_a_file_names_a_place_for_the_next_fit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr.create_array(tmp_path / "bait.zarr", data=np.arange(60) % 3)
    opened: list[str] = []
    by_path = stores.open_existing
    monkeypatch.setattr(stores, "open_existing", lambda path, what: opened.append(str(path)) or by_path(path, what))
    whole = registry.encode(model(name))
    for parameter in whole["state"]["params"]:
        for place in (str(tmp_path / "bait.zarr"), f"file://{tmp_path}/bait.zarr", "memory://bait/none.zarr"):
            data = json.loads(json.dumps(whole, default=lambda array: array.tolist()))
            data["state"] = {**whole["state"], "params": {**data["state"]["params"], parameter: place}}
            with contextlib.suppress(ValueError, TypeError):
                again = registry.decode(data, registry.Registered)
                again.fit(X[:60], X[:60, 0]) if name in ("hermite", "invariant") else again.fit(X[:60])
    assert not opened
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bait.zarr"]
    assert zarr.open_array(tmp_path / "bait.zarr", mode="r")[...].tolist() == (np.arange(60) % 3).tolist()


def test_places_of_a_fit_are_not_saved(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "labels.zarr", data=np.arange(400) % 4)
    small(folds=str(tmp_path / "labels.zarr")).save(tmp_path / "m.zarr")
    assert dsp.load(tmp_path / "m.zarr").folds is None
    small(folds="random").save(tmp_path / "w.zarr")
    assert dsp.load(tmp_path / "w.zarr").folds == "random"
    assert str(tmp_path) not in (tmp_path / "m.zarr" / "zarr.json").read_text()
