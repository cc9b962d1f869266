"""One code for host and accelerator: every operator, kernel and basis on a stand-in that refuses arrays of the host."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dask
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
    NeuralBasis,
    Vanishing,
)
from daskspectral.basis.edges import BoxEdge
from daskspectral.devices import HOST, Device, device_of
from daskspectral.engine.accelerators import chosen_device
from daskspectral.kernels import Gaussian, Kernel, Matern, Periodic, Polynomial
from daskspectral.manifolds import PeriodicBox
from daskspectral.moments import Measure
from daskspectral.moments.measure import MeasureMany
from daskspectral.operators import Cross, Laplacian
from tests.basis.test_contraction import KERNELS
from tests.common import assert_close
from tests.operators.test_measured import BASES, CASES, FIELDS, LANDMARKS
from tests.stand_in import STAND_IN, Exhausted, There


def slopes_of_sines(x: Any) -> Any:
    return np.cos(x).T[:, :, None] * np.eye(2)[:, None]


PLACE = np.zeros(2)
SPREAD = np.ones(2)
OTHERS: dict[str, Basis] = {
    "constant": ConstantBasis(2),
    "lattice": FourierLattice(2, box=[(-9, 9), (-9, 9)]),
    "network": NeuralBasis((5, 4)).initialised(2, outputs=3, centre=PLACE, scale=SPREAD, seed=0),
    "outputs": NeuralBasis((5,), "outputs", "silu").initialised(2, outputs=3, centre=PLACE, scale=SPREAD, seed=0),
    "softplus": NeuralBasis((5,), activation="softplus").initialised(2, outputs=3, centre=PLACE, scale=SPREAD, seed=0),
    "harmonics": HarmonicBasis(PeriodicBox([-9, -9], [9, 9]), 9),
    "functions": CallableBasis(lambda x: np.sin(x).T, slopes_of_sines, d=2),
    "vanishing": Vanishing(LandmarkBasis(Gaussian(0.9), LANDMARKS), BoxEdge([-9, -9], [9, 9])),
    "several": Concatenated(
        (ConstantBasis(2), FourierBasis(LANDMARKS), HarmonicBasis(PeriodicBox([-9, -9], [9, 9]), 5))
    ),
}


def same(made: Measure, batch: Any, tolerance: float = 1e-12) -> None:
    """The sums on the device are arrays of the host, and those that the host finds."""
    wanted = made([batch])
    found = replace(made, device="cuda")([batch])
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert isinstance(found[name], np.ndarray), name
        assert_close(found[name], values, tolerance, what=name)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", BASES)
def test_every_operator(kind: str, name: str, stand_in: Device) -> None:
    operator, basis = CASES[name].operator, BASES[kind][0]
    batch = {k: FIELDS[k] for k in {*operator.views, *operator.data_fields, "weight"}}
    same(Measure(basis, basis, operator.forms, operator.functionals, operator, rows=4), batch)


@pytest.mark.parametrize("name", [*KERNELS, "periodic", "own"])
def test_every_kernel(name: str, stand_in: Device) -> None:
    class Own(Gaussian):
        """A user's kernel."""

    known: dict[str, Kernel] = {"periodic": Periodic(Gaussian(0.9), (3.0, None)), "own": Own(0.9)}
    kernel = known[name] if name in known else KERNELS[name][0]
    basis = LandmarkBasis(kernel, LANDMARKS)
    for operator in ("laplacian", "tangents", "generator") if kernel.order >= 2 else ("laplacian", "tangents"):
        case = CASES[operator].operator
        batch = {k: FIELDS[k] for k in {*case.views, *case.data_fields, "weight"}}
        same(Measure(basis, basis, case.forms, case.functionals, case, rows=4), batch)


@pytest.mark.parametrize("name", OTHERS)
def test_every_basis(name: str, stand_in: Device) -> None:
    basis = OTHERS[name]
    for operator in ("laplacian", "tangents", "own symmetric form"):
        case = CASES[operator].operator
        batch = {k: FIELDS[k] for k in {*case.views, *case.data_fields, "weight"}}
        same(Measure(basis, basis, case.forms, case.functionals, case, rows=4), batch)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_sides_and_arithmetic(dtype: str, stand_in: Device) -> None:
    left, right = BASES["with constant"][0], LandmarkBasis(Matern(2.5, 1.1), np.eye(3))
    batch = {k: FIELDS[k] for k in ("x", "y", "weight")}
    operator = Cross()
    made = Measure(left, right, operator.forms, operator.functionals, operator, dtype, rows=4)
    same(made, batch, 1e-6 if dtype == "float32" else 1e-12)
    same(made, batch | {"weight": 1e-30 * batch["weight"]}, 1e-6 if dtype == "float32" else 1e-12)


def test_several_measures_and_empty_batches(stand_in: Device) -> None:
    operator = Laplacian()
    measures = {
        name: Measure(basis, basis, operator.forms, operator.functionals, operator, rows=4)
        for name, (basis, _) in BASES.items()
    }
    batches = [{k: FIELDS[k][rows] for k in ("x", "weight")} for rows in (slice(0, 0), slice(0, 5), slice(5, None))]
    wanted = MeasureMany(measures)(batches)
    there = {name: replace(m, device="cuda") for name, m in measures.items()}
    found = MeasureMany(there)(batches)
    for name, values in wanted.items():
        assert_close(found[name], values, 1e-12, what=name)


def test_what_costs_runs_on_the_device(stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of features see arrays of the device alone, and blocks are large there."""
    seen: list[type] = []
    plain = STAND_IN.module.asnumpy

    def counted(values: Any) -> Any:
        seen.append(type(values))
        return plain(values)

    monkeypatch.setattr(STAND_IN.module, "asnumpy", counted)
    operator, basis = Laplacian(), BASES["with constant"][0]
    made = Measure(basis, basis, operator.forms, operator.functionals, operator, device="cuda")
    made([{"x": FIELDS["x"]}])
    assert seen == [There] * len(seen)
    assert 0 < len(seen) <= 10  # once a task for each part of the sums
    assert made.block_rows >= 65_536


def test_the_stand_in_refuses_what_an_accelerator_refuses() -> None:
    there, here = STAND_IN.put(np.arange(3.0)), np.arange(3.0)
    for mixed in (
        lambda: there + here,
        lambda: here + there,
        lambda: np.asarray(there),
        lambda: np.concatenate([there, here]),
        lambda: np.matmul(there, there, out=here),
        lambda: there[np.array([0])],
        lambda: there.max(initial=0),
        lambda: np.multiply(here, 2, out=there),
    ):
        with pytest.raises(TypeError):
            mixed()
    assert isinstance(2 * there, There)
    assert isinstance(np.zeros(2, like=there), There)


def test_names_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_of("cpu") is HOST
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or 'auto'; it is 'gpu'"):
        device_of("gpu")
    monkeypatch.setattr("daskspectral.devices.importlib.util.find_spec", lambda name: None)
    devices._without_gpu.cache_clear()
    assert device_of("auto") is HOST
    with pytest.raises(
        ImportError, match=r'CuPy is not installed, pip install "daskspectral\[gpu\]"; device="cpu" does'
    ):
        device_of("cuda")
    devices._without_gpu.cache_clear()


def test_cupy_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDARuntimeError(RuntimeError):
        pass

    def count() -> int:
        raise CUDARuntimeError("cudaErrorNoDevice")

    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, memory=memory))
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(devices.importlib, "import_module", lambda name: cupy)
    for cached in (devices._without_gpu, devices._cuda):
        cached.cache_clear()
    assert device_of("auto") is HOST
    with pytest.raises(RuntimeError, match=r"CuPy finds no GPU \(cudaErrorNoDevice\)"):
        device_of("cuda")
    runtime.getDeviceCount = lambda: 1
    devices._without_gpu.cache_clear()
    assert device_of("auto").module is cupy
    for cached in (devices._without_gpu, devices._cuda):
        cached.cache_clear()


def test_moving_leaves_what_has_no_arrays() -> None:
    basis = Concatenated((ConstantBasis(2), LandmarkBasis(Polynomial(2), LANDMARKS)))
    basis.bases[1].centred  # noqa: B018 - computed on the host, and left there
    moved = STAND_IN.moved(basis)
    assert moved.bases[0] is basis.bases[0]
    landmarks: Any = moved.bases[1]
    assert isinstance(landmarks.landmarks, There)
    assert isinstance(landmarks.centred, There)
    assert HOST.moved(basis) is basis
    assert moved.bases[1].kernel is basis.bases[1].kernel


def test_a_fit_and_its_functions_are_the_same_on_a_device(stand_in: Device) -> None:
    x = np.random.default_rng(0).standard_normal((3000, 2))
    here = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=30, n_components=5, random_state=0).fit(x)
    there = clone(here).set_params(device="auto").fit(x)
    assert_close(there.moments_.arrays["form"], here.moments_.arrays["form"], 1e-12)
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-9)
    assert_close(np.abs(there.transform(x)), np.abs(here.transform(x)), 1e-8)
    assert "on the device cuda" in str(there.plan(x))
    assert "device" not in str(here.plan(x))
    assert_close(
        there.update(np.concatenate([x, x + 1])).eigenvalues_,
        here.update(np.concatenate([x, x + 1])).eigenvalues_,
        1e-9,
    )


def test_memory_of_a_device(stand_in: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros((100_000, 2))
    est = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=20_000, device="cuda")
    with pytest.raises(MemoryError, match=r"on the device cuda, and 17\.2 GB are free there; lower n_landmarks"):
        est.plan(x)

    def exhausted(shape: Any, dtype: Any = float) -> Any:
        raise Exhausted("no room")

    monkeypatch.setattr(STAND_IN.module, "empty", exhausted)
    x = np.random.default_rng(0).standard_normal((500, 2))
    with pytest.raises(MemoryError, match=r"the device 'cuda' does not do \(no room\): lower n_landmarks"):
        est.set_params(n_landmarks=20).fit(x)


def test_workers_are_asked_for_their_devices() -> None:
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):
        assert chosen_device("auto") == "cpu"
        with pytest.raises(RuntimeError, match=r"1 of 1 workers cannot take device='cuda', .*: CuPy is not installed"):
            chosen_device("cuda")
        with pytest.raises(ValueError, match="device must be"):
            chosen_device("gpu")


def test_the_memory_of_a_device_is_that_of_the_workers(stand_in: Device) -> None:
    """Each has a device of its own, which its threads share."""
    x = np.zeros((1_000_000, 2))
    est = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=1000, device="cuda")
    with dask.config.set(num_workers=1):
        one = est.plan(x).memory.there
    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None):
        est.plan(x)
    with (
        Client(n_workers=1, threads_per_worker=64, processes=False, dashboard_address=None),
        pytest.raises(MemoryError, match=f"this run needs {64 * one / 1e9:.1f} GB on the device cuda, and 17.2 GB"),
    ):
        est.plan(x)


def test_a_cluster_whose_workers_are_still_to_come() -> None:
    with Client(n_workers=0, processes=False, dashboard_address=None):
        assert chosen_device("cuda") == "cuda"
        with pytest.raises(RuntimeError, match="device='auto' asks the workers, and the cluster has none yet"):
            chosen_device("auto")
