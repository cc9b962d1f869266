"""`plan --calibrate`, and the time that a plan tells. What is measured is tested in `tests/estimators`."""

from pathlib import Path

import numpy as np
import pytest
import zarr

from daskspectral.engine.costs import Costs, default_path
from daskspectral.estimators import SpectralDecomposition, calibration
from daskspectral.kernels import Gaussian, Matern
from tests.cli.common import call, done, facts
from tests.engine.test_costs import COSTS

FIT = "fit points.zarr --kernel gaussian:1 --landmarks 40"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "calibrate", lambda say: [say("everything"), COSTS][1])
    zarr.save_array("points.zarr", np.random.default_rng(0).standard_normal((500, 2)))


def test_costs_go_to_the_users_folder_and_come_from_there() -> None:
    before = done(f"plan {FIT}")
    assert "no time: the costs of this machine are not measured yet (daskspectral plan --calibrate)\n" in before
    said = call("plan --calibrate")
    assert said.stdout == f"costs: {default_path()}\n"
    assert said.stderr == "measuring everything\n"
    assert Costs.load(default_path()) == COSTS
    after = done(f"plan {FIT}")
    assert "; about " in after
    assert "no time" not in after


def test_a_file_of_ones_own_and_the_numbers_of_workers() -> None:
    assert facts("plan --calibrate --calibration mine.json") == {"costs": "mine.json", "machine": {"cores": 3}}
    assert not default_path().exists()
    found = facts(f"plan --calibration mine.json --workers 4 --threads-per-worker 2 {FIT}")
    estimator = SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=40)
    plan = estimator.plan("points.zarr", workers=4, threads=2, calibration="mine.json")
    assert found["time"] == {
        "seconds": plan.seconds,
        "choosing": plan.time.choosing,
        "summing": plan.time.summing,
        "solving": plan.time.solving,
        "task": plan.time.task,
        "workers": 4,
        "threads": 2,
    }
    assert "on 4 workers of 2 threads: " in done(
        f"plan --calibration mine.json --workers 4 --threads-per-worker 2 {FIT}"
    )


def test_no_time_says_why_and_leaves_the_work() -> None:
    done("plan --calibrate")
    plan = SpectralDecomposition(kernel=Matern(4.5, 1.0), n_landmarks=40).plan("points.zarr")
    assert plan.time is None
    assert plan.work is not None
    assert (plan.work.p, plan.work.n) == (41, 500)  # the constant function, too
    text = done("plan fit points.zarr --kernel matern:4.5:1 --landmarks 40")
    assert text.splitlines()[1].startswith("no time: nothing was measured for the kernel Matern 4.5 slope, only for ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plan", "COMMAND is missing"),
        (f"plan --calibrate {FIT}", "--calibrate plans nothing"),
        ("plan --calibrate --workers 3", "--calibrate plans nothing"),
        ("plan --workers 3 regress points.zarr y.zarr", "the time of fit alone, and regress takes no workers"),
    ],
)
def test_wrong_use(line, message) -> None:
    result = call(line)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_wrong_numbers_and_files() -> None:
    done("plan --calibrate")
    with pytest.raises(ValueError, match="workers must be a whole number of 1 or more; it is 0"):
        done(f"plan --workers 0 {FIT}")
    with pytest.raises(FileNotFoundError, match=r"there is no calibration none.json"):
        done(f"plan --calibration none.json {FIT}")
    Path("wrong.json").write_text("{}")
    with pytest.raises(ValueError, match=r"wrong\.json is no calibration of this version"):
        done(f"plan --calibration wrong.json {FIT}")


def test_nothing_is_measured_for_a_place_that_takes_no_file(monkeypatch) -> None:
    monkeypatch.setattr(calibration, "calibrate", lambda say: pytest.fail("measured"))
    with pytest.raises(IsADirectoryError, match=r"points.zarr is a folder"):
        done("plan --calibrate --calibration points.zarr")
