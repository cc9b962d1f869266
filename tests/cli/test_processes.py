"""Signals leave nothing behind; schedulers that do not answer are one line; a running cluster gives the same bits."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import zarr
from distributed import LocalCluster

import daskspectral as dsp
from daskspectral.errors import raise_on_signals
from tests.cli.common import done, everything, store
from tests.common import small_model, unreliable

pytestmark = [pytest.mark.usefixtures("folder"), pytest.mark.slow]
FIT = "fit points.zarr --kernel gaussian:1 --landmarks 30 --components 4 --allow-missing"
INTERRUPTED = """
import signal, sys, time
import daskspectral.cli, daskspectral.data.batches, daskspectral.datasets

def slow(owner, name):
    function = getattr(owner, name)
    def call(*args, **options):
        open("started", "w").close()
        time.sleep(0.5)  # so that no run ends before the signal comes
        return function(*args, **options)
    setattr(owner, name, call)

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job ignores
slow(daskspectral.data.batches.Batches, "_clean")
slow(daskspectral.datasets.Sample, "draw")
daskspectral.cli.main(sys.argv[1:])
"""
JOBS = {
    f"{FIT} --out out.zarr": "SIGINT",
    f"{FIT} --standardize --out model.zarr --overwrite": "SIGTERM",
    "transform model.zarr points.zarr --allow-missing --out out.zarr": "SIGHUP",
    "sample gaussian --n 1e6 --chunk-rows 500 --out out.zarr": "SIGINT",
}


@pytest.mark.parametrize(("line", "name"), JOBS.items())
def test_signals(line: str, name: str) -> None:
    zarr.create_array("points.zarr", shape=(400_000, 2), chunks=(20_000, 2), dtype="float32", fill_value=0.5)
    x = np.random.default_rng(0).random((100, 2))
    small_model().fit(x).save("model.zarr")
    before = everything()
    program = [sys.executable, "-c", INTERRUPTED, *line.split()]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    while not Path("started").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.Signals[name])
    _, err = process.communicate()
    Path("started").unlink()
    assert process.returncode == 128 + signal.Signals[name]
    shown = {"SIGINT": "Ctrl-C"}.get(name, name)
    assert f"stopped by {shown}; no partial output remains" in err.splitlines()
    assert "Traceback" not in err
    assert everything() == before


def test_nohup_is_obeyed() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with raise_on_signals(signal.SIGHUP, signal.SIGTERM):
        os.kill(os.getpid(), signal.SIGHUP)
        obeyed = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, before)
    assert obeyed


@unreliable
def test_a_running_cluster(cluster: LocalCluster) -> None:
    store(points=np.random.default_rng(0).standard_normal((400, 2)))
    done(f"{FIT} --out threads.zarr")
    done(f"{FIT} --out cluster.zarr --scheduler {cluster.scheduler_address}")
    np.testing.assert_array_equal(dsp.load("cluster.zarr").eigenvalues_, dsp.load("threads.zarr").eigenvalues_)


@pytest.mark.parametrize("speaks", [False, True])
def test_what_is_no_scheduler_is_an_error_within_the_timeout(speaks: bool) -> None:
    """The first bytes of a web server were taken for the size of a message, 3 EiB of memory."""
    store(points=np.zeros((40, 2)))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(64))

        if speaks:
            threading.Thread(target=answer, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        line = f"{FIT} --out m.zarr --scheduler {address} --connect-timeout 2"
        program = [sys.executable, "-m", "daskspectral.cli", *line.split()]
        result = subprocess.run(program, stderr=subprocess.PIPE, text=True, check=False)
        if speaks:
            server.shutdown(socket.SHUT_RDWR)
    assert result.returncode == 1
    assert f"Error: no dask scheduler answers at {address}" in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir() == ["points.zarr"]
