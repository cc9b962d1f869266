"""One live run writes into a checkpoint; a second is told which, and a dead one blocks nobody."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.data import lease as leasing
from daskspectral.data.folder import Directory
from daskspectral.data.lease import Lease
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.tasks import Total

X = np.random.default_rng(5).standard_normal((40_000, 2))
Y = X[:, 0]


@contextmanager
def first_run(points: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A slow run with the checkpoint run.zarr, once it has written an epoch."""
    script = Path(__file__).with_name("fit_slowly.py")
    process = subprocess.Popen([sys.executable, script, points, folder, "1", "later"], stderr=subprocess.DEVNULL)
    try:
        while not list((folder / "run.zarr").glob("epoch-00000001")):
            assert process.poll() is None
            time.sleep(0.01)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def fit(x: object, run: Path, **options: object) -> dsp.SpectralDecomposition:
    kernel = dsp.kernels.Exponential(1.0)
    settings = {"n_landmarks": 20, "n_components": 4, "standardize": True, "random_state": 0}
    return dsp.SpectralDecomposition(kernel=kernel, **settings).fit(x, checkpoint=run, **options)  # type: ignore[arg-type]


def test_a_second_live_run_is_refused_and_a_killed_one_goes_on_at_once(points: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.zarr"
    with first_run(points, tmp_path) as process:
        with pytest.raises(OSError, match=rf"in use by another run: process {process.pid} on .+, since 20\d\d-"):
            fit(str(points), run)
        line = ["fit", str(points), "--out", str(tmp_path / "m.zarr"), "--checkpoint", str(run)]
        program = [sys.executable, "-m", "daskspectral.cli", *line]
        told = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
        assert told.returncode == 1
        assert f"process {process.pid} on" in told.stderr
        assert process.poll() is None
        process.kill()  # not waited for: a zombie is dead too
        while leasing._started(process.pid) is not None:
            time.sleep(0.01)
        script = Path(__file__).with_name("fit_slowly.py")
        assert subprocess.run([sys.executable, script, points, tmp_path, "0"], timeout=60, check=False).returncode == 0
    assert not (run / ".lease").exists()


@pytest.mark.parametrize(
    "estimator",
    [
        dsp.SpectralDecomposition(n_landmarks=20, n_components=2),
        dsp.HermiteRegressor(dsp.kernels.Gaussian(1.0), n_landmarks=20),
        dsp.InvariantRegressor(dsp.manifolds.Sphere(2), None, 2.0, 5),
        dsp.SDPEmbedding(1.0, method="lowrank", n_landmarks=20),
    ],
    ids=lambda e: type(e).__name__,
)
def test_every_estimator_holds_the_lease_and_releases_it(estimator: object, tmp_path: Path) -> None:
    run, x = tmp_path / "run.zarr", X[:300] / np.linalg.norm(X[:300], axis=1, keepdims=True)
    targets = [Y[:300]] if isinstance(estimator, dsp.HermiteRegressor | dsp.InvariantRegressor) else []
    holder = Lease.take(Directory(run), 60.0)
    with pytest.raises(OSError, match=rf"in use by another run: process {os.getpid()} on "):
        estimator.fit(x, *targets, checkpoint=run)  # type: ignore[attr-defined]
    holder.release()
    assert not run.exists()  # nothing was written
    held = []
    with pytest.MonkeyPatch.context() as patch:
        write = Checkpoint.write
        patch.setattr(Checkpoint, "write", lambda self: (held.append((run / ".lease").exists()), write(self))[1])
        estimator.fit(x, *targets, checkpoint=run)  # type: ignore[attr-defined]
    assert held
    assert all(held)
    assert not (run / ".lease").exists()


def test_a_run_that_fails_releases_its_lease(tmp_path: Path) -> None:
    before = threading.enumerate()
    with pytest.raises(ValueError, match="fewer than n_landmarks"):
        fit(X[:10], tmp_path / "run.zarr")
    assert not (tmp_path / "run.zarr").exists()
    bad = X.copy()
    bad[-1] = np.nan
    with pytest.raises(dsp.InvalidRowError):
        fit(bad, tmp_path / "run.zarr")
    fit(X, tmp_path / "run.zarr")
    assert not [t for t in threading.enumerate() if t.name == "daskspectral-lease" and t not in before]


def elsewhere(directory: Path, **changes: object) -> None:
    """Make the lease in a directory that of a run on another host."""
    path = directory / ".lease"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"host": "far.example", "token": "theirs"} | changes))


def test_a_lease_of_another_host_is_alive_for_three_intervals(tmp_path: Path) -> None:
    run = tmp_path / "run.zarr"
    mine = Lease.take(Directory(run), 20.0)
    elsewhere(run, pid=1)
    silent = time.time() - 59
    os.utime(run / ".lease", (silent, silent))
    with pytest.raises(OSError, match=r"process 1 on far\.example, since .* its hold ends 60 s after its last sign"):
        Lease.take(Directory(run), 20.0)
    os.utime(run / ".lease", (silent - 2, silent - 2))
    Lease.take(Directory(run), 20.0).release()
    mine.release()


@pytest.mark.parametrize("changes", [{}, {"interval": 1e9}], ids=["clock", "interval"])
def test_a_lease_of_next_year_blocks_nobody(changes: dict[str, object], tmp_path: Path) -> None:
    run = tmp_path / "run.zarr"
    mine = Lease.take(Directory(run), 20.0)
    elsewhere(run, **changes)
    later = time.time() + (0 if changes else 3e7)
    os.utime(run / ".lease", (later, later))
    Lease.take(Directory(run), 20.0).release()
    mine.release()


def test_a_lease_is_renewed_while_an_epoch_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leasing, "SHORTEST", 0.1)
    lease = Lease.take(Directory(tmp_path / "run.zarr"), 0.0)
    try:
        old = time.time() - 100
        os.utime(tmp_path / "run.zarr" / ".lease", (old, old))
        until = time.monotonic() + 10
        while (tmp_path / "run.zarr" / ".lease").stat().st_mtime < old + 50:
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        lease.release()


def test_a_run_whose_lease_was_taken_over_writes_no_more(tmp_path: Path) -> None:
    run = tmp_path / "run.zarr"
    lease = Lease.take(Directory(run), 0.0)
    checkpoint = Checkpoint.start(run, {}, {}, 0.0)
    elsewhere(run)
    with pytest.raises(OSError, match=r"taken over by another run: process \d+ on far\.example"):
        checkpoint.add(1, Total({"s": np.ones(2)}, 2.0, 2))
    assert sorted(p.name for p in run.iterdir()) == [".lease", "epoch-00000000"]
    lease.release()
    assert json.loads((run / ".lease").read_text())["token"] == "theirs"


def test_a_process_number_that_was_given_again_is_another_process(tmp_path: Path) -> None:
    run = tmp_path / "run.zarr"
    lease = Lease.take(Directory(run), 60.0)
    elsewhere(run, host=json.loads((run / ".lease").read_text())["host"], started="1")
    taken = Lease.take(Directory(run), 60.0)
    assert json.loads((run / ".lease").read_text())["token"] == taken.token != lease.token
    taken.release()
    lease.release()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_lease_that_was_not_written_to_its_end_blocks_nobody(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.zarr").mkdir()
    (tmp_path / "run.zarr" / ".lease").write_text(text)
    Lease.take(Directory(tmp_path / "run.zarr"), 60.0).release()
    assert list((tmp_path / "run.zarr").iterdir()) == []


def test_one_of_many_takers_gets_the_lease(tmp_path: Path) -> None:
    run = tmp_path / "run.zarr"
    run.mkdir()
    (run / ".lease").write_text(json.dumps({"token": "t", "host": "h", "pid": 1, "since": "s", "interval": 1.0}))
    os.utime(run / ".lease", (0, 0))
    taken, refused = [], []

    def take() -> None:
        try:
            taken.append(Lease.take(Directory(run), 60.0))
        except OSError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(taken), len(refused)) == (1, 7)
    taken[0].release()


def test_one_of_several_runs_takes_a_dead_lease_over(tmp_path: Path) -> None:
    """A run that moved another's fresh lease aside put it back over a third one's: two went on."""
    dead = {"token": "dead", "host": socket.gethostname(), "system": leasing._system(), "pid": 2**22 + 1}
    dead |= {"started": "1", "since": "yesterday", "interval": 1.0}
    for trial in range(40):
        directory = tmp_path / str(trial)
        directory.mkdir()
        (directory / leasing.NAME).write_text(json.dumps(dead))
        start, held = threading.Barrier(6), []

        def take(directory: Path = directory, start: threading.Barrier = start, held: list[Lease] = held) -> None:
            start.wait()
            with contextlib.suppress(OSError):
                held.append(Lease.take(Directory(directory), 1.0))

        threads = [threading.Thread(target=take) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(held) == 1
        held[0].release()


@pytest.mark.parametrize("wrong", [{"interval": None}, {"interval": "y"}, {"pid": "x"}])
def test_a_lease_that_says_nothing_counts_for_none(wrong: dict[str, object], tmp_path: Path) -> None:
    whole = {"token": "t", "host": "h", "system": "", "pid": 1, "started": "1", "since": "s", "interval": 1.0}
    (tmp_path / leasing.NAME).write_text(json.dumps(whole | wrong))
    taken = Lease.take(Directory(tmp_path), 1.0)
    assert json.loads((tmp_path / leasing.NAME).read_text())["token"] == taken.token
    taken.release()
    assert list(tmp_path.iterdir()) == []
