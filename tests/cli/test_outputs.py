"""Outputs that cannot be written are refused by every command before its inputs are so much as opened."""

import os
from pathlib import Path

import pytest

from tests.cli.common import call

LINES = [  # the inputs do not exist: an error about them would come too late
    "fit no.zarr --out OUT",
    "fit no.zarr --out m.zarr --checkpoint OUT",
    "fit no.zarr --out m.zarr --plot OUT",
    "update no.zarr no.zarr --out OUT",
    "merge no.zarr no2.zarr --out OUT",
    "embed no.zarr --bandwidth 1 --out OUT",
    "embed no.zarr --bandwidth 1 --out m.zarr --embedding OUT",
    "embed no.zarr --bandwidth 1 --method lowrank --out m.zarr --checkpoint OUT",
    "regress no.zarr no.zarr --out OUT",
    "invariant no.zarr no.zarr --manifold sphere --out OUT",
    "invariant no.zarr no.zarr --manifold sphere --out m.zarr --checkpoint OUT",
    "classify no.zarr no.zarr --manifold sphere --out OUT",
    "transform no.zarr no.zarr --out OUT",
    "predict no.zarr no.zarr --out OUT",
    "sample gaussian --n 100 --out OUT",
    "convert no.npy --out OUT",
]
PLACES = {
    "file/a/out.png": (NotADirectoryError, r"file, the directory for .*out\.png, is a file: choose another path"),
    "locked/out.png": (PermissionError, r"locked, the directory for .*out\.png, cannot be written \(permission denied"),
}


@pytest.mark.parametrize("line", LINES)
def test_a_directory_that_cannot_be_written(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").touch()
    Path("locked").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and access(path, mode))
    for place, (kind, message) in PLACES.items():
        with pytest.raises(kind, match=message):
            raise call(line.replace("OUT", place)).exception or AssertionError(line)
    assert sorted(os.listdir()) == ["file", "locked"]
