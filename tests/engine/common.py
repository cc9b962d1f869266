"""What the tests of the engine share: points, a small model, short epochs, and runs to which something happens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.engine import plan as planning
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.tasks import Total
from daskspectral.kernels import Exponential
from daskspectral.passes import folds

N, CHUNK = 16_000, 1000
X = np.random.default_rng(5).standard_normal((N, 2))
SHORT = ((planning, "EPOCH", 2), (planning, "TASK_FLOPS", 3e6), (planning, "LEAST_FLOPS", 3e6))
SHORT += ((folds, "LEAST_JOINED", 1 << 20),)
"""With which X is 16 tasks in 8 epochs."""


TWENTY = Landmarks(Exponential(1.0), 20)


def model(basis: Any = TWENTY, **options: Any) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0, **options)


def slow(name: str) -> Any:
    """A case of its own speed."""
    return pytest.param(name, marks=pytest.mark.slow)


def blocks(x: np.ndarray, rows: int = CHUNK) -> da.Array:
    return da.from_array(x, chunks=(rows, x.shape[1]))


@contextmanager
def after_epoch(number: int, action: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as a checkpoint holds so many epochs."""
    add = Checkpoint.add

    def add_and_act(self: Checkpoint, epochs: int, total: Total) -> None:
        self._cost = 0.0  # of a loaded machine, by which epochs may go unwritten
        add(self, epochs, total)
        if epochs == number:
            action()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "add", add_and_act)
        yield
