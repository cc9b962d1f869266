"""The benchmarks: every script runs at a tiny size, and their problems are what they say."""

import json
import os
import sys
from importlib import import_module

import numpy as np
import pytest
from click.testing import CliRunner

from tests.common import unreliable

QUICK = {  # options of those that need little time
    **dict.fromkeys(["chunk_kernel", "first_fit", "from_zarr", "kills", "memory", "mode_rates", "slow_dynamics"], ""),
    **{
        "growing_cluster": "",
        "peaks": "",
        "billion": "",
        "error_bars": "",
        "gpu": "--device cpu",
        "sdp": "--only passes",
    },
    "beside_others": "--task table --repeats 1",
}
# Finite elements (P2 on triangles), by another program; within 3e-4 of the limit
MESHES = {
    "l-shape": """0 .9919309769858176 3.833802476227007 13.292209754615266 13.377387663014 15.296481707701728
        16.095116564334425 24.459530758635207 24.979553680032048 26.839957831971347 33.86823573873127""",
    "annulus": """0 1.8979205750770423 2.9324841844743377 8.166354531595891 8.657602027524998 17.67974593655936
        17.838909845939213 29.853634745451256 29.899454420570077 40.52382918017667 42.468223795323155""",
}


@unreliable
@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_quick(name, tmp_path):
    module, out = import_module(name), tmp_path / "out.json"
    folder = ["--folder", str(tmp_path)] if hasattr(module, "folder_option") else []
    line = ["--quick", "--json", str(out), *folder, *QUICK[name].split()]
    done = CliRunner().invoke(module.main, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = json.loads(out.read_text())["rows"]
    assert rows
    if name == "beside_others":
        assert all(float(row["answer"]) > 0.9 for row in rows)  # five nearest neighbors on digits


@unreliable
@pytest.mark.slow
def test_clusters_by_several_tools(tmp_path):
    out = tmp_path / "out.json"
    line = ["--quick", "--task", "clusters", "--folder", str(tmp_path), "--json", str(out)]
    done = CliRunner().invoke(import_module("beside_others").main, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out-clusters.json").read_text())
    assert [row["table"] for row in found["rows"]] == ["cancer", "iris", "wine", "mean"]
    assert found["rows"][-1]["ours - better of two"] > -0.02
    assert "UMAP + KMeans" in found["rows"][0] or "UMAP + KMeans is left out" in found["notes"][0]


@pytest.mark.slow
def test_jobs_by_other_tools(tmp_path):
    module, out = import_module("six_jobs"), tmp_path / "out.json"
    peers = os.environ.get("PEERS", sys.executable)
    if lacking := module.missing(peers, module.JOBS):
        pytest.skip(f"{', '.join(lacking)} not installed in {peers} (the variable PEERS)")
    bounds = {"EOF maps": 1e-5, "MCA": 1e-5, "oscillator": 1e-4, "committor": 0.3}
    line = ["--quick", "--repeats", "1", "--folder", str(tmp_path), "--json", str(out)]
    line += [word for job in bounds for word in ("--job", job)]
    done = CliRunner().invoke(module.main, [*line, "--peers", peers], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = {(row["job"], row["by"]): row for row in json.loads(out.read_text())["rows"]}
    for job, bound in bounds.items():
        assert rows[job, "daskspectral"]["difference"] < bound


@pytest.mark.parametrize("job", ["EOF maps", "committor"])
def test_jobs_without_the_other_tools_say_so(job):
    module = import_module("six_jobs")
    line = ["--job", job, "--peers", sys.executable, "--repeats", "1"]
    package = [*module.JOBS[job]][-1]
    if not module.missing(sys.executable, [job]):
        pytest.skip(f"{package} is installed")
    done = CliRunner().invoke(module.main, line)
    assert done.exit_code == 1
    assert f"cannot import {package}" in done.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "error"), [("EOF maps", None), ("MCA", None), ("committor", 0.5), ("oscillator", 0.05)]
)
def test_jobs_run(job, error, tmp_path):
    module = import_module("six_jobs")
    exact = module.write_data(tmp_path, quick=True)
    found = module.run(sys.executable, module.JOBS[job]["daskspectral"], tmp_path, warm=False)["answer"]
    assert all(np.isfinite(values).all() for values in found)
    assert error is None or module.difference(found, exact[job]) < error


@pytest.mark.slow
def test_spectra_against_meshes():
    problems = import_module("problems")
    for name, values in MESHES.items():
        exact = np.array([float(word) for word in values.split()])
        np.testing.assert_allclose(problems.FIRST_FIT[name].spectrum(11), exact, rtol=3e-4, atol=1e-9)


@pytest.mark.slow
def test_every_problem_has_rows_and_values():
    problems = import_module("problems")
    for problem in (problems.FIRST_FIT | problems.HARD).values():
        exact, x = problem.spectrum(problem.zeros + 2), problem.draw(300, 3)
        assert (np.diff(exact) >= 0).all()
        assert (exact == 0).sum() == problem.zeros
        assert np.isfinite(x).all()
        assert np.array_equal(x, problem.draw(300, 3))
