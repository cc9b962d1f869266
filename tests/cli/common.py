"""What the tests of several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from daskspectral.cli import command


def call(*words: str) -> Result:
    """The command in this process, of words or of one line; an error of ours is the result's exception."""
    return CliRunner().invoke(command, words[0].split() if len(words) == 1 else list(words))


def done(*words: str) -> str:
    result = call(*words)
    if result.exception is not None:
        raise result.exception
    return result.output


def facts(*words: str) -> dict[str, Any]:
    """What the command prints with --json."""
    result = call(*words, "--json") if len(words) > 1 else call(f"{words[0]} --json")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def everything() -> list[tuple[str, int]]:
    """The files and folders here, and when they were last written."""
    return sorted((str(p), p.stat().st_mtime_ns) for p in Path().rglob("*"))
