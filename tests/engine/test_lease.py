"""One live run writes into a checkpoint; a second is told which, and a dead one blocks nobody."""

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.data import folders
from daskspectral.data.folders import Directory, Lease
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.tasks import Total
from daskspectral.kernels import Gaussian
from tests.common import doubtful
from tests.engine.common import X, model

X300 = X[:300] / np.linalg.norm(X[:300], axis=1, keepdims=True)
ESTIMATORS = [
    model(Landmarks()),
    dsp.HermiteRegressor(Landmarks(Gaussian(1.0), 20)),
    dsp.InvariantRegressor(dsp.manifolds.Sphere(2), None, 2.0, 5),
    dsp.SDPEmbedding(1.0, method="lowrank", landmarks=Landmarks(count=20, method="cholesky")),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.zarr"


def take(run: Path, interval: float = 20.0) -> Lease:
    return Lease.take(Directory(run), interval)


def token(run: Path) -> str:
    return str(json.loads((run / ".lease").read_text())["token"])


@doubtful
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_estimator_holds_the_lease_and_releases_it(estimator: Any, run: Path) -> None:
    targets = [X300[:, 0]] if isinstance(estimator, dsp.HermiteRegressor | dsp.InvariantRegressor) else []
    holder = take(run)
    with pytest.raises(OSError, match=rf"in use by another run: process {os.getpid()} on "):
        estimator.fit(X300, *targets, checkpoint=run)
    holder.release()
    assert not run.exists()  # nothing was written
    held = []
    with pytest.MonkeyPatch.context() as patch:
        write = Checkpoint.write
        patch.setattr(Checkpoint, "write", lambda self: (held.append((run / ".lease").exists()), write(self))[1])
        estimator.fit(X300, *targets, checkpoint=run)
    assert held
    assert all(held)
    assert not (run / ".lease").exists()
    with pytest.raises(ValueError, match="NaN"):  # a run that fails releases it, too
        estimator.fit(X300 * np.nan, *targets, checkpoint=run.with_name("bad"))
    assert not (run.with_name("bad") / ".lease").exists()


def elsewhere(run: Path, age: float = 0.0, **changes: object) -> None:
    """Make the lease that of a run on another host, which gave its last sign so many seconds ago."""
    path = run / ".lease"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "far.example", "token": "theirs"} | changes))
    os.utime(path, (time.time() - age,) * 2)


def test_a_lease_of_another_host_is_alive_for_three_intervals(run: Path) -> None:
    held = [take(run)]
    elsewhere(run, 55, pid=1)
    with pytest.raises(OSError, match=r"process 1 on far\.example, since .* its hold ends 60 s after its last sign"):
        take(run)
    for age, changes in ((61, {}), (-3e7, {}), (0, {"interval": 1e9})):  # one of next year blocks nobody either
        elsewhere(run, age, **changes)
        held.append(take(run))
    for lease in held:
        lease.release()


def test_a_lease_is_renewed_while_an_epoch_lasts(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "SHORTEST", 0.1)
    lease = take(run, 0.0)
    try:
        old = time.time() - 100
        os.utime(run / ".lease", (old, old))
        until = time.monotonic() + 30
        while (run / ".lease").stat().st_mtime < old + 50:
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        lease.release()


def test_a_run_whose_lease_was_taken_over_writes_no_more(run: Path) -> None:
    lease = take(run, 0.0)
    checkpoint = Checkpoint.take_up(run, {}, dict, {}, 0.0)
    elsewhere(run)
    with pytest.raises(OSError, match=r"taken over by another run: process \d+ on far\.example"):
        checkpoint.add(1, Total({"s": np.ones(2)}, 2.0, 2))
    assert sorted(p.name for p in run.iterdir()) == [".lease", "epoch-00000000"]
    lease.release()
    assert token(run) == "theirs"


WHOLE = {"token": "t", "host": "h", "system": "", "pid": 1, "started": "1", "since": "s", "interval": 1.0}


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps(WHOLE | {"interval": "y"})])
def test_a_lease_that_says_nothing_blocks_nobody(text: str, run: Path) -> None:
    run.mkdir()
    (run / folders.NAME).write_text(text)
    taken = take(run)
    assert token(run) == taken.token
    taken.release()
    assert list(run.iterdir()) == []


def test_one_of_several_runs_takes_a_dead_lease_over(tmp_path: Path) -> None:
    """A run that moved another's fresh lease aside put it back over a third one's: two went on."""
    here = {"host": socket.gethostname(), "system": folders._system(), "pid": 2**22 + 1}
    for trial in range(20):
        run, start, held = tmp_path / str(trial), threading.Barrier(6), []
        run.mkdir()
        (run / folders.NAME).write_text(json.dumps(WHOLE | here))

        def race(run: Path = run, start: threading.Barrier = start, held: list[Lease] = held) -> None:
            start.wait()
            with contextlib.suppress(OSError):
                held.append(take(run))

        threads = [threading.Thread(target=race) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(held) == 1
        held[0].release()
