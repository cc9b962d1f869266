"""One code for host and accelerator: operators, kernels and bases on a stand-in that refuses arrays of the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from distributed import Client
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import devices
from daskspectral.basis import (
    Basis,
    CallableBasis,
    Concatenated,
    ConstantBasis,
    FourierBasis,
    FourierLattice,
    HarmonicBasis,
    LandmarkBasis,
    MonomialBasis,
    NeuralBasis,
    Vanishing,
)
from daskspectral.basis.edges import BoxEdge
from daskspectral.devices import HOST, Device, device_of
from daskspectral.engine.accelerators import chosen_device
from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Matern, Periodic, Polynomial
from daskspectral.manifolds import PeriodicBox
from daskspectral.moments import Measure
from daskspectral.operators import (
    AnisotropicDiffusion,
    Cross,
    Generator,
    Laplacian,
    Operator,
    PartialDerivative,
    Schroedinger,
    TangentPropagation,
)
from tests.common import assert_close
from tests.stand_in import STAND_IN, Exhausted, There

RNG = np.random.default_rng(0)
LANDMARKS = RNG.standard_normal((5, 2))
FIELDS = {
    "x": RNG.standard_normal((11, 2)),
    "y": RNG.standard_normal((11, 3)),
    "weight": RNG.uniform(0.5, 2, 11),
    "potential": RNG.standard_normal(11),
    "direction": RNG.standard_normal((11, 2)),
    "drift": RNG.standard_normal((11, 2)),
    "sigma": RNG.standard_normal((11, 2, 2)),
    "diffusion": np.tile(np.eye(2), (11, 1, 1)),
    **{f"{view}{i}": RNG.standard_normal((11, 2)) for view in ("view ", "x") for i in (1, 2)},
}
OPERATORS: dict[str, Operator] = {
    "laplacian": Laplacian(),
    "schroedinger": Schroedinger(),
    "diffusion": AnisotropicDiffusion(),
    "tangents": TangentPropagation(),
    "generator": Generator("drift", "sigma"),
    "derivative": PartialDerivative(1),
}


class Own(Gaussian):
    """A user's kernel."""


KERNELS: list[Kernel] = [
    *(Gaussian(0.9), Matern(1.5, 1.1), Matern(2.5, 1.1), Exponential(0.8), Polynomial(3), Linear()),
    *(Periodic(Gaussian(0.9), (3.0, None)), Own(0.9), Gaussian(0.9) + 2 * Matern(2.5, 1.1)),
]


def slopes_of_sines(x: Any) -> Any:
    return np.cos(x).T[:, :, None] * np.eye(2)[:, None]


NETWORK = {"outputs": 3, "centre": np.zeros(2), "scale": np.ones(2), "seed": 0}
BASES: dict[str, Basis] = {
    "landmarks": LandmarkBasis(Gaussian(0.9), LANDMARKS),
    "monomials": MonomialBasis(2, 2),
    "lattice": FourierLattice(2, box=[(-9, 9), (-9, 9)]),
    "network": NeuralBasis((5, 4)).initialised(2, **NETWORK),
    "outputs": NeuralBasis((5,), "outputs", "silu").initialised(2, **NETWORK),
    "functions": CallableBasis(lambda x: np.sin(x).T, slopes_of_sines, d=2),
    "vanishing": Vanishing(LandmarkBasis(Gaussian(0.9), LANDMARKS), BoxEdge([-9, -9], [9, 9])),
    "several": Concatenated(
        (ConstantBasis(2), FourierBasis(LANDMARKS), HarmonicBasis(PeriodicBox([-9, -9], [9, 9]), 5))
    ),
}


def check_sums(basis: Basis, operator: Operator, right: Basis | None = None, tolerance: float = 1e-12) -> None:
    """The sums on the device are arrays of the host, those that the host finds, and again the same bits."""
    dtype = "float64" if tolerance < 1e-9 else "float32"
    batch = {k: FIELDS[k] for k in {*operator.views, *operator.data_fields, "weight"}}
    made = Measure(basis, right or basis, operator.forms, operator.functionals, operator, dtype, rows=4)
    there = replace(made, device="cuda")
    wanted, found, again = made([batch]), there([batch]), there([batch])
    for name, values in wanted.items():
        assert isinstance(found[name], np.ndarray), name
        assert_close(found[name], values, tolerance, what=name)
        np.testing.assert_array_equal(again[name], found[name])


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator(name: str, stand_in: Device) -> None:
    check_sums(Concatenated((ConstantBasis(2), BASES["landmarks"])), OPERATORS[name])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_every_kernel(kernel: Kernel, stand_in: Device) -> None:
    for name in ("laplacian", "tangents", "generator") if kernel.order >= 2 else ("laplacian", "tangents"):
        check_sums(LandmarkBasis(kernel, LANDMARKS), OPERATORS[name])


@pytest.mark.parametrize("name", BASES)
def test_every_basis(name: str, stand_in: Device) -> None:
    for operator in ("laplacian", "tangents"):
        check_sums(BASES[name], OPERATORS[operator])


@pytest.mark.parametrize("tolerance", [1e-12, 1e-6])
def test_two_sides_in_both_precisions(tolerance: float, stand_in: Device) -> None:
    check_sums(BASES["landmarks"], Cross(), LandmarkBasis(Matern(2.5, 1.1), np.eye(3)), tolerance)


def test_what_costs_runs_on_the_device(gotten: list[tuple[int, ...]]) -> None:
    """Products of features see arrays of the device alone, and blocks are large there."""
    made = Measure(BASES["landmarks"], BASES["landmarks"], Laplacian().forms, {}, Laplacian(), device="cuda")
    made([{"x": FIELDS["x"]}])
    assert 0 < len(gotten) <= 10  # once a task for each part of the sums
    assert made.block_rows >= 65_536
    moved = STAND_IN.moved(BASES["landmarks"])
    assert isinstance(moved.landmarks, There)
    assert HOST.moved(BASES["landmarks"]) is BASES["landmarks"]


def test_names_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of("cpu") is HOST
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or 'auto'; it is 'gpu'"):
        device_of("gpu")
    monkeypatch.setattr("daskspectral.devices.importlib.util.find_spec", lambda name: None)
    devices._without_gpu.cache_clear()
    assert device_of("auto") is HOST
    with pytest.raises(ImportError, match=r'CuPy is not installed, pip install "daskspectral\[gpu\]"; device="cpu"'):
        device_of("cuda")
    devices._without_gpu.cache_clear()


def test_a_fit_and_its_functions_are_the_same_on_a_device(stand_in: Device) -> None:
    x = np.random.default_rng(0).standard_normal((1000, 2))
    fixed: dict[str, Any] = {"n_landmarks": 30, "n_components": 5, "random_state": 0, "penalty": 1.0}
    here = dsp.SpectralDecomposition(kernel=Gaussian(1.0), **fixed).fit(x)
    there = clone(here).set_params(device="auto").fit(x)
    assert_close(there.moments_.arrays["form"], here.moments_.arrays["form"], 1e-12)
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-9)
    assert_close(np.abs(there.transform(x)), np.abs(here.transform(x)), 1e-8)
    assert "on the device cuda" in str(there.plan(x))
    assert "device" not in str(here.plan(x))


def test_memory_of_a_device(stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    est = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=20_000, device="cuda")
    with pytest.raises(MemoryError, match=r"on the device cuda, and 17\.2 GB are free there; lower n_landmarks"):
        est.plan(np.zeros((100_000, 2)))

    def exhausted(shape: Any, dtype: Any = float) -> Any:
        raise Exhausted("no room")

    monkeypatch.setattr(STAND_IN.module, "empty", exhausted)
    with pytest.raises(MemoryError, match=r"the device 'cuda' does not do \(no room\): lower n_landmarks"):
        est.set_params(n_landmarks=20).fit(np.random.default_rng(0).standard_normal((500, 2)))


@pytest.mark.slow
def test_workers_are_asked_for_their_devices() -> None:
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        assert chosen_device("auto") == "cpu"
        with pytest.raises(RuntimeError, match=r"1 of 1 workers cannot take device='cuda', .*: CuPy is not installed"):
            chosen_device("cuda")
    with Client(n_workers=0, processes=False, dashboard_address=None):
        assert chosen_device("cuda") == "cuda"
        with pytest.raises(RuntimeError, match="device='auto' asks the workers, and the cluster has none yet"):
            chosen_device("auto")
