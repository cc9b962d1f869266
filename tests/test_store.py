"""A state is written whole or not at all, comes back bit for bit, and says so when it cannot."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskspectral import store
from daskspectral.data import writing
from daskspectral.data.writing import refuse_existing
from daskspectral.store import FORMAT, read_state, write_state

STATE: dict[str, Any] = {
    "count": 12,
    "weight": 0.1 + 0.2,
    "name": "Δ",
    "flags": [True, None, "text", {"deep": [1, [2.5]]}],
    "matrix": np.random.default_rng(0).standard_normal((5, 5)),
    "parts": {"one": np.arange(3, dtype="int32"), "two": [np.float32([1, np.nan, -0.0]), {"three": np.zeros((2, 0))}]},
    "scalar": np.array(3.5),
}


def assert_equal(found: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            assert_equal(found[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_equal(a, b)
    elif isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes()
    else:
        assert type(found) is type(wanted)
        assert found == wanted


@pytest.mark.parametrize("where", ["{path}/m.zarr", "file://{path}/m.zarr", "memory://store-test/m.zarr"])
def test_round_trip(tmp_path: Path, where: str) -> None:
    url = where.format(path=tmp_path)
    write_state(url, "something", STATE, overwrite=True)
    kind, state = read_state(url)
    assert kind == "something"
    assert_equal(state, STATE)
    assert os.listdir(tmp_path) in (["m.zarr"], [])


plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=5)
arrays = hnp.arrays(st.sampled_from(["f8", "f4", "i8", "?"]), hnp.array_shapes(max_dims=2, max_side=3))
names = st.text("abcxyz_", min_size=1, max_size=4).filter(lambda name: name != "array")
states = st.recursive(
    plain | arrays, lambda s: st.lists(s, max_size=3) | st.dictionaries(names, s, max_size=3), max_leaves=8
)


@given(st.dictionaries(names, states, max_size=3))
def test_round_trip_of_anything(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("state") / "m.zarr"
    write_state(path, "any", state)
    assert_equal(read_state(path)[1], state)


def test_nothing_is_overwritten_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "m.zarr"
    write_state(path, "k", {"a": 1})
    with pytest.raises(FileExistsError, match=r"m\.zarr exists .*overwrite=True"):
        write_state(path, "k", {"a": 2})
    assert read_state(path)[1] == {"a": 1}
    write_state(path, "k", {"a": 2}, overwrite=True)
    assert read_state(path)[1] == {"a": 2}
    assert os.listdir(tmp_path) == ["m.zarr"]


def array(path: Path) -> Path:
    zarr.create_array(path, shape=(2,), dtype=float)
    return path


def group(path: Path, **header: Any) -> Path:
    zarr.open_group(path, mode="w", attributes={"daskspectral": header} if header else {})
    return path


def file(path: Path) -> Path:
    path.write_text("not zarr")
    return path


def directory(path: Path) -> Path:
    path.mkdir()
    return path


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda path: path, FileNotFoundError, "there is no saved model at .*m.zarr: the path does not exist"),
    (array, ValueError, "m.zarr is an array, not a model or moments saved by daskspectral"),
    (group, ValueError, "m.zarr is a zarr group of something else, not a model"),
    (file, ValueError, "m.zarr is not a saved model: it is no zarr group"),
    (directory, ValueError, "m.zarr is not a saved model: it is no zarr group"),
    (lambda path: group(path, format=99), ValueError, rf"in format 99 and .* reads format {FORMAT}: upgrade it"),
    (lambda path: group(path, format=1, kind="k"), ValueError, "written in format 1, before the first release"),
    (lambda path: group(path, format=FORMAT, kind="k"), OSError, "m.zarr is damaged: its attributes are incomplete"),
    (lambda path: "memory://store-test/none.zarr", FileNotFoundError, "there is no saved model at memory"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_what_is_no_state(tmp_path: Path, make: Any, error: type[Exception], message: str) -> None:
    path = make(tmp_path / "m.zarr")
    with pytest.raises(error, match=message):
        read_state(path)


def flip(path: Path) -> None:
    chunk = next(p for p in path.rglob("*") if p.is_file() and p.name != "zarr.json")
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)


@pytest.mark.parametrize("damage", [shutil.rmtree, lambda path: shutil.rmtree(path / "c"), flip])
def test_damage_is_found(tmp_path: Path, damage: Any) -> None:
    write_state(tmp_path / "m.zarr", "k", {"matrix": STATE["matrix"], "other": np.zeros(4)})
    damage(tmp_path / "m.zarr" / "matrix")
    with pytest.raises(OSError, match=r"m\.zarr is damaged: its array matrix .*; save it again"):
        read_state(tmp_path / "m.zarr")


def test_a_model_replaced_at_every_attempt_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, number = tmp_path / "m.zarr", 0
    write_state(path, "k", {"number": 0, "matrix": np.zeros(3)})
    data = store._Stored.data

    def replaced_first(stored: Any) -> Any:
        nonlocal number
        number += 1
        write_state(path, "k", {"number": number, "matrix": np.full(3, float(number))}, overwrite=True)
        return data(stored)

    monkeypatch.setattr(store._Stored, "data", replaced_first)
    with pytest.raises(OSError, match=r"m\.zarr was replaced 5 times while it was read, so a writer is at work"):
        read_state(path)


@pytest.mark.slow  # processes are killed
@pytest.mark.parametrize(("steps", "then"), [(0, "load"), (1, "load"), (1, "save"), (1, "refuse"), (2, "load")])
def test_a_model_whose_writer_is_killed_between_two_renames_is_found(then: str, steps: int, tmp_path: Path) -> None:
    path = tmp_path / "m.zarr"
    write_state(path, "k", {"version": "old"})
    pid = os.fork()
    if not pid:  # a run that is killed on a file system without an exchange of folders
        writing._exchanged = lambda one, other: False
        rename, made = Path.rename, []

        def killed(source: Path, target: Path) -> Path:
            if len(made) == steps:
                os.kill(os.getpid(), signal.SIGKILL)
            made.append(target)
            return rename(source, target)

        Path.rename = killed  # type: ignore[method-assign, assignment]
        writing._discard = lambda path, pause: os.kill(os.getpid(), signal.SIGKILL)
        write_state(path, "k", {"version": "new"}, overwrite=True)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert path.exists() == (steps != 1)
    assert len(os.listdir(tmp_path)) == 1 + (steps != 1)
    if then == "save":
        write_state(path, "k", {"version": "newer"}, overwrite=True)
        assert read_state(path) == ("k", {"version": "newer"})
        assert os.listdir(tmp_path) == ["m.zarr"]
    elif then == "refuse":
        with pytest.raises(FileExistsError):
            refuse_existing(path, False)
    assert then == "save" or read_state(path) == ("k", {"version": "new" if steps == 2 else "old"})
