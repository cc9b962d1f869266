"""A checkpoint is of these data and this plan, it is whole or says that it is not, and it is written in time."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import daskspectral as dsp
from daskspectral.data.readers import ArrayReader, ZarrReader
from daskspectral.data.source import open_source
from daskspectral.engine import Run, plan_run
from daskspectral.engine import plan as planning
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.plan import Plan
from daskspectral.engine.tasks import Total
from daskspectral.errors import Stopped
from tests.common import assert_same_bits, local_cluster

N, CHUNK = 16_000, 1000
X = np.random.default_rng(5).standard_normal((N, 2))
pytestmark = pytest.mark.usefixtures("short_epochs")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.zarr"


def fit(x: object, run: Path | None = None, **changes: object) -> dsp.Moments:
    estimator = dsp.SpectralDecomposition(
        kernel=dsp.kernels.Exponential(1.0), n_landmarks=20, n_components=4, random_state=0
    )
    return estimator.fit(x, checkpoint=run, **changes).moments_


class Halt(Exception):
    pass


def halted(x: object, run: Path, after: int = 3, every: float = 0.0) -> None:
    """A run that ends after some epochs."""
    add = Checkpoint.add

    def add_and_halt(self: Checkpoint, epochs: int, total: Total) -> None:
        self._cost = 0.0  # of a loaded machine, by which epochs may go unwritten
        add(self, epochs, total)
        if epochs == after:
            raise Halt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "add", add_and_halt)
        with pytest.raises(Halt):
            fit(x, run, checkpoint_every=every)


def blocks(x: np.ndarray, rows: int = CHUNK) -> da.Array:
    return da.from_array(x, chunks=(rows, 2))


@pytest.mark.parametrize("wrap", [np.asarray, blocks])
def test_other_data_in_memory_are_refused(wrap: Callable[..., object], run: Path) -> None:
    halted(wrap(X), run)
    with pytest.raises(ValueError, match=r"another run: X (contents|name in dask) \(then"):
        fit(wrap(X + 1), run)
    assert_same_bits(fit(wrap(X.copy()), run), fit(wrap(X)))


def test_other_weights_are_refused(run: Path) -> None:
    weight = np.linspace(1, 2, N)
    fit(X, run, sample_weight=weight)
    with pytest.raises(
        ValueError, match=r"another run: sample_weight contents \(then [0-9a-f]{12}, now [0-9a-f]{12}\)"
    ):
        fit(X, run, sample_weight=weight + 1)


def test_data_in_memory_are_digested_for_a_checkpoint_only(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ArrayReader, "identity", property(lambda self: pytest.fail("digested")))
    fit(X)
    with pytest.raises(pytest.fail.Exception, match="digested"):
        fit(X, run)


@pytest.mark.parametrize("shape", [(5,), (0, 2), (7, 3)])
def test_contents_of_any_layout_have_a_digest(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=float).reshape(shape)
    one, other = ArrayReader(values), ArrayReader(np.asfortranarray(np.repeat(values, 2, 0))[::2])
    assert one.identity == other.identity


def test_another_plan_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    halted(blocks(X), run)
    with pytest.raises(ValueError, match=r"X chunks \(then '16 of 1000 rows at most, .*now '32 of 500 rows"):
        fit(blocks(X, 500), run)
    shutil.rmtree(run)
    halted(X, run)
    monkeypatch.setattr(planning, "EPOCH", 3)
    with pytest.raises(ValueError, match=r"plan .* differs: ranges of an epoch \(then 2, now 3\); the chunks"):
        fit(X, run)


def test_ranges_of_the_same_number_are_told_apart(tmp_path: Path) -> None:
    run = Checkpoint.start(tmp_path / "run.zarr", {}, {}, 0.0)
    run.agree(Plan(((0, 5), (5, 9))))
    run.agree(Plan(((0, 4), (4, 9))))  # no sums so far
    run.add(1, Total({"s": np.ones(2)}, 2.0, 2))
    found = Checkpoint.open(tmp_path / "run.zarr", {}, {}, 0.0)
    assert found is not None
    found.agree(Plan(((0, 4), (4, 9))))
    with pytest.raises(ValueError, match=r"differs: rows of the ranges"):
        found.agree(Plan(((0, 5), (5, 9))))


def test_long_texts_are_shown_where_they_differ(tmp_path: Path) -> None:
    Checkpoint.start(tmp_path / "run.zarr", {"a": "x" * 90 + "1", "b": {"c": 1, "d": 2}}, {}, 0.0)
    with pytest.raises(ValueError, match="another run") as caught:
        Checkpoint.open(tmp_path / "run.zarr", {"a": "x" * 90 + "2", "b": {"c": 1, "d": 3}}, {}, 0.0)
    assert "xx1'" in str(caught.value)
    assert "xx2'" in str(caught.value)
    assert "b d (then 2, now 3)" in str(caught.value)
    assert "b c" not in str(caught.value)


def test_sums_of_a_store_that_changed_are_not_written(points: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Checkpoint.add

    def add_and_change(self: Checkpoint, epochs: int, total: Total) -> None:
        if epochs == 3:
            (points / "c" / "15" / "0").write_bytes((points / "c" / "14" / "0").read_bytes())
        add(self, epochs, total)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", add_and_change)
        with pytest.raises(OSError, match="changed during the run") as caught:
            fit(str(points), run, checkpoint_every=0.0)
    note = caught.value.__notes__[-1]
    assert re.search(r"first [012] epochs, of the data as they were before, are in the checkpoint", note)
    assert not (run / "epoch-00000003").exists()
    with pytest.raises(ValueError, match=r"another run: X files \(then [0-9a-f]{12}, now [0-9a-f]{12}\)\. Give"):
        fit(str(points), run)


def truncate(epoch: Path) -> None:
    text = (epoch / "zarr.json").read_text()
    (epoch / "zarr.json").write_text(text[: len(text) // 2])


def edit(epoch: Path) -> None:
    header = json.loads((epoch / "zarr.json").read_text())
    header["attributes"]["daskspectral"]["state"]["total"]["weight"] += 1
    (epoch / "zarr.json").write_text(json.dumps(header))


def hollow(epoch: Path) -> None:
    shutil.rmtree(epoch)
    epoch.mkdir()


DAMAGES = {
    "truncated": truncate,
    "edited": edit,
    "hollow": hollow,
    "empty": lambda epoch: (epoch / "zarr.json").write_text(""),
    "no metadata": lambda epoch: (epoch / "zarr.json").unlink(),
    "no object": lambda epoch: (epoch / "zarr.json").write_text("[]"),
    "stray": lambda epoch: (epoch.parent / "epoch-99999999").mkdir(),
    "renamed": lambda epoch: epoch.rename(epoch.parent / "epoch-00000005"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_epoch_gives_way_to_the_one_before(damage: str, run: Path, caplog: pytest.LogCaptureFixture) -> None:
    halted(X, run)
    assert sorted(p.name for p in run.iterdir()) == ["epoch-00000002", "epoch-00000003"]
    DAMAGES[damage](run / "epoch-00000003")
    assert_same_bits(fit(X, run), fit(X))
    assert "is damaged" in caplog.text
    caplog.clear()
    assert_same_bits(fit(X, run), fit(X))
    assert "is damaged" not in caplog.text


@pytest.mark.parametrize("damage", [d for d in DAMAGES if d != "stray"])
def test_a_damaged_checkpoint_says_so(damage: str, run: Path) -> None:
    halted(X, run)
    shutil.rmtree(run / "epoch-00000002")
    DAMAGES[damage](run / "epoch-00000003")
    with pytest.raises(OSError, match=r"run\.zarr is damaged, and no epoch .* to start anew"):
        fit(X, run)


def test_a_place_that_can_hold_no_checkpoint_is_refused(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(ZarrReader, "read", lambda *a: pytest.fail("read before the check"))
    for path, message in {
        tmp_path / "file": "is a file",
        "": "it is empty",
        points / "run": r"inside the zarr store .*points\.zarr",
        points / "c" / "run": r"inside the zarr store .*points\.zarr",
        points: "is not a checkpoint",
    }.items():
        with pytest.raises(ValueError, match=message):
            fit(str(points), path)
    assert not (points / "run").exists()


def test_a_signal_writes_before_the_epoch_ends(points: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, written, signalled = ZarrReader.read, [], []

    def saved() -> bool:
        return any(p.name > "epoch-00000000" for p in run.glob("epoch-*"))

    def read(self: ZarrReader, start: int, stop: int) -> object:
        if start == 12_000 and not signalled:
            signalled.append(start)
            time.sleep(0.5)  # earlier epochs are added
            os.kill(os.getpid(), signal.SIGTERM)
            until = time.monotonic() + 5
            while time.monotonic() < until and not saved():
                time.sleep(0.01)
            written.append(saved())
        return plain(self, start, stop)

    monkeypatch.setattr(ZarrReader, "read", read)
    with pytest.raises(Stopped):
        fit(str(points), run, checkpoint_every=1e9)
    assert written == [True]
    assert_same_bits(fit(str(points), run), fit(str(points)))


def test_a_disk_that_is_full_hides_no_error(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_state(*args: object, **more: object) -> None:
        raise OSError("no space left")

    def add(self: Checkpoint, epochs: int, total: Total) -> None:
        monkeypatch.setattr("daskspectral.engine.checkpoint.write_state", write_state)
        self.epochs, self.total = epochs, total
        raise Halt

    monkeypatch.setattr(Checkpoint, "add", add)
    with pytest.raises(Halt) as caught:
        fit(X, run)
    assert "could not be written: no space left" in caught.value.__notes__[-2]
    assert "first 0 epochs are in" in caught.value.__notes__[-1]


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_kills_its_workers_is_named() -> None:
    class Killer:
        def __call__(self, batches: object, state: object) -> dict[str, np.ndarray]:
            for batch in batches:  # type: ignore[attr-defined]
                if batch["x"][0, 0] == 3000:
                    os._exit(1)
            return {"s": np.ones(1)}

    source = open_source(np.arange(8000.0)[:, None])
    plan = plan_run(np.arange(0, 8001, 1000), flops_per_row=2e6, row_bytes=8)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        local_cluster(n_workers=1) as cluster,
        Client(cluster),
        pytest.raises(RuntimeError, match=r"rows \d+ to \d+: 1 workers died .*more memory, fewer threads") as caught,
    ):
        Run(source, Plan(((0, 3000), (3000, 4000), (4000, 8000)), 1)).reduce(Killer())
    assert type(caught.value.__cause__).__name__ == "KilledWorker"
    assert len(plan.ranges) > 1


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_lost_is_one_message(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Checkpoint.add
    with (
        local_cluster(n_workers=1) as cluster,
        Client(cluster),
    ):

        def add_and_close(self: Checkpoint, epochs: int, total: Total) -> None:
            add(self, epochs, total)
            if epochs == 2:
                cluster.close()

        monkeypatch.setattr(Checkpoint, "add", add_and_close)
        with pytest.raises(RuntimeError, match=r"the dask scheduler tcp://.* is lost"):
            fit(X, run)
