"""The main job on a real SLURM of one node: a driver that ends early changes no bit of the result."""

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
from daskspectral.data.writing import create_array
from tests.common import assert_same_bits, small_model
from tests.deploy import common
from tests.deploy.common import called

DEPLOY = common.DEPLOY / "slurm"
ROWS, LANDMARKS = 1_200_000, 200  # two epochs, the first of 16 chunks: some ten seconds on two cores
PATIENCE = 120.0


HERE = os.name == "posix" and os.geteuid() == 0 and importlib.util.find_spec("dask_jobqueue") is not None
HERE = HERE and all(shutil.which(p, path=common.environment()["PATH"]) for p in ("slurmctld", "slurmd", "munged"))
WANTED = "root, slurm-wlm, munge and dask-jobqueue are needed"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HERE, reason=WANTED)]


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


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Normal points on disk."""
    path = tmp_path / "points.zarr"
    with create_array(path, (ROWS, 3), "float32", chunk_rows=64_000) as array:
        array[:] = np.random.default_rng(5).standard_normal((ROWS, 3), dtype=np.float32)
    return path


def test_a_warned_driver_is_queued_again_and_goes_on_to_the_same_bits(
    environment: dict[str, str], points: Path, tmp_path: Path
) -> None:
    checkpoint, output = tmp_path / "run.checkpoint", tmp_path / "driver.out"

    def slurm(*words: str) -> str:
        return called([*words], environment, tmp_path).stdout

    def epochs() -> list[int]:
        return sorted(int(path.name.removeprefix("epoch-")) for path in checkpoint.glob("epoch-*"))

    def workers() -> int:
        words = ("--noheader", "--states=RUNNING", "--name=daskspectral-worker", "--format=%i")
        return len(slurm("squeue", *words).split())

    def state() -> str:
        listing = slurm("scontrol", "show", "job", number, "--oneliner").split()
        return next(word.removeprefix("JobState=") for word in listing if word.startswith("JobState="))

    def until(condition: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            printed = f"{state()}:\n{output.read_text() if output.exists() else ''}"
            assert state() not in {"FAILED", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"}, printed
            assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s for {what}; {printed}"
            time.sleep(0.2)

    batch = f"sbatch --parsable --cpus-per-task=1 --mem=500M --output={output} {DEPLOY}/driver.sbatch"
    cluster = "--workers-min 2 --workers-max 2 --cores 1 --memory 1GB --interface lo"
    work = f"--kernel gaussian:1.0 --landmarks {LANDMARKS} --components 3 --folds none --checkpoint-every 0"
    where = f"{points} --out {tmp_path}/model.zarr --checkpoint {checkpoint}"
    number = slurm(*f"{batch} {cluster} {work} {where}".split()).strip()
    until(epochs, "the landmarks")
    until(lambda: workers() == 2, "two worker jobs")
    time.sleep(0.5)
    assert epochs() == [0], "the first epoch is over too soon for this test: raise ROWS"
    slurm("scancel", "--batch", "--signal=USR1", number)
    until(lambda: state() == "PENDING", "the warned driver's job in the queue again")
    assert epochs() == [0, 1]  # the last one and the one before it, for a damaged last one
    assert not (tmp_path / "model.zarr").exists()
    until(lambda: state() == "COMPLETED", "the end")
    assert "resuming from the checkpoint" in output.read_text()
    with dask.config.set(scheduler="threads", num_workers=2):
        expected = small_model(LANDMARKS).fit(points, progress=False).moments_
    assert_same_bits(dsp.load(tmp_path / "model.zarr").moments_, expected)
