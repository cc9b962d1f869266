"""Whatever goes wrong, the command says one line and exits with 1; where it went wrong, only to --debug."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from daskspectral.cli import main

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
    "Error: MemoryError": MemoryError(),
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
        "    open('started', 'w').close(); time.sleep(30)\n"
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
