"""Outputs that cannot be written are refused by every subcommand before its inputs are so much as opened."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.data.readers import ZarrReader

# the inputs no.zarr and no.npy do not exist: an error about them would come too late
JOBS = {
    "fit": "fit no.zarr --out OUT",
    "update": "update no.zarr no.zarr --out OUT",
    "merge": "merge no.zarr no2.zarr --out OUT",
    "embed": "embed no.zarr --bandwidth 1 --out OUT",
    "embed, coordinates": "embed no.zarr --bandwidth 1 --out m.zarr --embedding OUT",
    "regress": "regress no.zarr no.zarr --out OUT",
    "invariant": "invariant no.zarr no.zarr --manifold sphere --out OUT",
    "classify": "classify no.zarr no.zarr --manifold sphere --out OUT",
    "transform": "transform no.zarr no.zarr --out OUT",
    "predict": "predict no.zarr no.zarr --out OUT",
    "sample": "sample gaussian --n 100 --out OUT",
    "convert": "convert no.npy --out OUT",
}
CHECKPOINTS = {name: f"{JOBS[name].replace('OUT', 'm.zarr')} --checkpoint OUT" for name in ("fit", "regress")} | {
    "invariant": "invariant no.zarr no.zarr --manifold sphere --out m.zarr --checkpoint OUT",
    "embed": "embed no.zarr --bandwidth 1 --method lowrank --out m.zarr --checkpoint OUT",
}
PICTURES = {"fit": "fit no.zarr --out m.zarr --plot OUT"}
PLACES = {
    "file/out.png": (NotADirectoryError, r"file, the directory for .*out\.png, is a file: choose another path"),
    "file/a/out.png": (NotADirectoryError, r"file, the directory for .*out\.png, is a file"),
    "/proc/out.png": (PermissionError, r"/proc, the directory for .*out\.png, cannot be written \(.*\): choose"),
    "locked/out.png": (PermissionError, r"locked, the directory for .*out\.png, cannot be written \(permission denied"),
}


@pytest.fixture(autouse=True)
def places(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").touch()
    Path("locked").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and access(path, mode))


def refused(line: str) -> BaseException:
    result = CliRunner().invoke(command, line.split())
    assert result.exception is not None
    return result.exception


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("line", [*JOBS.values(), *CHECKPOINTS.values(), *PICTURES.values()])
def test_a_directory_that_cannot_be_written_is_refused_before_any_work(line: str, place: str) -> None:
    kind, message = PLACES[place]
    with pytest.raises(kind, match=message):
        raise refused(line.replace("OUT", place))
    assert sorted(os.listdir()) == ["file", "locked"]


@pytest.mark.parametrize("place", ["file/run", "/proc/run", "locked/run", "locked"])
def test_fit_refuses_a_checkpoint_that_cannot_be_written_before_any_work(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = zarr.create_array("points.zarr", data=np.random.default_rng(0).standard_normal((400, 2)), chunks=(100, 2))
    monkeypatch.setattr(ZarrReader, "read", lambda *a: pytest.fail("read before the refusal"))
    with pytest.raises((OSError, ValueError), match=r"is a file|cannot be written"):
        dsp.SpectralDecomposition(n_landmarks=20, n_components=2).fit(x, checkpoint=place)


@pytest.mark.parametrize("place", ["file/e.zarr", "/proc/e.zarr", "locked/e.zarr"])
def test_transform_refuses_an_output_that_cannot_be_written_before_any_work(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.random.default_rng(0).standard_normal((400, 2))
    zarr.create_array("points.zarr", data=data, chunks=(100, 2))
    model = dsp.SpectralDecomposition(n_landmarks=20, n_components=2).fit(data)
    monkeypatch.setattr(ZarrReader, "read", lambda *a: pytest.fail("read before the refusal"))
    with pytest.raises(OSError, match=r"the directory for e\.zarr, (is a file|cannot be written)"):
        model.transform("points.zarr", out=place)
