"""The work of a fit as the cost model counts it, against the products of matrices that a fit really makes."""

import math
from collections import Counter

import dask
import numpy as np
import pytest

from daskspectral.basis import FourierLattice, LandmarkBasis, MonomialBasis
from daskspectral.data.writer import create_array
from daskspectral.estimators import SpectralDecomposition
from daskspectral.forms import form, grad, inner
from daskspectral.kernels import Exponential, Gaussian, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.operators import (
    AnisotropicDiffusion,
    Covariance,
    Cross,
    Generator,
    Laplacian,
    Schroedinger,
    SymmetricForm,
    TangentPropagation,
    Transfer,
)

P = 37  # landmarks: no other matrix of a fit has this size
X = np.random.default_rng(0).standard_normal((600, 3))
TENSOR = np.broadcast_to(np.diag([1.0, 2.0, 3.0]), (600, 3, 3))
SPHERE = X / np.linalg.norm(X, axis=1, keepdims=True)


class MeasuredError(Exception):
    """The pass over the rows has ended."""


def measured(self, moments):
    raise MeasuredError


def work(estimator, data, **options):
    plan = estimator.plan(data, **options)
    assert plan.work is not None, plan.untimed
    return plan.work


@pytest.mark.parametrize(
    ("operator", "kernel", "data", "fields"),
    [
        (Laplacian(), Gaussian(1.0), X, {}),
        (Laplacian(), Matern(1.5, 1.0), X, {}),
        (Laplacian(), Exponential(1.0), X, {}),
        (Laplacian(), Polynomial(3), X, {}),
        (Laplacian(manifold=Sphere(3)), Gaussian(1.0), SPHERE, {}),
        (Schroedinger(), Gaussian(1.0), X, {"potential": X[:, 0] ** 2}),
        (AnisotropicDiffusion(), Matern(2.5, 1.0), X, {"diffusion": TENSOR}),
        (TangentPropagation(), Gaussian(1.0), X, {"direction": X[:, ::-1].copy()}),
        (Cross(), Gaussian(1.0), (X, X[::-1].copy()), {}),
        (Transfer(1), Gaussian(1.0), X, {}),
        (Covariance(), Gaussian(1.0), X, {}),
    ],
    ids=repr,
)
def test_products_as_they_are_made(operator, kernel, data, fields, monkeypatch):
    options = {"landmarks": "uniform", "n_landmarks": P, "constant": False, "folds": None, "random_state": 0}
    estimator = SpectralDecomposition(operator, kernel, exclude_landmarks=False, **options)
    wanted = work(estimator, data, fields=fields)
    made, matmul, at = Counter(), np.matmul, LandmarkBasis.at

    def counted(a, b, out=None, **more):
        if out is not None and out.shape == (P, P):
            made["syrk" if np.shares_memory(a, b) else "gemm"] += 1
        return matmul(a, b, out=out, **more)

    def evaluated(basis, block, atoms):
        made["evaluations"] += 1
        return at(basis, block, atoms)

    monkeypatch.setattr(np, "matmul", counted)
    monkeypatch.setattr(LandmarkBasis, "at", evaluated)
    monkeypatch.setattr(SpectralDecomposition, "fit_moments", measured)
    with dask.config.set(scheduler="synchronous"), pytest.raises(MeasuredError):
        estimator.fit(data, fields=fields)
    blocks = made["evaluations"] / sum(wanted.kernels.values())
    assert blocks == int(blocks) >= 1
    assert (made["syrk"], made["gemm"]) == (wanted.syrk * blocks, wanted.gemm * blocks)


def test_numbers_of_a_plan(tmp_path):
    with create_array(tmp_path / "x.zarr", (600, 3), "float32") as array:
        array[:] = X
    estimator = SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=40, dtype="float32")
    found = work(estimator, str(tmp_path / "x.zarr"), sample_weight=np.ones(600))
    plan = estimator.plan(X)
    assert (found.n, found.d, found.p, found.forms, found.solver) == (600, 3, 41, 2, "symmetric")
    assert found.tasks == len(plan.ranges.ranges)
    assert found.groups == 11  # ten folds, and the rows that are landmarks
    assert found.row_bytes == 12  # the weights are in memory
    assert found.sampled == 600
    assert found.single
    assert not found.automatic
    assert found.kernels == {"Gaussian slope": 1}
    assert work(SpectralDecomposition(), X).kernels == {"Matern 1.5 slope": 0.5, "Gaussian slope": 0.5}
    assert work(SpectralDecomposition(), X).automatic
    both = SpectralDecomposition(kernel=Gaussian(1.0) + Exponential(1.0) * Gaussian(2.0), operator=Covariance())
    assert work(both, X).kernels == {"Gaussian": 2, "Exponential": 1}
    assert work(SpectralDecomposition(kernel=Gaussian(1.0), periods={0: 5.0}), X).kernels == {"Gaussian slope": 1}


def test_work_on_a_lattice():
    found = work(SpectralDecomposition(basis=FourierLattice(4, method="matmul")), X[:, :2])
    assert (found.p, found.modes, found.method, found.transforms, found.solver) == (
        81,
        17**2,
        "matmul",
        1,
        "lattice 2",
    )
    assert found.groups == 10
    assert found.kernels == {}
    weighted = SpectralDecomposition(Schroedinger(), basis=FourierLattice(4, method="matmul"))
    assert work(weighted, X[:, :2], fields={"potential": X[:, 0]}).transforms == 2


@form
def slopes(f, g, x):
    return inner(grad(f), grad(g), weight=x.mass)


@pytest.mark.parametrize(
    ("estimator", "fields", "reason"),
    [
        (SpectralDecomposition(basis=MonomialBasis(3, 2)), {}, "no other basis"),
        (SpectralDecomposition(Generator(diffusion=1.0), Gaussian(1.0)), {"drift": -X}, "partial derivatives"),
        (SpectralDecomposition(SymmetricForm(slopes), Gaussian(1.0)), {"mass": X[:, 0] ** 2}, "partial derivatives"),
    ],
)
def test_what_the_model_does_not_know(estimator, fields, reason):
    plan = estimator.plan(X, fields=fields)
    assert plan.work is None
    assert plan.seconds is None
    assert reason in plan.untimed
    assert math.isfinite(plan.memory.peak)
