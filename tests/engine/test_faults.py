"""Nothing is lost: drivers and workers are killed, stores are damaged, and the answer is the same bits or an error."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import fsspec
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from distributed import Client, LocalCluster

import daskspectral as dsp
from daskspectral.data.integrity import Snapshot, check_chunks, list_chunks
from daskspectral.data.readers import ZarrReader, open_zarr, zarr_reader
from daskspectral.data.writer import create_array
from daskspectral.engine import plan as planning
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import Memory, check_memory
from daskspectral.engine.tasks import Total
from daskspectral.passes import folds
from tests.common import assert_same_bits, local_cluster

N, CHUNK = 40_000, 1000
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, 2))


def estimator(**changes: object) -> dsp.SpectralDecomposition:
    settings = {"n_landmarks": 20, "n_components": 4, "standardize": True, "random_state": 0} | changes
    return dsp.SpectralDecomposition(kernel=dsp.kernels.Exponential(1.0), **settings)


def driver(points: Path, folder: Path, pause: float, *words: str) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("fit_slowly.py")
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen([sys.executable, script, points, folder, str(pause), *words], stderr=errors)


def reads(folder: Path) -> list[tuple[str, int]]:
    log = folder / "reads"
    return [(p, int(a)) for p, a, _ in map(str.split, log.read_text().splitlines())] if log.exists() else []


def epochs(folder: Path) -> int:
    saved = [p.name for p in (folder / "run.zarr").glob("epoch-*")] if (folder / "run.zarr").exists() else []
    return max((int(n.removeprefix("epoch-")) for n in saved), default=-1)


def test_a_driver_killed_at_any_moment_goes_on_to_the_same_bits(
    points: Path, tmp_path: Path, short_epochs: None
) -> None:
    whole = estimator().fit(str(points), checkpoint=tmp_path / "unbroken.zarr").moments_
    folder = tmp_path / "broken"
    folder.mkdir()
    moments = np.random.default_rng().uniform(0.0, 0.3, 3)  # any moment: drawn anew in each test run
    for kill, moment in enumerate(moments):
        process = driver(points, folder, 0.02)
        target = 3 * (kill + 1)  # so that each life gets some epochs further
        while epochs(folder) < target and process.poll() is None:
            time.sleep(0.01)
        time.sleep(moment)
        process.kill()
        process.wait()
        assert not (folder / "moments.zarr").exists()
    done = epochs(folder)
    before = len(reads(folder))
    last = driver(points, folder, 0.0)
    assert last.wait(60) == 0, (folder / "errors").read_text()
    assert_same_bits(whole, dsp.load(folder / "moments.zarr"))
    ranges = planning.plan_run(np.arange(0, N + 1, CHUNK), flops_per_row=4 * 21 * 21 + 4 * 21 + 50 * 21, row_bytes=16)
    finished = ranges.ranges[min(2 * done, len(ranges.ranges)) - 1][1]
    again = [start for _, start in reads(folder)[before:]]
    assert again
    assert min(again) >= finished  # neither scaling, nor landmarks, nor finished ranges are read again


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT])
def test_a_signal_finishes_the_epoch_and_leaves_a_checkpoint(points: Path, tmp_path: Path, number: int) -> None:
    process = driver(points, tmp_path, 0.5, "later")  # slow once there are sums, so that it is not done before
    while epochs(tmp_path) < 1:
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait(600) != 0
    done = epochs(tmp_path)
    assert done >= 1
    assert "are in the checkpoint" in (tmp_path / "errors").read_text()
    assert driver(points, tmp_path, 0.0).wait(600) == 0
    assert_same_bits(dsp.load(tmp_path / "moments.zarr"), _plainly(points))


def _plainly(points: Path) -> dsp.Moments:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("EPOCH", 2), ("TASK_FLOPS", 3e6), ("LEAST_FLOPS", 3e6)):
            patch.setattr(planning, name, value)
        patch.setattr(folds, "LEAST_JOINED", 1 << 20)
        return estimator().fit(str(points)).moments_


def test_a_checkpoint_of_another_run_is_refused(points: Path, tmp_path: Path, short_epochs: None) -> None:
    run = tmp_path / "run.zarr"
    first = estimator().fit(str(points), checkpoint=run)
    assert np.array_equal(estimator().fit(str(points), checkpoint=run).eigenvalues_, first.eigenvalues_)
    with pytest.raises(ValueError, match=r"another run: parameter n_landmarks \(then 20, now 21\)"):
        estimator(n_landmarks=21).fit(str(points), checkpoint=run)
    with pytest.raises(ValueError, match="on_invalid"):
        estimator().fit(str(points), checkpoint=run, on_invalid="skip")
    zarr.open_array(points, mode="r+")[0] = 7.0
    with pytest.raises(ValueError, match="another run: X"):
        estimator().fit(str(points), checkpoint=run)
    with pytest.raises(ValueError, match="another run: X"):
        estimator().fit(X, checkpoint=run)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="is not a checkpoint"):
        estimator().fit(X, checkpoint=tmp_path / "mine")
    with pytest.raises(FileNotFoundError, match="is missing"):
        estimator().fit(X, checkpoint=tmp_path / "nowhere" / "run.zarr")
    with pytest.raises(ValueError, match="checkpoint_every"):
        estimator().fit(X, checkpoint=tmp_path / "new.zarr", checkpoint_every=-1)


def test_a_half_written_checkpoint_does_not_count(tmp_path: Path) -> None:
    run = Checkpoint.start(tmp_path / "run.zarr", {"a": 1}, {"b": np.arange(3)}, 0.0)
    run.add(1, Total({"s": np.ones(2)}, 2.0, 2))
    shutil.copytree(tmp_path / "run.zarr" / "epoch-00000001", tmp_path / "run.zarr" / ".epoch-00000002.1.partial")
    found = Checkpoint.open(tmp_path / "run.zarr", {"a": 1}, {"b": np.ndarray}, 0.0)
    assert found is not None
    assert found.epochs == 1
    assert found.total is not None
    assert np.array_equal(found.total.sums["s"], np.ones(2))
    assert np.array_equal(found.constants["b"], np.arange(3))


def test_what_a_killed_run_left_in_a_checkpoint_goes(tmp_path: Path) -> None:
    left = tmp_path / "run.zarr" / ".epoch-00000007.0123abcd.partial"
    (left / "new").mkdir(parents=True)
    os.utime(left, (0, 0))
    estimator().fit(X[:500], checkpoint=tmp_path / "run.zarr")
    assert not left.exists()


def test_a_missing_chunk_is_named_before_the_run(points: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (points / "c" / "7" / "0").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(ZarrReader, "read", lambda *a: pytest.fail("read before the check"))
        with pytest.raises(OSError, match=r"chunk c/7/0 \(rows 7000 to 8000\) is missing, and 1 of 40 chunks"):
            estimator().fit(str(points))
    with pytest.raises(dsp.InvalidRowError):  # the fill value of our own arrays is NaN
        estimator().fit(str(points), allow_missing=True)
    (points / "c" / "3" / "0").write_bytes(b"")
    with pytest.raises(OSError, match=r"chunk c/3/0 .* is empty, and 2 of 40"):
        estimator().fit(str(points))


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_a_damaged_chunk_is_an_error_that_names_it(points: Path, damage: str) -> None:
    chunk = points / "c" / "12" / "0"
    whole = bytearray(chunk.read_bytes())
    if damage == "flip":
        whole[len(whole) // 2] ^= 1
    chunk.write_bytes(whole if damage == "flip" else whole[: len(whole) // 2])
    with pytest.raises(OSError, match=r"points\.zarr cannot be decoded.*12") as caught:
        estimator(standardize=False).fit(str(points))
    assert any("rows" in note for note in caught.value.__notes__)


RUNS: dict[str, Callable[[str, str], object]] = {
    "fit": lambda points, out: estimator().fit(points),
    "update": lambda points, out: estimator().fit(X[:1000]).update(points),
    "score": lambda points, out: estimator().fit(X[:1000]).score(points),
    "transform": lambda points, out: estimator().fit(X[:1000]).transform(points, out=out),
    "predict": lambda points, out: regressor().predict(points, out=out),
    "predict_gradient": lambda points, out: regressor().predict_gradient(points, out=out),
    "embed": lambda points, out: dsp.SDPEmbedding(9.0, method="lowrank", n_landmarks=30).fit(points),
}


def regressor() -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(dsp.kernels.Gaussian(1.0), n_landmarks=20, random_state=0).fit(X[:1000], X[:1000, 0])


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
@pytest.mark.parametrize("kind", RUNS)
def test_a_store_that_changes_during_the_run_is_noticed(
    kind: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, kept = ZarrReader.read, (points / "c" / "38" / "0").read_bytes()

    def read(reader: ZarrReader, start: int, stop: int) -> object:
        (points / "c" / "39" / "0").write_bytes(kept)
        return plain(reader, start, stop)

    monkeypatch.setattr(ZarrReader, "read", read)
    with pytest.raises(OSError, match=r"changed during the run: 1 of its files .* c/39/0"):
        RUNS[kind](str(points), str(tmp_path / "out.zarr"))
    assert os.listdir(tmp_path) == ["points.zarr"]


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
@pytest.mark.parametrize("kind", ["fit", "transform"])
@pytest.mark.parametrize("ending", ["parquet", "nc"])
def test_other_files_that_change_during_the_run_are_noticed(
    kind: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, plain = tmp_path / f"points.{ending}", Snapshot.check_unchanged
    if ending == "nc":
        xr.Dataset({"v": (("time", "c"), X[:500])}).to_netcdf(file)
    else:
        pd.DataFrame(X[:500]).add_prefix("c").to_parquet(file)

    def check(snapshot: Snapshot) -> None:
        os.utime(file, (0, file.stat().st_mtime + 1))
        plain(snapshot)

    monkeypatch.setattr(Snapshot, "check_unchanged", check)
    with pytest.raises(OSError, match=rf"changed during the run: 1 of its files .*points.{ending} among"):
        RUNS[kind](str(file), str(tmp_path / "out.zarr"))
    assert os.listdir(tmp_path) == [file.name]


def test_appended_rows_alone_are_read(points: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = estimator().fit(str(points))
    with pytest.raises(ValueError, match="nothing to add"):
        model.update(str(points))
    array = zarr.open_array(points, mode="r+")
    array.append(X[:3000] + 1)
    plain, seen = ZarrReader.read, []
    monkeypatch.setattr(ZarrReader, "read", lambda s, a, b: seen.append((a, b)) or plain(s, a, b))
    before = model.moments_
    model.update(str(points))
    assert min(start for start, _ in seen) == N  # no file behind the others was touched
    assert model.moments_.rows == N + 3000
    assert model.moments_.count == before.count + 3000
    apart = estimator(landmarks=np.asarray(model.basis_.parts[1].landmarks), standardize=False)
    apart.fit((np.concatenate([X, X[:3000] + 1]) - model.preparation_.mean) / model.preparation_.scale)
    # the landmarks' own rows were left out of the first and are in the second
    np.testing.assert_allclose(model.moments_.mean("gram"), apart.moments_.mean("gram"), rtol=2e-2)


@pytest.fixture
def own_cluster() -> Iterator[tuple[LocalCluster, Client]]:
    """Two processes, to kill and to freeze."""
    with local_cluster(n_workers=2) as cluster, Client(cluster) as client:
        yield cluster, client


@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_mid_run_changes_no_bit(
    own_cluster: tuple[LocalCluster, Client], points: Path, short_epochs: None, tmp_path: Path
) -> None:
    _, client = own_cluster
    with dask.config.set(scheduler="threads"):
        expected = estimator().fit(str(points)).moments_
    victims = iter(client.run(os.getpid).values())
    add = Checkpoint.add

    def add_and_kill(self: Checkpoint, epochs: int, total: Total) -> None:
        add(self, epochs, total)
        if epochs == 2:
            os.kill(next(victims), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "add", add_and_kill)
        got = estimator().fit(str(points), checkpoint=tmp_path / "run.zarr").moments_
    assert_same_bits(expected, got)


@pytest.mark.filterwarnings("ignore")
def test_workers_that_are_gone_do_not_hang_the_run(
    own_cluster: tuple[LocalCluster, Client], points: Path, short_epochs: None, tmp_path: Path
) -> None:
    local, client = own_cluster
    add = Checkpoint.add

    def add_and_leave(self: Checkpoint, epochs: int, total: Total) -> None:
        add(self, epochs, total)
        if epochs == 2:
            local.scale(0)
            while client.scheduler_info(n_workers=-1)["workers"]:
                time.sleep(0.05)

    with pytest.MonkeyPatch.context() as patch, dask.config.set({"daskspectral.patience": 6}):
        patch.setattr(Checkpoint, "add", add_and_leave)
        with pytest.raises(RuntimeError, match=r"(no workers|2 workers are silent).*daskspectral\.patience") as caught:
            estimator().fit(str(points), checkpoint=tmp_path / "run.zarr")
    assert "are in the checkpoint" in caught.value.__notes__[-1]
    assert epochs(tmp_path) >= 2
    with dask.config.set(scheduler="threads"):
        resumed = estimator().fit(str(points), checkpoint=tmp_path / "run.zarr").moments_
        assert_same_bits(resumed, estimator().fit(str(points)).moments_)


@pytest.mark.filterwarnings("ignore")
def test_workers_that_are_frozen_are_named(
    own_cluster: tuple[LocalCluster, Client], points: Path, short_epochs: None, tmp_path: Path
) -> None:
    _, client = own_cluster
    workers = client.run(os.getpid)
    add = Checkpoint.add

    def add_and_freeze(self: Checkpoint, epochs: int, total: Total) -> None:
        add(self, epochs, total)
        if epochs == 2:
            for pid in workers.values():
                os.kill(pid, signal.SIGSTOP)

    began = time.monotonic()
    try:
        with pytest.MonkeyPatch.context() as patch, dask.config.set({"daskspectral.patience": 8}):
            patch.setattr(Checkpoint, "add", add_and_freeze)
            with pytest.raises(RuntimeError, match=r"2 workers are silent, without a heartbeat: ") as caught:
                estimator().fit(str(points), checkpoint=tmp_path / "run.zarr")
    finally:
        for pid in workers.values():
            os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - began < 60
    assert all(address in str(caught.value) for address in workers)
    assert "are in the checkpoint" in caught.value.__notes__[-1]
    resumed = estimator().fit(str(points), checkpoint=tmp_path / "run.zarr").moments_  # thawed
    with dask.config.set(scheduler="threads"):
        assert_same_bits(resumed, estimator().fit(str(points)).moments_)


@pytest.mark.filterwarnings("ignore")
def test_one_worker_that_is_frozen_is_warned_about(
    own_cluster: tuple[LocalCluster, Client], points: Path, short_epochs: None, caplog: pytest.LogCaptureFixture
) -> None:
    _, client = own_cluster
    address, pid = next(iter(client.run(os.getpid).items()))
    os.kill(pid, signal.SIGSTOP)
    told, done = f"worker {address} is silent for 3 s", threading.Event()

    def thaw() -> None:
        while told not in caplog.text and not done.wait(0.1):
            pass
        os.kill(pid, signal.SIGCONT)

    thawing = threading.Thread(target=thaw)
    thawing.start()
    try:
        with dask.config.set({"daskspectral.patience": 3}):
            estimator(landmarks=X[:20], standardize=False).fit(str(points))
    finally:
        done.set()
        thawing.join()
    assert told in caplog.text


def test_what_does_not_fit_is_refused_with_what_to_lower() -> None:
    with pytest.raises(MemoryError, match="lower n_landmarks"):
        check_memory(Memory(now=0, tasks=1 << 60, sums=0, solver=0, threads=2))
    with pytest.raises(MemoryError, match="lower n_landmarks"):
        estimator(landmarks=np.zeros((400_000, 2)), standardize=False).fit(X)


def test_blocks_that_break_their_promise_are_an_error() -> None:
    short = da.from_array(X[:3000], chunks=(100, 2)).map_blocks(lambda b: b[:50], dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"block \(\d+, 0\) .* shape \(50, 2\), and its chunks promise \(100, 2\)"):
        estimator(landmarks=X[:20], standardize=False).fit(short)


def test_points_off_the_manifold_are_an_error() -> None:
    tangential = dsp.operators.Laplacian(dsp.manifolds.Sphere(2))
    with pytest.raises(ValueError, match="expected points on Circle"):
        estimator(operator=tangential, standardize=False).fit(X)


def test_an_object_store_is_listed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "memory://listed.zarr"
    with create_array(url, (3000, 2), "float64", chunk_rows=1000, overwrite=True) as array:
        array[:] = X[:3000]
    reader = zarr_reader(open_zarr(url), url)
    whole = list_chunks(reader)
    assert whole is not None
    check_chunks(reader, whole)
    fsspec.filesystem("memory").rm("/listed.zarr/c/1/0")
    after = list_chunks(reader)
    with pytest.raises(OSError, match="chunk c/1/0"):
        check_chunks(reader, after)
    with pytest.raises(OSError, match="1 of its files"):
        whole.check_unchanged(after)


def told_as_relative(scale: float) -> AbstractContextManager[Any]:
    """Weights of a mean far below 1 are taken as relative, and the user is told."""
    return pytest.warns(dsp.errors.WeightWarning, match="They are taken as relative") if scale < 1 else nullcontext()


def test_weights_of_any_unit_keep_the_same_functions() -> None:
    weight = RNG.uniform(0.5, 2, N)
    effective = weight.sum() ** 2 / np.sum(weight**2)  # the rows that relative weights count as
    a = estimator().fit(X, sample_weight=weight * effective / weight.sum())
    with told_as_relative(1 / N):
        b = estimator().fit(X, sample_weight=weight / weight.sum())
    assert a.rank_ == b.rank_
    np.testing.assert_allclose(a.eigenvalues_[1:], b.eigenvalues_[1:], rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_uniform_weights_of_any_scale_give_the_spectrum_without_weights(scale: float, dtype: str) -> None:
    settings = {"kernel": dsp.kernels.Gaussian(1.0), "n_landmarks": 20, "n_components": 4, "dtype": dtype, "rtol": 1e-5}
    model = dsp.SpectralDecomposition(**settings, solver="cut", landmarks="uniform", random_state=0)
    plain = model.fit(X).eigenvalues_
    with told_as_relative(scale):
        found = model.fit(X, sample_weight=np.full(N, scale))
    np.testing.assert_allclose(found.eigenvalues_, plain, rtol=1e-9 if dtype == "float64" else 1e-3, atol=1e-9)
    assert found.support_[0] == pytest.approx(max(1.0, scale) * found.moments_.count, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_moments_of_weights_of_any_scale_add(scale: float) -> None:
    weight = scale * RNG.uniform(0.5, 2, 4000)
    model = estimator(landmarks=X[:20], standardize=False, exclude_landmarks=False)
    with told_as_relative(scale):
        whole = model.fit(X[:4000], sample_weight=weight)
        support, rank, values = whole.support_, whole.rank_, whole.eigenvalues_
        halves = [model.fit(X[a:b], sample_weight=weight[a:b]).moments_ for a, b in ((0, 1500), (1500, 4000))]
        added = model.fit_moments(halves[0] + halves[1])
    assert added.rank_ == rank
    np.testing.assert_allclose(added.support_, support, rtol=1e-9)
    np.testing.assert_allclose(added.eigenvalues_, values, rtol=1e-6, atol=1e-9)
    if scale < 1:  # Kish's number of rows, of weights that a float can square
        kish = (weight / scale).sum() ** 2 / ((weight / scale) ** 2).sum()
        np.testing.assert_allclose(support[0], kish, rtol=1e-9)


def test_error_bars_and_graphs_of_weights_of_any_scale() -> None:
    x, weight = X[:1500], RNG.uniform(0.5, 2, 1500)
    model = dsp.SpectralDecomposition(
        dsp.operators.Schroedinger("v"),
        kernel=dsp.kernels.Gaussian(1.0),
        landmarks="uniform",
        solver="cut",  # a penalised solution knows how many rows there are
        n_landmarks=20,
        n_components=4,
        random_state=0,
    )
    graph = dsp.GraphLaplacian(dsp.kernels.Gaussian(0.5), n_landmarks=20, n_components=4, random_state=0)
    fields = {"v": 1 + x[:, 0] ** 2}
    bounds, forms = [], []
    for scale in (1.0, 1e-300, 1e300):
        w = scale * weight
        with told_as_relative(scale):
            model.fit(x, sample_weight=w, fields=fields)
        bounds.append(model.variance_bound(x, sample_weight=w, fields=fields))
        forms.append(graph.fit(x, sample_weight=w).form_)
    for bound, form in zip(bounds[1:], forms[1:], strict=True):
        np.testing.assert_allclose(bound.standard_errors, bounds[0].standard_errors, rtol=1e-6)
        assert bound.deviation == pytest.approx(bounds[0].deviation, rel=1e-6)
        np.testing.assert_allclose(form, forms[0], rtol=1e-9, atol=1e-12)
