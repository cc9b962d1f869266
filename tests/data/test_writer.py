"""Arrays and groups appear whole or not at all; what fails names the path: full disks, damaged metadata."""

import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral import datasets
from daskspectral.data import writing
from daskspectral.data.stores import open_zarr
from daskspectral.data.writing import create_array, create_group, refuse_existing


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


def fail_half_way(folder: Path, error: type[BaseException]) -> None:
    with create_group(folder / "g.zarr"), create_array(folder / "x.zarr", (4,), "float32") as array:
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
    monkeypatch.setattr(writing, "_exchanged", lambda one, other: False)

    def fail_on_the_new_one(self: Path, target: Path) -> Path:
        if self.name == writing.NEW:
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
    assert (tmp_path / "link.zarr").is_symlink()
    np.testing.assert_array_equal(np.asarray(zarr.open_group(tmp_path / "disk" / "x.zarr")["a"]), [0, 1, 2])
    assert names(tmp_path / "disk") == ["x.zarr"]


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


# full disks, and metadata that are damaged


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a disk that is full: the chunks that are written there go to /dev/full."""
    folder = tmp_path / "full"
    folder.mkdir()
    opened = Path.open

    def open_there(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        lost = folder in path.parents and "r" not in mode and "zarr.json" not in path.name and path.name != ".lease"
        return opened(Path("/dev/full") if lost else path, "wb" if lost else mode, *args, **options)

    monkeypatch.setattr(Path, "open", open_there)
    return folder


def fit(path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((50, 2))
    dsp.SpectralDecomposition(basis=dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 5)).fit(x, checkpoint=path)


@pytest.mark.parametrize("make", [lambda path: datasets.write("gaussian", path, 20_000), fit])
def test_a_full_disk_is_an_error_with_the_path(make: Callable[[Path], Any], full: Path) -> None:
    path = full / "result.zarr"
    with pytest.raises(OSError, match=rf"No space left on device while writing {re.escape(str(path))}") as caught:
        make(path)
    assert caught.value.errno == errno.ENOSPC
    assert "free some space there, or choose a path on another disk" in str(caught.value)
    assert make is fit or os.listdir(full) == []


@pytest.mark.parametrize("text", ["", "{", "\0" * 300])
def test_damaged_metadata_are_named(text: str, tmp_path: Path) -> None:
    for version, name in ((3, "zarr.json"), (2, ".zarray")):
        file = tmp_path / f"{version}.zarr" / name
        zarr.create_array(file.parent, data=np.ones(3), zarr_format=version)
        file.write_text(text)
        with pytest.raises(OSError, match=rf"{re.escape(str(file))} is damaged.*Restore it, or write the store"):
            open_zarr(str(file.parent))
    zarr.create_array("memory://cut/x.zarr", data=np.ones(3), overwrite=True)
    fsspec.filesystem("memory").pipe("/cut/x.zarr/zarr.json", text.encode())
    with pytest.raises(OSError, match=r"/cut/x\.zarr/zarr\.json is damaged"):
        open_zarr("memory://cut/x.zarr")
