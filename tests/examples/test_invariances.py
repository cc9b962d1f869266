"""The study of exact invariances: its targets, its expected risks, the averages over groups, and a small run."""

import dataclasses
import importlib.util
import itertools
import sys
from math import factorial
from pathlib import Path

import numpy as np
import pytest
import scipy.special
import xarray as xr
from click.testing import CliRunner

from daskspectral import InvariantRegressor
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.groups import Isometry, Permutations, Rotations, SignFlips
from daskspectral.manifolds import Sphere
from daskspectral.solve.invariant import Projection

FOLDER = Path(__file__).parents[2] / "examples" / "paper"


@pytest.fixture(scope="module")
def study():
    pytest.importorskip("matplotlib")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        spec = importlib.util.spec_from_file_location("invariances_of_the_paper", FOLDER / "invariances.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look themselves up
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def rates(study):
    return sys.modules["invariance_rates"]


@pytest.mark.parametrize("case", range(4))
def test_targets_are_sums_of_their_coefficients(rates, case):
    case = rates.CASES[case]
    target = rates.Target(case.d, case.edge().amplitudes[:12])
    x = case.sphere.sample(9000, np.random.default_rng(0))  # more than one block
    t = x @ rates.AXES[case.d]
    sizes = np.diff(rates.cumulative(case.d, 12), prepend=0)
    zonal = [
        np.cos(level * np.arccos(np.clip(t, -1, 1))) if case.d == 2 else scipy.special.eval_legendre(level, t)
        for level in range(12)
    ]
    expected = np.sum([b * np.sqrt(m) * z for b, m, z in zip(target.amplitudes, sizes, zonal, strict=True)], axis=0)
    np.testing.assert_allclose(target(x), expected, atol=1e-12)
    harmonics = [case.sphere.eigenfunctions(level).values(x) @ target.coefficients(level) for level in range(12)]
    np.testing.assert_allclose(np.sum(harmonics, axis=0), expected, atol=1e-12)
    for g in case.group.generators:
        np.testing.assert_allclose(target(g(x)), expected, atol=1e-12)


@pytest.mark.parametrize("case", range(4))
def test_targets_are_at_the_edge_of_their_space(rates, case):
    """sum D^r c^2 grows by the same amount from each power of 2 to the next at r = alpha, and less and less below."""
    case = rates.CASES[case]
    b = case.edge().amplitudes
    totals = rates.cumulative(case.d, len(b)).astype(float)
    for r, ratio in ((case.exponent, 1.0), (case.exponent - 0.5, 2**-0.5)):
        last, before = (
            np.sum((totals**r * b**2)[(totals > top / 2) & (totals <= top)]) for top in (totals[-1], totals[-1] / 2)
        )
        assert last / before == pytest.approx(ratio, rel=0.07)


@pytest.mark.parametrize("case", range(4))
def test_all_n_complete_whole_levels(rates, case):
    case = rates.CASES[case]
    for levels in case.levels:
        n, total = case.rows(levels), int(rates.cumulative(case.d, levels)[-1])
        exponent = 2 * case.smoothness / case.sphere.dimension
        default = Projection().default(n, exponent)
        assert default == total == Projection().default(n - 1, exponent) + 1
        assert case.functions(levels - 1) > 0
        basis = InvariantBasis(HarmonicBasis(case.sphere, min(total, 169)), case.group)
        assert basis.dimensions.tolist() == [case.functions(i) for i in range(len(basis.functions))]
    assert case.rows(case.levels[-1]) > 1000 * case.rows(case.levels[0])
    assert 7e6 < case.rows(case.levels[-1]) <= 1e7


@pytest.mark.parametrize(("case", "scale"), [(0, 1.0), (3, 10.0)])
def test_the_mean_risk_over_many_samples_is_the_expected_one(rates, case, scale):
    """Also where the target's own variance is above that of the noise."""
    case = rates.CASES[case]
    levels, target, rng = case.levels[0], rates.Target(case.d, scale * case.edge().amplitudes), np.random.default_rng(0)
    n, risks, tested = case.rows(levels), [], []
    new = case.sphere.sample(5000, rng)
    values = target(new)
    for _ in range(20):
        x = case.sphere.sample(n, rng)
        y = target(x) + rates.NOISE * rng.standard_normal(n)
        model = InvariantRegressor(case.sphere, case.group, case.smoothness, solver="projection").fit(
            x, y, progress=False
        )
        risks.append(target.risk(model))
        tested.append(np.mean((model.predict(new) - values) ** 2))
    spread = np.std(risks) / np.sqrt(20)
    assert abs(np.mean(risks) - rates.expected(case, target, levels)) <= 4 * spread
    assert np.mean(tested) == pytest.approx(np.mean(risks), rel=0.05)


@pytest.mark.parametrize(("group", "order"), [(Permutations(4), 24), (SignFlips(3), 8), (Rotations(12), 12)])
def test_elements_are_all_found_once(study, group, order):
    found = np.array(list(study.elements(group)))
    assert len(found) == order == group.order
    if isinstance(group, Permutations):
        permutations = {np.eye(4)[list(p)].tobytes() for p in itertools.permutations(range(4))}
        assert {g.tobytes() for g in found} == permutations
    assert np.abs(found[:, None] - found).sum(axis=(2, 3))[~np.eye(order, dtype=bool)].min() > 0.1


def test_molien_counts(study):
    """1 / |G| sum_g of the trace of D(g) counts invariant functions."""
    for group, d in ((Permutations(4), 4), (Rotations(3), 2)):
        for level in range(7):
            space = Sphere(d).eigenfunctions(level)
            traces = [space.action(g).trace() for g in map(Isometry, study.elements(group))]
            assert study.molien(d, group, level) == pytest.approx(np.mean(traces), abs=1e-9)


def test_averaging_stops_where_it_would_take_too_long(study, monkeypatch):
    sphere, times = Sphere(8), iter(np.arange(0.0, 1e3, 0.5))
    monkeypatch.setattr(study, "perf_counter", lambda: next(times))
    monkeypatch.setattr(study, "PATIENCE", 20.0)
    basis = HarmonicBasis(sphere, 44)
    new = sphere.sample(100, np.random.default_rng(0))
    count, seconds, mean = study.average(basis, np.ones(basis.size), Permutations(8), new)
    assert mean is None
    assert count < factorial(8)
    assert 2 < seconds <= 3


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")  # of a projection on few rows
def test_quick(study, tmp_path, monkeypatch):
    small = dataclasses.replace(study.QUICK, permutations=(3,), rotations=(3,), rows=10_000)
    monkeypatch.setattr(study, "QUICK", small)
    done = []
    rate = study.rate

    def stopping(*arguments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(arguments)
        return rate(*arguments)

    table, data, out = tmp_path / "table.zarr", tmp_path / "data", tmp_path / "new" / "pictures"
    monkeypatch.setattr(study, "rate", stopping)
    with pytest.raises(KeyboardInterrupt):
        study.run(small, table, data)
    monkeypatch.setattr(study, "rate", lambda *arguments: done.append(arguments) or rate(*arguments))
    command = ["--quick", "--table", str(table), "--folder", str(data), "--out", str(out)]
    result = CliRunner().invoke(study.main, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert len(done) == len(set(done)) == sum(len(case.levels) for case in small.cases)  # each once
    assert "sphere, s = 1.5 | 3125 | 25 |" in result.output
    assert {p.name for p in out.iterdir()} == {*study.PICTURES}
    groups = xr.load_dataset(table, group="groups", engine="zarr", consolidated=False)
    assert (groups.averaged == groups.order).all()
    assert (groups.difference < 1e-12).all()
    gaps = xr.load_dataset(table, group="solvers", engine="zarr", consolidated=False)
    assert (gaps.projection > 1e6 * gaps.least_squares).all()
    other = CliRunner().invoke(study.main, [*command, "--most", "30000"])
    assert "not a table of this study" in str(other.exception)
    (tmp_path / "more").mkdir()
    moved = [*command[:2], str(tmp_path / "more" / "table.zarr"), *command[3:], "--most", "60000"]
    other = CliRunner().invoke(study.main, moved)
    assert "name another --folder" in str(other.exception)
