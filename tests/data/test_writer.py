"""Arrays and groups appear whole or not at all; what fails names the path: full disks, damaged metadata."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

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
        assert all(name.startswith(".x.zarr.") for name in names(tmp_path))
    opened = zarr.open_array(tmp_path / "x.zarr", mode="r")
    np.testing.assert_array_equal(opened[:], np.where(np.arange(10)[:, None] < 8, values, np.nan))
    assert (opened.chunks, opened.attrs["kind"], names(tmp_path)) == ((4, 3), "test", ["x.zarr"])


def test_an_old_array_is_put_back_if_the_rename_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x.zarr", np.ones((3, 2)))
    rename = Path.rename

    def fail_on_the_new_one(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError("no space")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_on_the_new_one)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path / "x.zarr", np.zeros((3, 2)), overwrite=True)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "x.zarr", mode="r")[:], 1.0)
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
    for name in ("thesis", "notes"):
        with pytest.raises(FileExistsError, match=name):
            write(tmp_path / name, np.ones(2), overwrite=overwrite)
    assert names(tmp_path) + names(tmp_path / "thesis") == ["notes", "thesis", "chapter.tex"]


def fail_half_way(folder: Path, error: type[BaseException]) -> None:
    with create_group(folder / "g.zarr"), create_array(folder / "x.zarr", (4,), "float32") as array:
        array[:2] = 1.0
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_no_file_is_left_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        fail_half_way(tmp_path, error)
    assert names(tmp_path) == []


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


def test_a_url_does_not_load_before_the_last_byte() -> None:
    url = "memory://test_writer/x.zarr"
    with create_array(url, (3,), "float64", attributes={"a": 1}, overwrite=True) as array:
        array[:] = 1.0
        with pytest.raises(FileNotFoundError, match=f"process {os.getpid()} on "):
            open_zarr(url)
        with pytest.raises(OSError, match=f"process {os.getpid()} "), create_array(url, (3,), "float64"):
            pass
    np.testing.assert_array_equal(zarr.open_array(url, mode="r")[:], 1.0)
    with pytest.raises(FileExistsError):
        refuse_existing(url, False)
    with pytest.raises(TypeError), create_group(url, overwrite=True) as group:
        group.create_array("x", data=np.ones(3), chunks=object())  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        open_zarr(url)
    refuse_existing(url, False)  # nothing is left


def test_leftovers_of_a_killed_run_are_replaced(tmp_path: Path) -> None:
    with create_array(tmp_path / "x.zarr", (2,), "float64") as array:
        array[:] = 1.0
        shutil.copytree(tmp_path, tmp_path.with_name("left"))
        with pytest.raises(OSError, match=r"x\.zarr"):
            write(tmp_path / "x.zarr", np.ones(2))
        write(tmp_path / "x.zarr.zarr", np.ones(2))
    left = shutil.move(tmp_path.with_name("left"), tmp_path / "left")
    write(left / "x.zarr", np.zeros(2))
    assert (names(left), names(tmp_path)) == (["x.zarr"], ["left", "x.zarr", "x.zarr.zarr"])
