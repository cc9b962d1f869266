"""Modes on an accelerator: by matrix products, and by cufinufft, for which a module that sums directly stands in."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.basis.evaluation import Arena
from daskspectral.devices import Device
from daskspectral.kernels import Matern
from daskspectral.modes.matmul import bytes_there
from daskspectral.modes.sums import mode_sum
from tests.common import assert_close
from tests.stand_in import There


class DirectPlan:
    """The interface of cufinufft's plans, of type 1: sums of strengths exp(i isign j.t), on arrays of the device."""

    made: list[dict[str, Any]]

    def __init__(self, nufft_type: int, n_modes: tuple[int, ...], **options: Any):
        self.made.append(options)
        assert nufft_type == 1
        self.sizes, self.sign = n_modes, options["isign"]

    def setpts(self, *points: There) -> None:
        assert len(points) == len(self.sizes)
        assert all(isinstance(axis, There) and axis.ndim == 1 for axis in points)
        self.points = [axis._values for axis in points]

    def execute(self, strengths: There) -> There:
        assert strengths.dtype == complex
        waves = [
            np.exp(1j * self.sign * np.outer(np.arange(n) - n // 2, t))
            for n, t in zip(self.sizes, self.points, strict=True)
        ]
        found = strengths._values
        letters = "abc"[: len(waves)]
        return There(np.einsum(",".join(["n", *(f"{a}n" for a in letters)]) + f"->{letters}", found, *waves))


@pytest.fixture
def cufinufft(stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """cufinufft as if it were installed; the options of the plans that are made."""
    module: Any = ModuleType("cufinufft")
    module.__spec__ = ModuleSpec("cufinufft", None)
    module.Plan = DirectPlan
    monkeypatch.setattr(DirectPlan, "made", [], raising=False)
    monkeypatch.setitem(sys.modules, "cufinufft", module)
    return DirectPlan.made


def fits(d: int, method: str, weighted: bool, rows: int = 2000) -> tuple[Any, Any]:
    x = np.random.default_rng(0).uniform(0, 1, (rows, d))
    lattice = FourierLattice({1: 40, 2: 6, 3: 2}[d], method=method)
    options: dict[str, Any] = {"basis": lattice, "n_components": 4, "kernel": Matern(1.5, 0.5), "folds": 3}
    operator = dsp.operators.Schroedinger() if weighted else dsp.operators.Laplacian()
    given = {"fields": {"potential": x[:, 0]}} if weighted else {}
    here = dsp.SpectralDecomposition(operator, **options).fit(x, **given)
    return here, dsp.SpectralDecomposition(operator, **options, device="cuda").fit(x, **given)


def same(here: Any, there: Any) -> None:
    assert here.moments_.arrays.keys() == there.moments_.arrays.keys()
    for name, values in here.moments_.arrays.items():
        assert_close(there.moments_.arrays[name], values, 1e-8, dtype=None, what=name)  # eps of the transform is 1e-9
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-7)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_modes_by_matrix_products(d: int, stand_in: Device) -> None:
    same(*fits(d, "nufft" if d < 3 else "matmul", True))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_modes_by_cufinufft(d: int, weighted: bool, cufinufft: list[dict[str, Any]]) -> None:
    same(*fits(d, "nufft", weighted))
    assert cufinufft
    assert all(options["dtype"] == "complex128" for options in cufinufft)
    cufinufft.clear()
    fits(d, "matmul", weighted)
    assert not cufinufft, "matrix products were asked for"


@pytest.mark.parametrize(("orders", "weights"), [((40,), 1), ((12, 12), 3), ((4, 6, 4), 2)])
def test_the_memory_of_matrix_products(
    orders: tuple[int, ...], weights: int, stand_in: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is planned is what is taken, also where sums of several folds share it."""
    monkeypatch.setattr("daskspectral.modes.matmul.ACCELERATOR_ROWS", rows := 1000)
    taken: list[int] = []
    for name in ("empty", "zeros"):
        plain = getattr(stand_in.module, name)

        def counted(shape: Any, dtype: Any = float, plain: Any = plain) -> Any:
            taken.append(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            return plain(shape, dtype)

        monkeypatch.setattr(stand_in.module, name, counted)
    arena, angles = Arena(stand_in), np.zeros((rows, len(orders)))
    for _ in range(5):
        mode_sum(orders, "matmul", arena=arena).add(angles, np.ones((weights, rows)))
    data = 2 * 8 * rows * (len(orders) + weights)
    assert sum(taken) == bytes_there(orders, weights, 5) - data


def test_the_plan_has_the_memory_of_the_device(stand_in: Device) -> None:
    x = np.broadcast_to(np.zeros(2), (10_000_000, 2))
    lattice = FourierLattice(50, box=[(-1, 1), (-1, 1)], method="matmul")
    plan = dsp.SpectralDecomposition(basis=lattice, device="cuda").plan(x)
    assert plan.memory.there >= plan.memory.threads * bytes_there((100, 100), 1, 1)
    assert "on the device cuda" in str(plan)
    huge = FourierLattice(120, box=[(-1, 1)] * 3, method="matmul")
    with pytest.raises(MemoryError, match="on the device cuda"):
        dsp.SpectralDecomposition(basis=huge, device="cuda").plan(np.broadcast_to(np.zeros(3), (10_000_000, 3)))
