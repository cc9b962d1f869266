"""What the tests of several commands share."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from click.testing import CliRunner, Result

from daskspectral.cli import command


def store(rows: int = 100, /, **arrays: np.ndarray) -> None:
    """Arrays by their names, in chunks of so many rows."""
    for name, data in arrays.items():
        zarr.create_array(f"{name}.zarr", data=data, chunks=(rows, *data.shape[1:]))


def call(*words: str) -> Result:
    """The command in this process, of words or of one line; an error of ours is the result's exception."""
    return CliRunner().invoke(command, words[0].split() if len(words) == 1 else list(words))


def done(*words: str) -> str:
    result = call(*words)
    if result.exception is not None:
        raise result.exception
    return result.output


def facts(line: str) -> dict[str, Any]:
    """What the command prints with --json."""
    result = call(f"{line} --json")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def failure(line: str) -> tuple[int, str]:
    """The exit code of a line that fails, and what it says, on one line."""
    result = call(line)
    shown = f"{result.output} {'' if isinstance(result.exception, SystemExit) else result.exception}"
    return result.exit_code, " ".join(shown.split())


def everything() -> list[tuple[str, int]]:
    """The files and folders here, and when they were last written."""
    return sorted((str(p), p.stat().st_mtime_ns) for p in Path().rglob("*"))
