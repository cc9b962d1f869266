"""The benchmarks: every script runs at a tiny size, their problems are what they say, and so is what they compute."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats
from click.testing import CliRunner

from tests.common import doubtful

FOLDER = Path(__file__).parents[2] / "examples" / "benchmarks"
SHARED = {"common", "fitting", "problems", "spectra"}
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)
QUICK = {  # those that need nothing else, with options that make them smaller
    **dict.fromkeys(["against_peers", "bandwidths", "chunk_kernel", "classes", "density", "embeddings"], ""),
    **dict.fromkeys(["hermite", "invariant_dimensions", "kills", "lattice_fit", "mode_rates"], ""),
    **dict.fromkeys(["first_fit", "submanifolds", "networks", "slow_variable", "from_zarr"], ""),
    **dict.fromkeys(["short_trajectories", "slow_dynamics", "further_lags", "components"], ""),
    **{"billion_modes": "--m 6", "many_functions": "--d 2", "gpu": "--device cpu", "cluster_limits": ""},
}
# Finite elements (P2 on triangles), by another program; within 3e-4 of the limit
MESHES = {
    "l-shape": """0 .9919309769858176 3.833802476227007 13.292209754615266 13.377387663014 15.296481707701728
        16.095116564334425 24.459530758635207 24.979553680032048 26.839957831971347 33.86823573873127""",
    "annulus": """0 1.8979205750770423 2.9324841844743377 8.166354531595891 8.657602027524998 17.67974593655936
        17.838909845939213 29.853634745451256 29.899454420570077 40.52382918017667 42.468223795323155""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_tells_what_it_measures(name):
    done = CliRunner().invoke(import_module(name).main, ["--help"])
    assert done.exit_code == 0, done.output
    assert "--json" in done.output


@doubtful
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::daskspectral.errors.DensityWarning")  # of tiny sizes
@pytest.mark.parametrize("name", QUICK)
def test_quick(name, tmp_path):
    module, out = import_module(name), tmp_path / "out.json"
    folder = ["--folder", str(tmp_path)] if name in ("billion_modes", "from_zarr", "gpu", "further_lags") else []
    line = ["--quick", "--json", str(out), *folder, *QUICK[name].split()]
    done = CliRunner().invoke(module.main, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())


@pytest.mark.slow
def test_beside_others_runs_what_is_installed(tmp_path):
    """The programs of this package and of scikit-learn, with their answers; the other peers are not installed here."""
    module, out = import_module("beside_others"), tmp_path / "out.json"
    line = ["--quick", "--repeats", "1", "--folder", str(tmp_path), "--task", "table", "--json", str(out)]
    done = CliRunner().invoke(module.main, line)
    assert done.exit_code == 0, done.output
    rows = json.loads(out.read_text())["rows"]
    assert [row["by"] for row in rows] == ["daskspectral", "scikit-learn"]
    assert all(float(row["answer"]) > 0.9 for row in rows)  # five nearest neighbours on digits


# -- fits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "within"), [(1.0, True), (0.5, False)])
def test_coverage_of_intervals_that_are_right_and_too_narrow(monkeypatch, factor, within):
    """Normal errors of 1 %, and intervals of +-1.96 of these, times a factor."""
    coverage, rng = import_module("interval_coverage"), np.random.default_rng(0)
    exact = coverage.PROBLEMS["square"].eigenvalues(10)

    def fit(x, **settings):
        values, width = exact * (1 + 0.01 * rng.standard_normal(10)), 0.0196 * exact * factor
        groups = [np.array([k]) for k in range(10)]
        ends = np.column_stack([values - width, values + width])
        model = SimpleNamespace(eigenvalues_=values, eigenvalue_errors_=ends, groups_=groups)
        return import_module("fitting").Fit(model, 0.0)

    monkeypatch.setattr(coverage, "fit", fit)
    lines = coverage.levels([coverage.one_fit("square", 50, seed, 10, {}) for seed in range(2000)])
    np.testing.assert_allclose([a["exact"] / np.pi**2 for a in lines], [1, 2, 4, 5, 8, 9])
    share = 0.95 if within else 0.673  # of the normal distribution within .98 standard deviations
    assert [a["each"] for a in lines] == pytest.approx([share] * 6, abs=0.05)
    assert [a["within"] for a in lines] == [within] * 5 + [None]
    for groups in ([[0], [1, 2], [3, 4]], np.array([0, 1, 1, 2, 2])):
        assert coverage.group_means(groups, np.array([0.0, 1, 1, 4, 6])).tolist() == [0, 1, 1, 5, 5]


# -- problems --------------------------------------------------------------------------------------------------------


def finite_volumes(edges, stiffness, weight, count):
    """-(p f')' = lambda w f with free ends, by finite volumes: no function is shared with the Galerkin method."""
    h, centres = edges[1] - edges[0], (edges[1:] + edges[:-1]) / 2
    flux, mass = stiffness(edges[1:-1]) / h**2, weight(centres)
    rates = scipy.sparse.diags([flux, flux], [1, -1])
    rates = scipy.sparse.diags(np.asarray(rates.sum(axis=1)).ravel()) - rates
    root = scipy.sparse.diags(mass**-0.5)
    return np.sort(scipy.sparse.linalg.eigsh((root @ rates @ root).tocsc(), count, sigma=-1e-3, v0=np.sqrt(mass))[0])


def test_spectra_against_meshes_and_finite_volumes():
    problems, spectra = import_module("problems"), import_module("spectra")
    for name, values in MESHES.items():
        exact = np.array([float(word) for word in values.split()])
        np.testing.assert_allclose(problems.FIRST_FIT[name].eigenvalues(11), exact, rtol=3e-4, atol=1e-9)
    found = finite_volumes(np.linspace(0, 3, 20_001), spectra.mixture_density, spectra.mixture_density, 26)
    np.testing.assert_allclose(spectra.mixture(26)[1:], found[1:], rtol=1e-4)


def test_every_problem_has_rows_and_values():
    problems = import_module("problems")
    exact = {}
    for name, problem in (problems.FIRST_FIT | problems.SUBMANIFOLDS).items():
        exact[name] = problem.eigenvalues(26)
        assert (np.diff(exact[name]) >= 0).all()
        assert (exact[name] == 0).sum() == problem.zeros
        x = problem.draw(300, 3)
        assert np.isfinite(x).all()
        assert np.array_equal(x, problem.draw(300, 3))
        assert not np.array_equal(x, problem.draw(300, 4))
    assert exact["normal-10"].tolist() == [0] + [1] * 10 + [2] * 15
    assert exact["sphere"].tolist() == [s * (s + 1) for s in range(5) for _ in range(2 * s + 1)] + [30]
    assert exact["S^4 in R^5"].tolist() == [0] + [4] * 5 + [10] * 14 + [18] * 6
    assert exact["circles"][:10].tolist() == [0, 0, 1, 1, 4, 4, 4, 4, 9, 9]
    squares = sorted(i * i + j * j for i in range(8) for j in range(8))
    np.testing.assert_allclose(exact["square"] / np.pi**2, squares[:26], atol=1e-12)


def test_errors():
    problems = import_module("problems")
    circles, exact = problems.FIRST_FIT["circles"], np.array([0, 0, 1, 1, 4, 4, 4, 4, 9, 9, 16])
    assert problems.relative_errors(exact, circles, 11).tolist() == [0] * 9
    assert problems.relative_errors(exact * 1.5, circles, 11) == pytest.approx(0.5)
    assert problems.relative_errors(exact[:5], circles, 11).tolist() == [0] * 3 + [1] * 6
    assert problems.error_21(2 * exact[1:], exact[1:]) == pytest.approx(0.5)
    assert problems.error_21(exact[1:2], exact[1:]) == 1
