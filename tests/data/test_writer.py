"""Arrays and groups appear whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from daskspectral.data import replacing
from daskspectral.data.readers import open_zarr
from daskspectral.data.writer import (
    create_array,
    create_group,
    refuse_existing,
)


def write(path: Path | str, values: np.ndarray, **options: object) -> None:
    with create_array(path, values.shape, values.dtype, **options) as array:  # type: ignore[arg-type]
        array[:] = values


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_an_array_is_absent_until_its_last_byte(tmp_path: Path) -> None:
    values = np.arange(30).reshape(10, 3) + 1j
    with create_array(tmp_path / "x.zarr", (10, 3), complex, chunk_rows=4, attributes={"kind": "test"}) as array:
        array[:8] = values[:8]
        assert not (tmp_path / "x.zarr").exists()
        assert all(name.startswith(".x.zarr.") and name.endswith(".partial") for name in names(tmp_path))
    opened = zarr.open_array(tmp_path / "x.zarr", mode="r")
    np.testing.assert_array_equal(opened[:], np.where(np.arange(10)[:, None] < 8, values, np.nan))
    assert (opened.chunks, opened.attrs["kind"], names(tmp_path)) == ((4, 3), "test", ["x.zarr"])


def fail_half_way(directory: Path, error: type[BaseException]) -> None:
    with create_group(directory / "g.zarr") as group:
        group.create_array("x", shape=(2,), dtype="float64")
        with create_array(directory / "x.zarr", (4,), "float32") as array:
            array[:2] = 1.0
            raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        fail_half_way(tmp_path, error)
    assert names(tmp_path) == []


def test_old_array_is_put_back_when_the_rename_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x.zarr", np.ones((3, 2)))
    rename = Path.rename
    monkeypatch.setattr(replacing, "_exchanged", lambda one, other: False)

    def fail_on_the_new_one(self: Path, target: Path) -> Path:
        if self.name == replacing.NEW:
            raise OSError("no space")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_on_the_new_one)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path / "x.zarr", np.zeros((3, 2)), overwrite=True)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "x.zarr", mode="r")[:], 1.0)
    assert names(tmp_path) == ["x.zarr"]


@pytest.mark.skipif(sys.platform != "linux", reason="no exchange of two folders")
def test_a_store_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x.zarr", np.ones(2))
    (tmp_path / "x.zarr").chmod(0o700)
    monkeypatch.setattr(Path, "rename", lambda *names: pytest.fail("a second step"))
    write(tmp_path / "x.zarr", np.zeros(2), overwrite=True)
    assert (tmp_path / "x.zarr").stat().st_mode & 0o777 == 0o700  # nobody can read it who could not before
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "x.zarr", mode="r")[:], 0.0)
    assert names(tmp_path) == ["x.zarr"]


def test_overwrite_replaces_an_array_by_a_group_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    write(tmp_path / "disk" / "x.zarr", np.ones(2))
    (tmp_path / "link.zarr").symlink_to(tmp_path / "disk" / "x.zarr")
    with create_group(tmp_path / "link.zarr", overwrite=True) as group:
        group.create_array("a", data=np.arange(3.0))
        group.attrs["version"] = 1
    assert (tmp_path / "link.zarr").is_symlink()
    opened = zarr.open_group(tmp_path / "disk" / "x.zarr", mode="r")
    assert opened.attrs.asdict() == {"version": 1}
    np.testing.assert_array_equal(np.asarray(opened["a"]), [0, 1, 2])
    assert names(tmp_path / "disk") == ["x.zarr"]


def test_a_target_that_appears_meanwhile_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(FileExistsError, match="exists"),
        create_array(tmp_path / "x.zarr", (2,), "float64"),
    ):
        write(tmp_path / "x.zarr", np.ones(2))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "x.zarr", mode="r")[:], 1.0)
    assert names(tmp_path) == ["x.zarr"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_ordinary_files_and_directories_are_never_replaced(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("1")
    (tmp_path / "notes").write_text("2")
    for name, what in (("thesis", "a directory"), ("notes", "a file")):
        with pytest.raises(FileExistsError, match=f"is {what}, not a zarr store"):
            write(tmp_path / name, np.ones(2), overwrite=overwrite)
    assert names(tmp_path) == ["notes", "thesis"]
    assert names(tmp_path / "thesis") == ["chapter.tex"]


def test_one_flipped_bit_in_any_byte_of_a_chunk_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "x.zarr", np.random.default_rng(0).standard_normal((8, 2)), chunk_rows=4)
    chunk = tmp_path / "x.zarr" / "c" / "1" / "0"
    sound = chunk.read_bytes()
    array = zarr.open_array(tmp_path / "x.zarr", mode="r")
    for position in range(len(sound)):
        rotten = bytearray(sound)
        rotten[position] ^= 1
        chunk.write_bytes(rotten)
        with pytest.raises(ValueError, match="checksum"):
            array[:]


def test_nothing_loads_from_a_url_before_the_last_byte() -> None:
    url = "memory://test_writer/x.zarr"
    with create_array(url, (3,), "float64", attributes={"a": 1}, overwrite=True) as array:
        array[:] = 1.0
        with pytest.raises(FileNotFoundError, match=rf"unfinished: another run: process {os.getpid()} on "):
            open_zarr(url)
        with pytest.raises(OSError, match=rf"the output memory://.* is in use by another run: process {os.getpid()} "):
            refuse_existing(url, True)
    np.testing.assert_array_equal(zarr.open_array(url, mode="r")[:], 1.0)
    with pytest.raises(FileExistsError, match="a zarr store"):
        refuse_existing(url, False)
    with pytest.raises(TypeError), create_group(url, overwrite=True) as group:
        group.create_array("x", data=np.ones(3), chunks=object())  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"there is no zarr array at memory://test_writer/x\.zarr$"):
        open_zarr(url)
    refuse_existing(url, False)  # nothing is left


def test_what_a_live_run_writes_stays_and_what_a_dead_one_left_goes(tmp_path: Path) -> None:
    with create_array(tmp_path / "x.zarr", (2,), "float64") as array:
        array[:] = 1.0
        (live,) = tmp_path.iterdir()
        write(tmp_path / "x.zarr.zarr", np.ones(2))
        made = tmp_path / ".x.zarr.00000000.partial"
        made.mkdir()  # by a run that is about to take its lease
        dead = shutil.copytree(live, tmp_path / ".x.zarr.11111111.partial")
        lease = json.loads((live / ".lease").read_text())
        (dead / ".lease").write_text(json.dumps(lease | {"started": "1"}))
        refuse_existing(tmp_path / "x.zarr", False)
        assert set(tmp_path.iterdir()) == {live, made, tmp_path / "x.zarr.zarr"}
    os.utime(made, (0, 0))
    write(tmp_path / "x.zarr", np.zeros(2), overwrite=True)
    assert names(tmp_path) == ["x.zarr", "x.zarr.zarr"]
