"""One code for host and accelerator: operators, kernels and bases on a stand-in that refuses arrays of the host."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from distributed import Client

import daskspectral as dsp
from daskspectral import basis as bases
from daskspectral import devices, operators
from daskspectral.basis import Arena, Block
from daskspectral.basis.edges import BoxEdge
from daskspectral.devices import HOST, Device, device_of
from daskspectral.engine.accelerators import chosen_device
from daskspectral.kernels import Exponential, Gaussian, Matern, Periodic, Polynomial
from daskspectral.manifolds import PeriodicBox
from daskspectral.moments import Measure
from tests.common import assert_close
from tests.stand_in import STAND_IN, Exhausted, There

RNG = np.random.default_rng(0)
LANDMARKS = RNG.standard_normal((5, 2))
FIELDS = {
    **{name: RNG.standard_normal((11, 2)) for name in ("x", "direction", "drift", "view 1", "view 2", "x1", "x2")},
    **{"y": RNG.standard_normal((11, 3)), "weight": RNG.uniform(0.5, 2, 11), "potential": RNG.standard_normal(11)},
    **{"sigma": RNG.standard_normal((11, 2, 2)), "diffusion": np.tile(np.eye(2), (11, 1, 1))},
}


class Own(Gaussian):
    """A user's kernel."""


def at(kernel: Any) -> bases.LandmarkBasis:
    return bases.LandmarkBasis(kernel, LANDMARKS)


SMOOTH, BOX = Gaussian(0.9), ([-9, -9], [9, 9])
NETWORK = bases.NeuralBasis((5, 4)).initialised(2, outputs=3, centre=np.zeros(2), scale=np.ones(2), seed=0)
CONSTANT = bases.ConstantBasis(2)
WAVES = (
    bases.TrigonometricBasis((2.0, 3.0), 2),
    bases.FourierBasis(LANDMARKS),
    bases.HarmonicBasis(PeriodicBox(*BOX), 5),
)
CASES: dict[str, tuple[Any, Any]] = {
    "Laplacian": (operators.Laplacian(), bases.Concatenated((CONSTANT, at(SMOOTH + 2 * Matern(2.5, 1.1))))),
    "Schroedinger": (operators.Schroedinger(), at(Matern(1.5, 1.1))),
    "diffusion": (operators.AnisotropicDiffusion(), at(Polynomial(3))),
    "tangents": (operators.TangentPropagation(), at(Periodic(SMOOTH, (3.0, None)))),
    "generator": (operators.Generator("drift", "sigma"), at(Own(0.9))),
    "derivative": (operators.PartialDerivative(1), at(Exponential(0.8))),
    "several": (operators.TangentPropagation(), bases.Concatenated(WAVES)),
    "monomials": (operators.Generator("drift", "sigma"), bases.MonomialBasis(2, 2)),
    "lattice": (operators.Schroedinger(), bases.FourierLattice(2, box=[(-9, 9)] * 2)),
    "network": (operators.Laplacian(), NETWORK),
    "vanishing": (operators.Laplacian(), bases.Vanishing(at(SMOOTH), BoxEdge(*BOX))),
    "two sides": (operators.Cross(), at(SMOOTH)),
}


def check_sums(name: str, tolerance: float) -> None:
    """The sums on the device are arrays of the host, those that the host finds, and again the same bits."""
    operator, basis = CASES[name]
    right = bases.LandmarkBasis(Matern(2.5, 1.1), np.eye(3)) if name == "two sides" else basis
    dtype = "float64" if tolerance < 1e-9 else "float32"
    batch = {k: FIELDS[k] for k in {*operator.views, *operator.data_fields, "weight"}}
    made = Measure(basis, right, operator.forms, operator.functionals, operator, dtype, rows=4)
    there = replace(made, device="cuda")
    wanted, found, again = made([batch]), there([batch]), there([batch])
    for key, values in wanted.items():
        assert isinstance(found[key], np.ndarray), key
        assert_close(found[key], values, tolerance, what=key)
        np.testing.assert_array_equal(again[key], found[key])


@pytest.mark.parametrize(("name", "tolerance"), [*((name, 1e-12) for name in CASES), ("two sides", 1e-5)])
def test_sums_are_those_of_the_host(name: str, tolerance: float, stand_in: Device) -> None:
    check_sums(name, tolerance)


def test_what_costs_runs_on_the_device(gotten: list[tuple[int, ...]]) -> None:
    """Products of features see arrays of the device alone, and blocks are large there."""
    operator = operators.Laplacian()
    made = Measure(at(SMOOTH), at(SMOOTH), operator.forms, {}, operator, device="cuda")
    made([{"x": FIELDS["x"]}])
    assert 0 < len(gotten) <= 10  # once a task for each part of the sums
    assert made.block_rows >= 65_536
    assert isinstance(STAND_IN.moved(at(SMOOTH)).landmarks, There)
    assert HOST.moved(SMOOTH) is SMOOTH


def test_panels_there_are_many_rows(stand_in: Device) -> None:
    """A launch for each row of a panel would cost more than its work."""
    basis, panels = bases.LandmarkBasis(SMOOTH, np.zeros((64, 2))), []
    for device in (HOST, stand_in):
        block = Block({"x": np.zeros((2048, 2))}, np.dtype(float), Arena(device)).on(Arena(device))
        evaluation: Any = device.moved(basis).at(block, [])
        panels.append(len(evaluation._panels()))
    assert panels == [4, 1]


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


def test_memory_of_a_device(stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    est = dsp.SpectralDecomposition(basis=bases.Landmarks(SMOOTH, 20_000), device="cuda")
    with pytest.raises(MemoryError, match=r"on the device cuda, and 17\.2 GB are free there; use fewer landmarks"):
        est.plan(np.zeros((100_000, 2)))

    def exhausted(shape: Any, dtype: Any = float) -> Any:
        raise Exhausted("no room")

    monkeypatch.setattr(STAND_IN.module, "empty", exhausted)
    with pytest.raises(MemoryError, match=r"the device 'cuda' does not do \(no room\): use fewer landmarks"):
        est.set_params(basis__count=20).fit(np.random.default_rng(0).standard_normal((500, 2)))


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
