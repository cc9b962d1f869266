"""Disks that are full and metadata that are damaged: the error names the path, and what to do."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.data.readers import open_zarr
from daskspectral.data.samples import write_sample

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


WRITES: dict[str, Callable[[Path], Any]] = {
    "model": lambda path: model().fit(X).save(path),
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


DAMAGED = {"half": lambda text: text[: len(text) // 2], "empty": lambda text: "", "zeros": lambda text: "\0" * 300}


@pytest.mark.parametrize("damage", DAMAGED)
def test_truncated_metadata_are_named(damage: str, tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X)
    zarr.create_array(tmp_path / "old.zarr", data=X, zarr_format=2)
    for file in (tmp_path / "x.zarr" / "zarr.json", tmp_path / "old.zarr" / ".zarray"):
        file.write_text(DAMAGED[damage](file.read_text()))
        for read in (open_zarr, model().fit, lambda path: model().fit(X[:200]).update(path)):
            with pytest.raises(OSError, match=rf"{re.escape(str(file))} is damaged.*Restore it, or write the store"):
                read(str(file.parent))


def test_a_truncated_zarr_json_of_a_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.zarr"
    model().fit(X).save(path)
    inner = next(path.glob("*/zarr.json"))
    inner.write_text(inner.read_text()[:50])
    with pytest.raises(OSError, match=rf"m\.zarr is damaged: its array {re.escape(inner.parent.name)} cannot be read"):
        dsp.load(path)


def test_a_truncated_zarr_json_at_a_url_is_named() -> None:
    zarr.create_array("memory://cut/x.zarr", data=X)
    fsspec.filesystem("memory").pipe("/cut/x.zarr/zarr.json", b"{")
    with pytest.raises(OSError, match=r"memory://cut/x\.zarr is damaged"):
        open_zarr("memory://cut/x.zarr")
