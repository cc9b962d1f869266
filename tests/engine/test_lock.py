"""One run at a time writes into a checkpoint or an output; a dead one blocks nobody."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.data import folders
from daskspectral.data.folders import LOCK, Folder, locked
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.kernels import Gaussian
from tests.common import unreliable
from tests.engine.common import X, model

X300 = X[:300] / np.linalg.norm(X[:300], axis=1, keepdims=True)
ESTIMATORS = [
    model(Landmarks()),
    dsp.HermiteRegressor(Landmarks(Gaussian(1.0), 20)),
    dsp.InvariantRegressor(dsp.manifolds.Sphere(2), None, 2.0, 5),
    dsp.SDPEmbedding(1.0, method="lowrank", landmarks=Landmarks(n_landmarks=20, method="cholesky")),
]


@pytest.mark.one_in(4)
@unreliable
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_estimator_holds_the_lock_and_releases_it(estimator: Any, tmp_path: Path) -> None:
    run = tmp_path / "run.zarr"
    targets = [X300[:, 0]] if isinstance(estimator, dsp.HermiteRegressor | dsp.InvariantRegressor) else []
    with locked(Folder(run), "the checkpoint"), pytest.raises(OSError, match=rf"process {os.getpid()} on "):
        estimator.fit(X300, *targets, checkpoint=run)
    assert not run.exists()  # nothing was written
    held = []
    with pytest.MonkeyPatch.context() as patch:
        write = Checkpoint.write
        patch.setattr(Checkpoint, "write", lambda self: (held.append((run / LOCK).exists()), write(self))[1])
        estimator.fit(X300, *targets, checkpoint=run)
    assert held
    assert all(held)
    assert not (run / LOCK).exists()
    with pytest.raises(ValueError, match="NaN"):  # a run that fails releases it, too
        estimator.fit(X300 * np.nan, *targets, checkpoint=run.with_name("bad"))
    assert not (run.with_name("bad") / LOCK).exists()


HOLD = """
import sys, time
from daskspectral.data.folders import Folder, locked
with locked(Folder(sys.argv[1]), "the output"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow  # a process
def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    line = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()}) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(OSError, match=f"process {process.pid} on"), locked(Folder(tmp_path), "the output"):
            pass
        process.kill()
        process.wait()
    with locked(Folder(tmp_path), "the output"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["{path}", "memory://locks/{path}"])
def test_no_two_threads_hold_a_lock(where: str, tmp_path: Path) -> None:
    folder, start = Folder(where.format(path=tmp_path)), threading.Barrier(6)
    inside: list[int] = []
    most = 0

    def race() -> None:
        nonlocal most
        start.wait()
        for _ in range(10):
            with suppress(OSError), locked(folder, "the output"):
                inside.append(1)
                most = max(most, len(inside))
                time.sleep(0.001)
                inside.pop()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: race(), range(6)))
    assert most == 1


def test_a_lock_object_is_renewed_and_ends_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "RENEWAL", 0.1)
    folder = Folder("memory://locks/renewed")
    with locked(folder, "the output") as is_held:
        time.sleep(0.5)
        with pytest.raises(OSError, match="in use"), locked(folder, "the output"):
            pass
        monkeypatch.setattr(Folder, "write", lambda *a, write=Folder.write, **o: write(*a, **o) if o else None)
        monkeypatch.setattr(Folder, "age", lambda *a: 0.4)  # as if the thread of this run slept
        assert is_held()
        with locked(folder, "the output"):
            assert not is_held()
        assert folder.names() == []
