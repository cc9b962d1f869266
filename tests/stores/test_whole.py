"""What is written to a URL appears whole or not at all, whatever stops the writing, and the next run succeeds."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data import lease as leasing
from daskspectral.data.door import store_at
from daskspectral.data.folder import Directory, Folder, Prefix
from daskspectral.data.lease import Lease
from daskspectral.data.readers import open_zarr
from daskspectral.data.remote import using
from daskspectral.data.unpublished import Unpublished
from daskspectral.data.writer import create_array, create_group
from tests.stores import fit_by_epochs
from tests.stores.conftest import Server, put

ROOT = Path(__file__).parents[2]


def killed(script: str, arguments: list[str], sign: str = "waiting") -> None:
    """Run a script until it prints a sign, and kill it there."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == sign:
                break
        else:
            pytest.fail("it ended by itself")
        process.kill()


def opened(server: Server, url: str) -> list[Any]:
    """What each reader makes of a URL: what it opened, or nothing."""
    found = []
    with using(server.options):
        for read in (
            lambda: zarr.open(store_at(url), mode="r"),
            lambda: xr.open_zarr(store_at(url), consolidated=False),
            lambda: open_zarr(url),
            lambda: dsp.load(url),
        ):
            try:
                found.append(read())
            except (FileNotFoundError, KeyError, ValueError):  # ValueError: a store of another kind
                continue
    return found


@pytest.mark.parametrize("when", ["middle", "end"])
@pytest.mark.parametrize("command", ["fit", "transform"])
def test_a_killed_command_leaves_nothing_that_loads(
    command: str, when: str, server: Server, points: str, x: np.ndarray, tmp_path: Path
) -> None:
    out = "s3://data/out.zarr"
    model = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=3, folds=None)
    model.fit(x).save(tmp_path / "m.zarr")
    line = [command, *([str(tmp_path / "m.zarr")] if command == "transform" else []), points, "--out", out]
    line += ["--landmarks", "20", "--kernel", "gaussian:1.0", "--folds", "none"] if command == "fit" else []
    line += ["--no-progress", "--storage-option", f"endpoint_url={server.url}"]
    killed("write_and_wait.py", [when, *line])
    assert [key for key in server.objects("out.zarr/") if "/c/" in key]  # it was at work
    assert opened(server, out) == []
    with pytest.raises(FileNotFoundError, match=r"out\.zarr is unfinished: another run: process \d+ on .* has died"):
        dsp.load(out, storage_options=server.options)
    main(line)
    assert opened(server, out)
    assert "out.zarr/.lease" not in server.objects()
    if command == "transform":
        with using(server.options):
            np.testing.assert_allclose(open_zarr(out)[...], model.transform(x), atol=1e-12)


def test_a_killed_fit_goes_on_from_a_checkpoint_at_a_url(
    server: Server, points: str, x: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in fit_by_epochs.LENGTHS:
        monkeypatch.setattr(module, name, getattr(module, name))
    run = ["s3://data/run", "s3://data/moments.zarr", server.url]
    killed("fit_by_epochs.py", [points, *run, "wait"])
    epochs = [key for key in server.objects("run/") if key.count("/") == 2 and key.endswith("/zarr.json")]
    assert len(epochs) == 2  # a third was on its way
    assert "moments.zarr/zarr.json" not in server.objects()
    command = [sys.executable, str(Path(__file__).with_name("fit_by_epochs.py")), points, *run]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "going on from the checkpoint s3://data/run after" in done.stdout
    found = dsp.load("s3://data/moments.zarr", storage_options=server.options)
    fit_by_epochs.shorten()
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(300, 2))
    expected = fit_by_epochs.estimator().fit(str(tmp_path / "x.zarr")).moments_
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
    assert not [key for key in server.objects() if ".lease" in key]


def test_a_damaged_epoch_at_a_url_is_put_aside(server: Server, points: str, caplog: pytest.LogCaptureFixture) -> None:
    model = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=2, folds=None)
    options: dict[str, Any] = {"checkpoint": "s3://data/run", "storage_options": server.options}
    first = model.fit(points, **options).eigenvalues_
    chunk = next(key for key in server.objects("run/epoch-00000001") if "/c/" in key)
    server.client.put_object(Bucket="data", Key=chunk, Body=b"damaged")
    np.testing.assert_array_equal(model.fit(points, **options).eigenvalues_, first)
    assert "epoch-00000001 of the checkpoint s3://data/run is damaged" in caplog.text
    assert [key for key in server.objects("run/") if ".damaged/" in key]
    with pytest.raises(ValueError, match=r"the checkpoint s3://data/run is of another run: X"):
        model.fit(put(server, "s3://data/y.zarr", np.ones((400, 2))), **options)


def test_the_metadata_are_the_last_object(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.asyn import AsyncFileSystem
    from s3fs import S3FileSystem

    assert issubclass(S3FileSystem, AsyncFileSystem)
    order, plain = [], S3FileSystem._pipe_file

    async def piped(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        order.append(path.removeprefix("data/"))
        return await plain(self, path, *arguments, **options)

    monkeypatch.setattr(S3FileSystem, "_pipe_file", piped)
    put(server, "s3://data/x.zarr", np.ones((900, 2)))
    kept = [path for path in order if not path.rpartition("/")[2].startswith(".")]
    assert sorted(kept[:-1]) == ["x.zarr/c/0/0", "x.zarr/c/1/0", "x.zarr/c/2/0"]
    assert kept[-1] == "x.zarr/zarr.json"
    order.clear()
    with using(server.options), create_group("s3://data/g.zarr") as group:
        group.create_array("a", data=np.ones(3))
        assert "g.zarr/zarr.json" not in server.objects()
    assert [path for path in order if path == "g.zarr/zarr.json"] == ["g.zarr/zarr.json"]
    assert sorted(server.objects("g.zarr/")) == ["g.zarr/a/c/0", "g.zarr/a/zarr.json", "g.zarr/zarr.json"]


def test_a_store_is_replaced_whole(server: Server, points: str) -> None:
    with using(server.options):
        with create_array(points, (4, 2), "float32", overwrite=True) as array:
            array[:] = 1
            assert opened(server, points) == []
        assert open_zarr(points).shape == (4, 2)
    assert sorted(server.objects("x.zarr/")) == ["x.zarr/c/0/0", "x.zarr/zarr.json"]
    with pytest.raises(KeyboardInterrupt), using(server.options), create_array(points, (4, 2), "f8", overwrite=True):
        raise KeyboardInterrupt
    assert server.objects("x.zarr") == {}


def test_two_runs_do_not_write_to_one_url(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "s3://data/x.zarr"

    def second(died: bool) -> None:
        if died:  # the first run, as far as can be seen
            monkeypatch.setattr(leasing, "_started", lambda pid: "later")
        put(server, url, np.full(2, 5.0))

    live = rf"the output {url} is in use by another run: process {os.getpid()} on .*, since 20"
    with using(server.options), create_array(url, (4,), "f8"), pytest.raises(OSError, match=live):
        second(died=False)
    told = rf"the output {url} was taken over by another run"
    with using(server.options), pytest.raises(OSError, match=told), create_array(url, (4,), "f8", overwrite=True):
        second(died=True)
    with using(server.options):
        np.testing.assert_array_equal(open_zarr(url)[...], 5.0)


def test_a_run_that_was_taken_over_publishes_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "s3://data/x.zarr"

    def take_over() -> None:
        monkeypatch.setattr(leasing, "_started", lambda pid: "later")
        Lease.take(Prefix(url), 20.0, "the output")

    with using(server.options), pytest.raises(OSError, match="taken over by"), create_array(url, (4,), "f8"):
        take_over()
    assert opened(server, url) == []


@pytest.mark.parametrize("kind", ["directory", "s3", "memory"])
def test_folders(kind: str, server: Server, tmp_path: Path) -> None:
    with using(server.options if kind == "s3" else None):
        places = {"directory": tmp_path / "f", "s3": "s3://data/deep/f", "memory": f"memory://{tmp_path.name}/f"}
        folder: Folder = Directory(tmp_path / "f") if kind == "directory" else Prefix(str(places[kind]))
        assert str(folder) == str(places[kind])
        assert not folder.exists
        assert folder.names() == []
        folder.make()
        folder.create(".one", b"1")
        assert folder.exists
        with pytest.raises(FileExistsError):
            folder.create(".one", b"2")
        assert folder.read(".one") == b"1"
        for call in (folder.read, folder.touch, folder.changed):
            with pytest.raises(FileNotFoundError):
                call(".two")
        changed = folder.changed(".one")
        assert abs(changed - time.time()) < 60
        time.sleep(1.1)  # the clock of an object store has whole seconds
        folder.touch(".one")
        assert folder.read(".one") == b"1"
        assert changed < folder.changed(".one") <= folder.now()
        place = folder.place("x.zarr")
        with create_group(place) as group:
            group.create_array("a/b", data=np.arange(3))
        assert sorted(folder.names()) == [".one", "x.zarr"]
        assert folder.published("x.zarr")
        assert not folder.is_store()
        folder.rename("x.zarr", "y.zarr")
        assert sorted(folder.names()) == [".one", "y.zarr"]
        assert folder.holds("y.zarr/zarr.json")
        folder.delete_store("y.zarr")
        folder.delete_store("y.zarr")
        folder.delete(".one")
        folder.delete(".one")
        assert folder.names() == []
        with folder.alone():
            folder.leave()
        assert not folder.exists


def test_an_unpublished_store_travels_with_its_metadata() -> None:
    inner = zarr.storage.MemoryStore()
    store = Unpublished(inner)
    array = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="f8", attributes={"a": 1})
    assert list(inner._store_dict) == []
    other = pickle.loads(pickle.dumps(Unpublished(zarr.storage.MemoryStore(), store._root)))
    assert zarr.open_array(other, mode="r+").attrs["a"] == 1
    zarr.open_array(store, mode="r+")[:2] = 1
    assert list(inner._store_dict) == ["c/0"]
    with pytest.raises(FileNotFoundError):
        zarr.open_array(inner, mode="r")
    array.resize((2,))
    store.publish()
    np.testing.assert_array_equal(zarr.open_array(inner, mode="r")[...], [1, 1])
