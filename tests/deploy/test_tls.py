"""Work on a scheduler that speaks TLS: the same bits; nobody without a key gets in, and is told what to give."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dask
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from distributed.security import Security

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.data.readers import open_zarr

X = np.random.default_rng(3).standard_normal((900, 2))
OPTIONS = ["--landmarks", "20", "--kernel", "gaussian:1.0", "--components", "3", "--folds", "none", "--no-progress"]


@dataclass(frozen=True)
class Secured:
    """A scheduler with one worker process, and the keys of those who may talk to it."""

    address: str
    security: Security
    settings: dict[str, object]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    security = Security.temporary()
    folder = tmp_path_factory.mktemp("keys")
    names = {"tls_ca_file": "ca-file", "tls_client_cert": "client.cert", "tls_client_key": "client.key"}
    settings: dict[str, object] = {"distributed.comm.require-encryption": True}
    for attribute, name in names.items():
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(getattr(security, attribute))
        settings[f"distributed.comm.tls.{name}"] = str(path)
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, security=security, dashboard_address=":0", protocol="tls://"
    ) as cluster:
        yield Secured(cluster.scheduler_address, security, settings)


def estimator() -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(
        kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=3, folds=None, random_state=0
    )


def test_a_fit_over_tls_gives_the_same_bits(secured: Secured, tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(300, 2))
    expected = estimator().fit(str(tmp_path / "x.zarr"))
    with Client(secured.address, security=secured.security) as client:
        assert client.scheduler.address.startswith("tls://")
        assert {worker.partition(":")[0] for worker in client.scheduler_info()["workers"]} == {"tls"}
        found = estimator().fit(str(tmp_path / "x.zarr"))
        found.transform(str(tmp_path / "x.zarr"), out=tmp_path / "e.zarr")
    np.testing.assert_array_equal(found.eigenvalues_, expected.eigenvalues_)
    functions = open_zarr(tmp_path / "e.zarr")[...]
    np.testing.assert_allclose(functions, expected.transform(X), rtol=0, atol=1e-12)


def test_the_command_speaks_tls(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.create_array("x.zarr", data=X, chunks=(300, 2))
    line = ["fit", "x.zarr", "--out", "m.zarr", "--scheduler", secured.address, *OPTIONS]
    with dask.config.set(secured.settings):
        main(line)
    np.testing.assert_array_equal(dsp.load("m.zarr").eigenvalues_, estimator().fit("x.zarr").eigenvalues_)


@pytest.mark.parametrize("scheme", ["tls", "tcp"])
def test_nobody_without_a_key_gets_in(
    scheme: str, secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.create_array("x.zarr", data=X, chunks=(300, 2))
    address = secured.address.replace("tls://", f"{scheme}://")
    with pytest.raises(SystemExit) as stop:
        main(["fit", "x.zarr", "--out", "m.zarr", "--scheduler", address, "--connect-timeout", "5", *OPTIONS])
    assert stop.value.code == 1
    told = capsys.readouterr().err
    assert f"no dask scheduler answers at {address}" in told
    assert "\n" not in told.strip()
    if scheme == "tls":
        assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in told
    assert not os.path.exists("m.zarr")
