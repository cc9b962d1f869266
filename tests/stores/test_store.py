"""A state is written whole or not at all, comes back bit for bit, and says so when it cannot."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskspectral import store
from daskspectral.store import FORMAT, read_state, write_state
from tests.common import small_model, unreliable

STATE: dict[str, Any] = {
    "name": "Δ",
    "flags": [True, None, {"deep": [1, [2.5]]}],
    "matrix": np.random.default_rng(0).standard_normal((5, 5)),
    "parts": {"two": [np.float32([1, np.nan, -0.0]), {"three": np.zeros((2, 0))}]},
}


def contents(state: Any) -> str:
    """A text that tells states apart: values, types, and bytes of arrays."""
    return json.dumps(state, sort_keys=True, default=lambda array: [array.dtype.str, array.tolist(), array.shape])


@pytest.mark.parametrize("where", ["{path}/m.zarr", "file://{path}/m.zarr", "memory://store-test/m.zarr"])
def test_round_trip(tmp_path: Path, where: str) -> None:
    url = where.format(path=tmp_path)
    write_state(url, "something", STATE, overwrite=True)
    kind, state = read_state(url)
    assert kind == "something"
    assert contents(state) == contents(STATE)
    assert os.listdir(tmp_path) in (["m.zarr"], [])


plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=5)
arrays = hnp.arrays(st.sampled_from(["f8", "f4", "i8", "?"]), hnp.array_shapes(max_dims=2, max_side=3))
names = st.text("abcxyz_ ./ä$", max_size=4).filter(lambda name: not name.startswith("$"))
states = st.recursive(
    plain | arrays, lambda s: st.lists(s, max_size=3) | st.dictionaries(names, s, max_size=3), max_leaves=8
)


@settings(max_examples=15)
@given(st.dictionaries(names, states, max_size=3))
def test_round_trip_of_anything(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("state") / "m.zarr"
    write_state(path, "any", state)
    assert contents(read_state(path)[1]) == contents(state)
    assert len(list(xr.open_datatree(path, engine="zarr").to_dict())) > 0  # sizes of dimensions agree


@unreliable
def test_a_saved_model_is_a_plain_group_for_xarray(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((200, 2))
    model = small_model().fit(x)
    model.save(tmp_path / "m.zarr")
    found, tree = xr.open_zarr(tmp_path / "m.zarr"), xr.open_datatree(tmp_path / "m.zarr", engine="zarr")
    assert found["eigenvalues_"].dims == ("component",)
    assert found["coefficients_"].dims == ("function", "component")
    assert not any("_dim_" in str(name) for name in found.dims)
    np.testing.assert_array_equal(found["coefficients_"], model.coefficients_)
    np.testing.assert_array_equal(tree["moments_/arrays/gram"], model.moments_.arrays["gram"])
    assert tree["moments_/arrays/gram"].dims == ("function", "function_2")
    assert [*found.attrs] == ["daskspectral"]
    assert not any(array.attrs for node in tree.subtree for array in node.data_vars.values())
    with pytest.raises(ValueError, match=r"m\.zarr"):  # it is no data
        small_model().fit(str(tmp_path / "m.zarr"))


def group(path: Path, **header: Any) -> Path:
    zarr.open_group(path, mode="w", attributes={"daskspectral": header} if header else {})
    return path


BAD: list[tuple[Any, type[Exception]]] = [
    (lambda path: path, FileNotFoundError),
    (lambda path: path.write_text("not zarr") and path, ValueError),
    (group, ValueError),
    (lambda path: group(path, format=99), ValueError),
    (lambda path: group(path, format=FORMAT, kind="k"), OSError),
    (lambda path: "memory://store-test/none.zarr", FileNotFoundError),
]


@pytest.mark.parametrize(("make", "error"), BAD)
def test_what_is_no_state(tmp_path: Path, make: Any, error: type[Exception]) -> None:
    path = make(tmp_path / "m.zarr")
    with pytest.raises(error, match=str(path)):
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
    with pytest.raises(OSError, match=r"m\.zarr .*matrix"):
        read_state(tmp_path / "m.zarr")


def test_a_model_replaced_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, replaced, data = tmp_path / "m.zarr", list[None](), store._data
    write_state(path, "k", {"matrix": np.zeros(3)})

    def replaced_first(*arguments: Any) -> Any:
        if not replaced:
            replaced.append(write_state(path, "k", {"matrix": np.ones(3)}, overwrite=True))
        return data(*arguments)

    monkeypatch.setattr(store, "_data", replaced_first)
    assert read_state(path)[1]["matrix"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.slow  # processes are killed
@pytest.mark.parametrize("step", range(4))
def test_a_model_is_whole_whenever_its_writer_is_killed(step: int, tmp_path: Path) -> None:
    """Before the first rename, between the two, and before what was replaced is deleted."""
    path = tmp_path / "m.zarr"
    write_state(path, "k", {"version": "old"})
    pid = os.fork()
    if not pid:
        done = 0

        def counted(call: Any) -> Any:
            def killed(*arguments: Any, **options: Any) -> Any:
                nonlocal done
                if done == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                done += str(arguments[0]).endswith((".partial", "m.zarr"))
                return call(*arguments, **options)

            return killed

        Path.rename, shutil.rmtree = counted(Path.rename), counted(shutil.rmtree)  # type: ignore[method-assign]
        write_state(path, "k", {"version": "new"}, overwrite=True)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    if step == 2:  # between the two renames
        assert not path.exists()
        assert read_state(tmp_path / ".m.zarr.replaced") == ("k", {"version": "old"})
    else:
        assert read_state(path) == ("k", {"version": "old" if step < 2 else "new"})
    write_state(path, "k", {"version": "newer"}, overwrite=True)
    assert read_state(path) == ("k", {"version": "newer"})
    assert os.listdir(tmp_path) == ["m.zarr"]
