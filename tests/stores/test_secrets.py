"""No credential in a message, a log, a picture, a model or any other object that is written."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zarr
from zarr.storage import FsspecStore, MemoryStore, StorePath

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data.convert import convert
from daskspectral.data.readers import array_name
from daskspectral.data.remote import checked_options, connect, refuse_secrets, using
from daskspectral.data.writer import local_path
from daskspectral.errors import redacted
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
    {"endpoint_url": f"http://{SECRET}@127.0.0.1:9"},
    {"endpoint_url": f"http://127.0.0.1:9/?sig={SECRET}"},
    {"config_kwargs": {"proxies": {"https": f"http://user:{SECRET}@127.0.0.1:9"}}},
    {"config_kwargs": {"proxies": {"https": f"{SECRET}@127.0.0.1:9"}}},
    {"pwd": SECRET},
    {"user": SECRET},
    {"cookie": SECRET},
    {"cookies": {"session": SECRET}},
    {"authorization": SECRET},
    {"client_kwargs": {"headers": {"Cookie": SECRET}}},
    {"client_kwargs": {"auth": ["user", SECRET]}},
    {"client_kwargs": [{"passphrase": SECRET}]},
    {"s3": {"secret": SECRET}},
    {"target_options": {"password": SECRET}},
    {"pin": 140364},
    {"endpoint_url": f"http://user:pa/{SECRET}@host"},
    {"host": f"us/er:{SECRET}@h"},
    {SECRET: True},
    {"AKIA" + SECRET: None},
    {"profile": {SECRET: True}},
]
HARMLESS: list[dict[str, Any]] = [
    {"anon": True},
    {"token": "anon"},
    {"secret": None, "version_aware": True, "client_kwargs": {"trust_env": False}},
    {"profile": "mine"},
    {"endpoint_url": "http://127.0.0.1:9", "client_kwargs": {"region_name": "eu-west-1"}},
    {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/mine"}},
    {"config_kwargs": {"signature_version": "s3v4", "s3": {"addressing_style": "path"}}},
    {"s3_additional_kwargs": {"RequestPayer": "requester", "ContentType": "a/b; c=d", "CacheControl": "max-age=9"}},
    {"config_kwargs": {"user_agent": "a/1 (b; c)", "user_agent_extra": "d/2"}, "tenant_id": "mine"},
    {"cache_options": {"max_blocks": 4, "nblocks": 4}, "asynchronous": False},
    {"requester_pays": "project"},
    {"requester_pays": True, "default_block_size": 2**20, "use_ssl": False},
]
URLS = [
    f"s3://key:{SECRET}@data/x.zarr",
    f"ftp://user:{SECRET}@example.org/x.zarr",
    f"https://example.org/x.zarr?X-Amz-Signature={SECRET}",
    f"https://example.org/x.zarr?sv=2020&sig={SECRET}",
    f"simplecache::https://user:{SECRET}@example.org/x.zarr",
    f"https://{SECRET}@example.org/x.zarr",
    f"HTTPS://{SECRET}@example.org/x.zarr",
    f"https://example.org/x.zarr?private_token={SECRET}",
    f"https://example.org?{SECRET}",
    f"s3://{SECRET}@data/x.zarr",
    f"abfs://container:{SECRET}@account.dfs.core.windows.net/x.zarr",
    f"zip://x.zarr::https://{SECRET}@example.org/x.zip",
    f"file:///tmp/x.zarr::https://{SECRET}@example.org/x.zarr",
    f"s3://AKIAEXAMPLE:wJalr/{SECRET}/K7@bucket/x.zarr",
    f"gcs://AKIAEXAMPLE:7/{SECRET}@bucket/x.zarr",
    f"s3://AKIAEXAMPLE:/{SECRET}@bucket/x.zarr",
    f"s3://AKIAEXAMPLE:p#{SECRET}@bucket",
    f"s3://AKIAEXAMPLE:a@b/{SECRET}@bucket",
    f"s3://AKIAEXAMPLE:a {SECRET}@bucket",
    f"s3://AKIAEXAMPLE: {SECRET}@bucket",
    f"http://u:8a/{SECRET}@host:80/x.zarr",
    f"http://host/x.zarr#sig={SECRET}",
    f"https://host/x;token={SECRET}",
    f"https:/u:{SECRET}@host",
]
FITTED = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=4, n_components=1, folds=None)
FITTED.fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.5, 0.0], [1.5, 2.0]])


def told(error: BaseException) -> str:
    """All that a traceback with its causes shows."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("options", GIVEN, ids=lambda given: str(next(iter(given))))
def test_a_credential_among_the_options_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^(storage_options has|the URL \w+://\*\*\*).*environment alone") as refusal:
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
        lambda: FITTED.save(url),
        lambda: FITTED.transform(url),
        lambda: FITTED.transform([[0.0, 1.0]], out=url),
        lambda: convert(url, tmp_path / "c.zarr"),
    ):
        with pytest.raises(ValueError, match=r"://\*\*\* has a user part \(before @\) or a query") as refusal:
            call()
        assert SECRET not in told(refusal.value)


def test_urls_without_credentials_are_taken() -> None:
    for url in (
        "abfs://container@account.dfs.core.windows.net/x.zarr",
        "simplecache::abfss://container@account/x.zarr",
        "s3://data/a@b/*.parquet",
        "s3://a:b",
        "s3://bucket/run@2024/x",
        "s3://bucket/a:b@c#1;2/x",
        "http://host:9000/run@2024/x",
        "zip://x.csv::s3://bucket/run@2024/x.zip",
        "http://[::1]:9000/x.zarr",
        "file:///data/a@b/part-?.parquet",
    ):
        refuse_secrets(url)
        assert redacted(url) == url


def test_an_open_array_is_named_without_its_credentials() -> None:
    files = fsspec.filesystem("https", asynchronous=True)
    store = FsspecStore(files, path=f"https://{SECRET}@example.org/x.zarr?sig={SECRET}")
    array = zarr.create_array(MemoryStore(), shape=(3, 1), dtype=float)
    assert array_name(replace(array, _async_array=replace(array._async_array, store_path=StorePath(store)))) == (
        "https://***@example.org/x.zarr?***"
    )


@pytest.mark.parametrize("address", [f"tcp://u:p/{SECRET}@host", f"u:{SECRET}@host", f"u/{SECRET}@host"])
def test_the_address_of_a_scheduler_is_repeated_without_credentials(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zarr.create_array(tmp_path / "x.zarr", shape=(9, 2), dtype=float)
    with pytest.raises(SystemExit):
        main(["fit", str(tmp_path / "x.zarr"), "--out", str(tmp_path / "m.zarr"), "--scheduler", address])
    assert "the URL tcp://*** has a user part" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        f"secret={SECRET}",
        SECRET,
        f"pwd={SECRET}",
        f"endpoint_url=https://{SECRET}@h",
        f"{SECRET}=true",
        f'headers={{"a": "{SECRET}"}}',
    ],
)
def test_the_shell_repeats_no_credential(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["info", "s3://data/m.zarr", "--storage-option", given])
    shown = capsys.readouterr()
    assert "--storage-option" in shown.err if stop.value.code == 2 else "the URL https://***" in shown.err
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
