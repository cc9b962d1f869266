"""Full disks and damaged metadata, as errors that name the path and say what to do."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
NO_DATA_TYPE = ("No Zarr data type found", "object arrays are not supported")  # in errors of zarr
METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")


@contextmanager
def room_at(path: str | os.PathLike[str]) -> Iterator[None]:
    """An OSError raised inside for a full disk or quota is raised again with the path and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise OSError(
            error.errno,
            f"{os.strerror(error.errno)} while writing {os.fspath(path)}, of which nothing was kept: free some space "
            "there, or choose a path on another disk",
        ) from error


@contextmanager
def metadata_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """An error that zarr raises inside for unreadable metadata becomes an OSError that names the path."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        known = (json.JSONDecodeError, UnicodeDecodeError, AttributeError, RecursionError)  # no JSON, text or mapping
        if not isinstance(error, known) and not any(text in str(error) for text in NO_DATA_TYPE):
            raise
        raise OSError(
            f"{_damaged(os.fspath(path))} is damaged, and no zarr metadata can be read from it ({error}): it was cut "
            "short or overwritten. Restore it, or write the store again"
        ) from error


def _damaged(path: str) -> str:
    """The metadata file of a store that is no JSON object, or the path of the store where none can be named."""
    folder = Path(path.removeprefix("file://"))
    for file in [folder / name for name in METADATA] if folder.is_dir() else []:
        try:
            whole = isinstance(json.loads(file.read_bytes()), dict) if file.is_file() else True
        except (ValueError, RecursionError):
            whole = False
        if not whole:
            return str(file)
    return path
