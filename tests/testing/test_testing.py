"""A mistake of every kind is caught by the checks, which the package's own pieces pass in test_contracts.py."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import Basis, CallableBasis, FourierBasis, LandmarkBasis, Landmarks, MonomialBasis
from daskspectral.basis.base import Contraction
from daskspectral.basis.evaluation import Arena, Block, Evaluation
from daskspectral.errors import SmoothnessError
from daskspectral.forms import (
    Atom,
    AtomProduct,
    Form,
    along,
    along_each,
    at,
    dirichlet,
    form,
    grad,
    gram,
    inner,
    partial,
    second,
    tangential_dirichlet,
)
from daskspectral.groups import Permutations
from daskspectral.kernels import Gaussian, Kernel, Matern, Radial, RadialKernel
from daskspectral.kernels.base import Array, MultiIndex, check_index, unit_index
from daskspectral.manifolds import Sphere
from daskspectral.operators import Schroedinger
from daskspectral.regression import HermiteRegressor
from daskspectral.solve import Solution, SpectralProblem, Symmetric
from daskspectral.testing import (
    check_basis,
    check_estimator,
    check_form,
    check_group,
    check_kernel,
    check_manifold,
    check_operator,
    check_solver,
)
from tests.common import named


def own(x: Any) -> Any:
    return np.stack([x[:, 0] * np.exp(x[:, 1]), np.sin(x[:, 1] - x[:, 0])])


def test_points_are_those_given() -> None:
    """In their own units too."""
    x = np.random.default_rng(0).random((500, 2))
    check_kernel(Gaussian(1e-4), x=1e-4 * x)
    for wrong in (np.repeat(x[:11], 4, axis=0), x[:, 0]):
        with pytest.raises(ValueError, match="points"):
            check_kernel(Gaussian(), x=wrong)


@form
def mixture(f: Any, g: Any, x: Any) -> Any:
    lower = inner(x.rate * f - 2 * along(f, x.frame[1]), at(g, x.future) + x.rate * at(partial(g, 0, 1), x.future))
    return lower + 3 * inner(partial(f, 1, 1), second(g), weight=x.pairs[0, -1]) - inner(along(f, x.frame[0]), g)


@form
def frames(f: Any, g: Any, x: Any) -> Any:
    return inner(along_each(f, x.frame), along_each(g, x.frame)) - inner(x.rate * at(grad(f), x.y), at(grad(g), x.y))


FORMS = [dirichlet, tangential_dirichlet(normals=2), tangential_dirichlet(tangents=1), mixture, frames]


@pytest.mark.parametrize("bilinear", FORMS, ids=lambda f: f.name)
def test_forms_pass(bilinear: Form) -> None:
    check_form(bilinear, random_state=1)
    check_form(bilinear, MonomialBasis(2, 2), FourierBasis.draw(Gaussian(), 2, 6, 0))


def test_forms_of_functions_of_different_variables_and_given_fields() -> None:
    cross = form(lambda f, g, x: inner(partial(f, 1, 1), at(g, x.y)) + inner(f, at(second(g), x.y), weight=x.rate))
    left, right = LandmarkBasis(Gaussian(), np.eye(2)), LandmarkBasis(Gaussian(), np.eye(3))
    rng = np.random.default_rng(0)
    check_form(cross, left, right)
    check_form(cross, left, right, fields={"x": rng.standard_normal((30, 2)), "rate": rng.integers(0, 5, 30)})


def test_inputs_refused() -> None:
    for check in (check_kernel, check_basis, check_form):
        with pytest.raises(TypeError):
            check("gaussian")  # type: ignore[operator]
    with pytest.raises(SmoothnessError):
        check_form(dirichlet, CallableBasis(own, d=2))


# kernels that are wrong


@dataclass
class Cauchy(RadialKernel):
    """1 / (1 + s / scale^2), and one way to get it wrong."""

    scale: float = 1.0
    flaw: str = ""

    @property
    def smoothness(self) -> float:
        return math.inf

    @property
    def order(self) -> float:
        return 2.5 if self.flaw == "order" else math.inf

    def profile(self, s: Array, order: int, out: Array) -> Array:
        rate = 1 / self.scale**2
        q = math.factorial(order) * (-rate) ** order / (1 + rate * s) ** (order + 1)
        if self.flaw == "first derivative" and order == 1:
            q *= 1.001
        if self.flaw == "short" and order > 3:
            raise IndexError("the list has three derivatives")
        if self.flaw == "buffer":
            return np.asarray(q)
        if self.flaw == "batch" and order == 0:
            q /= q.max()
        out[...] = q
        return out

    def along(self, x: Array, y: Array, direction: Array) -> Array:
        return super().along(x, y, -direction if self.flaw == "along" else direction)

    def diagonal(self, x: Array) -> Array:
        return super().diagonal(x) + (0.01 if self.flaw == "diagonal" else 0)


@dataclass
class Plain(Kernel):
    """exp(-|x - y|_1) without derivatives, and ways to get it wrong."""

    flaw: str = ""
    lock: Any = None

    @property
    def order(self) -> float:
        return 0

    def values(self, x: Array, y: Array) -> Array:
        k = np.exp(-np.abs(y[:, None] - x).sum(axis=2))
        if self.flaw == "transposed":
            return k.T
        if self.flaw == "asymmetric":
            return k * (1 + x[:, 0] ** 2)
        if self.flaw == "not a number":
            return np.where(k > 0.5, np.nan, k)
        return k

    def partial(self, x: Array, y: Array, alpha: MultiIndex) -> Array:
        check_index(alpha, x.shape[1])
        if sum(alpha) and self.flaw != "beyond":
            raise SmoothnessError("there are none")
        return self.values(x, y)


@dataclass
class Overstated(RadialKernel):
    """(1 + r) exp(-r), which has three bounded derivatives, with a number more."""

    smoothness = 3.0

    def profile(self, s: Array, order: int, out: Array) -> Array:
        return Matern(1.5, math.sqrt(3)).profile(s, order, out)


WRONG_KERNELS: list[tuple[Kernel, str]] = [
    (Cauchy(flaw="first derivative"), "differences"),
    (Cauchy(flaw="buffer"), "order 0"),
    (Cauchy(flaw="batch"), "one pair"),
    (Cauchy(flaw="along"), "along"),
    (Cauchy(flaw="diagonal"), "diagonal"),
    (Cauchy(flaw="order"), "order is 2.5"),
    (Cauchy(flaw="short"), "refuses"),
    (Plain("transposed"), "shape"),
    (Plain("asymmetric"), r"k\(y, x\)"),
    (Plain("not a number"), "nan"),
    (Plain("beyond"), "Smoothness"),
    (Plain(lock=threading.Lock()), "cloned"),
    (Overstated(), "near"),
    (Gaussian(1e-3), "units"),
    (Radial(lambda s: 1 - s), "semidefinite"),
]


@pytest.mark.parametrize(("kernel", "what"), WRONG_KERNELS, ids=named)
def test_wrong_kernels_are_caught(kernel: Kernel, what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        check_kernel(kernel)


# bases that are wrong


@dataclass(frozen=True, eq=False)
class Powers(Basis):
    """x and x^2 of each of two coordinates, and one way to get them wrong."""

    flaw: str = ""
    lock: Any = None

    @property
    def size(self) -> int:
        return 4

    @property
    def dimension(self) -> int:
        return 2

    @property
    def order(self) -> float:
        return 2 if self.flaw == "beyond" else math.inf

    @property
    def description(self) -> str:
        return "powers"

    def kills(self, atom: Atom) -> bool:
        return atom.order > (0 if self.flaw == "kills" else 2)

    def at(self, block: Block, atoms: Sequence[Atom]) -> Evaluation:
        return PowersAt(self, block, np.empty((4, len(block.x)), block.dtype))

    def state(self) -> dict[str, Any]:
        return {"basis": f"{__name__}:Powers", "flaw": self.flaw}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Powers:
        return cls("" if state["flaw"] == "state" else state["flaw"])


@dataclass(frozen=True)
class PowersAt(Evaluation):
    basis: Powers
    block: Block
    buffer: Any

    def feature(self, atom: Atom) -> Any:
        flaw, x = self.basis.flaw, self.block.x.astype(self.block.dtype)
        if atom.kind == "along":
            v = self.block.field(atom.direction) * (-1 if flaw == "along" else 1)
            result = sum(self.plain(x, unit_index(a, 2)) * v[:, a] for a in range(2))
        else:
            result = self.plain(x, atom.alpha or (0, 0))
        if flaw == "batch":
            result = result - result.mean(axis=1, keepdims=True)
        if self.block.scale is not None:
            result = result * self.block.scale.astype(self.block.dtype) ** (2 if flaw == "weight" else 1)
        if flaw == "one buffer":
            self.buffer[...] = result
            return self.buffer
        return result.astype(float) if flaw == "float32" else result

    def plain(self, x: Any, alpha: MultiIndex) -> Any:
        flaw, zero = self.basis.flaw, np.zeros(len(x), x.dtype)
        if not any(alpha):
            return np.stack([x[:, 0], x[:, 0] ** 2, x[:, 1], x[:, 1] ** 2])[: 3 if flaw == "shape" else 4]
        axis, order = int(np.argmax(alpha)), sum(alpha)
        rows = [zero] * 4
        if order == max(alpha) and order <= 2:
            slope = x[:, axis] ** 2 if flaw == "derivative" else 2 * x[:, axis]
            rows[2 * axis : 2 * axis + 2] = [zero + 1, slope] if order == 1 else [zero, zero + 2]
        return np.stack(rows)


WRONG_BASES = {
    "derivative": "differences",
    "beyond": "Smoothness",
    "shape": "shape",
    "batch": "one point",
    "float32": "float32",
    "along": "along",
    "weight": "root",
    "kills": "kills",
    "one buffer": "second",
    "state": "state",
}


@pytest.mark.parametrize("flaw", WRONG_BASES)
def test_wrong_bases_are_caught(flaw: str) -> None:
    with pytest.raises(AssertionError, match=WRONG_BASES[flaw]):
        check_basis(Powers(flaw))


def test_the_flawed_pass_without_their_flaw() -> None:
    check_kernel(Cauchy(0.7))
    check_kernel(Plain())
    check_basis(Powers())
    with pytest.raises(AssertionError, match="pickled"):
        check_basis(Powers(lock=threading.Lock()))


# forms that are wrong, and bases that get them wrong


@dataclass(frozen=True)
class Claimed(Form):
    """A form that says of itself what is not so."""

    claim: bool = True

    @property
    def symmetric(self) -> bool:
        return self.claim


class Renamed(Form):
    """A form that is saved under another name."""

    def state(self) -> dict[str, Any]:
        return super().state() | {"name": "another"}


@dataclass(frozen=True, eq=False)
class Meddling(Powers):
    """Sums products in a way of its own."""

    def contraction(self, right: Basis, products: Sequence[AtomProduct], dtype: Any, arena: Arena) -> Contraction:
        return MeddlingSum(super().contraction(right, products, dtype, arena), self.flaw)


class MeddlingSum(Contraction):
    def __init__(self, right: Contraction, flaw: str):
        self.right, self.flaw, self.blocks = right, flaw, 0

    def add(self, lefts: Any, rights: Any, block: Block) -> None:
        self.blocks += 1
        self.right.add(lefts, rights, block)

    def result(self) -> dict[AtomProduct, Any]:
        factor = 1.01 if self.flaw == "too large" else 1 / max(self.blocks, 1)
        return {key: factor * value for key, value in self.right.result().items()}


@pytest.mark.parametrize(
    ("wrong", "left"),
    [
        (Claimed("mixture", mixture.expression, True), None),
        (Claimed("dirichlet", dirichlet.expression, False), None),
        (Renamed("dirichlet", dirichlet.expression), None),
        (gram, Meddling("too large")),
        (gram, Meddling("mean of blocks")),
    ],
)
def test_wrong_forms_are_caught(wrong: Form, left: Basis | None) -> None:
    with pytest.raises(AssertionError):
        check_form(wrong, left)


# the others


@dataclass(frozen=True, repr=False)
class Halved(Symmetric):
    """Eigenvalues times a factor, of the first problem alone."""

    calls: list[int] = field(default_factory=list)

    def solve(self, problem: SpectralProblem) -> Solution:
        self.calls.append(1)
        found = Symmetric().solve(problem)
        return replace(found, values=found.values / len(self.calls))


class Larger(Permutations):
    @property
    def order(self) -> int:
        return 7


class Turned(Sphere):
    def _normals(self, x: Any) -> Any:
        return super()._normals(x) * 2


def test_wrong_solvers_spaces_and_estimators_are_caught() -> None:
    with pytest.raises(AssertionError, match="values"):
        check_solver(Halved())
    with pytest.raises(AssertionError, match="order"):
        check_group(Larger(3), Sphere(3))
    with pytest.raises(AssertionError, match="frame"):
        check_manifold(Turned(3))
    with pytest.raises(AssertionError, match="L 1 = 0"):
        check_operator(Lying())
    x = np.random.default_rng(0).standard_normal((60, 2))
    with pytest.raises(AssertionError, match="order"):
        check_estimator(FirstRow(Landmarks(Gaussian(1.0), points=x[:6]), alpha=1e-3), x, x[:, 0])


@dataclass(frozen=True)
class Lying(Schroedinger):
    @property
    def kills_constants(self) -> bool:
        return True


class FirstRow(HermiteRegressor):
    """What it predicts depends on the row that comes first."""

    def fit(self, X: Any, y: Any, **options: Any) -> Any:
        self.first_ = float(np.asarray(X[:1]).astype("float32").sum())
        return super().fit(X, y, **options)

    def predict(self, X: Any, **options: Any) -> Any:
        return super().predict(X, **options) + getattr(self, "first_", 0)

    @property
    def fitted_attributes(self) -> Any:
        return (*super().fitted_attributes, "first_")
