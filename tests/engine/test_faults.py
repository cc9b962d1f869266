"""Nothing is lost: drivers and workers are killed, and the answer is the same bits or an error that says why."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import daskspectral as dsp
from daskspectral.data.integrity import FIRST_ROWS
from daskspectral.data.readers import ZarrReader
from daskspectral.data.source import open_source
from daskspectral.engine import Plan, Run, plan_run
from daskspectral.engine.scheduler import _Cluster
from daskspectral.errors import Stopped
from tests.common import assert_same_bits, local_cluster
from tests.engine.common import CHUNK, N, after_epoch, model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("short_epochs")]


def fit(x: object, run: Path | None = None, **options: Any) -> dsp.Moments:
    return model().fit(dsp.Rows(x, standardize=True), checkpoint=run, **options).moments_


def driver(points: Path, folder: Path, pause: float, *words: str) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "tests.engine.fit_slowly", points, folder, str(pause), *words]
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen(line, stderr=errors, cwd=Path(__file__).parents[2])


def epochs(folder: Path) -> int:
    return max((int(p.name.removeprefix("epoch-")) for p in (folder / "run.zarr").glob("epoch-*")), default=-1)


def until(folder: Path, epoch: int, process: subprocess.Popen[bytes]) -> None:
    while epochs(folder) < epoch:
        time.sleep(0.01)
        assert process.poll() is None, (folder / "errors").read_text()


def test_a_driver_killed_at_any_moment_goes_on_to_the_same_bits(points: Path, tmp_path: Path) -> None:
    for target in (1, 3):  # so that each life gets some epochs further
        process = driver(points, tmp_path, 0.2)
        until(tmp_path, target, process)
        time.sleep(np.random.default_rng().uniform(0.0, 0.3))  # any moment: drawn anew in each test run
        process.kill()
        process.wait()
        assert not (tmp_path / "moments.zarr").exists()
    done, before = epochs(tmp_path), len((tmp_path / "reads").read_text().splitlines())
    assert driver(points, tmp_path, 0.0).wait(120) == 0, (tmp_path / "errors").read_text()
    assert_same_bits(dsp.load(tmp_path / "moments.zarr"), fit(str(points)))
    plan = plan_run(np.arange(0, N + 1, CHUNK), flops_per_row=4 * 21 * 21 + 4 * 21 + 50 * 21, row_bytes=16)
    lines = [line.split() for line in (tmp_path / "reads").read_text().splitlines()[before:]]
    again = [int(start) for _, start, stop in lines if int(stop) > FIRST_ROWS]  # the first rows are compared
    assert min(again, default=N) >= plan.ranges[min(2 * done, len(plan.ranges)) - 1][1]  # nothing is read again


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_finishes_the_epoch_and_leaves_a_checkpoint(points: Path, tmp_path: Path, number: int) -> None:
    process = driver(points, tmp_path, 0.5, "later")  # slow once there are sums, so that it is not done before
    until(tmp_path, 1, process)
    process.send_signal(number)
    assert process.wait(120) != 0
    assert "are in the checkpoint" in (tmp_path / "errors").read_text()
    assert_same_bits(fit(str(points), tmp_path / "run.zarr"), fit(str(points)))


def test_a_signal_writes_before_the_epoch_ends(points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, written, run = ZarrReader.read, [], tmp_path / "run.zarr"

    def read(self: ZarrReader, start: int, stop: int) -> object:
        if start == 12_000 and not written and epochs(tmp_path) == 0:  # of the sums
            written.append(False)
            time.sleep(0.5)  # earlier epochs are added
            os.kill(os.getpid(), signal.SIGTERM)
            end = time.monotonic() + 5
            while time.monotonic() < end and not written[0]:
                time.sleep(0.01)
                written[0] = epochs(tmp_path) > 0
        return plain(self, start, stop)

    monkeypatch.setattr(ZarrReader, "read", read)
    with pytest.raises(Stopped):
        fit(str(points), run, checkpoint_every=1e9)
    assert written == [True]
    assert_same_bits(fit(str(points), run), fit(str(points)))


@pytest.fixture
def own_cluster() -> Iterator[tuple[LocalCluster, Client]]:
    """Two processes, to kill and to freeze."""
    with local_cluster(n_workers=2) as cluster, Client(cluster) as client:
        yield cluster, client


def on_threads(points: Path, run: Path | None = None) -> dsp.Moments:
    with dask.config.set(scheduler="threads"):
        return fit(str(points), run)


def test_a_worker_killed_mid_run_changes_no_bit(
    own_cluster: tuple[LocalCluster, Client], points: Path, tmp_path: Path
) -> None:
    victim = next(iter(own_cluster[1].run(os.getpid).values()))
    with after_epoch(2, lambda: os.kill(victim, signal.SIGKILL)):
        found = fit(str(points), tmp_path / "run.zarr")
    assert_same_bits(found, on_threads(points))


@pytest.mark.parametrize("frozen", [False, True])
def test_workers_that_are_gone_or_frozen_do_not_hang_the_run(
    frozen: bool, own_cluster: tuple[LocalCluster, Client], points: Path, tmp_path: Path
) -> None:
    workers = own_cluster[1].run(os.getpid)

    def leave() -> None:
        dask.config.set({"daskspectral.patience": 5})  # only now: before, a slow machine has as long as it takes
        if frozen:
            for pid in workers.values():
                os.kill(pid, signal.SIGSTOP)
        else:
            own_cluster[0].scale(0)

    try:
        with (
            dask.config.set({"daskspectral.patience": 60}),
            after_epoch(2, leave),
            pytest.raises(RuntimeError, match="no task has run") as caught,
        ):
            fit(str(points), tmp_path / "run.zarr")
    finally:
        for pid in workers.values() if frozen else ():
            os.kill(pid, signal.SIGCONT)
    assert not frozen or all(address in str(caught.value) for address in workers)
    assert "are in the checkpoint" in caught.value.__notes__[-1]
    assert_same_bits(on_threads(points, tmp_path / "run.zarr"), on_threads(points))


def test_a_result_whose_worker_left_before_it_was_fetched_does_not_hang(
    own_cluster: tuple[LocalCluster, Client],
) -> None:
    def result(timeout: float) -> None:
        time.sleep(timeout)  # what was computed is nowhere, and no worker computes it again
        raise TimeoutError

    own_cluster[0].scale(0)
    handle: Any = SimpleNamespace(done=lambda: True, key="sum", result=result)
    with dask.config.set({"daskspectral.patience": 0.1}), pytest.raises(TimeoutError):
        _Cluster(own_cluster[1], str)._wait_for(handle)


def test_a_task_that_kills_its_workers_is_named() -> None:
    def killer(batches: Any, state: object) -> dict[str, np.ndarray]:
        if any(batch["x"][0, 0] == 3000 for batch in batches):
            os._exit(1)
        return {"s": np.ones(1)}

    source, plan = open_source(np.arange(8000.0)[:, None]), Plan(((0, 3000), (3000, 4000), (4000, 8000)), 1)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        local_cluster(n_workers=1) as cluster,
        Client(cluster),
        pytest.raises(RuntimeError, match=r"rows \d+ to \d+: 1 workers died .*more memory or fewer threads") as caught,
    ):
        Run(source, plan).reduce(killer)
    assert type(caught.value.__cause__).__name__ == "KilledWorker"
