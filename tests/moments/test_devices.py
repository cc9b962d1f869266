"""One code for host and accelerator: operators, kernels and bases on a stand-in that refuses arrays of the host."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from distributed import Client

from daskspectral import basis as bases
from daskspectral import operators
from daskspectral.basis.boundary import BoxBoundary
from daskspectral.basis.lattice import SpanBasis
from daskspectral.devices import HOST, Device
from daskspectral.engine.memory import chosen_device
from daskspectral.kernels import Exponential, Gaussian, Matern, Periodic, Polynomial
from daskspectral.manifolds import PeriodicBox
from daskspectral.moments import Measure
from tests.common import assert_close
from tests.stand_in import STAND_IN, There

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
NETWORK = bases.NeuralBasis((5, 4)).initialized(np.zeros((1, 2)), outputs=3, seed=0)
CONSTANT = bases.ConstantBasis(2)
WAVES = (
    bases.TrigonometricBasis((2.0, 3.0), 2),
    bases.RandomFourierFeatures(LANDMARKS),
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
    "lattice": (operators.Schroedinger(), SpanBasis(bases.FourierLattice(2, box=[(-9, 9)] * 2), np.eye(25))),
    "network": (operators.Laplacian(), NETWORK),
    "vanishing": (operators.Laplacian(), bases.DirichletFunctions(at(SMOOTH), BoxBoundary(*BOX))),
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


@pytest.mark.slow
def test_workers_report_their_devices() -> None:
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        assert chosen_device("auto") == "cpu"
        with pytest.raises(RuntimeError, match=r"1 of 1 workers .*device='cuda'.*CuPy"):
            chosen_device("cuda")
    with Client(n_workers=0, processes=False, dashboard_address=None):
        assert chosen_device("cuda") == "cuda"
        with pytest.raises(RuntimeError, match=r"device='auto'.*workers"):
            chosen_device("auto")
