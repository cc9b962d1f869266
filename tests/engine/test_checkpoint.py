"""A checkpoint is of these data and this plan, it is whole or says that it is not, and a run goes on from it."""

import json
import logging
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.data.readers import ZarrReader
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.plan import Plan
from daskspectral.engine.tasks import Total
from tests.common import assert_same_bits, unreliable
from tests.engine.common import TWENTY, X, after_epoch, blocks, model

pytestmark = pytest.mark.usefixtures("short_epochs")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.zarr"


def fit(run: Any = None, x: Any = X, count: int = 20, **options: Any) -> dsp.Moments:
    return model(replace(TWENTY, n_landmarks=count)).fit(x, checkpoint=run, **options).moments_


def halted(run: Path, **options: Any) -> None:
    """A run that ends after three epochs."""
    with after_epoch(3, lambda: 1 // 0), pytest.raises(ZeroDivisionError):
        fit(run, checkpoint_every=0.0, **options)


OTHERS: dict[str, tuple[Any, dict[str, dict[str, Any]]]] = {  # by the words of the error
    "array": (
        X,
        {
            "X contents": {"x": X + 1},
            "parameter basis state n_landmarks": {"count": 21},
            "on_invalid": {"x": dsp.Rows(X, on_invalid="skip")},
            "columns": {"x": dsp.Rows(X, columns=[1, 0])},
        },
    ),
    "graph": (blocks(X), {"X name in dask": {"x": blocks(X + 1)}, "X chunks": {"x": blocks(X, 500)}}),
}


@pytest.mark.one_in(2)
@unreliable
@pytest.mark.parametrize("kind", OTHERS)
def test_the_same_run_goes_on_and_another_is_refused(
    kind: str, run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    x, others = OTHERS[kind]
    halted(run, x=x)
    for message, changes in others.items():
        with pytest.raises(ValueError, match=f"another run: {message}"):
            fit(run, **({"x": x} | changes))
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "daskspectral"):
        done: list[int] = []
        add = Checkpoint.add
        patch.setattr(Checkpoint, "add", lambda self, epochs, total: (done.append(epochs), add(self, epochs, total))[1])
        found = fit(run, x)
    assert done == [4, 5, 6, 7, 8]
    assert re.search(r"at epoch 4 of 8, after \d+ of 16000 rows", caplog.text)
    assert "epoch 5 of 8" in caplog.text
    assert_same_bits(found, fit(x=x))


def test_plans_of_the_same_number_of_ranges_are_distinguished(run: Path) -> None:
    written = Checkpoint.open(run, {}, dict, {}, 0.0)
    written.set_plan(Plan(((0, 5), (5, 9))))
    written.set_plan(Plan(((0, 4), (4, 9))))  # no sums so far
    written.add(1, Total({"s": np.ones(2)}, 2.0, 2))
    found = Checkpoint.open(run, {}, dict, {}, 0.0)
    found.set_plan(Plan(((0, 4), (4, 9))))
    for other in (Plan(((0, 5), (5, 9))), Plan(((0, 4), (4, 9)), epoch=1)):
        with pytest.raises(ValueError, match="plan"):
            found.set_plan(other)


def test_sums_of_a_store_that_changed_are_not_written(points: Path, run: Path) -> None:
    def change() -> None:
        (points / "c" / "15" / "0").write_bytes((points / "c" / "14" / "0").read_bytes())

    with after_epoch(2, change), pytest.raises(OSError, match="changed during the run") as caught:
        fit(run, str(points), checkpoint_every=0.0)
    told = "first 2 epochs, of the data as they were before, are in the checkpoint"
    assert told in caught.value.__notes__[-1]
    assert not (run / "epoch-00000003").exists()
    with pytest.raises(ValueError, match="X files"):
        fit(run, str(points))


def edit(epoch: Path) -> None:
    header = json.loads((epoch / "zarr.json").read_text())
    header["attributes"]["daskspectral"]["state"]["total"]["weight"] += 1
    (epoch / "zarr.json").write_text(json.dumps(header))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "edited": edit,
    "renamed": lambda epoch: epoch.rename(epoch.parent / "epoch-00000005"),
    "no metadata": lambda epoch: (epoch / "zarr.json").unlink(),
}


@pytest.mark.one_in(3)
@unreliable
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_epoch_is_replaced_by_the_one_before(
    damage: str, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    halted(run)
    assert sorted(p.name for p in run.iterdir()) == ["epoch-00000002", "epoch-00000003"]
    alone = run.with_name("alone.zarr")
    shutil.copytree(run / "epoch-00000003", alone / "epoch-00000003")
    DAMAGES[damage](run / "epoch-00000003")
    assert_same_bits(fit(run), fit())
    if damage != "no metadata":  # and if there is none before it
        assert "is damaged" in caplog.text
        DAMAGES[damage](alone / "epoch-00000003")
        with pytest.raises(OSError, match=r"alone\.zarr"):
            fit(alone)


@pytest.mark.slow
@unreliable
def test_what_a_killed_run_left_half_written_does_not_count(run: Path) -> None:
    halted(run)
    left = run / ".epoch-00000007.partial"
    shutil.copytree(run / "epoch-00000003", left)
    assert_same_bits(fit(run), fit())
    assert not left.exists()


def test_a_place_that_can_hold_no_checkpoint_is_refused(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    monkeypatch.setattr(ZarrReader, "read", lambda *a: pytest.fail("read before the check"))
    for path in (tmp_path / "file", "", points / "c" / "run", tmp_path / "mine"):
        with pytest.raises(ValueError, match="checkpoint"):
            fit(path, str(points))
