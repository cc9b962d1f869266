"""Every command at URLs: refusals in one line, settings, `verify`, and no credential in a log."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner, Result

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.data.remote import using
from tests.stores.conftest import Server, forget

X = np.random.default_rng(0).standard_normal((60, 2))
KERNEL = "--kernel gaussian:1 --landmarks 10"
FEW = f"{KERNEL} --folds none --components 2"
LINES = {
    "fit": [
        "fit URL/p.zarr --out o.zarr",
        "fit URL/t.nc --sample-dims time --out o.zarr",
        "fit URL/t.parquet --out o.zarr",
        f"fit p.zarr {FEW} --weights URL/w.zarr --out o.zarr",
        f"fit p.zarr {FEW} --out URL/o.zarr",
        f"fit p.zarr {FEW} --checkpoint URL/run --out o.zarr",
        f"fit p.zarr {FEW} --plot URL/p.png --out o.zarr",
        "fit --config URL/m.zarr --out o.zarr",
        "fit --config URL/run.yaml --out o.zarr",
    ],
    "regress": ["regress URL/p.zarr y.zarr --out o.zarr", f"regress p.zarr URL/y.zarr {KERNEL} --out o.zarr"],
    "invariant": ["invariant URL/p.zarr y.zarr --out o.zarr", "invariant p.zarr y.zarr --out URL/o.zarr"],
    "classify": ["classify URL/p.zarr y.zarr --out o.zarr", "classify p.zarr URL/y.zarr --out o.zarr"],
    "embed": ["embed URL/p.zarr --out o.zarr", "embed p.zarr --out o.zarr --embedding URL/e.zarr"],
    "jacobi": ["jacobi URL/p.zarr --out o.zarr"],
    "graph": ["graph URL/p.zarr --out o.zarr", "graph URL/p.zarr --neighbours 4 --out o.zarr"],
    "plan": ["plan fit URL/p.zarr"],
    "report": [
        "report URL/m.zarr --out o.html",
        "report m.zarr URL/p.zarr --out o.html",
        "report m.zarr --out URL/o.html",
    ],
    "plot": ["plot URL/m.zarr --out o.png", "plot m.zarr URL/p.zarr --out o.png", "plot m.zarr --out URL/o.png"],
    "verify": ["verify URL/p.zarr"],
    "transform": [
        "transform URL/m.zarr p.zarr --out o.zarr",
        "transform m.zarr URL/p.zarr --out o.zarr",
        "transform m.zarr p.zarr --out URL/o.zarr",
    ],
    "predict": ["predict URL/m.zarr p.zarr --out o.zarr"],
    "score": ["score URL/m.zarr p.zarr", "score m.zarr URL/p.zarr"],
    "info": ["info URL/m.zarr", "info URL/m.zarr --settings"],
    "sample": ["sample circle --n 100 --out URL/o.zarr"],
    "convert": ["convert URL/x.csv --out o.zarr", "convert x.npy --out URL/o.zarr"],
    "update": ["update URL/m.zarr p.zarr --out o.zarr"],
    "merge": ["merge URL/m.zarr --out o.zarr", "merge m.zarr --out URL/o.zarr"],
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with points, targets and a model."""
    monkeypatch.chdir(tmp_path)
    zarr.create_array("p.zarr", data=X, chunks=(20, 2))
    zarr.create_array("y.zarr", data=(X[:, 0] > 0).astype(int), chunks=(20,))
    np.save("x.npy", X)
    model = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=10, n_components=2, folds=None)
    model.fit(X).save("m.zarr")


def called(line: str, server: Server) -> Result:
    return CliRunner().invoke(command, [*line.split(), "--storage-option", f"endpoint_url={server.url}"])


def told(line: str, server: Server) -> str:
    """The message of a command that fails, in one line."""
    forget()
    result = called(line, server)
    assert result.exception is not None, line
    usage = isinstance(result.exception, SystemExit)
    text = " ".join(result.output.partition("'--config': ")[2].split()) if usage else str(result.exception)
    assert text, (line, result.output)
    assert "\n" not in text
    return text


def test_every_command_is_tried() -> None:
    assert set(LINES) == set(command.commands)
    assert all(line.startswith(f"{name} ") for name, lines in LINES.items() for line in lines)


@pytest.mark.parametrize("name", LINES)
def test_what_is_missing_or_wrong_is_told_by_every_command(
    name: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(os.listdir())
    for line in LINES[name]:
        assert told(line.replace("URL", "s3://none-such"), server).startswith("there is no bucket s3://none-such: ")
        at = line.replace("URL", "s3://data")
        with monkeypatch.context() as wrong:
            wrong.setenv("AWS_SECRET_ACCESS_KEY", "wrong" * 8)
            text = told(at, server)
            assert text.startswith(
                "s3://data does not accept the credentials in the environment (SignatureDoesNotMatch"
            )
        with monkeypatch.context() as none:
            none.delenv("AWS_ACCESS_KEY_ID")
            none.delenv("AWS_SECRET_ACCESS_KEY")
            assert told(at, server).startswith("there are no credentials for s3://data: give them in the environment")
        if not any(word in line for word in ("--out URL", "--embedding URL", "--checkpoint URL", "--plot URL")):
            assert "s3://data/no" in told(line.replace("URL", "s3://data/no"), server)
    assert server.objects() == {}
    assert sorted(os.listdir()) == before


def test_settings_at_a_url_give_the_same_bits(server: Server, points: str) -> None:
    fit = f"fit {points} {FEW} --out s3://data/m.zarr"
    assert called(fit, server).exit_code == 0
    assert f"points: {points}\n" in called("info s3://data/m.zarr --settings", server).output
    assert called("plot s3://data/m.zarr --out s3://data/s.png", server).exit_code == 0
    for line in (
        f"fit {points} --config s3://data/m.zarr --out again.zarr",
        "plot s3://data/m.zarr --config s3://data/s.png.yaml --out again.png",
    ):
        result = called(line, server)
        assert result.exit_code == 0, result.output
    with using(server.options):
        np.testing.assert_array_equal(
            dsp.load("again.zarr").eigenvalues_, dsp.load("s3://data/m.zarr").eigenvalues_, strict=True
        )
    assert Path("again.png").read_bytes().startswith(b"\x89PNG")
    kept = {"storage-option": {"endpoint_url": server.url}, "model": "s3://data/m.zarr"}
    Path("run.yaml").write_text(repr(kept).replace("'", '"'))
    result = CliRunner().invoke(command, ["info", "--config", "run.yaml"])  # options of a store in a file of settings
    assert result.exit_code == 0, result.output


def test_verify_at_a_url(server: Server, points: str) -> None:
    assert called(f"verify {points}", server).output.splitlines()[-1] == "whole"
    assert called("transform m.zarr s3://data/x.zarr --out s3://data/e.zarr", server).exit_code == 0
    assert called("verify s3://data/e.zarr", server).exit_code == 0
    key = "x.zarr/c/1/0"
    body = server.objects(key)[key]
    server.client.put_object(Bucket="data", Key=key, Body=body[:40] + bytes([body[40] ^ 1]) + body[41:])
    result = called(f"verify {points}", server)
    assert result.exit_code == 1
    assert "1 things are damaged" in result.output
    server.client.delete_object(Bucket="data", Key=key)
    result = called(f"verify {points}", server)
    assert result.exit_code == 1
    assert "chunk c/1/0 (rows 300 to 600) is missing" in result.output


def test_a_log_file_has_no_credential(server: Server, points: str) -> None:
    done = called(f"fit {points} {FEW} --out s3://data/m.zarr --log-file run.log", server)
    assert done.exit_code == 0
    assert isinstance(called("info s3://data/none.zarr --log-file run.log", server).exception, FileNotFoundError)
    secret = "s3cr3t-of-nobody"
    for given in (f"secret={secret}", secret):
        line = ["info", "s3://data/m.zarr", "--log-file", "run.log", "--storage-option", given]
        result = CliRunner().invoke(command, line)
        assert result.exit_code == 2
        assert secret not in result.output
    url = f"s3://key:{secret}@data/x.zarr"
    for line in (
        ["fit", url, "--out", "n.zarr"],
        ["info", url],
        ["convert", url, "--out", "n.zarr"],
        ["verify", url],
        ["info", url, "--settings"],
        ["fit", "--config", url],
        ["fit", "p.zarr", f"--out={url}"],
        ["plan", "fit", url],
    ):
        result = CliRunner().invoke(command, [*line, "--log-file", "run.log"])
        assert isinstance(result.exception, ValueError)
        assert secret not in str(result.exception) + result.output
    Path("run.yaml").write_text(f"model: {url}")
    result = CliRunner().invoke(command, ["info", "--config", "run.yaml", "--log-file", "run.log"])
    assert isinstance(result.exception, ValueError)
    assert secret not in str(result.exception) + result.output
    text = Path("run.log").read_text()
    assert "INFO model: s3://data/m.zarr" in text
    for hidden in (server.secret, server.key, secret):
        assert hidden not in text
