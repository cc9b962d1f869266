"""The main job on PBS: the text of the worker jobs, and the driver's script around a stand-in for the fit."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from tests.deploy.common import DEPLOY, called

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("dask_jobqueue") is None,
    reason="dask-jobqueue is not installed (pip install daskspectral[hpc])",
)


def script(system: str) -> ModuleType:
    """fit.py of a batch system, as a module."""
    spec = importlib.util.spec_from_file_location(f"{system}_fit", DEPLOY / system / "fit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def worker_job(system: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """The lines of a worker's job; nothing is submitted."""
    module = script(system)
    import batch

    texts: list[str] = []

    def told(of: object, options: dict[str, object]) -> None:
        with batch.jobs(of, options) as cluster:
            texts.append(cluster.job_script())
        raise SystemExit(0)

    monkeypatch.setattr(batch, "running", told)
    needed = ["--cores", "6", "--memory", "12GB", "--walltime", "02:00:00", "--logs", str(folder), "--no-tls"]
    line = [*needed, "--interface", "lo", *words, "--checkpoint", "c", "points.zarr"]
    done = CliRunner().invoke(module.main, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return texts[0].splitlines()


def test_a_worker_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ["--queue", "long", "--account", "abc", "--directive", "-l place=excl", "--prologue", "module load gcc"]
    lines = worker_job("pbs", tmp_path, monkeypatch, *own)
    resources = ["-l select=1:ncpus=6:mem=12GB", "-l walltime=02:00:00", "-l place=excl"]
    for directive in ("-N daskspectral-worker", "-q long", "-A abc", *resources):
        assert f"#PBS {directive}" in lines
    last = lines[-1]
    assert {"module load gcc", "export OPENBLAS_NUM_THREADS=1", "export OMP_NUM_THREADS=1"} <= set(lines[:-1])
    assert sys.executable in last
    assert "--nthreads 6" in last
    assert "--lifetime 6900s" in last  # five minutes less than the job


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
    environment = {k: v for k, v in os.environ.items() if k not in ("DASKSPECTRAL_ENV", "ARGUMENTS")}
    environment |= {"PATH": f"{folder}:{os.environ['PATH']}", "PBS_O_WORKDIR": str(folder)}
    environment |= {"DASKSPECTRAL_DEPLOY": str(folder), "DASKSPECTRAL_SECONDS": "3"}
    environment |= {"ARGUMENTS": "run.args", "LENGTH": str(length), "STATUS": str(status)}
    called([DEPLOY / "pbs" / "driver.pbs"], environment, status=status)
    assert (folder / "called").read_text() == "['--cores', '2', '--prologue', 'module load a,b']\n"
    assert (folder / "submitted").exists() == (length > 0)
    if length:
        names = "ARGUMENTS,DASKSPECTRAL_DEPLOY,DASKSPECTRAL_SECONDS"
        assert (folder / "submitted").read_text().splitlines() == ["-v", names, f"{folder}/driver.pbs", "run.args"]
