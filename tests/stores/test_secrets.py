"""No credential in a message, a log, a picture, a model or any other object that is written."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import cloudpickle
import pytest
import zarr
from click.testing import CliRunner

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.data.remote import connect, local_path, refuse_secrets, using
from daskspectral.data.source import open_source
from daskspectral.errors import redacted
from tests.common import small_model
from tests.stores.conftest import Server

SECRET = "s3cr3t-of-nobody-at-all"
URLS = [
    f"s3://key:{SECRET}@data/x.zarr",
    f"https://example.org/x.zarr?X-Amz-Signature={SECRET}",
    f"file:///tmp/x.zarr::https://{SECRET}@example.org/x.zarr",
    f"s3://AKIAEXAMPLE:wJalr/{SECRET}/K7@bucket/x.zarr",
    f"https://host/x;token={SECRET}",
]
OTHERS = [
    "abfs://container@account.dfs.core.windows.net/x.zarr",
    "s3://data/a@b/*.parquet",
    "s3://bucket/a:b@c#1;2/x",
    "http://[::1]:9000/x.zarr",
]


def told(error: BaseException) -> str:
    """All that a traceback with its causes shows."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("url", URLS)
def test_a_credential_in_a_url_is_refused(url: str) -> None:
    for call in (
        lambda: small_model().fit(url),
        lambda: dsp.load(url),
        lambda: local_path(url),
        lambda: connect(url),
        lambda: small_model().fit([[0.0, 1.0]] * 20, checkpoint=url),
    ):
        with pytest.raises(ValueError, match=r"://\*\*\*") as refusal:
            call()
        assert SECRET not in told(refusal.value)


@pytest.mark.parametrize("url", OTHERS)
def test_urls_without_credentials_are_taken(url: str) -> None:
    refuse_secrets(url)
    assert redacted(url) == url


URL = f"s3://key:{SECRET}@data/x.zarr"
LINES = [
    ["info", "s3://data/m.zarr", "--storage-option", SECRET],
    ["fit", "x.zarr", "--out", "m.zarr", "--scheduler", f"tcp://u:p/{SECRET}@host"],
    ["fit", "--config", URL],
    ["info", "--config", "run.yaml"],
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_the_shell_and_its_log_repeat_no_credential(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.create_array("x.zarr", shape=(9, 2), dtype=float)
    Path("run.yaml").write_text(f"model: {URL}")
    result = CliRunner().invoke(command, ["-v", *line])
    assert result.exit_code
    assert SECRET not in f"{result.exception} {result.output}"


def test_no_byte_that_is_written_holds_the_secret(server: Server, points: str, tmp_path: Path) -> None:
    """Two commands and a failure with all logs shown, and then every object, file and line is searched."""
    line = [sys.executable, "-m", "daskspectral.cli", "--verbose", "--debug"]
    endpoint = ["--storage-option", f"endpoint_url={server.url}"]
    key = ["--storage-option", f"key={server.key}", "--storage-option", f"secret={server.secret}"]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    without = {**environment, "AWS_SECRET_ACCESS_KEY": ""}
    fit = ["--landmarks", "20", "--kernel", "gaussian:1.0", "--folds", "none", "--checkpoint", "s3://data/run"]
    shown = b""
    for called, variables, code in (
        (["fit", points, "--out", "s3://data/m.zarr", "--plot", "s3://data/e.png", *fit], environment, 0),
        (["transform", "s3://data/m.zarr", points, "--out", str(tmp_path / "e.zarr"), *key], without, 0),
        (["transform", "s3://data/none.zarr", points, "--out", str(tmp_path / "f.zarr"), *key], without, 1),
    ):
        words = [*line, *called, *endpoint]
        done = subprocess.run(words, env=variables, cwd=tmp_path, capture_output=True, timeout=300, check=False)
        assert done.returncode == code, done.stderr
        shown += done.stdout + done.stderr
    written = [shown, *server.objects().values()]
    written += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 30
    for content in written:
        assert server.secret.encode() not in content
        assert server.key.encode() not in content
        assert server.url.encode() not in content or content is shown


def test_no_output_contains_the_secret(server: Server, points: str) -> None:
    """Those from the environment do not travel either."""
    with using(server.options):
        source = open_source(points)
    rows = dsp.Rows(points, storage_options=server.options)
    model = small_model().fit(rows)
    lazy = model.transform(rows)
    given = dsp.Rows(points, storage_options={**server.options, "key": server.key, "secret": server.secret})
    fitted = small_model().fit(given)
    shown = repr((source, lazy, model, model.get_params(), vars(model), given, fitted, vars(fitted))).encode()
    for content in (*map(cloudpickle.dumps, (source, lazy, model, fitted)), shown):
        assert server.secret.encode() not in content
        assert server.key.encode() not in content
