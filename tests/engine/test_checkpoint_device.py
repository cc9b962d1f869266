"""Checkpoints that were begun on one device and go on on another: only where that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import devices
from daskspectral.basis import FourierLattice
from daskspectral.devices import Device
from daskspectral.engine import Run
from daskspectral.engine import plan as planning
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.kernels import Gaussian

ROWS = 3_000_000


class Stopped(Exception):
    """The run was stopped."""


def estimator(device: str, **options: Any) -> dsp.SpectralDecomposition:
    fixed: dict[str, Any] = {"n_landmarks": 3, "penalty": 1.0, "spread": 0.0, "landmarks": "uniform", "random_state": 0}
    return dsp.SpectralDecomposition(
        kernel=Gaussian(1.0), n_components=2, device=device, **{**fixed, "folds": None, **options}
    )


def stopped_after(epochs: int, patch: pytest.MonkeyPatch, est: Any, *args: Any, **options: Any) -> None:
    """Stop a fit once its checkpoint holds so many epochs."""
    plain = Checkpoint.add

    def add(self: Checkpoint, number: int, total: Any) -> None:
        plain(self, number, total)
        if number == epochs:
            raise Stopped

    with patch.context() as patched:
        patched.setattr(Checkpoint, "add", add)
        with pytest.raises(Stopped):
            est.fit(*args, **options, checkpoint_every=0.0)


@pytest.mark.parametrize(("first", "second"), [("cuda", "cpu"), ("cpu", "cuda")])
@pytest.mark.parametrize("lattice", [False, True])
def test_a_run_goes_on_elsewhere_where_it_is_asked_to(
    first: str, second: str, lattice: bool, stand_in: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "EPOCH", 2)
    monkeypatch.setattr(planning, "TASK_BYTES", 1 << 21)  # several tasks on the device, too
    x = np.random.default_rng(0).standard_normal((ROWS, 2)).astype("float32")
    options = {"basis": FourierLattice(2, method="matmul")} if lattice else {"folds": 20}
    whole = estimator(first, **options).fit(x)
    run = {"checkpoint": tmp_path / "run"}
    stopped_after(2, monkeypatch, estimator(first, **options), x, **run)
    with pytest.raises(
        ValueError, match=rf"parameter device \(then '{first}', now '{second}'\).*by checkpoint_device='{first}'"
    ):
        estimator(second, **options).fit(x, **run)
    done: list[int] = []
    plain = Run.reduce

    def reduce(self: Run, *args: Any, checkpoint: Checkpoint | None = None, **others: Any) -> Any:
        if checkpoint is not None:
            done.append(checkpoint.epochs)
            assert self.device == second
        return plain(self, *args, checkpoint=checkpoint, **others)

    monkeypatch.setattr(Run, "reduce", reduce)
    found = estimator(second, **options).fit(x, **run, checkpoint_device=first)
    assert done == [2]  # epochs that are not summed again
    for name, values in whole.moments_.arrays.items():
        np.testing.assert_allclose(found.moments_.arrays[name], values, rtol=1e-10, atol=1e-8)
    again = estimator(second, **options).fit(x, **run, checkpoint_device=first)
    np.testing.assert_array_equal(again.eigenvalues_, found.eigenvalues_)


def test_auto_does_not_mix(stand_in: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What "auto" takes is part of a run: sums of two devices differ in their last bits."""
    x = np.random.default_rng(0).standard_normal((3000, 2))
    est = estimator("auto", n_landmarks=30).fit(x, checkpoint=tmp_path / "run", checkpoint_every=0.0)
    again = clone(est).fit(x, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(again.eigenvalues_, est.eigenvalues_)
    monkeypatch.setattr(devices, "_without_gpu", lambda: "it was taken out")
    with pytest.raises(ValueError, match=r"is of another run: .*device.*cuda.*cpu.*by checkpoint_device='cuda'"):
        clone(est).fit(x, checkpoint=tmp_path / "run")


def test_what_cannot_be_asked_for(stand_in: Device, tmp_path: Path, no_tasks: None) -> None:
    x = np.zeros((100, 2))
    with pytest.raises(ValueError, match="checkpoint_device must be 'cpu' or 'cuda', or None; it is 'auto'"):
        estimator("cpu").fit(x, checkpoint=tmp_path / "run", checkpoint_device="auto")
    with pytest.raises(ValueError, match="checkpoint_device='cuda' is where a checkpoint was begun, and there is none"):
        estimator("cpu").fit(x, checkpoint_device="cuda")


def test_another_difference_is_told_without_it(stand_in: Device, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((3000, 2))
    estimator("cpu").fit(x, checkpoint=tmp_path / "run", checkpoint_every=0.0)
    with pytest.raises(ValueError, match="is of another run") as caught:
        estimator("cuda", n_landmarks=4).fit(x, checkpoint=tmp_path / "run")
    assert "checkpoint_device" not in str(caught.value)
