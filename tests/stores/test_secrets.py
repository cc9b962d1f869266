"""No credential in a message, a log, a picture, a model or any other object that is written."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data.remote import checked_options, connect, refuse_secrets, using
from daskspectral.data.writer import local_path
from tests.stores.conftest import Server

SECRET = "s3cr3t-of-nobody-at-all"
GIVEN: list[dict[str, Any]] = [
    {"secret": SECRET},
    {"key": SECRET},
    {"token": SECRET},
    {"client_kwargs": {"aws_secret_access_key": SECRET}},
    {"client_kwargs": {"aws_access_key_id": SECRET}},
    {"password": SECRET},
    {"account_key": SECRET},
    {"sas_token": SECRET},
    {"connection_string": f"AccountKey={SECRET}"},
    {"headers": {"Authorization": f"Bearer {SECRET}"}},
    {"headers": {"X-Api-Key": SECRET}},
    {"s3_additional_kwargs": {"SSECustomerKey": SECRET}},
    {"endpoint_url": f"http://user:{SECRET}@127.0.0.1:9"},
    {"config_kwargs": {"proxies": {"https": f"http://user:{SECRET}@127.0.0.1:9"}}},
]
HARMLESS: list[dict[str, Any]] = [
    {"anon": True},
    {"token": "anon"},
    {"profile": "mine"},
    {"endpoint_url": "http://127.0.0.1:9", "client_kwargs": {"region_name": "eu-west-1"}},
    {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/mine"}},
    {"config_kwargs": {"signature_version": "s3v4", "s3": {"addressing_style": "path"}}},
    {"requester_pays": True, "default_block_size": 2**20, "use_ssl": False},
]
URLS = [
    f"s3://key:{SECRET}@data/x.zarr",
    f"ftp://user:{SECRET}@example.org/x.zarr",
    f"https://example.org/x.zarr?X-Amz-Signature={SECRET}",
    f"https://example.org/x.zarr?sv=2020&sig={SECRET}",
    f"simplecache::https://user:{SECRET}@example.org/x.zarr",
]


def told(error: BaseException) -> str:
    """All that a traceback with its causes shows."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("options", GIVEN, ids=lambda given: str(next(iter(given))))
def test_a_credential_among_the_options_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"credential.*environment alone") as refusal:
        dsp.load("s3://data/m.zarr", storage_options=options)
    assert SECRET not in told(refusal.value)


@pytest.mark.parametrize("options", HARMLESS, ids=lambda given: str(next(iter(given))))
def test_other_options_are_taken(options: dict[str, Any]) -> None:
    assert checked_options(options) == options


@pytest.mark.parametrize("url", URLS)
def test_a_credential_in_a_url_is_refused(url: str, tmp_path: Path) -> None:
    estimator = dsp.SpectralDecomposition(n_landmarks=10, n_components=2)
    for call in (
        lambda: estimator.fit(url),
        lambda: dsp.load(url),
        lambda: local_path(url),
        lambda: connect(url),
        lambda: estimator.fit([[0.0, 1.0]] * 20, checkpoint=url),
    ):
        with pytest.raises(ValueError, match=r"://\*\*\* holds a credential") as refusal:
            call()
        assert SECRET not in told(refusal.value)


def test_urls_without_credentials_are_taken() -> None:
    for url in ("abfs://container@account.dfs.core.windows.net/x.zarr", "s3://data/x.zarr?versionId=1", "s3://a:b"):
        refuse_secrets(url)


@pytest.mark.parametrize("given", [f"secret={SECRET}", SECRET, f"key={SECRET}"])
def test_the_shell_repeats_no_credential(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["info", "s3://data/m.zarr", "--storage-option", given])
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert "--storage-option" in shown.err
    assert SECRET not in shown.err + shown.out


def test_no_byte_that_is_written_holds_the_secret(server: Server, points: str, tmp_path: Path) -> None:
    """Two commands and a failure with all logs shown, and then every object, file and line is searched."""
    line = [sys.executable, "-m", "daskspectral.cli", "--verbose", "--debug"]
    option = ["--storage-option", f"endpoint_url={server.url}"]
    fit = ["--landmarks", "20", "--kernel", "gaussian:1.0", "--folds", "none", "--checkpoint", "s3://data/run"]
    shown = b""
    for command, code in (
        (["fit", points, "--out", "s3://data/m.zarr", "--plot", "s3://data/e.png", *fit], 0),
        (["transform", "s3://data/m.zarr", points, "--out", str(tmp_path / "e.zarr")], 0),
        (["transform", "s3://data/none.zarr", points, "--out", str(tmp_path / "f.zarr")], 1),
    ):
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        done = subprocess.run(
            [*line, *command, *option], env=environment, cwd=tmp_path, capture_output=True, timeout=300
        )
        assert done.returncode == code, done.stderr
        shown += done.stdout + done.stderr
    written = [shown, *server.objects().values()]
    written += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 30
    for content in written:
        assert server.secret.encode() not in content
        assert server.key.encode() not in content
        assert server.url.encode() not in content or content is shown


def test_nothing_that_travels_or_is_shown_holds_the_secret(
    server: Server, points: str, caplog: pytest.LogCaptureFixture
) -> None:
    import cloudpickle

    from daskspectral.data.source import open_source

    caplog.set_level(logging.DEBUG, logger="daskspectral")
    with using(server.options):
        source = open_source(points)
    model = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=10, n_components=2, folds=None)
    model.fit(points, storage_options=server.options)
    lazy = model.transform(points, storage_options=server.options)
    for content in (
        cloudpickle.dumps(source),
        cloudpickle.dumps(lazy),
        cloudpickle.dumps(model),
        repr((source, lazy, model, model.get_params(), vars(model))).encode(),
        caplog.text.encode(),
    ):
        assert server.secret.encode() not in content
        assert server.key.encode() not in content
