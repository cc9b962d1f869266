"""Checks for users' own pieces: the package's own pass them, and a mistake of every kind is caught."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import (
    Basis,
    CallableBasis,
    Concatenated,
    FourierBasis,
    LandmarkBasis,
    MonomialBasis,
    TrigonometricBasis,
)
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
from daskspectral.kernels import FunctionKernel, Gaussian, Kernel, Matern, Polynomial, Radial, RadialKernel
from daskspectral.kernels.base import Array, MultiIndex, check_index, unit_index
from daskspectral.testing import check_basis, check_form, check_kernel
from tests.common import named

# what is right


KERNELS: list[Kernel] = [
    Gaussian("median"),
    Matern(19.5, "median"),
    Polynomial(4, 0.5, 1.3),
    FunctionKernel(lambda x, y: np.exp(-abs(y[:, None] - x).sum(axis=2))),
    Gaussian("median") + 3 * (Matern(2.5) * Polynomial(2)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_kernels_of_the_package_pass(kernel: Kernel) -> None:
    check_kernel(kernel, random_state=1)


def own(x: Any) -> Any:
    return np.stack([x[:, 0] * np.exp(x[:, 1]), np.sin(x[:, 1] - x[:, 0])])


def own_gradient(x: Any) -> Any:
    swell, slope = np.exp(x[:, 1]), np.cos(x[:, 1] - x[:, 0])
    return np.moveaxis(np.array([[swell, x[:, 0] * swell], [-slope, slope]]), 1, 2)


OWN = CallableBasis(own, own_gradient, d=2)
BASES: list[Basis] = [
    LandmarkBasis(Matern(1.5), np.eye(3)),
    FourierBasis.draw(Matern(2.5), 3, 8, 0),
    TrigonometricBasis((1.0, 2.0, 0.5), 2),
    CallableBasis(own, d=2),
    Concatenated((OWN, Concatenated((MonomialBasis(2, 2), FourierBasis.draw(Gaussian(), 2, 2, 0))))),
]


@pytest.mark.parametrize("basis", BASES, ids=lambda b: b.description[:40])
def test_bases_of_the_package_pass(basis: Basis) -> None:
    check_basis(basis)


def test_points_are_those_given() -> None:
    """In their own units too."""
    x = np.random.default_rng(0).random((500, 2))
    check_kernel(Gaussian(1e-4), x=1e-4 * x)
    for check in (lambda x: check_kernel(Gaussian(), x=x), lambda x: check_basis(OWN, x)):
        with pytest.raises(ValueError, match=r"x needs 12 or more distinct points to check at; it has 11"):
            check(np.repeat(x[:11], 4, axis=0))
        with pytest.raises(ValueError, match=r"x are points \(n, d\); they have shape \(500,\)"):
            check(x[:, 0])


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
    with pytest.raises(TypeError, match=r"check_kernel takes a kernel .*; got 'gaussian'"):
        check_kernel("gaussian")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a function H\(f, g, x\) decorated with @form; got <function"):
        check_form(lambda f, g, x: inner(f, g))  # type: ignore[arg-type]
    with pytest.raises(SmoothnessError, match="dirichlet takes derivatives of order 1, and the functions of own"):
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
    (Cauchy(flaw="first derivative"), r"\(1, 0, 0\), against differences of \(0, 0, 0\): .* off by [\d.e-]+, allowed"),
    (Cauchy(flaw="buffer"), r"the partial derivative of order 0, against values"),
    (Cauchy(flaw="batch"), r"values\(x, y\) \[landmark, point\], against one pair at a time"),
    (Cauchy(flaw="along"), r"Cauchy\(.*\): along, against partial derivatives"),
    (Cauchy(flaw="diagonal"), r"diagonal\(x\), against k\(x, x\): 1.01 at \[\d+\], expected 1; off by 0.01"),
    (Cauchy(flaw="order"), r"its order is 2.5; it is a whole number of 0 or more, or infinite"),
    (Cauchy(flaw="short"), r"gives no derivative of order 4 \(IndexError: .*\), and .* declares"),
    (Plain("transposed"), r"the shape is \(35, 5\); expected \(5, 35\)"),
    (Plain("asymmetric"), r"k\(x, y\), against k\(y, x\)"),
    (Plain("not a number"), r": nan at"),
    (Plain("beyond"), r"derivatives up to order 0 and gives numbers for \(1, 0, 0\); it must raise Smoothness"),
    (Plain(lock=threading.Lock()), r"cannot be cloned as scikit-learn does it: cannot pickle '_thread.lock' object"),
    (Overstated(), r"the partial derivative \(4, 0, 0\) grows without bound near landmarks, from"),
    (Gaussian(1e-3), r"vanishes between all different points, and nothing can be checked; give x, points in its units"),
    (Radial(lambda s: 1 - s), r"is not positive semidefinite: its matrix on 40 points has eigenvalues from -[\d.]+"),
]


@pytest.mark.parametrize(("kernel", "message"), WRONG_KERNELS, ids=named)
def test_wrong_kernels_are_caught(kernel: Kernel, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
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


WRONG_BASES: list[tuple[str, str]] = [
    ("derivative", r"powers: the partial derivative \(1, 0\), against differences of \(0, 0\): .* at \[1, \d\]"),
    ("beyond", r"powers declares derivatives up to order 2 and gives numbers for \(3, 0\)"),
    ("shape", r"powers: values\(x\) have the shape \(3, 40\); it is \(p, c\), here \(4, 40\)"),
    ("batch", r"powers: values\(x\), against one point at a time"),
    ("float32", r"powers: values\(x, 'float32'\) come as float64"),
    ("along", r"powers: along, against partial derivatives"),
    ("weight", r"powers: value, times the square root of the weight"),
    ("kills", r"powers: kills\(\) says that partial \(1, 0\) vanishes everywhere, and it reaches"),
    ("one buffer", r"powers: second derivatives without matrices, against partial derivatives"),
    ("state", r"powers: read from its state, it has another state"),
]


@pytest.mark.parametrize(("flaw", "message"), WRONG_BASES)
def test_wrong_bases_are_caught(flaw: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_basis(Powers(flaw))


def test_the_flawed_pass_without_their_flaw() -> None:
    check_kernel(Cauchy(0.7))
    check_kernel(Plain())
    check_basis(Powers())
    with pytest.raises(AssertionError, match=r"powers cannot be pickled, and so not sent to workers: cannot pickle"):
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


def test_wrong_forms_are_caught() -> None:
    with pytest.raises(AssertionError, match=r"counts as symmetric, and H\(f, g\) is .* where H\(g, f\) is .*, at \["):
        check_form(Claimed("mixture", mixture.expression, True))
    with pytest.raises(AssertionError, match=r"counts as not symmetric, and H\(f, g\) = H\(g, f\) on random functions"):
        check_form(Claimed("dirichlet", dirichlet.expression, False))
    with pytest.raises(AssertionError, match=r"dirichlet is read back from its state as Renamed\(name='another'"):
        check_form(Renamed("dirichlet", dirichlet.expression))
    with pytest.raises(AssertionError, match=r"the form gram \[f, g\], against a sum over rows: "):
        check_form(gram, Meddling("too large"))
    with pytest.raises(AssertionError, match=r"the form gram is not additive: its sum over rows cut at \[.*\], in"):
        check_form(gram, Meddling("mean of blocks"))
