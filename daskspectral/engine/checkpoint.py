"""Checkpoints: the sums so far, the epochs that they cover, and what they are sums of."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daskspectral.data.state import read_state, write_state
from daskspectral.data.writer import local_path
from daskspectral.engine.tasks import Total


@dataclass(eq=False)
class Checkpoint:
    """Partial sums of one run in a directory of numbered zarr groups, of which the newest whole one counts.

    `identity` says what the sums are of (data, estimator, plan): a run resumes only where all of it agrees.
    `constants` are what a resumed run takes from the first one (landmarks, the scaling of columns).
    """

    path: Path
    identity: Mapping[str, Any]
    constants: Mapping[str, Any]
    every: float = 60.0
    epochs: int = 0
    total: Total | None = None
    _written: float = field(default_factory=time.monotonic)
    _saved: int = -1

    @classmethod
    def open(cls, path: str | os.PathLike[str], identity: Mapping[str, Any], every: float) -> Checkpoint | None:
        """The checkpoint at a path, or None where there is none yet.

        Raises ValueError where it is of another run, saying what differs, or the path holds something else.
        """
        directory = local_path(path)
        if directory is None:
            raise ValueError(f"a checkpoint is a local directory (renaming must be atomic); got {os.fspath(path)}")
        if not directory.parent.is_dir():
            raise FileNotFoundError(
                f"{directory.parent}, the directory for the checkpoint {directory.name}, is missing"
            )
        newest = max(_saved_epochs(directory), default=None)
        if newest is None:
            if directory.exists() and any(not p.name.startswith(".") for p in directory.iterdir()):
                raise ValueError(f"{directory} exists and is not a checkpoint; choose another path")
            return None
        kind, state = read_state(directory / _name(newest))
        if kind != "checkpoint":
            raise ValueError(f"{directory} holds {kind!r}, not a checkpoint; choose another path")
        differences = [
            f"{name} (then {_short(state['identity'].get(name))}, now {_short(identity.get(name))})"
            for name in dict.fromkeys([*identity, *state["identity"]])
            if state["identity"].get(name) != identity.get(name)
        ]
        if differences:
            raise ValueError(
                f"the checkpoint {directory} is of another run: {'; '.join(differences)}. Give another path, or delete "
                "it to start anew"
            )
        saved = state["total"]
        total = None if saved is None else Total(saved["sums"], saved["weight"], saved["count"], saved["skipped"])
        return cls(directory, identity, state["constants"], every, newest, total, _saved=newest)

    @classmethod
    def start(
        cls, path: str | os.PathLike[str], identity: Mapping[str, Any], constants: Mapping[str, Any], every: float
    ) -> Checkpoint:
        """A new checkpoint; its constants are written at once."""
        directory = local_path(path)
        assert directory is not None
        directory.mkdir(exist_ok=True)
        checkpoint = cls(directory, identity, constants, every)
        checkpoint.write()
        return checkpoint

    def add(self, epochs: int, total: Total) -> None:
        """The sums of the first `epochs` epochs; written when the interval has passed."""
        self.epochs, self.total = epochs, total
        if time.monotonic() - self._written >= self.every:
            self.write()

    def write(self) -> None:
        """Write the sums so far; they appear whole or not at all, and older ones go."""
        if self._saved == self.epochs:
            return
        total = self.total
        write_state(
            self.path / _name(self.epochs),
            "checkpoint",
            {
                "identity": self.identity,
                "constants": self.constants,
                "total": None
                if total is None
                else {
                    "sums": dict(total.sums),
                    "weight": total.weight,
                    "count": total.count,
                    "skipped": total.skipped,
                },
            },
            overwrite=True,
        )
        for older in _saved_epochs(self.path):
            if older < self.epochs:
                shutil.rmtree(self.path / _name(older), ignore_errors=True)
        self._written, self._saved = time.monotonic(), self.epochs


def _name(epochs: int) -> str:
    return f"epoch-{epochs:08d}"


def _saved_epochs(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    names = [p.name for p in directory.iterdir()]
    return [int(n.removeprefix("epoch-")) for n in names if n.startswith("epoch-") and n[6:].isdigit()]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
