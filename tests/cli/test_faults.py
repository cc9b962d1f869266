"""Whatever goes wrong, the command says one line and exits with 1; where it went wrong, only to --debug."""

from __future__ import annotations

import logging
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr

from daskspectral.cli import main
from daskspectral.cli.terminal import Formatter
from daskspectral.data.writer import progress_bar
from daskspectral.engine.progress import Progress

FAULT = "(this is a fault of daskspectral; --debug shows where)"
# as an object store's package would define it
NO_CREDENTIALS = type("NoCredentialsError", (Exception,), {"__module__": "botocore.exceptions"})
GCS = type("HttpError", (Exception,), {"__module__": "gcsfs.retry"})

ERRORS = {
    f"Error: AssertionError {FAULT}": AssertionError(),
    f"Error: KeyError: 'gram' {FAULT}": KeyError("gram"),
    f"Error: OverflowError: too large {FAULT}": OverflowError("too\n  large"),
    f"Error: RecursionError: too deep {FAULT}": RecursionError("too deep"),
    f"Error: ZeroDivisionError: by zero {FAULT}": ZeroDivisionError("by zero"),
    f"Error: NotImplementedError {FAULT}": NotImplementedError(),
    "Error: the object store cannot be used: NoCredentialsError: Unable to locate credentials": NO_CREDENTIALS(
        "Unable to locate credentials"
    ),
    "Error: the object store cannot be used: HttpError: Anonymous caller": GCS("Anonymous caller"),
    "Error: the disk is full": OSError("the disk is full"),
    "Error: there is not enough memory": MemoryError(),
}


def failed(arguments: list[str], error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, trusted: object = ()) -> None:
        raise error

    monkeypatch.setattr("daskspectral.store.load", fail)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 1


@pytest.mark.parametrize("line", ERRORS)
def test_an_error_is_one_line(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failed(["info", "m.zarr"], ERRORS[line], monkeypatch)
    assert capsys.readouterr() == ("", f"{line}\n")


@pytest.mark.parametrize("error", [KeyError("gram"), ValueError("too few")], ids=["fault", "expected"])
@pytest.mark.parametrize("by_variable", [False, True])
def test_debug_shows_where(
    error: Exception, by_variable: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if by_variable:
        monkeypatch.setenv("DASKSPECTRAL_DEBUG", "1")
    failed(["info", "m.zarr"] if by_variable else ["--debug", "info", "m.zarr"], error, monkeypatch)
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert "in fail" in err
    assert "\nError: " in err


def test_a_terminal_that_goes_away_ends_a_run_as_sigterm_does(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=np.zeros((10, 2)), chunks=(10, 2))
    code = (
        "import os, signal, sys, time\n"
        "import daskspectral.cli as cli, daskspectral.store as store\n"
        "def load(path, trusted=()):\n"
        "    open('started', 'w').close()\n"
        "    while True:\n"
        "        time.sleep(0.1)\n"
        "store.load = load\n"
        "try:\n"
        "    cli.main(['info', 'm.zarr'])\n"
        "except SystemExit as error:\n"
        "    open('code', 'w').write(str(error.code)); os._exit(error.code)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-c", code])
    while not (tmp_path / "started").exists():
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP
    assert (tmp_path / "code").read_text() == "129"


def test_nohup_is_obeyed() -> None:
    code = (
        "import os, signal\n"
        "from daskspectral.errors import raise_on_signals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with raise_on_signals(signal.SIGHUP, signal.SIGTERM):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "print('lives')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"lives\n"


EVIL = "a\x1b]0;title\x07\x9b2J\u202eb"
"""A name with which a file sets the title of a terminal, empties it and turns the text around."""
SHOWN = r"a\x1b]0;title\x07\x9b2J\u202eb"


@pytest.mark.parametrize(
    "line",
    [
        ["verify", "g.zarr"],
        ["verify", f"{EVIL}/none"],
        ["info", EVIL],
        ["--debug", "info", EVIL],
        ["info", "x", f"--{EVIL}"],
        ["info", "x", "--config", "run.yaml"],
        ["fit", f"{EVIL}/none", "--out", "o.zarr", "--log-file", "run.log"],
    ],
    ids=repr,
)
def test_names_are_printed_without_control_characters(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.create_group("g.zarr").create_array(EVIL, data=np.ones((3, 1)))
    Path("run.yaml").write_text(yaml.safe_dump({EVIL: 1}))
    with suppress(SystemExit):
        main(line)
    shown = "".join(capsys.readouterr())
    assert SHOWN in shown
    if "run.log" in line:
        shown += Path("run.log").read_text()
        assert SHOWN in shown.partition("failed: ")[2]
    assert all(c.isprintable() or c == "\n" for c in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{EVIL} \udc80 https://token@host/x?sig=token s3://b/x", f"{SHOWN} \\udc80 https://***@host/x?*** s3://b/x"),
        ("at tcp://u:p/w@h: no", "at tcp://***@h: no"),
        ("https:/u:p@h, https://h/x#sig=token; https://h/x;token", "https:/***@h, https://h/x#*** https://h/x;***"),
        ("no bucket s3://b: make it, or mend s3://b/a@c", "no bucket s3://b: make it, or mend s3://b/a@c"),
        ("at tcp://127.0.0.1:87 (u@h), s3://b/run@2024", "at tcp://127.0.0.1:87 (u@h), s3://b/run@2024"),
    ],
)
def test_logs_and_warnings_have_no_control_characters_and_no_credentials(text: str, shown: str) -> None:
    assert Formatter().format(logging.makeLogRecord({"msg": "%s", "args": (text,)})) == shown


def test_progress_bars_have_no_control_characters() -> None:
    with progress_bar(9, f"{EVIL} to x", True) as bar:
        assert bar.desc.startswith(f"{SHOWN} to x")
    with Progress(9, EVIL, True) as shown:
        shown.advance(1, loss=EVIL)
        assert shown._bar.desc.startswith(SHOWN)
        assert shown._bar.postfix == f"loss={SHOWN}"
