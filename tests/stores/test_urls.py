"""Data, models, outputs, checkpoints, pictures and sources by URL, with storage options said once."""

from collections.abc import Iterator

import numpy as np
import pytest
from click.testing import CliRunner
from distributed import Client

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.data.remote import using
from daskspectral.data.stores import open_zarr
from tests.common import local_cluster, small_model
from tests.stores.conftest import Server, put


def values(server: Server, url: str) -> np.ndarray:
    with using(server.options):
        return np.asarray(open_zarr(url)[...])


@pytest.fixture
def workers(server: Server) -> Iterator[None]:
    """Processes with the credentials in their environment, and no other option."""
    with local_cluster(n_workers=1) as cluster, Client(cluster):
        yield


@pytest.mark.usefixtures("workers")
def test_from_data_to_output_all_at_urls(server: Server, points: str, x: np.ndarray) -> None:
    options, weight = server.options, np.linspace(1, 2, len(x))
    weights, rows = put(server, "s3://data/w.zarr", weight), dsp.Rows(points, storage_options=options)
    assert small_model().plan(rows, sample_weight=weights).ranges
    found = small_model().fit(rows, sample_weight=weights, checkpoint="s3://data/run", checkpoint_every=0.0)
    expected = small_model().fit(x, sample_weight=weight)
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-9, atol=1e-12)
    assert any(key.startswith("run/epoch-") for key in server.objects())
    assert not [key for key in server.objects() if ".lock" in key]
    found.save("s3://data/m.zarr", storage_options=options)
    model = dsp.load("s3://data/m.zarr", storage_options=options)
    assert dsp.untrusted("s3://data/m.zarr", storage_options=options) == []
    assert model.transform(rows, out="s3://data/e.zarr") is None
    functions = expected.transform(x)
    for read in (values(server, "s3://data/e.zarr"), model.transform(rows).compute()):
        np.testing.assert_allclose(read, functions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.score(rows, sample_weight=weights), expected.score(x, sample_weight=weight))


FIT = "--kernel gaussian:1.0 --landmarks 20 --folds none --components 3"
LINES = [
    f"fit URL/x.zarr --out URL/m.zarr --checkpoint URL/run --plot URL/e.png {FIT}",
    "update URL/m.zarr URL/y2.zarr --out URL/u.zarr",
    "transform URL/m.zarr URL/x.zarr --out URL/e.zarr",
    "report URL/m.zarr --out URL/r.html",
    "verify URL/e.zarr",
]


def test_commands_read_and_write_urls(server: Server, x: np.ndarray) -> None:
    put(server, "s3://data/x.zarr", x)
    put(server, "s3://data/y2.zarr", np.concatenate([x, x]))
    for line in (LINES[0].replace("URL", "s3://none-such"), *LINES):
        words = [*line.replace("URL", "s3://data").split(), "--storage-option", f"endpoint_url={server.url}"]
        result = CliRunner().invoke(command, words)
        assert (result.exit_code == 0) is ("none-such" not in line), (line, result.output, result.exception)
    expected = small_model().fit(x).eigenvalues_
    found = dsp.load("s3://data/m.zarr", storage_options=server.options)
    np.testing.assert_allclose(found.eigenvalues_, expected, rtol=1e-9, atol=1e-12)
    body = server.objects("x.zarr/c/0/0")["x.zarr/c/0/0"]
    server.client.put_object(Bucket="data", Key="x.zarr/c/0/0", Body=body[:40] + bytes([body[40] ^ 1]) + body[41:])
    assert CliRunner().invoke(command, ["verify", "s3://data/x.zarr", *words[-2:]]).exit_code
