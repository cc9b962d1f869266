"""Checkpoints: partial sums, the epochs that they cover, and the identity of the run."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import reprlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskspectral.data.folders import Folder, folder_at, locked, room_at
from daskspectral.engine.plan import Plan
from daskspectral.engine.tasks import Total
from daskspectral.errors import UntrustedError
from daskspectral.registry import decode, encode, foreign
from daskspectral.store import read_state, write_state
from daskspectral.validation import NOT_NEGATIVE, check_number, check_type

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Checkpoint:
    """Partial sums of one run in a folder of numbered zarr groups, of which the newest intact one counts.

    `total` is the sum of the first `epochs` epochs, each a fixed number of tasks, written at most every `every`
    seconds. `identity` describes the data and the estimator, and `plan` the ranges of rows: a run resumes only if both
    agree. `constants` are reused by a resumed run (landmarks, scaling of columns). `check`, called before sums are
    written, raises OSError if the data have changed.
    """

    path: Folder
    identity: Mapping[str, Any]
    constants: Mapping[str, Any]
    every: float = 60.0
    epochs: int = 0
    total: Total | None = None
    plan: str | None = None
    check: Callable[[], None] | None = field(default=None, init=False)
    saved: int = field(default=-1, init=False)
    spoilt: bool = field(default=False, init=False)
    """The data changed: sums are no longer written."""
    _written: float = field(default_factory=time.monotonic, init=False)
    _cost: float = field(default=0.0, init=False)  # seconds of the last check

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        identity: Mapping[str, Any],
        constants: Callable[[], Mapping[str, Any]],
        kinds: Mapping[str, Any],
        every: float,
    ) -> Checkpoint:
        """Return the checkpoint of this run at a path, or create one and write its constants.

        `kinds` are the classes of the constants. Raises ValueError, with the differences, for the checkpoint of another
        run, and OSError if all its epochs are damaged. A damaged epoch is skipped if an older one is intact.
        """
        directory = folder_at(path)
        saved = sorted(_saved_epochs(directory), reverse=True)
        if not saved:
            made = constants()
            directory.make()
            checkpoint = cls(directory, identity, made, every)
            checkpoint.write()
            return checkpoint
        newest, state, damaged = _newest(directory, saved)
        differences = list(_differences(state["identity"], json.loads(_text(identity))))
        if differences:
            raise ValueError(
                f"the checkpoint {directory} is of another run: {'; '.join(differences)}. Pass the arguments "
                "of that run to resume it, or another path, or delete it to start anew"
            )
        for epochs, reason in damaged.items():
            logger.warning(
                "%s of the checkpoint %s is damaged (%s): the run continues from %s",
                *(_name(epochs), directory, reason, _name(newest)),
            )
        try:
            known = decode(state["constants"], dict, trusted=foreign(identity))
            strange = [name for name, kind in kinds.items() if not isinstance(known.get(name), kind)]
            if strange:
                raise ValueError(f"it has no valid {strange[0]}")
            total = None if state["total"] is None else _total_of(state["total"])
        except (ValueError, KeyError, TypeError) as error:
            asked = error.names if isinstance(error, UntrustedError) else ()
            why = f"it names {', '.join(asked)}, which this run does not have" if asked else error
            raise OSError(
                f"the checkpoint {directory} was not written by a run like this one: {why}. Delete it to start anew"
            ) from error
        found = cls(directory, identity, known, every, newest, total, state["plan"])
        found.saved = newest
        return found

    def set_plan(self, plan: Plan) -> None:
        """Set the plan of a run; raise ValueError if the partial sums follow another plan."""
        now = hashlib.sha256(repr(plan).encode()).hexdigest()
        if self.total is not None and self.plan != now:
            raise ValueError(
                f"the plan of the checkpoint {self.path} differs, because the chunks of the data, or the version of "
                "daskspectral, do. Go back to them, pass another path, or delete the checkpoint to start anew."
            )
        self.plan = now

    def add(self, epochs: int, total: Total) -> None:
        """Set the sums of the first `epochs` epochs, which are written once the interval has passed."""
        self.epochs, self.total = epochs, total
        if time.monotonic() - self._written >= max(self.every, 10 * self._cost):
            self.write()

    def write(self) -> None:
        """Write the partial sums, atomically, and delete all older ones but the latest.

        Raises OSError if the data changed (the checkpoint keeps sums of the earlier data).
        """
        if self.spoilt or self.saved == self.epochs:
            return
        total = self.total
        if total is not None and self.check is not None:
            began = time.monotonic()
            try:
                self.check()
            except OSError:
                self.spoilt = True
                raise
            self._cost = time.monotonic() - began
        state = {
            "identity": json.loads(_text(self.identity)),
            "constants": encode(self.constants),
            "plan": self.plan,
            "epochs": self.epochs,
            "total": None
            if total is None
            else {
                "sums": encode(dict(total.sums)),
                **{name: getattr(total, name) for name in ("weight", "count", "skipped")},
            },
        }
        write_state(f"{self.path}/{_name(self.epochs)}", "checkpoint", state, overwrite=True)
        latest = max((k for k in _saved_epochs(self.path) if k < self.epochs), default=-1)
        for older in _named_epochs(self.path):  # also unfinished parts of a killed run
            if older < self.epochs and older != latest:
                self.path.delete(_name(older))
        self._written, self.saved = time.monotonic(), self.epochs


def checkpoint_directory(path: str | os.PathLike[str]) -> Folder:
    """Return the folder of a checkpoint; raise ValueError or OSError for an invalid one."""
    if not os.fspath(path):
        raise ValueError("a checkpoint must be the path or URL of a directory, got an empty one")
    directory = folder_at(path)
    if directory.path is None:
        parent = Folder(str(directory).rpartition("/")[0])
        above = [parent] if "/" in parent.root else []
    else:
        if directory.exists and not directory.path.is_dir():
            raise ValueError(f"a checkpoint must be a directory, got the file {directory}. Choose another path")
        Folder(directory.path.parent).refuse_unwritable(f"the checkpoint {directory.path.name}")
        above = [*map(Folder, directory.path.parents)]
    for store in above:
        if store.is_store:
            raise ValueError(
                f"the checkpoint {directory} must not be inside the zarr store {store}. Choose another path"
            )
    foreign = any(not name.startswith(".") for name in directory.names())
    if foreign and not _saved_epochs(directory):
        raise ValueError(f"{directory} must be a checkpoint or not exist. Choose another path")
    if directory.path is None or directory.exists:
        directory.refuse_unwritable("the sums of a checkpoint")
    return directory


@contextmanager
def locked_checkpoint(path: str | os.PathLike[str] | None, every: float) -> Iterator[None]:
    """Hold the lock of a checkpoint, if one is given, so that one run at a time writes there.

    Raises ValueError or OSError for a path that cannot hold a checkpoint, ValueError for an interval below 0, and
    OSError if another run holds the lock.
    """
    if every != math.inf:
        check_number("checkpoint_every", every, NOT_NEGATIVE)
    if path is None:
        yield
        return
    check_type("checkpoint", path, (str, os.PathLike), "the path or URL of a directory")
    directory = checkpoint_directory(path)
    with room_at(path), locked(directory, "the checkpoint"):
        for name in directory.names():
            if name.startswith(".epoch-"):  # left by a run that was killed while it wrote
                directory.delete(name)
        yield


def _newest(directory: Folder, saved: list[int]) -> tuple[int, dict[str, Any], dict[int, Exception]]:
    """Return the first intact epoch, its state, and earlier errors; raise OSError if all are damaged."""
    damaged: dict[int, Exception] = {}
    for epochs in saved:
        try:
            return epochs, _read(directory, epochs), damaged
        except PermissionError:
            raise
        except (ValueError, OSError, KeyError, TypeError, AttributeError) as error:  # from zarr, for odd JSON
            damaged[epochs] = error
    raise OSError(
        f"no epoch of the checkpoint {directory} can be read: "
        f"{'; '.join(f'{_name(k)}: {_reason(why)}' for k, why in damaged.items())}. Delete {directory} to start anew"
    )


def _total_of(state: Mapping[str, Any]) -> Total:
    return Total(decode(state["sums"], dict), float(state["weight"]), int(state["count"]), int(state["skipped"]))


def _read(directory: Folder, epochs: int) -> dict[str, Any]:
    """Return the state of one epoch; raise OSError, ValueError, KeyError or TypeError if damaged."""
    kind, state = read_state(f"{directory}/{_name(epochs)}")
    if kind != "checkpoint":
        raise ValueError(f"it holds {kind!r}, not a checkpoint")
    if not isinstance(state, Mapping) or not state.keys() >= {"identity", "constants", "plan", "epochs", "total"}:
        raise ValueError("its parts are not those of a checkpoint")
    if not isinstance(state["identity"], Mapping):
        raise ValueError("it has no identity")
    if state["epochs"] != epochs:
        raise OSError(f"it holds the sums of {state['epochs']} epochs")
    return dict(state)


def _text(value: Any) -> str:
    """Return plain data as JSON, with shapes in place of arrays, which have separate digests."""
    return json.dumps(value, sort_keys=True, default=lambda v: v.item() if isinstance(v, np.generic) else list(v.shape))


def _name(epochs: int) -> str:
    return f"epoch-{epochs:08d}"


def _reason(error: Exception) -> str:
    return str(error).removesuffix("; save it again")  # not possible for a checkpoint


def _saved_epochs(directory: Folder) -> list[int]:
    return [k for k in _named_epochs(directory) if directory.holds(f"{_name(k)}/zarr.json")]


def _named_epochs(directory: Folder) -> list[int]:
    found = [re.fullmatch(r"epoch-(\d{8})", name) for name in directory.names()]
    return [int(match[1]) for match in found if match]


def _differences(then: Any, now: Any, name: str = "") -> Iterator[str]:
    """Yield the differences as 'name (then a, now b)'."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*now, *then]):
            yield from _differences(then.get(key), now.get(key), f"{name} {key}".lstrip())
    elif then != now:
        yield f"{name} (then {reprlib.repr(then)}, now {reprlib.repr(now)})"
