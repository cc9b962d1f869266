"""The main job on a real SLURM of one node: worker jobs and drivers that end early change no bit of the result."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from daskspectral.data.writer import create_array
from daskspectral.estimators import SpectralDecomposition
from daskspectral.kernels import Gaussian
from daskspectral.store import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy" / "slurm"
ROWS, LANDMARKS, COMPONENTS = 1_200_000, 200, 6  # two epochs, the first of 16 chunks: some ten seconds on two cores
PATIENCE = 120.0


def missing() -> str | None:
    """What these tests lack here."""
    if os.name != "posix" or os.geteuid() != 0:
        return "starting a SLURM of one node needs root"
    for program in ("slurmctld", "slurmd", "munged", "sbatch"):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
            return f"{program} is not installed (apt-get install slurm-wlm munge)"
    for module in ("dask_jobqueue", "cryptography"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install daskspectral[hpc])"
    return None


pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no SLURM to test on: {missing()}")


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The environment in which SLURM's commands reach a node that runs for these tests only."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # where the user munge may go too
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "DASK"))}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment.get('PATH', '')}:/usr/sbin"
    environment["PYTHONPATH"] = str(ROOT)
    environment["DASKSPECTRAL_DEPLOY"] = str(DEPLOY)
    environment["DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT"] = "1s"  # 15 s before a lost job is replaced, otherwise
    environment["SLURM_CONF"] = str(folder / "slurm.conf")
    # as many BLAS threads as here, where dask's clusters of other tests have set one in the environment
    threads = max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
    environment |= {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL")}
    try:
        run([str(DEPLOY / "one_node.sh"), "start", str(folder)], environment)
        yield environment
    finally:
        run([str(DEPLOY / "one_node.sh"), "stop", str(folder)], environment)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Normal points on disk."""
    path = tmp_path_factory.mktemp("points") / "points.zarr"
    with create_array(path, (ROWS, 3), "float32", chunk_rows=64_000) as array:
        array[:] = np.random.default_rng(5).standard_normal((ROWS, 3), dtype=np.float32)
    return path


@pytest.fixture(scope="module")
def expected(points: Path) -> SpectralDecomposition:
    """The same fit on threads, in this process."""
    estimator = SpectralDecomposition(
        kernel=Gaussian(1.0), n_components=COMPONENTS, n_landmarks=LANDMARKS, random_state=0
    )
    with dask.config.set(scheduler="threads", num_workers=2):
        return estimator.fit(points, progress=False)


def run(command: list[str], environment: Mapping[str, str], folder: Path | None = None) -> str:
    """What a command prints; an error with all of it where it fails."""
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Job:
    """The main job of one test, in a folder of its own."""

    def __init__(self, points: Path, folder: Path, environment: Mapping[str, str]):
        self._folder, self._environment = folder, environment
        self.model, self.checkpoint = folder / "model.zarr", folder / "run.checkpoint"
        batch = ["sbatch", "--parsable", "--cpus-per-task=1", "--mem=500M", f"--output={folder}/driver.out"]
        cluster = ["--workers-min", "2", "--workers-max", "2", "--cores", "1", "--memory", "1GB", "--interface", "lo"]
        work = f"--kernel gaussian:1.0 --landmarks {LANDMARKS} --components {COMPONENTS} --checkpoint-every 0".split()
        where = [str(points), "--out", str(self.model), "--checkpoint", str(self.checkpoint)]
        self.number = run([*batch, str(DEPLOY / "driver.sbatch"), *cluster, *work, *where], environment, folder).strip()

    def slurm(self, command: str, *arguments: str) -> str:
        """One of SLURM's commands."""
        return run([command, *arguments], self._environment)

    def workers(self) -> list[str]:
        """The worker jobs that run now."""
        listing = self.slurm("squeue", "--noheader", "--states=RUNNING", "--name=daskspectral-worker", "--format=%i")
        return listing.split()

    def state(self) -> str:
        """What SLURM says of the driver's job."""
        listing = self.slurm("scontrol", "show", "job", self.number, "--oneliner")
        return next(word.removeprefix("JobState=") for word in listing.split() if word.startswith("JobState="))

    def epochs(self) -> list[int]:
        """The epochs that the checkpoint holds, none before it is there."""
        return sorted(int(path.name.removeprefix("epoch-")) for path in self.checkpoint.glob("epoch-*"))

    def printed(self) -> str:
        """What the driver has printed."""
        path = self._folder / "driver.out"
        return path.read_text() if path.exists() else ""

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for it; an error with the driver's output where it does not come."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            state = self.state()
            assert state not in {"FAILED", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"}, f"{state}:\n{self.printed()}"
            assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s for {what}; {state}:\n{self.printed()}"
            time.sleep(0.2)

    def until_summing(self) -> None:
        """Wait until both workers are some way into the first epoch."""
        self.until(self.epochs, "the landmarks")
        self.until(lambda: len(self.workers()) == 2, "two worker jobs")
        time.sleep(0.5)
        assert self.epochs() == [0], "the first epoch is over too soon for this test: raise ROWS"


def assert_same_bits(model: Path, expected: SpectralDecomposition) -> None:
    found = load(model)
    assert found.moments_.count == expected.moments_.count
    assert list(found.moments_.arrays) == list(expected.moments_.arrays)
    for name, array in expected.moments_.arrays.items():
        np.testing.assert_array_equal(found.moments_.arrays[name], array, err_msg=name, strict=True)
    np.testing.assert_array_equal(found.eigenvalues_, expected.eigenvalues_)


def test_a_cancelled_worker_job_changes_no_bit(
    environment: dict[str, str], points: Path, expected: SpectralDecomposition, tmp_path: Path
) -> None:
    job = Job(points, tmp_path, environment)
    job.until_summing()
    before = job.workers()
    job.slurm("scancel", before[0])
    job.until(lambda: set(job.workers()) - set(before), "another worker job in its place")
    assert not job.model.exists()
    job.until(lambda: job.state() == "COMPLETED", "the end")
    assert f"model: {job.model}" in job.printed()
    assert_same_bits(job.model, expected)


def test_a_warned_driver_is_queued_again_and_goes_on(
    environment: dict[str, str], points: Path, expected: SpectralDecomposition, tmp_path: Path
) -> None:
    job = Job(points, tmp_path, environment)
    job.until_summing()
    job.slurm("scancel", "--batch", "--signal=USR1", job.number)
    job.until(lambda: job.state() == "PENDING", "the warned driver's job in the queue again")
    assert job.epochs() == [0, 1]  # the last one and the one before it, for a damaged last one
    assert not job.model.exists()
    job.until(lambda: job.state() == "COMPLETED", "the end")
    assert "going on from the checkpoint" in job.printed()
    assert_same_bits(job.model, expected)
