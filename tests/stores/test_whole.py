"""What is written to a URL appears whole or not at all, whatever stops the writing, and the next run succeeds."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from s3fs import S3FileSystem

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data import folders
from daskspectral.data.folders import LOCK
from daskspectral.data.remote import using
from daskspectral.data.stores import open_zarr, store_at
from daskspectral.data.writing import create_array, create_group
from tests.common import small_model
from tests.stores.conftest import Server, put

ROOT = Path(__file__).parents[2]


def killed(arguments: list[str]) -> None:
    """Run a command until it waits, and kill it there."""
    line = [sys.executable, str(Path(__file__).with_name("write_and_wait.py")), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "waiting\n" in iter(process.stdout.readline, "")
        process.kill()


def opened(server: Server, url: str) -> list[Any]:
    """What each reader makes of a URL: what it opened, or nothing."""
    found = []
    with using(server.options):
        for read in (lambda: zarr.open(store_at(url), mode="r"), lambda: open_zarr(url), lambda: dsp.load(url)):
            with suppress(FileNotFoundError, KeyError, ValueError):  # ValueError: a store of another kind
                found.append(read())
    return found


@pytest.mark.parametrize(("command", "when"), [("fit", "end"), ("transform", "middle")])
def test_a_killed_command_leaves_no_loadable_file(
    command: str, when: str, server: Server, points: str, x: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, model = "s3://data/out.zarr", small_model().fit(x)
    model.save(tmp_path / "m.zarr")
    line = [command, *([str(tmp_path / "m.zarr")] if command == "transform" else []), points, "--out", out]
    line += ["--landmarks", "20", "--kernel", "gaussian:1.0", "--folds", "none"] if command == "fit" else []
    line += ["--no-progress", "--storage-option", f"endpoint_url={server.url}"]
    killed([when, *line])
    assert [key for key in server.objects("out.zarr/") if "/c/" in key]  # it was at work
    assert opened(server, out) == []
    with pytest.raises(FileNotFoundError, match=r"out\.zarr .*process \d+ on "):
        dsp.load(out, storage_options=server.options)
    with pytest.raises(SystemExit):  # it may live
        main(line)
    monkeypatch.setattr(folders, "RENEWAL", -1.0)  # as if a minute had passed
    monkeypatch.setattr(folders.Folder, "age", lambda folder, name: 0.0)
    main(line)
    assert opened(server, out)
    assert f"out.zarr/{LOCK}" not in server.objects()


def test_the_metadata_are_the_last_object(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    order, plain = [], S3FileSystem._pipe_file

    async def piped(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        order.append(path.removeprefix("data/"))
        return await plain(self, path, *arguments, **options)

    monkeypatch.setattr(S3FileSystem, "_pipe_file", piped)
    for overwritten in (False, True):
        order.clear()
        put(server, "s3://data/x.zarr", np.ones((900, 2)), overwrite=overwritten)
        kept = [path for path in order if not path.rpartition("/")[2].startswith(".")]
        assert sorted(kept[:-1]) == ["x.zarr/c/0/0", "x.zarr/c/1/0", "x.zarr/c/2/0"]
        assert kept[-1] == "x.zarr/zarr.json"
    with using(server.options), create_group("s3://data/g.zarr") as group:
        group.create_array("a", data=np.ones(3))
        assert "g.zarr/zarr.json" not in server.objects()
    assert sorted(server.objects("g.zarr/")) == ["g.zarr/a/c/0", "g.zarr/a/zarr.json", "g.zarr/zarr.json"]


def test_two_runs_do_not_write_to_one_url(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url, other = "s3://data/x.zarr", "s3://data/y.zarr"
    live = pytest.raises(OSError, match=f"process {os.getpid()} on")
    with using(server.options), create_array(url, (4,), "f8"), live, create_array(url, (4,), "f8"):
        pass
    with using(server.options), pytest.raises(OSError, match="taken over"), create_array(other, (4,), "f8"):
        server.client.put_object(Bucket="data", Key=f"y.zarr/{LOCK}", Body=b"another run")
    assert opened(server, other) == []
    assert sorted(server.objects("y.zarr/")) == [f"y.zarr/{LOCK}"]
