"""One contract for each extension point, parametrised over everything that registers itself there.

`daskspectral.testing` has the contracts, which users run on pieces of their own. Of every kernel, basis, operator,
solver, group, manifold and estimator they cover, so that no other test needs to:

- copies: what is pickled, cloned, encoded and decoded is the same again, in values, size, order and text;
- kernels and bases: values in both precisions and one point at a time, partial derivatives of all orders up to 4 by
  finite differences, `along` and `second` as sums of partial ones, coincident points, SmoothnessError above the order,
  the root of the weight in features, `is_zero`; Gram and Dirichlet sums against products of features, in blocks of any
  length, with a constant, with weights against repeated rows;
- operators: each form against a loop over rows, its symmetry, chunks, weights, and what it makes of a constant;
- solvers: residuals, and the same answer in another basis of the same space;
- manifolds: samples, frames, the order of eigenvalues, orthonormal eigenfunctions and their derivatives;
- groups: that generators, flows and words act on a manifold and its eigenfunctions, and how many elements there are;
- readers: rows by any range, in any container, after pickling, and in other processes;
- estimators: chunks, precision, the order of rows, weights against repeated rows, pickling, saving and loading.
"""

import inspect
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral import basis, groups, kernels, manifolds, operators, solve, testing
from daskspectral.basis import Basis
from daskspectral.data.source import open_data
from daskspectral.forms import along, dirichlet, form, grad, inner
from daskspectral.groups import Group
from daskspectral.kernels import Gaussian, Kernel, Linear, Matern, Polynomial
from daskspectral.manifolds import Circle, Manifold, PeriodicBox, Sphere
from daskspectral.operators import Operator
from daskspectral.operators.regression import Regression
from daskspectral.registry import Registered, digest_of, encode
from daskspectral.solve import Problem
from tests.common import named, unreliable

RNG = np.random.default_rng(0)
Y = RNG.standard_normal((4, 2))
UNIT = RNG.uniform(0.1, 0.9, (60, 2))


def decay(s: Any) -> Any:
    return np.exp(-s)


def slope(s: Any) -> Any:
    return -np.exp(-s)


def growth(t: Any) -> Any:
    return np.exp(t / 4)


def growth_slope(t: Any) -> Any:
    return np.exp(t / 4) / 4


def waves(x: Any) -> Any:
    return np.sin(x).T


def wave_slopes(x: Any) -> Any:
    return np.cos(x).T[:, :, None] * np.eye(2)[:, None]


def product_kernel(x: Any, y: Any) -> Any:
    return np.cos(x.sum(axis=1)) * np.cos(y.sum(axis=1))[:, None]


def product_slope(x: Any, y: Any, axis: int) -> Any:
    return -np.sin(x.sum(axis=1)) * np.cos(y.sum(axis=1))[:, None]


def unit_normals(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


KERNELS: list[Kernel] = [
    Gaussian("median"),
    Gaussian(0.8),
    kernels.Exponential(0.7),
    Matern(1.5, 0.9),
    Matern(19.5, "median"),
    kernels.Radial(decay, [slope]),
    Linear(),
    Polynomial(4, 0.5, 1.3),
    kernels.Dot(growth, [growth_slope]),
    kernels.FunctionKernel(product_kernel, product_slope),
    kernels.Mahalanobis(Gaussian(1.0), [[1.0, 0.2], [0.0, 2.0], [0.5, 0.0]]),
    kernels.Periodic(Gaussian(0.9), (3.0, None, None)),
    kernels.Periodic(kernels.Exponential(1.5), (None, 3.0, None)),
    kernels.Periodic(Gaussian(0.8) + 0.5 * Matern(3.5, 1.2), (2.5, 7.0, None)),
    kernels.Periodic(Gaussian(0.8) * Polynomial(2) + Linear(), (2.5, None, None)),
    Gaussian(0.8) + Matern(2.5, 1.1),
    Gaussian(0.8) * Matern(1.5),
    2.5 * kernels.Exponential(),
    Linear() + Polynomial(2),
    Linear() * Polynomial(2),
    3 * Polynomial(3),
    Gaussian("median") + Linear(),
    Matern(2.5) * Polynomial(2),
    0.5 * (Gaussian() + Linear()),
]
BASES: list[tuple[Basis, Any]] = [
    (basis.LandmarkBasis(Matern(3.5), Y), None),
    (basis.LandmarkBasis(Gaussian(0.8), Y), None),
    (basis.LandmarkBasis(Gaussian() + Linear(), Y), None),
    (basis.RandomFourierFeatures.draw(Matern(2.5), 2, 8, 0), None),
    (basis.TrigonometricBasis((1.0, 2.0), 2), None),
    (basis.FourierLattice((2, 1), box=[(-4, 4)] * 2), None),
    (basis.MonomialBasis(2, 3, scale=1.7), None),
    (basis.MonomialBasis(2, 2, constant=False), None),
    (basis.ConstantBasis(2), None),
    (basis.CallableBasis(waves, wave_slopes, d=2), None),
    (basis.CallableBasis(waves, d=2), None),
    (basis.NormalizedRBF(Y, 0.8), None),
    (basis.CentroidBasis(RNG.standard_normal((2, 5, 2))), None),
    (basis.NeuralBasis((5,)).initialized(Y, 3, seed=0), None),
    (basis.DirichletFunctions(basis.LandmarkBasis(Gaussian(0.5), UNIT[:5]), basis.BoxBoundary([0, 0], [1, 1.2])), UNIT),
    (basis.DirichletFunctions(basis.MonomialBasis(2, 2), basis.BallBoundary(2.0)), UNIT),
    (basis.Concatenated((basis.ConstantBasis(2), basis.LandmarkBasis(Gaussian(), Y), basis.MonomialBasis(2, 2))), None),
]


@form
def energy(f: Any, g: Any, x: Any) -> Any:
    return inner(grad(f), grad(g), weight=x.conductivity) + inner(f, g)


@form
def drifting(f: Any, g: Any, x: Any) -> Any:
    return inner(f, along(g, x.drift))


OPERATORS: list[Operator] = [
    operators.Laplacian(),
    operators.Laplacian(Circle()),
    operators.DifferentialOperator({((1, 0), (1, 0)): 1.0, ((0, 0), (0, 2)): "c"}),
    operators.Generator(),
    operators.Generator(reversible=True),
    operators.Cross(),
    operators.Cross(center=True),
    operators.Transfer(),
    operators.Transfer((2, 8), reversible=True),
    operators.Augmentation(3),
    operators.Covariance(),
    operators.CrossCovariance(),
    operators.NeighborJumps(),
    operators.AnisotropicDiffusion(),
    operators.AnisotropicDiffusion(factored=True),
    operators.PartialDerivative(0),
    operators.Schroedinger(),
    operators.TangentPropagation(),
    operators.SymmetricForm(energy),
    operators.BilinearForm(drifting),
    Regression(targets=2),
]
SOLVERS: list[Problem] = [
    solve.NonNormal(),
    solve.NonNormal("modulus"),
    solve.NormConstrained(),
    solve.NormConstrainedSVD(),
    solve.TwoMetricSVD(),
    solve.SymmetricPencil(),
    solve.SymmetricPencil(descending=True),
]
MANIFOLDS: list[tuple[Manifold, Any]] = [
    (Circle(), None),
    (Sphere(4), None),
    (manifolds.FlatTorus(2), None),
    (PeriodicBox([0, -1], [1, 2]), None),
    (manifolds.Interval([0, 1], [2, 3]), None),
    (manifolds.Product(Sphere(3), manifolds.Interval(0, 1)), None),
    (manifolds.Implicit(unit_normals, 3), Sphere(3).sample(30, RNG)),
]
TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
GROUPS: list[tuple[Group, Manifold]] = [
    (groups.Permutations(4), Sphere(4)),
    (groups.Cyclic(5), Sphere(5)),
    (groups.Exchange(3, 2), Sphere(6)),
    (groups.SignFlips(3), Sphere(3)),
    (groups.Rotations(6, 3, plane=(2, 0)), Sphere(3)),
    (groups.Orthogonal([TURN, -np.eye(3)]), Sphere(3)),
    (groups.Translations([[0.5, 0.0]]), PeriodicBox([0, 0], [1, 1])),
    (groups.DirectProduct(groups.Cyclic(3), groups.SignFlips(2)), manifolds.Product(Sphere(3), Sphere(2))),
    (groups.Generated([groups.Permutations(3), groups.SignFlips(3)]), Sphere(3)),
    (groups.SpecialOrthogonal(3), Sphere(3)),
    (groups.FullOrthogonal(2, copies=2), Sphere(4)),
    (groups.PhaseRotations([1, -2]), Sphere(4)),
    (groups.ContinuousTranslations([[1.0, 0.0]]), PeriodicBox([0, 0], [1, 1])),
    (groups.LieGroup([TURN - np.diag([0, 0, 1])], [np.diag([1, 1, -1])]), Sphere(3)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_kernels(kernel: Kernel) -> None:
    testing.check_kernel(kernel, random_state=1)


@pytest.mark.parametrize(("functions", "x"), BASES, ids=named)
def test_bases(functions: Basis, x: Any) -> None:
    testing.check_basis(functions, x)


@pytest.mark.parametrize("operator", OPERATORS, ids=named)
def test_operators(operator: Operator) -> None:
    testing.check_operator(operator)


@pytest.mark.parametrize("solver", SOLVERS, ids=named)
def test_solvers(solver: Problem) -> None:
    for seed in range(3):
        testing.check_solver(solver, random_state=seed)


@pytest.mark.parametrize(("manifold", "x"), MANIFOLDS, ids=named)
def test_manifolds(manifold: Manifold, x: Any) -> None:
    testing.check_manifold(manifold, x)


@pytest.mark.parametrize(("group", "manifold"), GROUPS, ids=named)
def test_groups(group: Group, manifold: Manifold) -> None:
    testing.check_group(group, manifold)


ELSEWHERE = {
    *("LearnedKernel", "HarmonicBasis", "InvariantBasis", "EquivariantBasis", "SpectralDensityBasis"),
    *("SpanBasis", "Stopped"),
}
"""Classes that are made by a fit, or from rows, and tested there."""


@pytest.mark.parametrize(
    ("root", "cases"),
    [
        (Kernel, KERNELS),
        (Basis, [functions for functions, _ in BASES]),
        (Operator, OPERATORS),
        (Problem, SOLVERS),
        (Group, [group for group, _ in GROUPS]),
        (Manifold, [manifold for manifold, _ in MANIFOLDS]),
    ],
)
def test_every_class_keeps_its_contract(root: Any, cases: list[Any]) -> None:
    def below(cls: Any) -> set[Any]:
        return {cls}.union(*(below(sub) for sub in cls.__subclasses__()))

    def owned(cls: Any) -> bool:  # not by an example in a docstring
        named = cls.__module__.startswith("daskspectral.") and not cls.__name__.startswith("_")
        return named and getattr(sys.modules[cls.__module__], cls.__name__, None) is cls

    own = {cls for cls in below(root) if owned(cls)}
    made = {cls for cls in own if not inspect.isabstract(cls) and not own & {*cls.__subclasses__()}}
    assert {cls.__name__ for cls in made - {type(case) for case in cases}} <= ELSEWHERE


ROWS = np.round(RNG.standard_normal((40, 3)), 3)


def stored(path: Path, data: Any, prefix: str = "", **options: Any) -> str:
    url = f"{prefix}{path}/rows.zarr"
    zarr.create_array(url, data=data, **({"chunks": (7, 3)} | options))
    return url


READERS: dict[str, Callable[[Path, Any], Any]] = {
    "array": lambda path, data: data,
    "float32": lambda path, data: data.astype("float32"),
    "columns in another order": lambda path, data: np.asfortranarray(data),
    "dask": lambda path, data: da.from_array(data, chunks=(9, 2)),
    "zarr": stored,
    "sharded": lambda path, data: stored(path, data, chunks=(5, 1), shards=(20, 3)),
    "file URL": lambda path, data: f"file://{stored(path, data)}",
    "memory URL": lambda path, data: stored(path, data, "memory:/"),
    "list": lambda path, data: data.tolist(),
    "open zarr": lambda path, data: zarr.open_array(stored(path, data), mode="r"),
    "frame": lambda path, data: pd.DataFrame(data, columns=list("abc")),
    "xarray": lambda path, data: xr.DataArray(data, dims=("time", "column")),
    "sparse": lambda path, data: scipy.sparse.csr_array(data),
}


@pytest.mark.parametrize("name", READERS)
def test_readers(name: str, tmp_path: Path) -> None:
    reader = open_data(operators.Laplacian(), dsp.Rows(READERS[name](tmp_path, ROWS)), weight=None).readers["x"]
    assert reader.shape == ROWS.shape
    assert reader.edges[0] == 0
    assert reader.edges[-1] == len(ROWS)
    assert (np.diff(reader.edges) > 0).all()
    tolerance = 1e-6 if name == "float32" else 0
    assert reader.identity == reader.identity
    for one in (reader, pickle.loads(pickle.dumps(reader))) if name != "open zarr" else (reader,):
        for start, stop in ((0, 40), (0, 7), (3, 22), (39, 40)):
            rows = np.asarray(one.read(start, stop))
            np.testing.assert_allclose(rows, ROWS[start:stop], rtol=0, atol=tolerance)
            np.testing.assert_array_equal(np.asarray(one.localize(start, stop).read(start, stop)), rows)
            np.testing.assert_array_equal(np.asarray(one.columns_at((2, 0)).read(start, stop)), rows[:, [2, 0]])


X, SPHERE = np.random.default_rng(2).standard_normal((300, 2)), Sphere(3).sample(300, np.random.default_rng(0))
PATH = np.cumsum(X, axis=0) / 20
FIXED = basis.Landmarks(Gaussian(1.0), points=X[:8])
FEW = {"landmarks": basis.Landmarks(n_landmarks=60, method="cholesky"), "random_state": 0}
ESTIMATORS: dict[str, tuple[Any, tuple[Any, ...], bool]] = {
    "clusters": (dsp.SpectralClustering(2, random_state=0), (X,), False),
    "laplacian": (dsp.SpectralDecomposition(basis=FIXED, n_components=3), (X,), True),
    "eof": (dsp.EOF(2), (X,), True),
    "cca": (dsp.CCA(1), (X, X**3 + X[:, ::-1]), True),
    "mca": (dsp.MCA(1), (X, X**3 + X[:, ::-1]), True),
    "koopman": (dsp.Koopman(basis=FIXED, n_components=2), (PATH,), False),
    "hermite": (dsp.HermiteRegressor(FIXED, alpha=1e-3), (X, X[:, 0]), True),
    "invariant": (
        dsp.InvariantRegressor(Sphere(3), groups.Permutations(3), n_eigenfunctions=9, alpha=1e-3),
        (SPHERE, SPHERE.sum(axis=1) ** 2),
        True,
    ),
    "sdp": (dsp.SDPEmbedding(1.0, method="exact", n_components=4, random_state=0), (X[:150],), False),
    "sdp, landmarks": (dsp.SDPEmbedding(1.0, method="lowrank", **FEW), (X[:150],), False),
    "diffusion": (dsp.DiffusionMap(1.0, method="exact", alpha=0.5, random_state=0), (X[:150],), False),
    "diffusion, landmarks": (dsp.DiffusionMap(1.0, method="lowrank", **FEW), (X[:150],), False),
    "kernel embedding": (dsp.KernelEmbedding(Matern(2.5, 0.7), 1e-3), (X[:80],), False),
}


@unreliable
@pytest.mark.filterwarnings("ignore::daskspectral.FitWarning", "ignore::daskspectral.WeightWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name: str) -> None:
    estimator, rows, exchangeable = ESTIMATORS[name]
    testing.check_estimator(estimator, *rows, exchangeable=exchangeable)


@pytest.mark.parametrize("value", [*KERNELS, *OPERATORS, dirichlet, energy], ids=named)
def test_a_state_is_plain_data(value: Registered) -> None:
    """Nothing else than names, numbers, text, arrays, lists and mappings has a digest."""
    assert digest_of(encode(value))
