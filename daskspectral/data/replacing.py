"""Files and folders that take their place on a disk in one step, and what killed runs left beside them."""

from __future__ import annotations

import ctypes
import glob
import os
import re
import secrets
import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daskspectral.data.folder import Directory
from daskspectral.data.lease import RENEWAL, Lease, is_dead

NEW, OLD = "new", "old"
SETTLING = 0.1  # seconds after an interrupt until the writes that were under way have ended
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE, AT_FDCWD
_STAGING = r"\.({})\.[0-9a-f]{{8}}\.partial"


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path for a file or folder, which takes the place of `target` when the block ends without an error.

    The path lies in a hidden folder beside the target, with a lease of this run, which goes at the end; where the run
    is killed, the next one deletes it. At any moment what was at the target is there, or what is new; on systems that
    cannot exchange two folders in one step, neither is for an instant, and what a run that was killed then moved aside
    is put back by `recover`.
    """
    recover(target.parent, target.name)
    folder = _staging(target)
    lease, pause = Lease.take(Directory(folder), RENEWAL, "the output"), SETTLING
    try:
        yield folder / NEW
        lease.renew()
        _put_in_place(folder / NEW, target, folder / OLD)
        pause = 0.0
    finally:
        for part in (folder / NEW, folder / OLD):
            _discard(part, pause)
        lease.release()
        if folder.exists():
            warnings.warn(f"What was written or replaced could not be deleted: it is left at {folder}", stacklevel=3)


def recover(parent: Path, name: str | None = None) -> None:
    """Put back what killed runs moved aside in a folder, and delete what they left; of one name, or of all.

    What live runs write stays, and what this run may not change.
    """
    staging = re.compile(_STAGING.format(".+" if name is None else re.escape(name)))
    with suppress(OSError):
        for found in filter(None, map(staging.fullmatch, os.listdir(parent))):
            folder, target = parent / found[0], parent / found[1]
            with suppress(OSError):
                if is_dead(Directory(folder)):
                    mine = _staging(target)
                    folder.rename(mine)  # one run alone can do it
                    if (mine / OLD).exists() and (mine / NEW).exists() and not target.exists():
                        (mine / OLD).rename(target)  # killed between the two steps of `_put_in_place`
                    for part in (mine / NEW, mine):  # in this order: without what is new, nothing is put back
                        shutil.rmtree(part, ignore_errors=True)


def moved_aside(target: Path) -> bool:
    """Whether a run is about to replace a target, in two steps, and has moved what was there aside."""
    return any(target.parent.glob(f".{glob.escape(target.name)}.*.partial/{OLD}"))


def _staging(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    if target.exists():
        shutil.copymode(target, new)
    if new.is_file() or not target.exists():
        new.replace(target)
    elif not _exchanged(new, target):
        try:
            target.rename(old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:  # not on Linux, or a C library from before 2018
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _discard(path: Path, pause: float) -> None:
    for _ in range(20):  # a write that was under way during an interrupt can make a directory again
        if path.is_file():
            path.unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        time.sleep(pause)
        if not path.exists():
            return
