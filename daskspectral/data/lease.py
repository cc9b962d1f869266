"""The lease of a folder: one live run at a time writes there, and a dead one does not block the next."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from daskspectral.data.folder import Directory, Folder

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
        _refuse_live(holder, self.directory, self.what)
        with self.directory.alone():  # where there are no locks, at its best
            if _holder(self.directory).get("token") == holder.get("token"):  # or another run was faster
                self.directory.delete(NAME)


def renew(directory: Folder) -> None:
    """Renew the lease that this process holds on a folder, if any. Raises OSError where it was taken over."""
    lease = _held.get(str(directory))
    if lease is not None:
        lease.renew()


def refuse_live(directory: Folder, what: str) -> None:
    """Raise OSError, which names the run, where a live run has a lease on a folder."""
    _refuse_live(_holder(directory), directory, what)


def _refuse_live(holder: dict[str, Any], directory: Folder, what: str) -> None:
    if holder and _lives(holder, directory):
        elsewhere = (
            ""
            if _is_here(holder)
            else f"; if it died, its hold ends {PATIENCE * holder['interval']:.0f} s after its last sign of life"
        )
        raise OSError(
            f"{what} {directory} is in use by {_named(holder)}: two runs cannot share it. Wait for that run, stop it, "
            f"or give another path{elsewhere}"
        )


def is_dead(directory: Directory) -> bool:
    """Whether the run that made a folder and took its lease has ended; for a minute it may be about to take it."""
    made, holder = directory.path.stat().st_mtime, _holder(directory)
    if holder:
        return not _lives(holder, directory)
    return abs(Directory(directory.path.parent).now() - made) > PATIENCE * RENEWAL


def writer_of(directory: Folder) -> str | None:
    """In words, the run that has a lease on a folder, alive or dead; None where there is no lease."""
    return _named(_holder(directory)) if directory.holds(NAME) else None


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


def _lives(holder: dict[str, Any], directory: Folder) -> bool:
    if _is_here(holder) and _started(int(holder["pid"])) != holder.get("started"):
        return False
    now = directory.now()
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
