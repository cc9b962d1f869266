"""The main job on PBS: the driver's script around a stand-in for the fit."""

import sys
from pathlib import Path

import pytest

from tests.deploy import common
from tests.deploy.common import DEPLOY, called

FIT = """
import os, sys, signal, time
open("called", "a").write(repr(sys.argv[1:]) + "\\n")
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(128 + signal.SIGUSR1))
open("started", "w").close()
time.sleep(float(os.environ["LENGTH"]))
sys.exit(int(os.environ["STATUS"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("length", "status"), [(0, 1), (60, 138)])
def test_the_driver(length: int, status: int, tmp_path: Path) -> None:
    """It hands on the lines of a file; when its time is up, it submits another that goes on."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "fit.py").write_text(FIT)
    (folder / "run.args").write_text("--cores\n2\n--prologue\nmodule load a,b\n")
    submitted = folder / "qsub"
    submitted.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$ARGUMENTS" > submitted\n')
    submitted.chmod(0o755)
    (folder / "python").symlink_to(sys.executable)
    environment = common.environment()
    environment |= {"PATH": f"{folder}:{environment['PATH']}", "PBS_O_WORKDIR": str(folder)}
    environment |= {"DASKSPECTRAL_DEPLOY": str(folder), "DASKSPECTRAL_SECONDS": "3"}
    environment |= {"ARGUMENTS": "run.args", "LENGTH": str(length), "STATUS": str(status)}
    called([DEPLOY / "pbs" / "driver.pbs"], environment, status=status)
    assert (folder / "called").read_text() == "['--cores', '2', '--prologue', 'module load a,b']\n"
    assert (folder / "submitted").exists() == (length > 0)
    if length:
        names = "ARGUMENTS,DASKSPECTRAL_DEPLOY,DASKSPECTRAL_SECONDS"
        assert (folder / "submitted").read_text().splitlines() == ["-v", names, f"{folder}/driver.pbs", "run.args"]
