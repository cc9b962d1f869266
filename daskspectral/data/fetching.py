"""Files of an object store, copied to this machine for libraries that read local files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from daskspectral.data.remote import connect, reaching
from daskspectral.data.storage import room_at
from daskspectral.data.unfinished import refuse_absent
from daskspectral.data.writer import local_path


@contextmanager
def local_copy(location: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file or folder; what is at a URL is copied to a temporary folder, which goes at the end.

    Raises FileNotFoundError where there is nothing at a URL, and OSError, which names the folder, where it is full.
    """
    path = Path(os.fspath(location).removeprefix("file://")) if local_path(location) is not None else None
    if path is not None:
        yield path
        return
    files, root = connect(location)
    with tempfile.TemporaryDirectory(prefix="daskspectral-") as folder:
        copy = Path(folder) / PurePosixPath(root).name
        with reaching(location, files=files), room_at(folder):
            if not files.exists(root):
                refuse_absent(os.fspath(location))
                raise FileNotFoundError(f"there is no file at {os.fspath(location)}")
            if files.isdir(root):
                files.get(f"{root}/", f"{copy}/", recursive=True)
            else:
                files.get_file(root, str(copy))
        yield copy
