"""A cluster of plain hosts over TLS, on this one: keys, a scheduler, a worker, and a fit to the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

import daskspectral as dsp

START = Path(__file__).parents[2] / "deploy" / "hosts" / "start.sh"
ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if not k.startswith("DASK") and not k.endswith("_NUM_THREADS")},
    "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}
FIT = ["fit", "x.zarr", "--out", "m.zarr", "--landmarks", "20", "--kernel", "gaussian:1.0", "--components", "3"]


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    with open(folder.parent / f"{words[0]}.log", "wb") as log:
        command = [START, words[0], folder, *words[1:]]
        return subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log, cwd=folder.parent)


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Path]:
    """The folder of a cluster that runs."""
    folder = tmp_path / "a cluster"
    subprocess.run([START, "keys", folder], env=ENVIRONMENT, check=True, timeout=60)
    local = ["--host", "127.0.0.1"]
    running = [started(folder, "scheduler", *local, "--port", "0", "--no-dashboard")]
    try:
        end = time.monotonic() + 60
        while not (folder / "scheduler.json").exists():
            assert running[0].poll() is None, (tmp_path / "scheduler.log").read_text()
            assert time.monotonic() < end, "no scheduler within a minute"
            time.sleep(0.1)
        running.append(started(folder, "worker", "1", *local, "--no-dashboard"))
        yield folder
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(30)


def test_a_fit_on_hosts_of_ones_own(keys: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((900, 2))
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(300, 2))
    for name in ("ca.pem", "cert.pem", "key.pem", "environment"):
        assert (keys / name).stat().st_mode & 0o077 == 0
    code = f"""
        . '{keys}/environment'
        address=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' '{keys}/scheduler.json')
        case $address in tls://*) ;; *) exit 3 ;; esac
        python - "$address" <<'PYTHON'
import sys
from distributed import Client
def threads():
    import os
    return os.environ.get("OPENBLAS_NUM_THREADS")
with Client(sys.argv[1]) as client:
    client.wait_for_workers(1, timeout=60)
    (found,) = client.run(threads).values()
    assert found == "1", found
PYTHON
        exec python -m daskspectral.cli {" ".join(FIT)} --quiet --scheduler "$address"
    """
    done = subprocess.run(
        ["bash", "-euc", code], env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr + (tmp_path / "worker.log").read_text()
    estimator = dsp.SpectralDecomposition(
        kernel=dsp.kernels.Gaussian(1.0), n_landmarks=20, n_components=3, random_state=0
    )
    found = dsp.load(tmp_path / "m.zarr")
    assert found.moments_.count == 900
    np.testing.assert_allclose(found.eigenvalues_, estimator.fit(str(tmp_path / "x.zarr")).eigenvalues_, rtol=1e-9)


def test_keys_are_not_replaced_and_words_are_checked(tmp_path: Path) -> None:
    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([START, *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=60)

    assert run("keys", tmp_path / "k").returncode == 0
    before = (tmp_path / "k" / "key.pem").read_bytes()
    again = run("keys", tmp_path / "k")
    assert (again.returncode, again.stderr) == (1, f"there are keys in {tmp_path / 'k'} already\n")
    assert (tmp_path / "k" / "key.pem").read_bytes() == before
    for words in (("keys",), ("start", tmp_path)):
        wrong = run(*words)
        assert wrong.returncode == 2
        assert "start.sh scheduler FOLDER" in wrong.stderr
