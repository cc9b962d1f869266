"""The benchmarks of automatic fits: their settings, and what they make of fits whose outcome is known."""

import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import eval_hermitenorm, factorial

from daskspectral import HermiteRegressor
from daskspectral.errors import RankWarning
from daskspectral.kernels import Gaussian, Matern

FOLDER = Path(__file__).parents[2] / "examples" / "benchmarks"


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@pytest.fixture
def fitting(here):
    return importlib.import_module("fitting")


def test_a_fit_with_its_time_and_warnings(fitting):
    x = np.random.default_rng(0).random((300, 1))
    done = fitting.fit(x, kernel=Gaussian(5.0), landmarks=x[:20], n_components=15)
    assert done.seconds > 0
    assert len(done.values) < 15
    assert any(text.startswith(RankWarning.__name__) for text in done.said)
    assert not any(character.isdigit() for text in done.said for character in text)
    refused = fitting.fit(x[:, :0], kernel=Gaussian(5.0))
    assert refused.model is None
    assert len(refused.values) == 0
    assert refused.said[0].startswith("ValueError")


def test_messages_that_differ_in_numbers_are_one(fitting):
    texts = [fitting.first_words(RankWarning(f"{k} of {2.5 * k} functions, 1e-{k}")) for k in (3, 12)]
    assert texts == ["RankWarning: # of # functions, #"] * 2
    assert fitting.told(texts) == ["2 times RankWarning: # of # functions, # ..."]
    assert fitting.classes([*texts, "ValueError: no"]) == "RankWarning 2, ValueError 1"


def parsed(fitting, *arguments):
    found = {}

    @click.command()
    @fitting.settings_option
    def command(settings):
        found.update(settings)

    done = CliRunner().invoke(command, [word for text in arguments for word in ("--set", text)])
    return found, done.output


def test_settings(fitting):
    found, _ = parsed(fitting, "kernel=matern:1.5:0.3", "n_landmarks=40", "standardize=True", "landmarks=kmeans++")
    assert found == {"kernel": Matern(1.5, 0.3), "n_landmarks": 40, "standardize": True, "landmarks": "kmeans++"}


@pytest.mark.parametrize("text", ["landmark=4", "n_landmarks", "kernel=cubic:1"])
def test_settings_that_cannot_be(fitting, text):
    found, output = parsed(fitting, text)
    assert found == {}
    assert "--set" in output


@pytest.mark.parametrize("processes", [1, 2])
def test_fits_come_in_their_order(fitting, processes):
    assert fitting.parallel(pow, [(2, k) for k in range(5)], processes, "powers") == [1, 2, 4, 8, 16]


def test_the_first_fit_summed_up():
    first_fit = importlib.import_module("first_fit")
    fits = [
        {"n": 600, "problem": "square", "max": m, "median": m / 2, "zero": 0.0, "seconds": 1.0, "missing": 1, "said": s}
        for m, s in [(0.1, []), (0.2, []), (0.4, ["RankWarning: few"])]
    ]
    line = first_fit.summary(fits)
    assert (line["max"], line["median"], line["silent"], line["missing"]) == (0.2, 0.1, 1, 3)
    assert line["said"] == "RankWarning 1"
    mean = first_fit.means([line, line | {"max": 0.8}])
    assert mean["max"] == pytest.approx(0.4)
    assert mean["silent"] == 2


def calibrated(fitting, exact, noise, factor):
    """A stand-in for a fit: normal errors of a relative size, and intervals of +-1.96 of these, times a factor."""
    rng = np.random.default_rng(0)

    def fit(x, **settings):
        values = exact * (1 + noise * rng.standard_normal(len(exact)))
        width = 1.96 * noise * exact * factor
        model = SimpleNamespace(
            eigenvalues_=values,
            eigenvalue_errors_=np.column_stack([values - width, values + width]),
            groups_=[np.array([k]) for k in range(len(exact))],
        )
        return fitting.Fit(model, 0.0)

    return fit


@pytest.mark.parametrize(("factor", "within"), [(1.0, True), (0.5, False)])
def test_coverage_of_intervals_that_are_right_and_too_narrow(fitting, monkeypatch, factor, within):
    coverage = importlib.import_module("interval_coverage")
    exact = coverage.PROBLEMS["square"].eigenvalues(10)
    monkeypatch.setattr(coverage, "fit", calibrated(fitting, exact, 0.01, factor))
    lines = coverage.levels([coverage.one_fit("square", 50, seed, 10, {}) for seed in range(2000)])
    np.testing.assert_allclose([a["exact"] / np.pi**2 for a in lines], [1, 2, 4, 5, 8, 9])
    assert [a["values"] for a in lines] == ["2", "1", "2", "2", "1", "1 of 2"]
    share = 0.95 if within else 0.673  # of the normal distribution within .98 standard deviations
    assert [a["each"] for a in lines] == pytest.approx([share] * 6, abs=0.02)
    assert [a["within"] for a in lines] == [within] * 5 + [None]
    assert max(abs(a["bias"]) for a in lines) < 0.001
    assert coverage.summary(lines)["within"] == f"{5 * within} of 5"


def test_groups_of_exact_values():
    means = importlib.import_module("interval_coverage").group_means
    exact = np.array([0.0, 1, 1, 4, 6])
    for groups in ([[0], [1, 2], [3, 4]], [slice(0, 1), slice(1, 3), slice(3, 5)], np.array([0, 1, 1, 2, 2])):
        assert means(groups, exact).tolist() == [0, 1, 1, 5, 5]


def test_coverage_of_fits_that_refuse(fitting, monkeypatch):
    coverage = importlib.import_module("interval_coverage")
    monkeypatch.setattr(coverage, "fit", lambda x, **settings: fitting.Fit(None, 0.0, ("ValueError: too few rows",)))
    done = CliRunner().invoke(coverage.main, ["--quick"], catch_exceptions=False)
    assert "0 of 10" in done.output
    assert "9 times" not in done.output
    assert "6 times ValueError: too few rows" in done.output


def test_the_transfer_operators_singular_values():
    """rho^k from the rows themselves: correlations of the normalised Hermite polynomials of successive rows."""
    coverage = importlib.import_module("interval_coverage")
    x, exact, _ = coverage.case("transfer", 2000, 0, 11)
    rho = exact[1]
    assert rho == pytest.approx(np.exp(-1 / 5))
    long = importlib.import_module("problems").autoregression(400_000, 1, rho, np.random.default_rng(1))[:, 0]
    for k in range(1, 4):
        h = eval_hermitenorm(k, long) / np.sqrt(factorial(k))
        assert np.mean(h[1:] * h[:-1]) == pytest.approx(exact[k], abs=0.03)
    assert x.shape == (2000, 1)
    assert importlib.import_module("against_peers").powers(6) == pytest.approx([1, 0.9, 0.9, 0.81, 0.81, 0.81])


def test_the_score_of_the_true_functions():
    """Hermite polynomials of an autoregressive column: 1 + sum rho^(2 k), in any basis of their span."""
    vamp_choice = importlib.import_module("vamp_choice")
    x = vamp_choice.autoregressive(20_000, 5, np.random.default_rng(0))
    start, end = vamp_choice.pairs(x)
    assert len(start) == 5 * 19_999
    f, g = (np.column_stack([eval_hermitenorm(k, a[:, 1]) for k in (1, 2)]) for a in (start, end))
    exact = 1 + 0.8**2 + 0.8**4
    assert vamp_choice.vamp_2(f, g) == pytest.approx(exact, abs=0.02)
    turn = np.array([[2.0, 1.0], [-1.0, 3.0]])
    constant = np.ones((len(f), 1))
    assert vamp_choice.vamp_2(np.hstack([constant, f @ turn]), g + 7) == pytest.approx(vamp_choice.vamp_2(f, g))


def test_the_double_well_keeps_its_equilibrium():
    vamp_choice = importlib.import_module("vamp_choice")
    x = np.concatenate(vamp_choice.double_well(200, 400, np.random.default_rng(0)))
    grid = np.linspace(-2.2, 2.2, 4001)
    density = np.exp(-4 * (grid**2 - 1) ** 2)
    assert np.mean(x[:, 0] ** 2) == pytest.approx(np.average(grid**2, weights=density), rel=0.03)
    assert abs(np.mean(x[:, 0])) < 0.1
    assert np.std(x[:, 1]) == pytest.approx(1, rel=0.03)


def test_an_oracle_takes_the_best_setting():
    peers = importlib.import_module("against_peers")
    square = peers.FIRST_FIT["square"]
    exact = square.eigenvalues(11)

    def fails():
        raise np.linalg.LinAlgError

    settings = [("bad", lambda: exact * 1.5), ("good", lambda: exact * 1.1), ("fails", fails)]
    best = peers.oracle(iter(settings), square)
    assert best["setting"] == "good"
    assert best["max"] == pytest.approx(0.1)


def test_diffusion_maps_tend_to_this_operator():
    """On a mixture, whose density is far from constant, alpha = 1/2 has the package's limit."""
    peers = importlib.import_module("against_peers")
    mixture = peers.FIRST_FIT["mixture"]
    assert peers.oracle(peers.diffusion_settings(mixture.draw(1500, 0), 11), mixture)["median"] < 0.06


def test_the_cost_of_a_choice(fitting, monkeypatch, tmp_path):
    cost = importlib.import_module("automatic_cost")
    asked = []

    class Model(SimpleNamespace):
        def get_params(self, deep):
            return {"n_components": 11, "kernel": "auto"}

    def fit(path, **settings):
        asked.append(settings)
        model = Model(eigenvalues_=np.arange(3.0), basis_=SimpleNamespace(size=7))
        model.choice_ = SimpleNamespace(parameters={"kernel": Gaussian(0.5)})
        return fitting.Fit(model, 0.0)

    monkeypatch.setattr(cost, "fit", fit)
    out = tmp_path / "out.json"
    done = CliRunner().invoke(
        cost.main, ["--quick", "--folder", str(tmp_path), "--json", str(out)], catch_exceptions=False
    )
    assert done.exit_code == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["same bits"]
    assert {"n_components": 11, "kernel": Gaussian(0.5)} in asked


def test_the_oracle_of_regressions_is_the_best_of_fits_with_its_settings():
    choice = importlib.import_module("regression_choice")
    rng = np.random.default_rng(0)
    x, test = rng.uniform(-1, 1, (60, 2)), rng.uniform(-1, 1, (50, 2))
    y, truth = np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(60), np.sin(3 * test[:, 0])
    errors = choice.grid(x, y, x[:40], test, truth)[:, 0].reshape(len(choice.FACTORS), 2, -1)
    median = np.median(np.linalg.norm(x[:, None] - x, axis=2)[np.triu_indices(60, 1)])
    for i, factor in enumerate(choice.FACTORS):
        for j, kernel in enumerate((Gaussian(factor * median), Matern(1.5, factor * median))):
            for k in (25, 33, 40):
                model = HermiteRegressor(kernel, landmarks=x[:40], alpha=choice.PENALTIES[k]).fit(x, y)
                assert choice.rmse(model.predict(test), truth) == pytest.approx(errors[i, j, k], rel=1e-4)
    rows = choice.compare(choice.PROBLEMS["sine"], 40, 0, fresh=200)
    assert [row["over"] for row in rows if row["by"] == "the oracle"] == [1.0]
    assert next(row["over"] for row in rows if row["by"] == "GCV of all, p = n") >= 1
    assert choice.summary([{"n": 40, "problem": "sine", **row} for row in rows])[0]["worst over"] == 1.0
