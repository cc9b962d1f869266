"""Pictures in files: they appear whole or not at all, and nothing is overwritten unasked."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from daskspectral.data.folders import Folder
from daskspectral.data.remote import Location, local_path, stored
from daskspectral.data.writing import write_file
from daskspectral.plot.common import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")


@stored
def save_figure(
    figure: Figure,
    path: Location,
    *,
    overwrite: bool = False,
    dpi: float = 150,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write a figure in the format that the path's ending names, .png, .pdf or .svg; it appears whole or not at all.

    `storage_options` are fsspec's for a URL (see `daskspectral.save`). Raises ValueError or OSError, as
    `refuse_picture` does, for a path where it cannot be written.
    """
    refuse_picture(path, overwrite)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=_suffix(path).removeprefix("."), dpi=dpi)
    write_file(path, drawn.getvalue())


def refuse_picture(path: Location, overwrite: bool) -> None:
    """Raise an error for a picture that could not be written, before the work is done that it would show.

    Raises ImportError without matplotlib, ValueError for an ending other than .png, .pdf and .svg, FileExistsError for
    a path that exists (with `overwrite`: and is not a file), and another OSError for a directory or bucket that is
    missing or cannot be written.
    """
    require_matplotlib()
    refuse_file(path, SUFFIXES, overwrite, what="a picture")


def refuse_file(path: Location, endings: Sequence[str], overwrite: bool, *, what: str) -> None:
    """Raise an error for a file that could not be written, as `refuse_picture` does; `what` is "a report", say."""
    if _suffix(path) not in endings:
        raise ValueError(f"{what}'s name must end in {', '.join(endings)}; it is {os.fspath(path)!r}")
    target, url = local_path(path), os.fspath(path)
    parent, _, name = str(target or url).rpartition("/")
    folder = Folder(parent or "/")
    there, replaceable = (folder.holds(name),) * 2 if target is None else (target.exists(), target.is_file())
    if overwrite or not there:
        folder.refuse_unwritable(name)
    if there and not (overwrite and replaceable):
        remedy = ", or replace it with overwrite=True (--overwrite in the shell)" if replaceable else ""
        raise FileExistsError(f"{url} exists: choose another path{remedy}.")


def _suffix(path: Location) -> str:
    return PurePosixPath(os.fspath(path)).suffix.lower()
