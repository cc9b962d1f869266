"""Folders of a file system or an object store, and the lease by which one live run at a time writes there."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from daskspectral.data.remote import connect, kind_at, lacks_bucket, local_path, reaching

MARKERS = ("zarr.json", ".zarray", ".zgroup")
"""Files that make a folder a zarr store."""
MOST_READ = 1 << 16  # bytes of a file


class Directory:
    """A folder of files and of zarr stores, which may not exist yet: a directory of a file system."""

    def __init__(self, path: Path):
        self.path = path

    def __str__(self) -> str:
        """Its path or URL."""
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether it is there, or holds anything."""
        return self.path.exists()

    def make(self) -> None:
        """Make it where it is missing. Raises OSError where that cannot be done."""
        with room_at(self.path):
            self.path.mkdir(exist_ok=True)

    def names(self) -> list[str]:
        """What it holds, hidden files too; nothing where it is missing."""
        return [path.name for path in self.path.iterdir()] if self.path.is_dir() else []

    def holds(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).is_file()

    def is_whole(self, name: str) -> bool:
        """Whether what it holds under a name is a store that was written to its end, as far as can be seen from here.

        On a disk it takes its name only then; in an object store its metadata are written last.
        """
        return True

    def read(self, name: str) -> bytes:
        """The first 64 kB of a file, nothing of one that is not regular. Raises FileNotFoundError for none."""
        if not stat.S_ISREG((self.path / name).stat().st_mode):
            return b""
        with (self.path / name).open("rb") as file:
            return file.read(MOST_READ)

    def create(self, name: str, data: bytes) -> None:
        """Write a new file, or leave none. Raises FileExistsError where there is one."""
        with room_at(self.path):
            file = (self.path / name).open("xb")
            try:
                with file:
                    file.write(data)
            except BaseException:
                self.delete(name)
                raise

    def touch(self, name: str) -> None:
        """Make a file one that was changed just now. Raises FileNotFoundError where there is none."""
        os.utime(self.path / name)

    def changed(self, name: str) -> float:
        """When a file was changed, in seconds by the clock of the folder. Raises FileNotFoundError for none."""
        return (self.path / name).stat().st_mtime

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def delete_store(self, name: str) -> None:
        """Delete a store, if it is there, and its metadata first."""
        shutil.rmtree(self.path / name, ignore_errors=True)

    def rename(self, name: str, other: str) -> None:
        """Give a store another name."""
        (self.path / name).rename(self.path / other)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time, where the folder has locks."""
        opened = os.open(self.path, os.O_RDONLY)
        try:
            with suppress(OSError):
                fcntl.flock(opened, fcntl.LOCK_EX)
            yield
        finally:
            os.close(opened)

    def leave(self) -> None:
        """Remove the folder if it is empty, where empty ones last."""
        with suppress(OSError):  # it holds something
            self.path.rmdir()


class Prefix:
    """A folder as `Directory`, of an object store: what begins alike, opened with the options in force when it is made.

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

    def leave(self) -> None:
        """A prefix is gone when it is empty."""

    def alone(self) -> AbstractContextManager[None]:
        """An object store has no locks."""
        return nullcontext()

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
            return kind_at(files, f"{self.root}/{name}") == "file"

    def is_whole(self, name: str) -> bool:
        return self.holds(f"{name}/zarr.json")

    def read(self, name: str) -> bytes:
        with self._asking() as files:
            return bytes(files.cat_file(f"{self.root}/{name}", start=0, end=MOST_READ))

    def create(self, name: str, data: bytes) -> None:
        if self.holds(name):  # stores that know no conditions overwrite
            raise FileExistsError(f"{self}/{name}")
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


Folder = Directory | Prefix


def folder_at(location: str | os.PathLike[str]) -> Folder:
    """The folder at a path or URL. Raises ValueError for a whole bucket."""
    local = local_path(location)
    if local is not None:
        return Directory(local)
    found = Prefix(os.fspath(location))
    if "/" not in found.root:
        raise ValueError(f"{found} is a whole bucket: give a path in it, such as {found}/x.zarr")
    return found


def is_store(folder: Folder) -> bool:
    """Whether a folder is a zarr store itself."""
    return any(folder.holds(marker) for marker in MARKERS)


NAME = ".lease"
PATIENCE = 3  # intervals without renewal, after which a run counts as dead
RENEWAL = 20.0  # the interval of a run that writes an output
SHORTEST, LONGEST = 1.0, 600.0  # seconds from one renewal to the next

_held: dict[str, Lease] = {}


@dataclass(eq=False)
class Lease:
    """The right of one run to write into a folder, of a checkpoint or an output: a hidden file there names the run.

    The file was last changed when the lease was last renewed; a thread renews it twice in `interval` seconds, and a run
    that has not renewed it for three intervals counts as dead, and so does one that renewed it that far in the future.
    Clocks of hosts are not compared: all times are the file system's, or the object store's. `what` the folder is to
    hold begins messages.
    """

    directory: Folder
    interval: float
    what: str = "the checkpoint"
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _made: bool = False

    @classmethod
    def take(cls, directory: Folder, every: float, what: str = "the checkpoint") -> Self:
        """The lease of a directory, which is made where it is missing; the lease of a dead run is taken over.

        Raises OSError where a live run holds it; the message names that run.
        """
        lease = cls(directory, min(max(every, SHORTEST), LONGEST), what)
        lease._made = not directory.exists
        directory.make()
        try:
            while not lease._created():
                lease._bury(_holder(directory))
        except BaseException:
            lease._leave()
            raise
        _held[str(directory)] = lease
        lease._thread = threading.Thread(target=lease._keep, name="daskspectral-lease", daemon=True)
        lease._thread.start()
        return lease

    def renew(self) -> None:
        """Say that the run lives. Raises OSError where another run has taken the lease over meanwhile."""
        holder = _holder(self.directory)
        if holder.get("token") != self.token:
            raise OSError(
                f"{self.what} {self.directory} was taken over by {_named(holder)}, as this run had given no sign of "
                f"life for {PATIENCE * self.interval:.0f} s; this run writes there no more"
            )
        self.directory.touch(NAME)

    def release(self) -> None:
        """Give the lease back; a directory that was made for it and is still empty is removed."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        _held.pop(str(self.directory), None)
        with suppress(OSError):  # out of reach: it ends by itself
            if self.is_held:
                self.directory.delete(NAME)
        self._leave()

    @property
    def is_held(self) -> bool:
        """Whether the lease is still this run's."""
        return bool(_holder(self.directory).get("token") == self.token)

    def _leave(self) -> None:
        if self._made:
            self.directory.leave()

    def _keep(self) -> None:
        while not self._ended.wait(self.interval / 2):
            with suppress(Exception):  # the next write of the run raises it
                self.renew()

    def _created(self) -> bool:
        text = json.dumps(
            {
                "token": self.token,
                "host": socket.gethostname(),
                "system": _system(),
                "pid": os.getpid(),
                "started": _started(os.getpid()),
                "since": datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
                "interval": self.interval,
            }
        )
        try:
            self.directory.create(NAME, text.encode())
        except FileExistsError:
            return False
        return True

    def _bury(self, holder: dict[str, Any]) -> None:
        """Remove the lease of a dead run. Raises OSError where it lives."""
        if not holder:
            time.sleep(0.2)  # it is gone, or its writer is at the first byte
            holder = _holder(self.directory)
        refuse_live(self.directory, self.what, holder)
        with self.directory.alone():  # where there are no locks, at its best
            if _holder(self.directory).get("token") == holder.get("token"):  # or another run was faster
                self.directory.delete(NAME)


def renew(directory: Folder) -> None:
    """Renew the lease that this process holds on a folder, if any. Raises OSError where it was taken over."""
    lease = _held.get(str(directory))
    if lease is not None:
        lease.renew()


def refuse_live(directory: Folder, what: str, holder: dict[str, Any] | None = None) -> None:
    """Raise OSError, which names the run, where a live run, the `holder`, has a lease on a folder."""
    holder = _holder(directory) if holder is None else holder
    if holder and _lives(holder, directory):
        end = f"; if it died, its hold ends {PATIENCE * holder['interval']:.0f} s after its last sign of life"
        raise OSError(
            f"{what} {directory} is in use by {_named(holder)}: two runs cannot share it. Wait for that run, stop it, "
            f"or give another path{'' if _is_here(holder) else end}"
        )


def is_dead(directory: Directory) -> bool:
    """Whether the run that made a folder and took its lease has ended; for a minute it may be about to take it."""
    made, holder = directory.path.stat().st_mtime, _holder(directory)
    if holder:
        return not _lives(holder, directory)
    return abs(_now(Directory(directory.path.parent)) - made) > PATIENCE * RENEWAL


def _holder(directory: Folder) -> dict[str, Any]:
    """What a lease says; an empty dictionary where there is none, or none that can be read to its end."""
    try:
        found = json.loads(directory.read(NAME))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return {}
    whole = isinstance(found, dict) and {"token", "host", "pid", "since", "interval"} <= set(found)
    sound = whole and isinstance(found["pid"], int) and isinstance(found["interval"], (int, float))
    return found if sound and found["interval"] <= LONGEST else {}


def _named(holder: dict[str, Any]) -> str:
    if not holder:
        return "another run"
    return f"another run: process {holder['pid']} on {holder['host']}, since {holder['since']}"


def _now(directory: Folder) -> float:
    """The time by the clock of a folder."""
    probe = f".{secrets.token_hex(6)}.now"
    try:
        directory.create(probe, b" ")
        return directory.changed(probe)
    finally:
        directory.delete(probe)


def _lives(holder: dict[str, Any], directory: Folder) -> bool:
    if _is_here(holder) and _started(int(holder["pid"])) != holder.get("started"):
        return False
    now = _now(directory)
    try:
        renewed = directory.changed(NAME)
    except FileNotFoundError:
        return False
    return abs(now - renewed) <= PATIENCE * float(holder["interval"])  # in the future: a clock that was wrong


def _is_here(holder: dict[str, Any]) -> bool:
    """Whether a holder runs on this system, so that its process number can be looked up."""
    return (holder["host"], holder.get("system")) == (socket.gethostname(), _system())


def _system() -> str:
    """What tells apart systems with the same host name, on Linux: the boot and the name space of process numbers."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + " " + os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, in units of its system; None where there is no such process, or a dead one."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return shown.stdout.strip() or None
    fields = text.rpartition(")")[2].split()  # the process name before it may hold anything
    return None if fields[0] in "ZX" else fields[19]


def refuse_absent(url: str) -> None:
    """Raise FileNotFoundError where a bucket is missing, or where a run was writing at a URL and has not ended."""
    folder = Prefix(url)
    folder.names()
    if folder.holds(NAME):
        raise FileNotFoundError(
            f"{url} is unfinished: {_named(_holder(folder))} is still writing there, or has died. Wait for it, or "
            "write it again"
        )


FULL = (errno.ENOSPC, errno.EDQUOT)


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
