"""Pictures in files: they appear whole or not at all, and nothing is overwritten unasked."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from daskspectral.data.writer import refuse_unwritable
from daskspectral.plot.common import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Location = str | os.PathLike[str]

SUFFIXES = (".png", ".pdf", ".svg")


def save_figure(figure: Figure, path: Location, *, overwrite: bool = False, dpi: float = 150) -> None:
    """Write a figure in the format that the path's ending names, .png, .pdf or .svg; it appears whole or not at all.

    Raises ValueError or OSError, as `refuse_picture` does, for a path where it cannot be written.
    """
    refuse_picture(path, overwrite)
    target = Path(path)
    staging = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        figure.savefig(staging, format=target.suffix.lower().removeprefix("."), dpi=dpi)
        staging.replace(target)
    finally:
        staging.unlink(missing_ok=True)


def refuse_picture(path: Location, overwrite: bool) -> None:
    """Raise an error for a picture that could not be written, before the work is done that it would show.

    Raises ImportError without matplotlib, ValueError for a URL or an ending other than .png, .pdf and .svg,
    FileExistsError for a path that exists (with `overwrite`: and is not a file), and another OSError for a directory
    that is missing or cannot be written.
    """
    require_matplotlib()
    if "://" in os.fspath(path):
        raise ValueError(f"a picture is a local file, not a URL; got {os.fspath(path)}. Draw it here, then copy it")
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ValueError(f"a picture's name must end in {', '.join(SUFFIXES)}; it is {os.fspath(path)!r}")
    refuse_unwritable(target.parent, target.name)
    if target.exists() and not (overwrite and target.is_file()):
        remedy = ", or replace it with overwrite=True (--overwrite in the shell)" if target.is_file() else ""
        raise FileExistsError(f"{os.fspath(path)} exists: choose another path{remedy}.")
