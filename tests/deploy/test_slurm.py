"""The main job on a real SLURM of one node: worker jobs and drivers that end early change no bit of the result."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import daskspectral as dsp
from daskspectral.data.writer import create_array
from tests.common import assert_same_bits
from tests.deploy import common
from tests.deploy.common import called, estimator

DEPLOY = common.DEPLOY / "slurm"
ROWS, LANDMARKS = 1_200_000, 200  # two epochs, the first of 16 chunks: some ten seconds on two cores
PATIENCE = 120.0


def missing() -> str | None:
    """What these tests lack here."""
    if os.name != "posix" or os.geteuid() != 0:
        return "starting a SLURM of one node needs root"
    for program in ("slurmctld", "slurmd", "munged", "sbatch"):
        if shutil.which(program, path=common.environment()["PATH"]) is None:
            return f"{program} is not installed (apt-get install slurm-wlm munge)"
    for module in ("dask_jobqueue", "cryptography"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install daskspectral[hpc])"
    return None


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing() is not None, reason=f"no SLURM to test on: {missing()}"),
]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The environment in which SLURM's commands reach a node that runs for these tests only."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # where the user munge may go too
    environment = common.environment() | {"DASKSPECTRAL_DEPLOY": str(DEPLOY), "SLURM_CONF": str(folder / "slurm.conf")}
    environment["DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT"] = "1s"  # 15 s before a lost job is replaced, otherwise
    # as many BLAS threads as here, where dask's clusters of other tests have set one in the environment
    threads = max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
    environment |= {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL")}
    try:
        called([DEPLOY / "one_node.sh", "start", folder], environment)
        yield environment
    finally:
        called([DEPLOY / "one_node.sh", "stop", folder], environment)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Normal points on disk."""
    path = tmp_path_factory.mktemp("points") / "points.zarr"
    with create_array(path, (ROWS, 3), "float32", chunk_rows=64_000) as array:
        array[:] = np.random.default_rng(5).standard_normal((ROWS, 3), dtype=np.float32)
    return path


@pytest.fixture(scope="module")
def expected(points: Path) -> dsp.Moments:
    """The same sums on threads, in this process."""
    with dask.config.set(scheduler="threads", num_workers=2):
        return estimator(n_landmarks=LANDMARKS).fit(points, progress=False).moments_


class Job:
    """The main job of one test, in a folder of its own."""

    def __init__(self, points: Path, folder: Path, environment: dict[str, str]):
        self._folder, self._environment = folder, environment
        self.model, self.checkpoint = folder / "model.zarr", folder / "run.checkpoint"
        batch = f"sbatch --parsable --cpus-per-task=1 --mem=500M --output={folder}/driver.out {DEPLOY}/driver.sbatch"
        cluster = "--workers-min 2 --workers-max 2 --cores 1 --memory 1GB --interface lo"
        work = f"--kernel gaussian:1.0 --landmarks {LANDMARKS} --components 3 --folds none --checkpoint-every 0"
        where = [points, "--out", self.model, "--checkpoint", self.checkpoint]
        self.number = self.slurm(*f"{batch} {cluster} {work}".split(), *map(str, where)).strip()

    def slurm(self, *words: str) -> str:
        """What one of SLURM's commands prints."""
        return called([*words], self._environment, self._folder).stdout

    def workers(self) -> set[str]:
        """The worker jobs that run now."""
        words = ("--noheader", "--states=RUNNING", "--name=daskspectral-worker", "--format=%i")
        return set(self.slurm("squeue", *words).split())

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

    def ends_with(self, expected: dsp.Moments, printed: str) -> None:
        """Wait for the end, and compare the bits."""
        assert not self.model.exists()
        self.until(lambda: self.state() == "COMPLETED", "the end")
        assert printed in self.printed()
        assert_same_bits(dsp.load(self.model).moments_, expected)


def test_a_cancelled_worker_job_changes_no_bit(
    environment: dict[str, str], points: Path, expected: dsp.Moments, tmp_path: Path
) -> None:
    job = Job(points, tmp_path, environment)
    job.until_summing()
    before = job.workers()
    job.slurm("scancel", min(before))
    job.until(lambda: job.workers() - before, "another worker job in its place")
    job.ends_with(expected, f"model: {job.model}")


def test_a_warned_driver_is_queued_again_and_goes_on(
    environment: dict[str, str], points: Path, expected: dsp.Moments, tmp_path: Path
) -> None:
    job = Job(points, tmp_path, environment)
    job.until_summing()
    job.slurm("scancel", "--batch", "--signal=USR1", job.number)
    job.until(lambda: job.state() == "PENDING", "the warned driver's job in the queue again")
    assert job.epochs() == [0, 1]  # the last one and the one before it, for a damaged last one
    job.ends_with(expected, "going on from the checkpoint")
