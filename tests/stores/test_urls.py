"""Data, models, outputs, checkpoints, pictures and sources by URL, with storage options said once."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zarr
from distributed import Client

import daskspectral as dsp
from daskspectral import report
from daskspectral.cli import main
from daskspectral.data.convert import convert
from daskspectral.data.readers import open_zarr
from daskspectral.data.remote import using
from daskspectral.plot import save_eigenfunctions
from tests.stores.conftest import Server, put


def estimator() -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(
        kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=3, random_state=0, folds=3
    )


def values(server: Server, url: str) -> np.ndarray:
    with using(server.options):
        return np.asarray(open_zarr(url)[...])


def test_from_data_to_output_all_at_urls(server: Server, points: str, x: np.ndarray) -> None:
    options = server.options
    weights = put(server, "s3://data/w.zarr", np.linspace(1, 2, len(x)))
    plan = estimator().plan(points, sample_weight=weights, storage_options=options)
    assert plan.ranges
    checkpoint = {"checkpoint": "s3://data/run", "checkpoint_every": 0.0}
    found = estimator().fit(points, sample_weight=weights, storage_options=options, **checkpoint)
    expected = estimator().fit(zarr.array(x, chunks=(300, 2)), sample_weight=np.linspace(1, 2, len(x)))
    np.testing.assert_array_equal(found.eigenvalues_, expected.eigenvalues_)
    assert any(key.startswith("run/epoch-") for key in server.objects())
    assert not [key for key in server.objects() if ".lease" in key]
    found.save("s3://data/m.zarr", storage_options=options)
    model = dsp.load("s3://data/m.zarr", storage_options=options)
    assert dsp.untrusted("s3://data/m.zarr", storage_options=options) == []
    assert dsp.SpectralDecomposition.load("s3://data/m.zarr", storage_options=options).rank_ == found.rank_
    assert model.transform(points, out="s3://data/e.zarr", storage_options=options) is None
    functions = expected.transform(x)
    np.testing.assert_allclose(values(server, "s3://data/e.zarr"), functions, rtol=0, atol=1e-12)
    lazy = model.transform(points, storage_options=options)
    np.testing.assert_allclose(lazy.compute(), functions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        model.score(points, sample_weight=weights, storage_options=options),
        expected.score(x, sample_weight=np.linspace(1, 2, len(x))),
    )
    both = estimator().fit_transform(points, sample_weight=weights, storage_options=options)
    np.testing.assert_allclose(both.compute(), functions, rtol=0, atol=1e-12)


def test_regression_and_update_at_urls(server: Server, x: np.ndarray) -> None:
    options, y = server.options, x[:, 0] * x[:, 1]
    first = [put(server, f"s3://data/{name}.zarr", v[:600]) for name, v in (("x0", x), ("y0", y))]
    whole = [put(server, f"s3://data/{name}.zarr", v) for name, v in (("x1", x), ("y1", y))]
    regressor = dsp.HermiteRegressor(dsp.kernels.Gaussian(1.0), n_landmarks=20, alpha=1e-4, folds=None)
    regressor.fit(*first, storage_options=options).update(*whole, storage_options=options)
    assert regressor.moments_.count == len(x)
    determination = regressor.score(*whole, storage_options=options)
    assert determination == pytest.approx(regressor.score(x, y))
    regressor.predict(whole[0], out="s3://data/p.zarr", storage_options=options)
    np.testing.assert_allclose(values(server, "s3://data/p.zarr"), regressor.predict(x), atol=1e-12)


def test_a_picture_at_a_url(server: Server, points: str, x: np.ndarray) -> None:
    model, url = estimator().fit(x), "s3://data/pictures/e.png"
    save_eigenfunctions(model, points, url, storage_options=server.options)
    assert server.objects("pictures/")["pictures/e.png"].startswith(b"\x89PNG")
    with pytest.raises(FileExistsError, match=r"s3://data/pictures/e\.png exists"):
        save_eigenfunctions(model, points, url, storage_options=server.options)
    save_eigenfunctions(model, points, url, storage_options=server.options, overwrite=True)
    assert list(server.objects("pictures/")) == ["pictures/e.png"]


def test_a_report_at_a_url(server: Server, points: str, x: np.ndarray) -> None:
    model, url = estimator().fit(x), "s3://data/pages/report.html"
    report.save(model, url, points, storage_options=server.options)
    assert server.objects("pages/")["pages/report.html"] == report.render(model, x).encode()
    with pytest.raises(FileExistsError, match=r"s3://data/pages/report\.html exists"):
        report.save(model, url, storage_options=server.options)
    assert list(server.objects("pages/")) == ["pages/report.html"]


def test_sources_at_urls(server: Server, x: np.ndarray, tmp_path: Path) -> None:
    table, file = pyarrow.table({"a": x[:, 0], "b": x[:, 1]}), io.BytesIO()
    np.save(file, x)
    server.client.put_object(Bucket="data", Key="in/x.npy", Body=file.getvalue())
    for part in range(2):
        file = io.BytesIO()
        pyarrow.parquet.write_table(table.slice(450 * part, 450), file)
        server.client.put_object(Bucket="data", Key=f"in/parts/{part}.parquet", Body=file.getvalue())
    made = convert("s3://data/in/x.npy", "s3://data/a.zarr", storage_options=server.options)
    assert (made.rows, made.columns, made.path) == (900, 2, "s3://data/a.zarr")
    np.testing.assert_array_equal(values(server, "s3://data/a.zarr"), x)
    convert("s3://data/in/parts", tmp_path / "b.zarr", storage_options=server.options)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "b.zarr", mode="r")[...], x)
    with pytest.raises(FileNotFoundError, match=r"there is no file at s3://data/in/none\.csv"):
        convert("s3://data/in/none.csv", tmp_path / "c.zarr", storage_options=server.options)


def test_workers_in_other_processes_read_and_write(server: Server, points: str, x: np.ndarray) -> None:
    with Client(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=":0"):
        model = estimator().fit(points, storage_options=server.options)
        model.transform(points, out="s3://data/e.zarr", storage_options=server.options)
    np.testing.assert_array_equal(model.eigenvalues_, estimator().fit(zarr.array(x, chunks=(300, 2))).eigenvalues_)
    np.testing.assert_allclose(values(server, "s3://data/e.zarr"), model.transform(x), atol=1e-12)


def test_every_command(server: Server, x: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    server.client.put_object(Bucket="data", Key="x.csv", Body="\n".join(f"{a!r},{b!r}" for a, b in x.tolist()).encode())
    bare = ["--kernel", "gaussian:1.0", "--landmarks", "20", "--folds", "none", "--no-progress"]
    folder, run = "s3://data", ["--checkpoint", "s3://data/run", "--plot", "s3://data/e.png"]
    for line in (
        ["convert", f"{folder}/x.csv", "--out", f"{folder}/x.zarr"],
        ["sample", "gaussian", "--n", "50", "--out", f"{folder}/y.zarr", "--dimension", "1"],
        ["fit", f"{folder}/x.zarr", "--out", f"{folder}/m.zarr", "--components", "3", *run, *bare],
        ["merge", f"{folder}/m.zarr", "--out", f"{folder}/s.zarr"],
        ["transform", f"{folder}/m.zarr", f"{folder}/x.zarr", "--out", f"{folder}/e.zarr", "--no-progress"],
        ["score", f"{folder}/m.zarr", f"{folder}/x.zarr", "--no-progress"],
        ["info", f"{folder}/s.zarr"],
        ["transform", f"{folder}/m.zarr", f"{folder}/x.zarr", "--out", f"{folder}/e.zarr", "--overwrite"],
    ):
        main([*line, "--storage-option", f"endpoint_url={server.url}"])
    assert "eigenvalue" in capsys.readouterr().out
    expected = dsp.SpectralDecomposition(
        kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=3, random_state=0, folds=None
    ).fit(x)
    found = values(server, "s3://data/e.zarr")
    assert found.shape == (900, 3)
    np.testing.assert_allclose(np.abs(found[:, 0]), np.abs(expected.transform(x)[:, 0]), rtol=1e-6)
    assert server.objects("e.png")["e.png"].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["anon"], "key=value is wanted"),
        (["=x"], "key=value is wanted"),
        (["anon=true", "anon=false"], "one of the keys is given twice"),
        (["endpont_url=http://127.0.0.1:9"], "endpont_url (did you mean endpoint_url?), which is not among"),
        (["endpoint_url=nowhere"], "an endpoint_url that is no URL"),
        (["consistency=md5"], "consistency, which s3:// does not take"),
    ],
)
def test_options_that_cannot_be_used(given: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = [word for text in given for word in ("--storage-option", text)]
    with pytest.raises(SystemExit) as stop:
        main(["info", "s3://data/m.zarr", *options])
    assert stop.value.code
    assert message in " ".join(capsys.readouterr().err.split())


def test_options_are_plain_data() -> None:
    with pytest.raises(TypeError, match="a mapping such as"), using(["anon"]):  # type: ignore[arg-type]
        pass
    with pytest.raises(TypeError, match="holds plain data; session is object"), using({"session": object()}):
        pass
    with pytest.raises(ValueError, match="has asynchronous, which is set as"), using({"asynchronous": True}):
        pass
    with using({"anon": True}), using(None):
        from daskspectral.data.remote import options_in_force

        assert options_in_force() == {"anon": True}
    assert options_in_force() == {}
