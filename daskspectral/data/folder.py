"""Folders of named files and stores: a directory of a file system, or a prefix of an object store."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

from daskspectral.data.remote import connect, holds, lacks_bucket, reaching
from daskspectral.data.storage import room_at

MARKERS = ("zarr.json", ".zarray", ".zgroup")
"""Files that make a folder a zarr store."""
MOST_READ = 1 << 16  # bytes of a file


class Folder(ABC):
    """A folder of files and of zarr stores, which may not exist yet; its text is its path or URL."""

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    @abstractmethod
    def exists(self) -> bool:
        """Whether it is there, or holds anything."""

    @abstractmethod
    def make(self) -> None:
        """Make it where it is missing. Raises OSError where that cannot be done."""

    @abstractmethod
    def names(self) -> list[str]:
        """What it holds, hidden files too; nothing where it is missing."""

    @abstractmethod
    def holds(self, name: str) -> bool:
        """Whether there is such a file."""

    @abstractmethod
    def published(self, name: str) -> bool:
        """Whether what it holds under a name is a store that was written to its end, as far as can be seen from here.

        On a disk it takes its name only then; in an object store its metadata are written last.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The first 64 kB of a file, nothing of one that is not regular. Raises FileNotFoundError for none."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> None:
        """Write a new file. Raises FileExistsError where there is one."""

    @abstractmethod
    def touch(self, name: str) -> None:
        """Make a file one that was changed just now. Raises FileNotFoundError where there is none."""

    @abstractmethod
    def changed(self, name: str) -> float:
        """When a file was changed, in seconds by the clock of the folder. Raises FileNotFoundError for none."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""

    @abstractmethod
    def delete_store(self, name: str) -> None:
        """Delete a store, if it is there, and its metadata first."""

    @abstractmethod
    def rename(self, name: str, other: str) -> None:
        """Give a store another name."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time, where the folder has locks."""
        yield

    def leave(self) -> None:
        """Remove the folder if it is empty, where empty ones last."""
        return

    @final
    def place(self, name: str) -> str:
        """The path or URL of what it holds under a name."""
        return f"{self}/{name}"

    @final
    def is_store(self) -> bool:
        """Whether it is a zarr store itself."""
        return any(self.holds(marker) for marker in MARKERS)

    @final
    def now(self) -> float:
        """The time by the clock of the folder."""
        probe = f".{secrets.token_hex(6)}.now"
        try:
            self.create(probe, b" ")
            return self.changed(probe)
        finally:
            self.delete(probe)


@final
class Directory(Folder):
    """A directory of a file system."""

    def __init__(self, path: Path):
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def make(self) -> None:
        with room_at(self.path):
            self.path.mkdir(exist_ok=True)

    def names(self) -> list[str]:
        return [path.name for path in self.path.iterdir()] if self.path.is_dir() else []

    def holds(self, name: str) -> bool:
        return (self.path / name).is_file()

    def published(self, name: str) -> bool:
        return True

    def read(self, name: str) -> bytes:
        if not stat.S_ISREG((self.path / name).stat().st_mode):
            return b""
        with (self.path / name).open("rb") as file:
            return file.read(MOST_READ)

    def create(self, name: str, data: bytes) -> None:
        with room_at(self.path), (self.path / name).open("xb") as file:
            file.write(data)

    def touch(self, name: str) -> None:
        os.utime(self.path / name)

    def changed(self, name: str) -> float:
        return (self.path / name).stat().st_mtime

    def delete(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def delete_store(self, name: str) -> None:
        shutil.rmtree(self.path / name, ignore_errors=True)

    def rename(self, name: str, other: str) -> None:
        (self.path / name).rename(self.path / other)

    @contextmanager
    def alone(self) -> Iterator[None]:
        opened = os.open(self.path, os.O_RDONLY)
        try:
            with suppress(OSError):
                fcntl.flock(opened, fcntl.LOCK_EX)
            yield
        finally:
            os.close(opened)

    def leave(self) -> None:
        with suppress(OSError):  # it holds something
            self.path.rmdir()


@final
class Prefix(Folder):
    """What begins alike in an object store, opened with the options in force when it is made.

    Raises PermissionError, FileNotFoundError or ConnectionError, each with one sentence, where the store says no.
    """

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        self._files, self.root = connect(self.url)

    def __str__(self) -> str:
        return self.url

    @contextmanager
    def _asking(self, *, writing: bool = False) -> Iterator[Any]:
        self._files.invalidate_cache()
        with reaching(self.url, writing=writing, files=self._files):
            yield self._files

    @property
    def exists(self) -> bool:
        with self._asking() as files:
            return bool(files.exists(self.root))

    def make(self) -> None:
        """A prefix needs no making."""

    def names(self) -> list[str]:
        with self._asking() as files:
            try:
                found = files.ls(self.root, detail=False)
            except FileNotFoundError as error:
                if lacks_bucket(error):
                    raise
                return []
        below = [str(path).rstrip("/").removeprefix(self.root).lstrip("/") for path in found]
        return [name for name in below if name and "/" not in name]

    def holds(self, name: str) -> bool:
        with self._asking() as files:
            return holds(files, f"{self.root}/{name}")

    def published(self, name: str) -> bool:
        return self.holds(f"{name}/zarr.json")

    def read(self, name: str) -> bytes:
        with self._asking() as files:
            return bytes(files.cat_file(f"{self.root}/{name}", start=0, end=MOST_READ))

    def create(self, name: str, data: bytes) -> None:
        if self.holds(name):  # stores that know no conditions overwrite
            raise FileExistsError(self.place(name))
        with self._asking(writing=True) as files:
            files.pipe_file(f"{self.root}/{name}", data, mode="create")

    def touch(self, name: str) -> None:
        data = self.read(name)
        with self._asking(writing=True) as files:
            files.pipe_file(f"{self.root}/{name}", data)

    def changed(self, name: str) -> float:
        with self._asking() as files:
            return float(files.modified(f"{self.root}/{name}").timestamp())

    def delete(self, name: str) -> None:
        with self._asking(writing=True) as files, suppress(FileNotFoundError):
            files.rm_file(f"{self.root}/{name}")

    def delete_store(self, name: str) -> None:
        for marker in MARKERS:
            self.delete(f"{name}/{marker}")
        with self._asking(writing=True) as files, suppress(FileNotFoundError):
            files.rm(f"{self.root}/{name}", recursive=True)

    def rename(self, name: str, other: str) -> None:
        with self._asking(writing=True) as files:
            files.copy(f"{self.root}/{name}", f"{self.root}/{other}", recursive=True)
        self.delete_store(name)

    def refuse_unwritable(self) -> None:
        """Raise OSError, which says what is missing, where objects cannot be written and deleted."""
        probe = f".{secrets.token_hex(6)}.writable"
        self.create(probe, b" ")
        self.delete(probe)

    def clear(self, *, kept: str) -> None:
        """Delete all that it holds but one file, and the metadata of a store first."""
        names = {name for name in self.names() if name != kept}
        for marker in names.intersection(MARKERS):
            self.delete(marker)
        others = [f"{self.root}/{name}" for name in sorted(names.difference(MARKERS))]
        if others:
            with self._asking(writing=True) as files, suppress(FileNotFoundError):
                files.rm(others, recursive=True)
