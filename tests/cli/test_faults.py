"""Whatever goes wrong, the command says one line and exits with 1; where it went wrong, only to --debug."""

import logging
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr

from daskspectral.cli import main
from daskspectral.cli.commands import Formatter
from daskspectral.data.writing import progress_bar

ERRORS = {
    "AssertionError": AssertionError(),
    "OverflowError: too large": OverflowError("too\n  large"),
    "RecursionError: too deep": RecursionError("too deep"),
    "NotImplementedError": NotImplementedError(),
    "the disk is full": OSError("the disk is full"),
    "not enough memory": MemoryError(),
}


def failed(line: str, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, trusted: object = ()) -> None:
        raise error

    monkeypatch.setattr("daskspectral.cli.using.load", fail)
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == 1


@pytest.mark.parametrize("line", ERRORS)
def test_an_error_is_one_line(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failed("info m.zarr", ERRORS[line], monkeypatch)
    assert capsys.readouterr() == ("", f"Error: {line}\n")


@pytest.mark.parametrize("by_variable", [False, True])
def test_debug_shows_the_traceback(
    by_variable: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if by_variable:
        monkeypatch.setenv("DASKSPECTRAL_DEBUG", "1")
    failed("info m.zarr" if by_variable else "--debug info m.zarr", ValueError("too few"), monkeypatch)
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert "in fail" in err
    assert "\nError: too few" in err


EVIL = "a\x1b]0;title\x07\x9b2J\u202eb"
"""A name with which a file sets the title of a terminal, empties it and turns the text around."""
SHOWN = r"a\x1b]0;title\x07\x9b2J\u202eb"


@pytest.mark.parametrize(
    "line",
    [
        ["verify", "g.zarr"],
        ["--debug", "info", EVIL],
        ["info", "x", f"--{EVIL}"],
        ["info", "x", "--config", "run.yaml"],
        ["fit", f"{EVIL}/none", "--out", "o.zarr"],
    ],
    ids=repr,
)
def test_names_are_printed_without_control_characters(
    line: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zarr.create_group("g.zarr").create_array(EVIL, data=np.ones((3, 1)))
    Path("run.yaml").write_text(yaml.safe_dump({EVIL: 1}))
    with suppress(SystemExit):
        main(line)
    shown = "".join(capsys.readouterr())
    assert SHOWN in shown
    assert all(c.isprintable() or c == "\n" for c in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{EVIL} \udc80 https://token@host/x?sig=token s3://b/x", f"{SHOWN} \\udc80 https://***@host/x?*** s3://b/x"),
        ("at tcp://u:p/w@h: no", "at tcp://***@h: no"),
        ("at tcp://127.0.0.1:87 (u@h), s3://b/run@2024", "at tcp://127.0.0.1:87 (u@h), s3://b/run@2024"),
    ],
)
def test_logs_have_no_control_characters_and_no_credentials(text: str, shown: str) -> None:
    assert Formatter().format(logging.makeLogRecord({"msg": "%s", "args": (text,)})) == shown


def test_progress_bars_have_no_control_characters() -> None:
    with progress_bar(9, f"{EVIL} to x", True) as bar:
        assert bar.desc.startswith(f"{SHOWN} to x")
