"""Folders of a file system or an object store, with a lock so that one run at a time writes."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from filelock import FileLock, Timeout
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from daskspectral.data.remote import Location, connect, local_path, reaching

MARKERS = ("zarr.json", ".zarray", ".zgroup")
"""Names of files of which one makes a folder a zarr store."""
SAVED = "daskspectral"
"""Attribute of a zarr group that is a saved object, not data."""
ABSENT = (FileNotFoundError, NotADirectoryError)


class Folder:
    """Folder of files and zarr stores, which may not exist yet, on a disk or at a URL.

    A URL is opened with the options in force when the folder is created.

    Attributes
    ----------
    path : Path or None
        Absolute path; None for a URL.
    """

    def __init__(self, location: Location):
        self.path = local_path(location)
        self._name = os.fspath(location).rstrip("/") if self.path is None else str(self.path)
        files, self.root = (LocalFileSystem(), self._name) if self.path is not None else connect(self._name)
        self._files = DirFileSystem(self.root, files)

    def __str__(self) -> str:
        return self._name

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        self._files.fs.invalidate_cache()
        with reaching(self._name):
            yield self._files

    @property
    def exists(self) -> bool:
        """Return whether the folder exists, or at a URL contains objects."""
        return bool(self.names()) if self.path is None else self.path.exists()

    def make(self) -> None:
        if self.path is not None:
            with room_at(self.path):
                self.path.mkdir(exist_ok=True)

    def names(self) -> list[str]:
        """Return the names of its contents, hidden files included; none if it is missing."""
        try:
            with self._asked() as files:
                found = files.ls("", detail=False)
        except ABSENT:
            return []
        return [name for path in found if (name := str(path).strip("/")) and "/" not in name]

    def holds(self, name: str) -> bool:
        try:
            with self._asked() as files:
                return bool(files.info(name)["type"] == "file")
        except ABSENT:
            return False

    @property
    def is_store(self) -> bool:
        return any(map(self.holds, MARKERS))

    def read(self, name: str) -> str:
        """Return the text of a file, empty if it does not exist."""
        try:
            with self._asked() as files:
                return bytes(files.cat_file(name)).decode(errors="replace")
        except ABSENT:
            return ""

    def write(self, name: str, text: str, *, new: bool = False) -> None:
        """Write a file; raise FileExistsError if it must be `new` and exists."""
        if new and self.holds(name):  # stores without conditional writes overwrite
            raise FileExistsError(f"{self}/{name}")
        with self._asked() as files:
            files.pipe_file(name, text.encode(), mode="create" if new else "overwrite")

    def age(self, name: str) -> float:
        """Return the seconds since a file was written, by the clock of the store."""
        probe = f".{secrets.token_hex(6)}.now"
        self.write(probe, " ")
        with self._asked() as files:
            found = files.modified(probe) - files.modified(name)
            files.rm_file(probe)
        return float(found.total_seconds())

    def delete(self, name: str) -> None:
        """Delete a file or a store, its metadata first, if it exists."""
        for path in (f"{name}/{MARKERS[0]}", name):
            with suppress(*ABSENT), self._asked() as files:
                files.rm(path, recursive=True)

    def clear(self) -> None:
        """Delete all contents except the lock, the metadata of a store first."""
        for name in sorted(self.names(), key=lambda name: name not in MARKERS):
            if name != LOCK:
                self.delete(name)

    def refuse_unwritable(self, name: str) -> None:
        """Raise OSError if `name` cannot be written here."""
        if self.path is None:
            probe = f".{secrets.token_hex(6)}.writable"
            self.write(probe, " ")
            self.delete(probe)
            return
        if not self.path.is_dir():
            in_the_way = next(p for p in (self.path, *self.path.parents) if p.exists())
            if in_the_way.is_file():
                raise NotADirectoryError(f"{in_the_way}, the directory for {name}, is a file: choose another path.")
            raise FileNotFoundError(f"{self}, the directory for {name}, is missing.")
        try:
            tempfile.TemporaryFile(dir=self.path).close()
        except OSError as error:
            raise PermissionError(f"{self}, the directory for {name}, cannot be written: {error.strerror}.") from error


def folder_at(location: Location) -> Folder:
    """Return the folder at a path or URL; raise ValueError for a whole bucket."""
    found = Folder(location)
    if "/" not in found.root:
        raise ValueError(f"{found} must be a path in a bucket, such as {found}/x.zarr")
    return found


LOCK = ".lock"
RENEWAL = 20.0
"""Seconds after which a run renews its lock object; a lock three times as old is stale."""


@contextmanager
def locked(folder: Folder, what: str, name: str = LOCK) -> Iterator[Callable[[], bool]]:
    """Hold the lock of output in a folder, a hidden file: one run at a time writes.

    On a disk the system releases the lock of a process that dies; at a URL it expires after a minute. Yields a function
    that returns whether this run still holds the lock. Raises OSError, which names the other run, if that one holds it.
    """
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    holder = f"process {os.getpid()} on {socket.gethostname()}, since {since} (run {secrets.token_hex(4)})"
    with (_object_lock if folder.path is None else _file_lock)(folder, what, name, holder):
        yield lambda: folder.path is not None or folder.read(name) == holder


def _in_use(folder: Folder, what: str, name: str) -> OSError:
    by = folder.read(name) or "which has just started"
    return OSError(f"{what} {folder} is in use by another run: {by}. Wait for it, stop it, or choose another path.")


@contextmanager
def _file_lock(folder: Folder, what: str, name: str, holder: str) -> Iterator[None]:
    assert folder.path is not None
    path, made = folder.path / name, not folder.exists
    folder.make()
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise _in_use(folder, what, name) from None
    try:
        with suppress(OSError):  # full disk: the name of the run is for messages only
            path.write_bytes(holder.encode())
        yield
    finally:
        path.unlink(missing_ok=True)  # a waiting run sees that it is deleted, and creates another
        lock.release()
        if made:
            with suppress(OSError):  # it is not empty
                folder.path.rmdir()


@contextmanager
def _object_lock(folder: Folder, what: str, name: str, holder: str) -> Iterator[None]:
    for last in (False, True):
        try:
            folder.write(name, holder, new=True)
            break
        except FileExistsError:
            if last or abs(folder.age(name)) <= 3 * RENEWAL:
                raise _in_use(folder, what, name) from None
            folder.delete(name)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWAL):
            with suppress(Exception):
                if folder.read(name) == holder:
                    folder.write(name, holder)

    thread = threading.Thread(target=renew, name="daskspectral-lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(Exception):  # out of reach: the lock expires
            if folder.read(name) == holder:
                folder.delete(name)


def refuse_unfinished(url: str) -> None:
    """Raise FileNotFoundError if a run is writing at a URL, or was killed while writing."""
    folder = Folder(url)
    if holder := folder.read(LOCK):
        raise FileNotFoundError(f"{url} is incomplete: {holder}, is writing or was killed. Write it again.")


@contextmanager
def room_at(path: Location) -> Iterator[None]:
    """Add the path and the remedy to an OSError for a full disk or quota."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(error.errno, f"{os.strerror(error.errno)} while writing {os.fspath(path)}") from error
