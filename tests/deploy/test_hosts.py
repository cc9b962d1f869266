"""A cluster of plain hosts over TLS, on this one: keys, a scheduler, a worker, and a fit to the same bits."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from tests.common import small_model
from tests.deploy.common import DEPLOY, FIT, called, environment

START = DEPLOY / "hosts" / "start.sh"
pytestmark = pytest.mark.slow


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    with open(folder.parent / f"{words[0]}.log", "wb") as log:
        command = [START, words[0], folder, *words[1:], "--host", "127.0.0.1", "--no-dashboard"]
        return subprocess.Popen(command, env=environment(), stdout=log, stderr=log, cwd=folder.parent)


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Path]:
    """The folder of a cluster that runs."""
    folder = tmp_path / "a cluster"
    called([START, "keys", folder], environment())
    running = [started(folder, "scheduler", "--port", "0")]
    try:
        end = time.monotonic() + 60
        while not (folder / "scheduler.json").exists():
            assert running[0].poll() is None, (tmp_path / "scheduler.log").read_text()
            assert time.monotonic() < end, "no scheduler within a minute"
            time.sleep(0.1)
        running.append(started(folder, "worker", "1"))
        yield folder
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(30)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zarr.create_array("x.zarr", data=np.random.default_rng(3).standard_normal((900, 2)), chunks=(300, 2))


def test_a_fit_on_hosts_over_tls(keys: Path, tmp_path: Path) -> None:
    for name in ("ca.pem", "cert.pem", "key.pem", "environment"):
        assert (keys / name).stat().st_mode & 0o077 == 0
    address = json.loads((keys / "scheduler.json").read_text())["address"]
    assert address.startswith("tls://")
    fit = ["fit", "x.zarr", "--out", "m.zarr", *FIT, "--scheduler"]
    code = f"""
        . '{keys}/environment'
        exec python -m daskspectral.cli {" ".join(fit)} "$@"
    """
    called(["bash", "-euc", code, "bash", address], environment(), tmp_path)
    expected = small_model().fit("x.zarr").eigenvalues_
    np.testing.assert_allclose(dsp.load("m.zarr").eigenvalues_, expected, rtol=1e-9)
