"""Missing credentials, wrong ones, a missing bucket, a forbidden key, a dead endpoint: a sentence, before any task."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data.convert import convert
from daskspectral.data.remote import connect, using
from daskspectral.engine.run import Run
from daskspectral.plot import save_figure
from tests.stores.conftest import NOWHERE, Server, put

X = np.random.default_rng(0).standard_normal((60, 2))
SWIFT = {"config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 2}}


def estimator() -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=10, n_components=2, folds=None)


@pytest.fixture(scope="module")
def model() -> dsp.SpectralDecomposition:
    return estimator().fit(X)


def reading(
    url: str, options: dict[str, Any], model: dsp.SpectralDecomposition, folder: Path
) -> list[Callable[[], Any]]:
    """All that reads what is at a URL."""
    weight = {"sample_weight": f"{url}.zarr"}
    return [
        lambda: estimator().fit(f"{url}.zarr", storage_options=options),
        lambda: estimator().fit(X, **weight, storage_options=options),
        lambda: model.transform(f"{url}.zarr", storage_options=options),
        lambda: model.transform(f"{url}.zarr", out=folder / "e.zarr", storage_options=options),
        lambda: model.score(f"{url}.zarr", storage_options=options),
        lambda: dsp.load(f"{url}.zarr", storage_options=options),
        lambda: convert(f"{url}.csv", folder / "c.zarr", storage_options=options),
    ]


def writing(
    url: str, options: dict[str, Any], model: dsp.SpectralDecomposition, folder: Path
) -> list[Callable[[], Any]]:
    """All that writes to a URL."""
    from matplotlib.figure import Figure

    return [
        lambda: model.save(f"{url}.zarr", storage_options=options),
        lambda: estimator().fit(X, checkpoint=url, storage_options=options),
        lambda: model.transform(X, out=f"{url}.zarr", storage_options=options),
        lambda: save_figure(Figure(), f"{url}.png", storage_options=options),
    ]


@pytest.fixture
def no_task(monkeypatch: pytest.MonkeyPatch, model: dsp.SpectralDecomposition) -> None:
    """Fail where a pass over the rows is begun."""
    monkeypatch.setattr(Run, "_epochs", lambda *a, **k: pytest.fail("a task was sent"))


def assert_told(calls: list[Callable[[], Any]], kind: type[Exception], message: str, server: Server) -> None:
    for call in calls:
        with pytest.raises(kind, match=message) as told:
            call()
        assert "\n" not in str(told.value)
        assert server.secret not in str(told.value)


def test_missing_credentials(
    server: Server, model: Any, no_task: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    given = server.options, model, tmp_path
    calls = [*reading("s3://data/x", *given), *writing("s3://data/y", *given)]
    message = r"^there are no credentials for s3://data: give them in the environment \(AWS_ACCESS_KEY_ID .* anon=true"
    assert_told(calls, PermissionError, message, server)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert_told(calls[:1], PermissionError, message, server)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("AWS_SECRET_ACCESS_KEY", "wrong" * 8, "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE", "InvalidAccessKeyId"),
    ],
)
def test_wrong_credentials(
    name: str,
    value: str,
    code: str,
    server: Server,
    model: Any,
    no_task: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(name, value)
    given = server.options, model, tmp_path
    calls = [*reading("s3://data/x", *given), *writing("s3://data/y", *given)]
    message = rf"^s3://data does not accept the credentials in the environment \({code}\): mend them"
    assert_told(calls, PermissionError, message, server)


def test_missing_bucket(server: Server, model: Any, no_task: None, tmp_path: Path) -> None:
    given = server.options, model, tmp_path
    calls = [*reading("s3://none-such/x", *given), *writing("s3://none-such/y", *given)]
    assert_told(calls, FileNotFoundError, r"^there is no bucket s3://none-such: make it, or mend", server)


def test_missing_key(server: Server, model: Any, no_task: None, tmp_path: Path) -> None:
    calls = reading("s3://data/x", server.options, model, tmp_path)
    assert_told(calls, FileNotFoundError, r"^there is no (zarr array|saved model|file) at s3://data/x\.", server)


def test_forbidden_keys(server: Server, model: Any, no_task: None, tmp_path: Path) -> None:
    put(server, "s3://data/half.zarr", X)  # its metadata may be read, its chunks may not
    for name in ("closed/x.zarr/zarr.json", "closed/x.csv"):
        server.client.put_object(Bucket="data", Key=name, Body=b"1")
    given = server.options, model, tmp_path
    calls = reading("s3://data/closed/x", *given) + reading("s3://data/half", *given)[:5]
    read = r"^s3://data/(closed|half).* may not be read with the credentials in the environment.*: ask the owner"
    assert_told(calls, PermissionError, read, server)
    calls = writing("s3://data/readonly/y", *given)
    assert_told(calls, PermissionError, r"^s3://data/readonly.* may not be written with the credentials", server)


def test_a_dead_endpoint(server: Server, model: Any, no_task: None, tmp_path: Path) -> None:
    given = {"endpoint_url": NOWHERE, **SWIFT}, model, tmp_path
    calls = [*reading("s3://data/x", *given), *writing("s3://data/y", *given)]
    message = (
        r"^s3://data cannot be reached at http://127\.0\.0\.1:9: .*\. Look at the network, and at the endpoint_url"
    )
    assert_told(calls, ConnectionError, message, server)


def test_a_worker_without_rights_says_so(server: Server, points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=10, n_components=2, folds=None)
    from daskspectral.data import readers

    server.client.copy_object(Bucket="data", Key="half.zarr/zarr.json", CopySource="data/x.zarr/zarr.json")
    server.client.copy_object(Bucket="data", Key="half.zarr/c/0/0", CopySource="data/x.zarr/c/0/0")
    monkeypatch.setattr(readers, "_refuse_unreadable", lambda *a: None)  # as if the driver might read them
    with pytest.raises(PermissionError, match=r"s3://data/half\.zarr may not be read with the credentials"):
        source.fit("s3://data/half.zarr", allow_missing=True, storage_options=server.options)


def test_a_whole_bucket_is_no_output(server: Server, model: Any) -> None:
    with pytest.raises(ValueError, match=r"s3://data is a whole bucket: give a path in it, such as s3://data/x\.zarr"):
        model.save("s3://data", overwrite=True, storage_options=server.options)
    with pytest.raises(ValueError, match=r"s3://data is a whole bucket, not a checkpoint"):
        estimator().fit(X, checkpoint="s3://data", storage_options=server.options)


def test_other_objects_are_kept(server: Server, model: Any, points: str) -> None:
    server.client.put_object(Bucket="data", Key="thesis/one.tex", Body=b"1")
    with pytest.raises(FileExistsError, match="other objects, not a zarr store, so it is never replaced"):
        model.save("s3://data/thesis", overwrite=True, storage_options=server.options)
    with pytest.raises(ValueError, match=r"s3://data/thesis exists and is not a checkpoint"):
        estimator().fit(X, checkpoint="s3://data/thesis", storage_options=server.options)
    with pytest.raises(ValueError, match=r"lies inside the zarr store s3://data/x\.zarr"):
        estimator().fit(X, checkpoint=f"{points}/run", storage_options=server.options)
    with pytest.raises(FileExistsError, match=r"s3://data/x\.zarr exists \(a zarr store\)"):
        model.save(points, storage_options=server.options)
    assert "thesis/one.tex" in server.objects()


def test_the_command_prints_one_line(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["fit", "s3://none-such/x.zarr", "--out", "m.zarr", "--storage-option", f"endpoint_url={server.url}"])
    assert stop.value.code == 1
    told = capsys.readouterr().err.strip()
    assert told.startswith("Error: there is no bucket s3://none-such")
    assert "\n" not in told


def test_protocols_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="s4:// is no protocol that fsspec knows"):
        connect("s4://data/x.zarr")
    with using({"anon": True}), pytest.raises(ValueError, match="s4://"):
        dsp.load("s4://data/x.zarr")


def test_a_dead_endpoint_is_one_line_and_nothing_at_exit(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "daskspectral.cli", "info", "s3://data/m.zarr"]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}  # whose endpoint is a dead one
    done = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: s3://data cannot be reached at http://127.0.0.1:9: ")
    assert "\n" not in done.stderr.strip()
