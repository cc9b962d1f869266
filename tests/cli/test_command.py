"""The command: the main job in three lines, errors in one, and signals that leave nothing behind."""

from __future__ import annotations

import logging
import os
import re
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
from daskspectral.cli import main
from tests.cli.common import done, everything
from tests.common import local_cluster, written

pytestmark = pytest.mark.usefixtures("folder")
PROGRAM = [sys.executable, "-c", "from daskspectral.cli import main; main()"]
FIT = ["--kernel", "gaussian:1", "--landmarks", "30", "--components", "4"]


def points(path: str = "points.zarr", n: int = 400, d: int = 2, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, d))
    zarr.create_array(path, data=x, chunks=(100, d))
    return x


def test_the_main_job() -> None:
    done("sample", "two-moons", "--n", "2e3", "--chunk-rows", "512", "--out", "points.zarr", "--no-progress")
    table = done(
        *("fit", "points.zarr", "--operator", "laplacian", "--kernel", "exponential:0.5", "--landmarks", "60"),
        *("--components", "5", "--out", "model.zarr", "--plot", "eigenfunctions.png", "--no-progress"),
    )
    assert "model: model.zarr" in table
    assert "picture: eigenfunctions.png" in table
    assert Path("eigenfunctions.png").read_bytes().startswith(b"\x89PNG")
    model, x = dsp.load("model.zarr"), zarr.open_array("points.zarr", mode="r")
    assert x.shape == (2000, 2)
    again = dsp.SpectralDecomposition(
        kernel=dsp.kernels.Exponential(0.5), n_landmarks=60, n_components=5, random_state=0
    ).fit("points.zarr")
    np.testing.assert_array_equal(model.eigenvalues_, again.eigenvalues_)
    assert done("transform", "model.zarr", "points.zarr", "--out", "embedding.zarr") == (
        "embedding: embedding.zarr, 2000 rows, 5 components\n"
    )
    embedding = written("embedding.zarr")
    np.testing.assert_allclose(embedding, model.transform(x[:]), rtol=1e-9, atol=1e-12)
    described = done("info", "model.zarr")
    assert described in table
    for line in ("operator    Laplacian(manifold=None)", "rows        1940", "61 functions of 2 variables"):
        assert line in described
    lines = described.splitlines()
    table = [line.split() for line in lines if line.strip()[:1].isdigit()]
    values = [float(row[1]) for row in table]
    np.testing.assert_allclose(values, model.eigenvalues_, rtol=1e-5, atol=1e-9)
    assert values[0] == 0
    assert sorted(os.listdir()) == ["eigenfunctions.png", "embedding.zarr", "model.zarr", "points.zarr"]


def test_options_reach_the_estimator() -> None:
    x = points(d=3)
    zarr.create_array("weights.zarr", data=np.arange(400.0), chunks=(90,))
    done(
        *("fit", "points.zarr", "--kernel", "matern:2.5:median+gaussian:2", "--landmarks", "3e1", "--components", "4"),
        *(
            "--landmark-method",
            "kmeans++",
            "--landmark-sample",
            "200",
            "--columns",
            "0,2:3",
            "--standardize",
            "--no-constant",
        ),
        *("--weights", "weights.zarr", "--ridge", "1e-6", "--rtol", "1e-8", "--seed", "7", "--out", "model.zarr"),
    )
    model = dsp.load("model.zarr")
    parameters = model.get_params(deep=False)
    wanted = {"n_landmarks": 30, "landmarks": "kmeans++", "landmark_sample": 200, "columns": [0, 2]}
    wanted |= {"standardize": True, "constant": False, "ridge": 1e-6, "rtol": 1e-8, "random_state": 7}
    assert {k: parameters[k] for k in wanted} == wanted
    kernel = dsp.kernels.Matern(2.5, "median") + dsp.kernels.Gaussian(2.0)
    again = dsp.SpectralDecomposition(kernel=kernel, n_components=4, **wanted)
    np.testing.assert_array_equal(
        model.eigenvalues_, again.fit("points.zarr", sample_weight="weights.zarr").eigenvalues_
    )
    assert x.shape == (400, 3)


def test_manifolds() -> None:
    done("sample", "sphere", "--n", "1000", "--out", "points.zarr")
    kernel = ["--manifold", "sphere", "--kernel", "polynomial:2", "--components", "9", "--landmarks", "50"]
    done("fit", "points.zarr", *kernel, "--out", "model.zarr")
    np.testing.assert_allclose(dsp.load("model.zarr").eigenvalues_, [0, 2, 2, 2, *[6] * 5], rtol=0.2, atol=1e-8)


def test_info_of_moments() -> None:
    dsp.save(dsp.SpectralDecomposition(n_landmarks=20, n_components=2).fit(points()).moments_, "moments.zarr")
    assert "moments     first, form, gram" in done("info", "moments.zarr").replace(
        "form, gram, first", "first, form, gram"
    )


def test_convert_and_samples() -> None:
    np.save("x.npy", np.random.default_rng(0).standard_normal((50, 3)).astype("float32"))
    assert "x.zarr: 50 rows, 3 columns" in done("convert", "x.npy", "--out", "x.zarr")
    np.testing.assert_array_equal(zarr.open_array("x.zarr", mode="r")[:], np.load("x.npy"))
    assert "2 columns" in done("convert", "x.npy", "--columns", "2,0", "--out", "y.zarr")
    np.testing.assert_array_equal(zarr.open_array("y.zarr", mode="r")[:], np.load("x.npy")[:, [2, 0]])
    done("sample", "gaussian", "--n", "1_000", "--dimension", "4", "--dtype", "float32", "--out", "g.zarr")
    sample = zarr.open_array("g.zarr", mode="r")
    assert (sample.shape, sample.dtype) == ((1000, 4), np.float32)


def test_columns_with_gaps_need_not_be_valid() -> None:
    x = points("whole.zarr", d=3)
    x[7, 1] = np.nan
    zarr.create_array("points.zarr", data=x, chunks=(100, 3))
    done("fit", "points.zarr", *FIT, "--columns", "0,2", "--out", "model.zarr")
    done("transform", "model.zarr", "points.zarr", "--out", "embedding.zarr")
    assert np.isfinite(written("embedding.zarr")).all()


def test_invalid_rows() -> None:
    x = points("whole.zarr")
    x[[250, 17, 301], 1] = np.nan
    zarr.create_array("points.zarr", data=x, chunks=(100, 2))
    with pytest.raises(dsp.InvalidRowError, match="row 17 is the first that cannot be used: X holds NaN in column 1"):
        done("fit", "points.zarr", *FIT, "--out", "model.zarr")
    done("fit", "points.zarr", *FIT, "--on-invalid", "skip", "--out", "model.zarr")
    assert "3 invalid ones left out" in done("info", "model.zarr")
    with pytest.raises(dsp.InvalidRowError, match="row 17 is the first"):
        done("transform", "model.zarr", "points.zarr", "--out", "e.zarr")
    assert not Path("e.zarr").exists()
    done("transform", "model.zarr", "points.zarr", "--on-invalid", "skip", "--out", "e.zarr")
    missing = np.isnan(written("e.zarr")).all(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(missing), [17, 250, 301])


def test_overwriting() -> None:
    points()
    np.save("x.npy", np.zeros((5, 2)))
    jobs = {
        "model.zarr": ["fit", "points.zarr", *FIT],
        "embedding.zarr": ["transform", "model.zarr", "points.zarr"],
        "sample.zarr": ["sample", "gaussian", "--n", "50"],
        "converted.zarr": ["convert", "x.npy"],
    }
    for out, job in jobs.items():
        done(*job, "--out", out)
        before = everything()
        with pytest.raises(FileExistsError, match=rf"{out} exists .*--overwrite in the shell"):
            done(*job, "--out", out)
        assert everything() == before
        done(*job, "--out", out, "--overwrite")
    Path("notes").mkdir()
    Path("notes/mine.txt").write_text("precious")
    for job in jobs.values():
        for precious in ("notes", "x.npy"):
            with pytest.raises(FileExistsError, match="not a zarr store, so it is never replaced"):
                done(*job, "--out", precious, "--overwrite")
    Path("e.png").write_text("precious")
    with pytest.raises(FileExistsError, match=r"e\.png exists"):
        done("fit", "points.zarr", *FIT, "--out", "other.zarr", "--plot", "e.png")
    assert not Path("other.zarr").exists()


def test_an_output_never_replaces_an_input() -> None:
    points()
    points("weights.zarr")
    done("fit", "points.zarr", *FIT, "--out", "model.zarr")
    jobs = [
        ["fit", "points.zarr", *FIT, "--out", "points.zarr"],
        ["fit", "points.zarr", *FIT, "--weights", "weights.zarr", "--out", "weights.zarr"],
        ["transform", "model.zarr", "points.zarr", "--out", "points.zarr"],
        ["transform", "model.zarr", "points.zarr", "--out", "./model.zarr"],
    ]
    before = everything()
    for job in jobs:
        with pytest.raises(ValueError, match="would replace the input"):
            done(*job, "--overwrite")
    assert everything() == before


ERRORS: list[tuple[str, type[Exception], str]] = [
    ("fit no.zarr --out m.zarr", FileNotFoundError, "there is no zarr array at no.zarr: the path does not exist"),
    ("fit g.zarr --out m.zarr", ValueError, "g.zarr is a zarr group, .* name one of its arrays: g.zarr/a, g.zarr/b"),
    ("fit x.npy --out m.zarr", ValueError, r"x.npy is a file, .*`daskspectral convert x.npy --out x.zarr`"),
    ("fit points.zarr --out no/m.zarr", FileNotFoundError, "no, the directory for m.zarr, is missing"),
    (
        "fit points.zarr --out m.zarr --kernel rbf",
        ValueError,
        "there is no kernel 'rbf'; the kernels are gaussian:scale, exp",
    ),
    (
        "fit points.zarr --out m.zarr --kernel gaussian:x",
        ValueError,
        r"parameters of kernel gaussian \(scale\) are numbers",
    ),
    ("fit points.zarr --out m.zarr --kernel gaussian:-1", ValueError, "Gaussian needs a positive scale"),
    (
        "fit points.zarr --out m.zarr --operator heat",
        ValueError,
        "there is no operator 'heat'; the operators are laplacian",
    ),
    (
        "fit points.zarr --out m.zarr --manifold ball",
        ValueError,
        "no manifold 'ball'; the manifolds are sphere, circle, tor",
    ),
    (
        "fit points.zarr --out m.zarr --columns 2",
        ValueError,
        "columns must be a list of distinct numbers of the 2 columns",
    ),
    ("fit points.zarr --out m.zarr --columns 1:1", ValueError, "columns must be a list of distinct numbers"),
    ("fit points.zarr --out m.zarr --landmarks 1e3", ValueError, "X has 400 rows, fewer than n_landmarks=1000"),
    ("fit points.zarr --out m.zarr --penalty -1", ValueError, "penalty must be a number of 0 or more"),
    ("fit points.zarr --out m.zarr --folds 1", ValueError, "folds must be a whole number of 2 or more"),
    ("fit points.zarr --out m.zarr --seed -1", ValueError, "random_state must be a whole number of 0 or more"),
    ("fit points.zarr --out m.zarr --weights no.zarr", FileNotFoundError, "there is no zarr array at no.zarr"),
    ("fit points.zarr --out m.zarr --weights points.zarr", ValueError, "sample_weight must have one dimension"),
    ("fit row.zarr --out m.zarr", ValueError, r"X must have 2 dimensions, rows and columns; it has shape \(5,\)"),
    ("fit number.zarr --out m.zarr", ValueError, r"X must have 2 dimensions, rows and columns; it has shape \(\)"),
    ("fit points.zarr --out m.zarr --plot e.bmp", ValueError, "must end in .png"),
    ("transform points.zarr points.zarr --out e.zarr", ValueError, "points.zarr is an array, not a model or moments"),
    ("transform no.zarr points.zarr --out e.zarr", FileNotFoundError, "there is no saved model at no.zarr"),
    ("info no.zarr", FileNotFoundError, "there is no saved model at no.zarr"),
    ("info g.zarr", ValueError, "g.zarr is a zarr group of something else, not a model or moments"),
    ("convert no.npy --out c.zarr", FileNotFoundError, "no.npy does not exist"),
    ("sample gaussian --n -5 --out s.zarr", ValueError, "n must be at least 1 row, not -5"),
    ("sample two-moons --dimension 3 --out s.zarr", ValueError, "two-moons has dimension 2, not 3"),
]


@pytest.mark.parametrize(("line", "error", "message"), ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(line: str, error: type[Exception], message: str) -> None:
    points()
    group = zarr.open_group("g.zarr", mode="w")
    group.create_array("a", data=np.zeros((4, 2)))
    group.create_array("b", data=np.zeros((4, 2)))
    zarr.create_array("row.zarr", data=np.zeros(5))
    zarr.create_array("number.zarr", data=np.array(1.0))
    np.save("x.npy", np.zeros((4, 2)))
    before = everything()
    with pytest.raises(error, match=message):
        done(*line.split())
    assert everything() == before


USAGE = [
    ("sample cube --out s.zarr", "'two-moons', 'sphere', .*'gaussian', 'torus'"),
    (
        "fit points.zarr --out m.zarr --landmark-method best",
        r"'uniform', 'kmeans\+\+', 'cholesky', 'farthest', 'leverage'",
    ),
    ("fit points.zarr --out m.zarr --landmarks 1.5", "'1.5' is not a whole number"),
    ("fit points.zarr --out m.zarr --landmarks many", "'many' is not a number"),
    ("fit points.zarr --out m.zarr --landmarks nan", "'nan' is not a whole number"),
    ("fit points.zarr --out m.zarr --columns 0,x", "'0,x' is not a list of column numbers such as 0,2,5 or 0:8"),
    ("fit points.zarr --out m.zarr --dtype float16", "'float64', 'float32'"),
    ("fit points.zarr --out m.zarr --threads 0", "0 is not in the range"),
    ("fit points.zarr", "--out"),
    ("fit", "Missing argument 'POINTS'"),
    ("paint", "No such command 'paint'"),
]


@pytest.mark.parametrize(("line", "message"), USAGE, ids=[u[0] for u in USAGE])
def test_usage(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in [
        (["--version"], dsp.__version__),
        (["--help"], "transform"),
        (["fit", "-h"], "--landmarks"),
    ]:
        assert text in done(*arguments)
    main(["--version"])
    assert dsp.__version__ in capsys.readouterr().out


def test_a_failed_command_says_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    points()
    with pytest.raises(SystemExit) as caught:
        main(["fit", "points.zarr", "--out", "m.zarr", "--kernel", "rbf"])
    assert caught.value.code == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Error: there is no kernel 'rbf'")


def test_a_running_cluster(cluster: LocalCluster) -> None:
    points()
    job = ["fit", "points.zarr", *FIT]
    done(*job, "--out", "threads.zarr")
    done(*job, "--out", "cluster.zarr", "--scheduler", cluster.scheduler_address)
    np.testing.assert_array_equal(dsp.load("cluster.zarr").eigenvalues_, dsp.load("threads.zarr").eigenvalues_)


def test_clusters_that_do_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreachable(address: str, timeout: float) -> None:
        raise OSError("timed out")

    points()
    job = ["fit", "points.zarr", *FIT, "--out", "m.zarr", "--scheduler"]
    with monkeypatch.context() as patch:
        patch.setattr("daskspectral.cli.options._greet", unreachable)
        with pytest.raises(OSError, match=r"no dask scheduler answers at tcp://127.0.0.1:1 .*: timed out"):
            done(*job, "tcp://127.0.0.1:1")
    with (
        local_cluster(n_workers=0, processes=False, protocol="tcp://") as empty,
        pytest.raises(OSError, match="has no workers yet; start some, then run this again"),
    ):
        done(*job, empty.scheduler_address)
    assert os.listdir() == ["points.zarr"]


def test_a_scheduler_that_never_answers_is_an_error_within_the_timeout() -> None:
    points()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        arguments = ["fit", "points.zarr", *FIT, "--out", "m.zarr", "--scheduler", address, "--connect-timeout", "2"]
        result = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 1
    assert f"Error: no dask scheduler answers at {address}" in result.stderr
    late = "nothing came back within --connect-timeout 2 s|Timed out trying to connect to tcp://.* after 2.0 s"
    assert re.search(late, result.stderr)  # the latter where even the connection took so long
    assert "Traceback" not in result.stderr
    assert os.listdir() == ["points.zarr"]


def test_an_address_where_another_protocol_is_spoken_is_an_error_that_says_so() -> None:
    """The first bytes of a web server were taken for the size of a message, 3 EiB of memory."""
    points()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(64))

        threading.Thread(target=answer, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        arguments = ["fit", "points.zarr", *FIT, "--out", "m.zarr", "--scheduler", address, "--connect-timeout", "2"]
        result = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=600, check=False)
        server.shutdown(socket.SHUT_RDWR)
    assert result.returncode == 1
    assert f"Error: no dask scheduler answers at {address}" in result.stderr


def interrupted(arguments: list[str], number: int) -> subprocess.CompletedProcess[str]:
    """A run that gets a signal once it reads `points.zarr` or has made its hidden output."""
    code = (
        "import signal, sys, threading, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "import daskspectral.data.batches as batches, daskspectral.data.writer as writer, daskspectral.cli as cli\n"
        "def slow(function):\n"
        "    def call(*a, **k):\n"
        "        open('started', 'w').close(); time.sleep(0.5)\n"  # so that no run ends before the signal comes
        "        return function(*a, **k)\n"
        "    return call\n"
        "batches.Batches._clean = slow(batches.Batches._clean)\n"
        "import daskspectral.data.samples as samples\n"
        "samples.Sample.draw = slow(samples.Sample.draw)\n"
        "import daskspectral.data.convert as convert\n"
        "convert._Rows._valid = slow(convert._Rows._valid)\n"
        f"cli.main({arguments!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not Path("started").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=600)
    Path("started").unlink()
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


JOBS = {
    "fit": ["fit", "points.zarr", *FIT, "--out", "out.zarr"],
    "standardize": ["fit", "points.zarr", *FIT, "--standardize", "--out", "out.zarr", "--overwrite"],
    "transform": ["transform", "model.zarr", "points.zarr", "--out", "out.zarr"],
    "sample": ["sample", "gaussian", "--n", "1e6", "--chunk-rows", "500", "--out", "out.zarr"],
    "convert": ["convert", "x.npy", "--chunk-rows", "50", "--out", "out.zarr"],
}


SIGNALS = {"fit": "SIGINT", "standardize": "SIGTERM", "transform": "SIGHUP", "sample": "SIGINT", "convert": "SIGTERM"}


@pytest.mark.parametrize(("job", "name"), SIGNALS.items())
def test_signals(job: str, name: str) -> None:
    number = signal.Signals[name]
    np.save("x.npy", np.zeros((50_000, 2)))
    zarr.create_array("points.zarr", shape=(2_000_000, 2), chunks=(20_000, 2), dtype="float32", fill_value=0.5)
    model = dsp.SpectralDecomposition(n_landmarks=20, n_components=2).fit(np.random.default_rng(0).random((100, 2)))
    model.save("model.zarr")
    if "--overwrite" in JOBS[job]:
        model.save("out.zarr")
    before = everything()
    arguments = JOBS[job] + (["--allow-missing"] if job in ("fit", "standardize", "transform") else [])
    result = interrupted(arguments, number)
    assert result.returncode == {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}[name]
    shown = {"SIGINT": "Ctrl-C"}.get(name, name)
    assert f"stopped by {shown}; nothing was half-written" in result.stderr.splitlines()
    assert "Traceback" not in result.stderr
    assert everything() == before


def test_verbose_ends_with_the_command() -> None:
    points()
    line = ["fit", "points.zarr", "--kernel", "gaussian:1", "--landmarks", "20"]
    own, told = logging.getLogger("daskspectral"), []
    own.addFilter(lambda record: told.append(record.levelno) or True)  # type: ignore[func-returns-value]
    try:
        done("-v", *line, "--out", "m.zarr")
        assert logging.INFO in told
        told.clear()
        done(*line, "--out", "again.zarr")
        assert logging.INFO not in told
    finally:
        own.filters.pop()


def test_warnings_and_logging() -> None:
    points(d=1)
    arguments = ["fit", "points.zarr", "--kernel", "linear+polynomial:1", "--landmarks", "20", "--out", "m.zarr"]
    result = subprocess.run([*PROGRAM, "-v", *arguments], capture_output=True, text=True, check=True, timeout=120)
    assert "rank 2 on these data, fewer than n_components=16: 2 eigenvalues are returned" in result.stderr
    assert "WARNING: the basis has" in result.stderr  # no file and line of code, which mean nothing in a shell
    assert "%" not in result.stderr  # no bar without a terminal
    assert "rank        2" in done("info", "m.zarr", "--details")
    assert "model: m.zarr" in result.stdout
