"""The cost model: its arithmetic against formulas written out here, and the file in which its constants are kept."""

import json
import math
from dataclasses import replace

import pytest

from daskspectral.engine.costs import Costs, Prediction, Unpredictable, Work, check_writable, default_path, shown

COSTS = Costs(
    start=0.5,
    rows=1e-7,
    columns=1e-8,
    distances=1e-10,
    values={"Gaussian slope": 2e-9, "Matern 1.5": 5e-9, "along": 3e-9},
    syrk={"100": 4e-11, "400": 1e-11},
    gemm={"100": 8e-11, "400": 2e-11},
    modes={"nufft 2 100": 1e-7, "nufft 2 300": 3e-7},
    single=0.5,
    entries=1e-9,
    task=1e-3,
    scheduler=2e-3,
    sending=1e-9,
    reading=2e-9,
    sampling=1e-8,
    choice=6.0,
    apart=0.5,
    slowdown=1.5,
    solve={"symmetric 100": 0.1, "symmetric 400": 6.4, "lattice 2 900": 3.0},
    threads=3,
    machine={"cores": 3},
)
WORK = Work(
    n=10**6,
    d=4,
    p=200,
    tasks=50,
    groups=10,
    forms=2,
    solver="symmetric",
    kernels={"Gaussian slope": 1.0, "Matern 1.5": 0.5},
    along=2.0,
    syrk=3.0,
    gemm=1.0,
    row_bytes=16.0,
    sampled=2000,
)


def test_a_pass_by_the_formula():
    functions = 200 * ((2e-9 + 4e-10) + 0.5 * (5e-9 + 4e-10) + 2 * (3e-9 + 4e-10))
    products = 200**2 * (3 * 2e-11 + 4e-11)  # halfway in powers: both tables fall as 1 / p
    row = 1e-7 + 4e-8 + 16 * 2e-9 + functions + products
    assert math.isclose(COSTS.row(WORK), row, rel_tol=1e-12)
    assert math.isclose(COSTS.row(replace(WORK, single=True)), row - (functions + products) / 2, rel_tol=1e-12)
    task = 20_000 * row + 1e-3 + 10 * 2 * 200**2 * 1e-9
    found = COSTS.predict(WORK, threads=1)
    assert math.isclose(found.task, task, rel_tol=1e-12)
    assert math.isclose(found.summing, 50 * task, rel_tol=1e-12)
    assert math.isclose(found.choosing, 0.5 + 2000 * 200 * 1e-8, rel_tol=1e-12)
    assert math.isclose(found.solving, 0.8, rel_tol=1e-12)  # as p^3 between 100 and 400
    assert math.isclose(found.seconds, found.choosing + found.summing + found.solving)


def test_threads_take_tasks_in_turn_and_slow_each_other_down():
    task = COSTS.task_of(WORK)
    assert math.isclose(COSTS.summing(WORK, threads=2), 25 * task * 1.25)
    assert math.isclose(COSTS.summing(WORK, threads=3), 17 * task * 1.5)
    assert math.isclose(COSTS.summing(WORK, threads=12), 5 * task * 1.5)  # no more than was measured
    assert math.isclose(replace(COSTS, threads=1).summing(WORK, threads=2), 25 * task)


def test_a_scheduler_sets_the_pace_of_many_workers():
    few = COSTS.predict(WORK, workers=10, threads=1)
    sent = 10 * 2 * 200**2 * 8e-9  # the sums of ten groups
    assert math.isclose(few.summing, 5 * (1.5 * COSTS.task_of(WORK) + sent))  # each host is taken to be busy
    many = COSTS.predict(replace(WORK, tasks=10**6), workers=10_000, threads=1)
    assert math.isclose(many.summing, 2 * 10**6 * 2e-3)


def test_a_choice_is_spread_over_the_threads_in_part():
    whole = COSTS.predict(replace(WORK, automatic=True, sampled=0), threads=1).choosing
    assert math.isclose(whole, 6.5)
    assert math.isclose(COSTS.predict(replace(WORK, automatic=True, sampled=0), threads=3).choosing, 0.5 + 3 + 1)


def test_modes_on_the_line_between_what_was_measured():
    work = Work(
        n=1000, d=2, p=900, tasks=1, groups=1, forms=2, solver="lattice 2", modes=200, method="nufft", transforms=3
    )
    assert math.isclose(COSTS.row(work), 3 * 2e-7)
    assert math.isclose(COSTS.predict(replace(work, row_bytes=8.0)).summing, 1000 * (6e-7 + 1.6e-8) + 1e-3)
    assert COSTS.predict(work).solving == 3.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernels": {"Mine": 1.0}}, "kernel Mine, only for Gaussian slope"),
        ({"solver": "singular"}, "nothing was measured for 'singular', only for lattice 2, symmetric"),
        ({"method": "matmul"}, "nothing was measured for 'matmul 4', only for nufft 2"),
    ],
)
def test_what_was_not_measured_is_not_predicted(change, message):
    with pytest.raises(Unpredictable, match=message):
        COSTS.predict(replace(WORK, **change))


def test_round_trip(tmp_path):
    path = tmp_path / "new" / "costs.json"
    COSTS.save(path)
    assert Costs.load(path) == COSTS
    assert [file.name for file in path.parent.iterdir()] == ["costs.json"]


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no calibration .*none.json; measure .*plan --calibrate"):
        Costs.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "daskspectral costs 0"}, "no calibration of this version"),
        ({"rows": None}, "has None for rows, where numbers of 0 or more"),
        ({"rows": -1.0}, "has -1.0 for rows"),
        ({"rows": math.nan}, "has nan for rows"),
        ({"rows": True}, "has True for rows"),
        ({"syrk": {"100": 0.0}}, "for syrk"),
        ({"syrk": {}}, "for syrk"),
        ({"syrk": 1.0}, "for syrk"),
        ({"threads": 0}, "wrong facts of the machine"),
        ({"machine": 3}, "wrong facts of the machine"),
        ({"more": 1.0}, "beside what is wanted, more"),
    ],
)
def test_a_file_that_is_none(tmp_path, change, message):
    path = tmp_path / "costs.json"
    COSTS.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=f"{message}.*plan --calibrate"):
        Costs.load(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "!!python/object:os.system", '{"format": "daskspectral costs 1"}'])
def test_other_text(tmp_path, text):
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="plan --calibrate"):
        Costs.load(path)


def test_table_keys_are_numbers(tmp_path):
    path = tmp_path / "costs.json"
    replace(COSTS, syrk={"big": 1e-9}).save(path)
    with pytest.raises(ValueError, match=r"'big' in syrk, where .*plan --calibrate"):
        Costs.load(path)


def test_where_it_can_be_written(tmp_path):
    check_writable(tmp_path / "a" / "b" / "costs.json")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_writable(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(PermissionError, match="no folder you may write in"):
        check_writable(tmp_path / "file" / "costs.json")


def test_the_default_place_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_path().name == "costs.json"
    assert default_path().parent.name.lower() == "daskspectral"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2e-4, "0.2 ms"),
        (0.12, "120 ms"),
        (3.14, "3.1 s"),
        (73.4, "73 s"),
        (600, "10 min"),
        (9000, "2.5 h"),
        (259_200, "3.0 days"),
    ],
)
def test_times_in_words(seconds, text):
    assert shown(seconds) == text


def test_a_prediction_in_words():
    assert str(Prediction(1, 60, 2, 0.5, 1, 1)) == (
        "about 63 s on 1 thread: 1.0 s for the choice, 60 s for the pass in tasks of 500 ms, 2.0 s for the solution"
    )
    assert "on 4 workers of 2 threads" in str(Prediction(1, 60, 2, 0.5, 4, 2))
