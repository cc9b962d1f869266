"""The study of the paper's figures: its short cuts give what whole fits give, and it goes on where it stopped."""

import dataclasses
import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from distributed import Client

import daskspectral as dsp
from daskspectral.kernels import Exponential, Gaussian, Polynomial
from daskspectral.manifolds import Sphere

FOLDER = Path(__file__).parents[2] / "examples" / "paper"


@pytest.fixture(scope="module")
def study():
    pytest.importorskip("matplotlib")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        spec = importlib.util.spec_from_file_location(
            "spherical_harmonics_of_the_paper", FOLDER / "spherical_harmonics.py"
        )
        module = importlib.util.module_from_spec(spec)
        patch.setitem(importlib.sys.modules, spec.name, module)  # dataclasses look themselves up
        spec.loader.exec_module(module)
        yield module


KERNELS = (("polynomial", 4), ("exponential", 1), ("gaussian", 1))
OBJECTS = (Polynomial(4), Exponential(1.0), Gaussian(1.0))


@pytest.fixture(scope="module")
def grid(study):
    return study.Grid(n=(100, 400, 900), d=(3,), p=(20, 60), kernels=KERNELS, graph_n=400, graph_p=60, trials=1)


def test_one_pass_gives_the_errors_of_all_fits(study, grid):
    errors = study.galerkin(grid, 3, 0)
    landmarks, points = study.sample(grid, 3, 0)
    for name, operator in (("ambient", dsp.operators.Laplacian()), ("tangential", dsp.operators.Laplacian(Sphere(3)))):
        for (k, kernel), (i, n), (j, p) in [
            ((0, 0), (2, 900), (1, 60)),
            ((1, 1), (1, 400), (0, 20)),
            ((2, 2), (0, 100), (1, 60)),
        ]:
            estimator = dsp.SpectralDecomposition(operator, OBJECTS[kernel], n_components=25, landmarks=landmarks[:p])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dsp.RankWarning)
                estimator.fit(points[:n])
            assert errors[name][k, i, j] == pytest.approx(study.error(3, estimator.eigenvalues_), rel=1e-5)


def test_one_set_of_weights_gives_the_errors_of_all_graph_laplacians(study, grid):
    errors = study.graph(grid, 3, 0, 0.3)["graph"]
    landmarks, points = study.sample(grid, 3, 0)
    exact = Sphere(3).eigenvalues(25)
    assert np.isnan(errors[:, 2]).all()  # more points than the graph Laplacian is given
    for k, i, n, j, p in [(0, 1, 400, 1, 60), (1, 0, 100, 1, 60), (2, 1, 400, 1, 60)]:
        estimator = dsp.GraphLaplacian(
            Gaussian(0.3), OBJECTS[k], n_components=25, landmarks=landmarks[:p], rescale=exact
        ).fit(points[:n])
        assert errors[k, i, j] == pytest.approx(study.error(3, estimator.eigenvalues_), rel=1e-5)


def test_error_metric(study):
    exact = Sphere(5).eigenvalues(25)
    assert study.error(5, exact) == 0
    assert study.error(5, exact[:1]) == 1  # nothing found but the constant
    assert study.error(5, np.append(exact, 99.0)) == 0
    assert study.error(5, 2 * exact) == pytest.approx(0.5)


def test_the_best_choice_is_that_of_the_least_mean(study):
    from spherical_figures import best

    rng = np.random.default_rng(0)
    values = rng.random((2, 3, 2, 4, 3, 5))  # weights, kernel, d, n, p, trial
    values[:, :, :, 3] = np.nan
    values[1, 2, 0, 1, 2, 0] = np.nan
    dims = ("weights", "kernel", "d", "n", "p", "trial")
    axes = {"weights": [0.1, 0.2], "kernel": range(3), "d": [3, 5], "n": [1, 10, 100, 1000], "p": [30, 60, 90]}
    table = xr.Dataset({"graph": (dims, values)}, coords={k: np.array(v) for k, v in axes.items()})
    found = best(table, "graph")
    assert found.n.values.tolist() == [1, 10, 100]
    mean = values.mean(axis=-1)
    mean[np.isnan(mean)] = np.inf
    for i, d in enumerate([3, 5]):
        for j, n in enumerate([1, 10, 100]):
            w, k, p = np.unravel_index(mean[:, :, i, j].argmin(), (2, 3, 3))
            at = found.sel(d=d, n=n)
            assert float(at.error) == mean[w, k, i, j, p]
            assert (at.weights, at.kernel, at.p) == (axes["weights"][w], k, axes["p"][p])
            assert float(at.spread) == pytest.approx(values[w, k, i, j, p].std())


def test_quick(study, tmp_path, monkeypatch):
    table = tmp_path / "table.zarr"
    written = []
    write = study.Job.write

    def stopping(self, table, results):
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(self)
        write(self, table, results)

    def counting(self, table, results):
        written.append(self)
        write(self, table, results)

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        monkeypatch.setattr(study.Job, "write", stopping)
        with pytest.raises(KeyboardInterrupt):
            study.run(study.QUICK, table, client, progress=False)
        monkeypatch.setattr(study.Job, "write", counting)
        study.run(study.QUICK, table, client, progress=False)
    every = [*study.jobs(study.QUICK), *study.timings(study.QUICK)]
    assert len(every) == len(written) == len(set(map(str, written)))  # each job once, before or after the stop

    arguments = ["--quick", "--table", str(table), "--out", str(tmp_path / "new" / "pictures")]
    result = CliRunner().invoke(study.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert len(written) == len(every)  # nothing was left to do
    assert result.output.count("| Galerkin, tangential | ") == len(study.QUICK.d)
    assert {p.name for p in tmp_path.iterdir()} == {"table.zarr", "new"}
    assert {p.name for p in (tmp_path / "new" / "pictures").iterdir()} == {*study.PICTURES}
    with xr.open_zarr(table, consolidated=False) as results:
        assert np.isfinite(results.tangential).all()
        assert np.isfinite(results.graph.sel(n=[100, 300])).all()
        assert (results.tangential_seconds > 0).all()
        at = results.tangential.mean("trial").min("kernel").sel(n=1000, p=30)
        assert (at < 0.15).all()
        polynomial = results.ambient.sel(n=1000, d=3, p=30, kernel=0)
        assert (polynomial > 0.4).all()  # the bias of the ambient gradient: more points do not help
    other = CliRunner().invoke(study.main, [*arguments, "--trials", "3"])
    assert "not a table of this grid" in str(other.exception)


def test_grids_are_ascending(study):
    for grid in (study.Grid(), study.QUICK, study.MINUTE, study.PAPER):
        for name, values in dataclasses.asdict(grid).items():
            if name in ("n", "d", "p", "weights"):
                assert list(values) == sorted(set(values))
        assert {family for family, _ in grid.timed} == {family for family, _ in grid.kernels}
