"""Disks that are full and metadata that are damaged: the error names the path, and what to do."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import fsspec
import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data.convert import convert
from daskspectral.data.readers import open_zarr
from daskspectral.data.samples import write_sample
from daskspectral.data.writer import create_array

X = np.random.default_rng(3).standard_normal((4000, 2))


def model() -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=40, n_components=30, random_state=0)


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


@pytest.fixture
def small() -> Iterator[Path]:
    """A disk of 48 kB."""
    folder = Path("/tmp") / f"daskspectral-small-{os.getpid()}"
    folder.mkdir()
    try:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(folder)], capture_output=True)
        if mounted.returncode:
            pytest.skip("no file system can be mounted here")
        yield folder
        subprocess.run(["umount", str(folder)], check=True, capture_output=True)
    finally:
        folder.rmdir()


WRITES: dict[str, Callable[[Path], Any]] = {
    "model": lambda path: model().fit(X).save(path),
    "moments": lambda path: dsp.save(model().fit(X).moments_, path),
    "output": lambda path: model().fit(X).transform(X, out=path),
    "checkpoint": lambda path: model().fit(X, checkpoint=path, checkpoint_every=0),
    "sample": lambda path: write_sample("gaussian", path, 20_000),
    "scratch": lambda path: dsp.SDPEmbedding(2.0, method="lowrank", n_landmarks=60, cache_path=path).fit(X),
}


@pytest.mark.parametrize("kind", WRITES)
def test_a_full_disk_is_an_error_with_the_path(kind: str, full: Path) -> None:
    path = full / "result.zarr"
    with pytest.raises(OSError, match=rf"No space left on device while writing {re.escape(str(path))}") as caught:
        WRITES[kind](path)
    assert caught.value.errno == errno.ENOSPC
    assert "free some space there, or choose a path on another disk" in str(caught.value)
    assert kind == "checkpoint" or os.listdir(full) == []


@pytest.mark.parametrize("kind", WRITES)
def test_a_disk_that_fills_up_is_an_error_with_the_path(kind: str, small: Path) -> None:
    path = small / "result.zarr"
    with pytest.raises(OSError, match=rf"No space left on device while writing {re.escape(str(path))}"):
        WRITES[kind](path)
    assert kind == "checkpoint" or os.listdir(small) == []


def test_a_full_disk_of_a_conversion_is_an_error_with_the_path(full: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(OSError, match=r"No space left on device while writing .*full/x\.zarr"):
        convert(tmp_path / "x.npy", full / "x.zarr")
    assert os.listdir(full) == []


def test_a_full_disk_in_the_shell(full: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X)
    with pytest.raises(SystemExit):
        main(f"fit {tmp_path}/x.zarr --landmarks 20 --out {full}/m.zarr --no-progress".split())
    assert re.search(rf"Error: .*No space left on device while writing {full}/m\.zarr", capsys.readouterr().err)


@pytest.mark.parametrize(("command", "name"), [("plot", "spectrum.png"), ("report", "report.html")])
def test_a_full_disk_of_a_picture_or_a_report_is_an_error_with_the_path(
    command: str, name: str, full: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model().fit(X[:500]).save(tmp_path / "m.zarr")
    with pytest.raises(SystemExit):
        main([command, f"{tmp_path}/m.zarr", "--out", f"{full}/{name}"])
    told = capsys.readouterr().err
    assert told.splitlines()[-1].startswith("Error: ")
    assert f"No space left on device while writing {full}/{name}, of which nothing was kept: free some space" in told
    assert os.listdir(full) == []


def test_other_errors_of_writing_are_left_alone(tmp_path: Path) -> None:
    with (
        pytest.raises(PermissionError, match=r"^not allowed$"),
        create_array(tmp_path / "x.zarr", (3, 2), "float64"),
    ):
        raise PermissionError("not allowed")


READS: dict[str, Callable[[str], Any]] = {
    "open": lambda points: open_zarr(points),
    "fit": lambda points: model().fit(points),
    "transform": lambda points: model().fit(X).transform(points),
    "weights": lambda points: model().fit(X, sample_weight=points),
    "update": lambda points: model().fit(X[:200]).update(points),
}
DAMAGED = {"half": lambda text: text[: len(text) // 2], "empty": lambda text: "", "zeros": lambda text: "\0" * 300}


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_truncated_zarr_json_of_points_is_named(kind: str, damage: str, tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X)
    file = tmp_path / "x.zarr" / "zarr.json"
    file.write_text(DAMAGED[damage](file.read_text()))
    with pytest.raises(OSError, match=rf"{re.escape(str(file))} is damaged.*Restore it, or write the store again"):
        READS[kind](f"{tmp_path}/x.zarr")


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_truncated_zarr_json_of_a_model_is_named(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "m.zarr"
    model().fit(X).save(path)
    file = path / "zarr.json"
    whole = file.read_text()
    file.write_text(DAMAGED[damage](whole))
    with pytest.raises(OSError, match=rf"{re.escape(str(file))} is damaged.*Restore it, or write the store again"):
        dsp.load(path)
    file.write_text(whole)
    inner = next(path.glob("*/zarr.json"))
    inner.write_text(DAMAGED[damage](inner.read_text()))
    with pytest.raises(OSError, match=rf"m\.zarr is damaged: its array {re.escape(inner.parent.name)} cannot be read"):
        dsp.load(path)


def test_a_truncated_zarr_json_in_a_group_and_in_format_2_is_named(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("x", data=X)
    file = tmp_path / "g.zarr" / "x" / "zarr.json"
    file.write_text(file.read_text()[:50])
    with pytest.raises(OSError, match=r"g\.zarr/x/zarr\.json is damaged"):
        open_zarr(tmp_path / "g.zarr" / "x")
    with pytest.raises(OSError, match=r"g\.zarr is damaged"):
        open_zarr(tmp_path / "g.zarr")
    zarr.create_array(tmp_path / "old.zarr", data=X, zarr_format=2)
    file = tmp_path / "old.zarr" / ".zarray"
    file.write_text(file.read_text()[:50])
    with pytest.raises(OSError, match=r"old\.zarr/\.zarray is damaged"):
        open_zarr(tmp_path / "old.zarr")


def test_a_zarr_json_truncated_at_a_url_or_during_a_run_is_named(tmp_path: Path) -> None:
    fs = fsspec.filesystem("memory")
    zarr.create_array("memory://cut/x.zarr", data=X)
    fs.pipe("/cut/x.zarr/zarr.json", b"{")
    with pytest.raises(OSError, match=r"memory://cut/x\.zarr is damaged"):
        open_zarr("memory://cut/x.zarr")
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(500, 2))
    lazy = model().fit(X).transform(f"{tmp_path}/x.zarr")
    (tmp_path / "x.zarr" / "zarr.json").write_text("{")
    with (
        pytest.raises(OSError, match=r"x\.zarr as seen by .* is not a zarr array any more"),
        dask.config.set(scheduler="synchronous"),
    ):
        lazy.compute()
