"""Every form on every basis against a plain triple loop over functions i, j and rows k.

Functions are written here as formulas of single numbers. Their derivatives come from arithmetic with truncated Taylor
series (jets), exact to rounding, and share nothing with the package.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import (
    Basis,
    CallableBasis,
    Concatenated,
    ConstantBasis,
    FourierBasis,
    LandmarkBasis,
    MonomialBasis,
)
from daskspectral.forms import (
    Form,
    along,
    along_each,
    at,
    dirichlet,
    form,
    functional,
    gram,
    inner,
    partial,
    second,
    tangential_dirichlet,
)
from daskspectral.kernels import Exponential, FunctionKernel, Gaussian, Kernel, Matern, Polynomial, Radial
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian, Operator, SymmetricForm
from tests.common import assert_close

Index = tuple[int, ...]
D, TOP = 3, 3


# Taylor series


def indices(d: int, top: int) -> list[Index]:
    return [a for a in itertools.product(range(top + 1), repeat=d) if sum(a) <= top]


@lru_cache
def pairs(d: int) -> list[tuple[Index, Index, Index]]:
    """Which terms multiply into which, up to the order TOP."""
    every = indices(d, TOP)
    return [(a, b, add(a, b)) for a in every for b in every if sum(a) + sum(b) <= TOP]


def add(a: Index, b: Index) -> Index:
    return tuple(i + j for i, j in zip(a, b, strict=True))


@dataclass(frozen=True)
class Jet:
    """f(x + h) = sum_alpha terms[alpha] h^alpha, up to the order TOP."""

    terms: dict[Index, float]
    d: int

    @classmethod
    def variables(cls, point: Sequence[float]) -> list[Jet]:
        d = len(point)
        units = [tuple(int(a == b) for b in range(d)) for a in range(d)]
        return [cls({(0,) * d: float(v), unit: 1.0}, d) for v, unit in zip(point, units, strict=True)]

    @property
    def value(self) -> float:
        return self.terms.get((0,) * self.d, 0.0)

    def derivative(self, alpha: Index) -> float:
        return self.terms.get(alpha, 0.0) * math.prod(math.factorial(a) for a in alpha)

    def __add__(self, other: Any) -> Jet:
        terms = other.terms if isinstance(other, Jet) else {(0,) * self.d: float(other)}
        return Jet({a: self.terms.get(a, 0.0) + terms.get(a, 0.0) for a in {*self.terms, *terms}}, self.d)

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet({a: t * float(other) for a, t in self.terms.items()}, self.d)
        terms: dict[Index, float] = {}
        for a, b, c in pairs(self.d):
            if a in self.terms and b in other.terms:
                terms[c] = terms.get(c, 0.0) + self.terms[a] * other.terms[b]
        return Jet(terms, self.d)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Jet:
        return self + other * -1.0

    def __truediv__(self, other: float) -> Jet:
        return self * (1 / other)

    def __pow__(self, exponent: int) -> Jet:
        return math.prod([self] * exponent, start=Jet({(0,) * self.d: 1.0}, self.d))

    def of(self, coefficients: Sequence[float]) -> Jet:
        """sum_m coefficients[m] (f - f(x))^m: a function of f by its own series."""
        rest, power = self - self.value, self**0
        total = power * coefficients[0]
        for c in coefficients[1:]:
            power = power * rest
            total = total + power * c
        return total


def exp(u: Jet) -> Jet:
    return u.of([math.exp(u.value) / math.factorial(m) for m in range(TOP + 1)])


def cos(u: Jet) -> Jet:
    return u.of([math.cos(u.value + m * math.pi / 2) / math.factorial(m) for m in range(TOP + 1)])


def sin(u: Jet) -> Jet:
    return u.of([math.sin(u.value + m * math.pi / 2) / math.factorial(m) for m in range(TOP + 1)])


def sqrt(u: Jet) -> Jet:
    binomials = [1.0, 1 / 2, -1 / 8, 1 / 16]
    return u.of([c * u.value ** (0.5 - m) for m, c in enumerate(binomials)])


# kernels as formulas of the coordinates

Formula = Callable[[list[Jet], Sequence[float]], Jet]


def square(x: list[Jet], y: Sequence[float]) -> Jet:
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))  # type: ignore[return-value]


def dot(x: list[Jet], y: Sequence[float]) -> Jet:
    return sum(a * b for a, b in zip(x, y, strict=True))  # type: ignore[return-value]


def gaussian(x: list[Jet], y: Sequence[float], scale: float = 0.9) -> Jet:
    return exp(square(x, y) / (-2 * scale**2))


def exponential(x: list[Jet], y: Sequence[float]) -> Jet:
    return exp(sqrt(square(x, y)) / -0.7)


def matern(nu: float, scale: float) -> Formula:
    """exp(-z) times 1 + z, 1 + z + z^2 / 3, 1 + z + 2 z^2 / 5 + z^3 / 15."""
    factors = {1.5: [1, 1], 2.5: [1, 1, 1 / 3], 3.5: [1, 1, 2 / 5, 1 / 15]}[nu]

    def formula(x: list[Jet], y: Sequence[float]) -> Jet:
        z = sqrt(square(x, y)) * (math.sqrt(2 * nu) / scale)
        return exp(z * -1.0) * sum(z**m * c for m, c in enumerate(factors))

    return formula


def polynomial(degree: int, offset: float = 1.0, scale: float = 1.0) -> Formula:
    return lambda x, y: (dot(x, y) / scale**2 + offset) ** degree


def rational(s: Any, m: int = 0) -> Any:
    return (-1) ** m * math.factorial(m) / (1 + s) ** (m + 1)


def sloping(x: Any, y: Any) -> Any:
    return np.sin(x[:, 0] + 2 * x[:, 1]) * np.cos(y[:, 2])[:, None]


def sloping_gradient(x: Any, y: Any, axis: int) -> Any:
    return (1, 2, 0)[axis] * np.cos(x[:, 0] + 2 * x[:, 1]) * np.cos(y[:, 2])[:, None]


KERNELS: dict[str, tuple[Kernel, Formula]] = {
    "gaussian": (Gaussian(0.9), gaussian),
    "exponential": (Exponential(0.7), exponential),
    "matern 7/2": (Matern(3.5, 1.1), matern(3.5, 1.1)),
    "polynomial": (Polynomial(4, 0.5, 1.3), polynomial(4, 0.5, 1.3)),
    "function": (
        FunctionKernel(sloping, sloping_gradient),
        lambda x, y: sin(x[0] + x[1] * 2) * math.cos(y[2]),
    ),
    "mixed sum": (Matern(1.5, 0.9) + Polynomial(2), lambda x, y: matern(1.5, 0.9)(x, y) + polynomial(2)(x, y)),
    "mixed product": (
        1.5 * (Matern(2.5, 1.2) * Polynomial(2) * Gaussian(2.0)),
        lambda x, y: 1.5 * (matern(2.5, 1.2)(x, y) * polynomial(2)(x, y) * gaussian(x, y, 2.0)),
    ),
}


# data, bases, and their functions one by one


def make_batch(n: int = 8) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"x": (D,), "future": (D,), "y": (2,), "drift": (D,), "frame": (2, D), "normal": (1, D)}
    shapes |= {"covariance": (D, D), "potential": (), "rate": (), "target": ()}
    batch = {name: rng.standard_normal((n, *shape)) for name, shape in shapes.items()}
    batch["weight"] = rng.random(n) + 0.1
    for values in batch.values():
        values.flags.writeable = False
    return batch


BATCH = make_batch()
RNG = np.random.default_rng(1)
Y, Y2 = RNG.standard_normal((3, D)), RNG.standard_normal((2, D))
FREQUENCIES = RNG.standard_normal((2, D))
Functions = list[Callable[[list[Jet]], Jet]]


def landmark(name: str, landmarks: Any = Y) -> tuple[Basis, Functions]:
    kernel, formula = KERNELS[name]
    return LandmarkBasis(kernel, landmarks), [lambda x, y=y: formula(x, y.tolist()) for y in landmarks]


def wave(which: Callable[[Jet], Jet], frequency: Any) -> Callable[[list[Jet]], Jet]:
    return lambda x: math.sqrt(1.7 / 2) * which(dot(x, frequency.tolist()))


def fourier() -> tuple[Basis, Functions]:
    return FourierBasis(FREQUENCIES, 1.7), [wave(which, w) for which in (cos, sin) for w in FREQUENCIES]


def monomials(constant: bool = True) -> tuple[Basis, Functions]:
    basis = MonomialBasis(D, 3, constant, scale=1.4)

    def monomial(exponents: list[int]) -> Callable[[list[Jet]], Jet]:
        return lambda x: math.prod((v / 1.4) ** e for v, e in zip(x, exponents, strict=True))  # type: ignore[return-value]

    return basis, [monomial(e) for e in basis.exponents.tolist()]


def own(x: Any) -> Any:
    return np.stack([x[:, 0] * np.exp(x[:, 2]), np.sin(x[:, 1] - x[:, 0])])


def own_gradient(x: Any) -> Any:
    swell, slope, zero = np.exp(x[:, 2]), np.cos(x[:, 1] - x[:, 0]), np.zeros(len(x))
    return np.moveaxis(np.array([[swell, zero, x[:, 0] * swell], [-slope, slope, zero]]), 1, 2)


def callables() -> tuple[Basis, Functions]:
    return CallableBasis(own, own_gradient, d=D), [lambda x: x[0] * exp(x[2]), lambda x: sin(x[1] - x[0])]


def constant() -> tuple[Basis, Functions]:
    return ConstantBasis(D), [lambda x: x[0] ** 0]


def beside(*parts: tuple[Basis, Functions]) -> tuple[Basis, Functions]:
    return Concatenated(tuple(basis for basis, _ in parts)), [f for _, functions in parts for f in functions]


BASES: dict[str, Callable[[], tuple[Basis, Functions]]] = {
    **{name: lambda name=name: landmark(name) for name in KERNELS},  # type: ignore[misc]
    "constant": constant,
    "fourier": fourier,
    "monomial": lambda: monomials(),
    "monomial, no constant": lambda: monomials(False),
    "callable": callables,
    "constant and landmarks": lambda: beside(constant(), landmark("matern 7/2")),
    "landmarks of two kernels": lambda: beside(landmark("gaussian"), landmark("polynomial", Y2)),
    "nested": lambda: beside(beside(fourier(), constant()), landmark("mixed sum"), monomials(False)),
    "with a callable": lambda: beside(callables(), landmark("gaussian"), constant()),
}


@dataclass(frozen=True)
class Function:
    """One function at the points of one row."""

    jets: dict[str, Jet]

    def __call__(self, *alpha: int, view: str = "x") -> float:
        jet = self.jets[view]
        return jet.derivative(alpha or (0,) * jet.d)

    def grad(self, view: str = "x") -> list[float]:
        return [self(*(int(a == b) for b in range(D)), view=view) for a in range(D)]

    def along(self, direction: Any, view: str = "x") -> float:
        return math.fsum(v * slope for v, slope in zip(direction.tolist(), self.grad(view), strict=True))

    def second(self, matrix: Any, view: str = "x") -> float:
        def index(a: int, b: int) -> Index:
            return tuple(int(c == a) + int(c == b) for c in range(D))

        return sum(matrix[a, b] * self(*index(a, b), view=view) for a in range(D) for b in range(D))


def functions_by_row(functions: Functions, views: Sequence[str]) -> list[list[Function]]:
    n = len(BATCH["x"])
    points = [{view: Jet.variables(BATCH[view][k].tolist()) for view in views} for k in range(n)]
    return [[Function({v: f(x) for v, x in point.items()}) for point in points] for f in functions]


@lru_cache
def known(name: str) -> tuple[Basis, Any, list[list[Function]]]:
    """A basis, some of its functions by number (p',), and these one by one."""
    basis, functions = BASES[name]()
    some = np.sort(np.random.default_rng(2).permutation(len(functions))[:6])
    return basis, some, functions_by_row([functions[i] for i in some], ("x", "future"))


Scalar = Callable[[Function, Function, dict[str, Any]], float]


def triple_loop(left: list[list[Function]], right: list[list[Function]], scalar: Scalar) -> Any:
    rows = [{name: values[k] for name, values in BATCH.items()} for k in range(len(BATCH["x"]))]
    total = np.zeros((len(left), len(right)))
    for i, f in enumerate(left):
        for j, g in enumerate(right):
            for k, row in enumerate(rows):
                total[i, j] += float(row["weight"]) * scalar(f[k], g[k], row)
    return total


# products of any two derivatives


def derivatives(top: int) -> Iterator[tuple[str, Form, Scalar]]:
    for a, b in itertools.product(indices(D, top), repeat=2):
        bilinear = form(lambda f, g, x, a=a, b=b: inner(partial(f, *a), partial(g, *b)))
        yield f"{a} {b}", bilinear, lambda f, g, row, a=a, b=b: f(*a) * g(*b)  # type: ignore[misc]


@pytest.mark.parametrize("name", BASES)
def test_products_of_any_two_partial_derivatives(name: str) -> None:
    basis, some, functions = known(name)
    cases = list(derivatives(int(min(basis.order, TOP))))
    found = Measure(basis, basis, {key: bilinear for key, bilinear, _ in cases}, rows=3)([BATCH])
    for key, _, scalar in cases:
        assert_close(found[key][np.ix_(some, some)], triple_loop(functions, functions, scalar), what=key)


# forms of every kind


@form
def everything(f: Any, g: Any, x: Any) -> Any:
    return inner(x.rate * f - 2 * along(f, x.drift), partial(g, 0, 1, 0) + along(g, x.frame[1]), weight=x.potential)


EYE = np.eye(D)
FORMS: dict[str, tuple[Form, Scalar]] = {
    "value": (gram, lambda f, g, r: f() * g()),
    "gradients": (dirichlet, lambda f, g, r: sum(a * b for a, b in zip(f.grad(), g.grad(), strict=True))),
    "one view and another": (
        form(lambda f, g, x: inner(f, at(g, x.future)) - 0.5 * inner(at(f, x.future), at(g, x.future))),
        lambda f, g, r: f() * g(view="future") - 0.5 * f(view="future") * g(view="future"),
    ),
    "along a field": (
        form(
            lambda f, g, x: inner(along(f, x.drift), g) + inner(along(at(f, x.future), x.drift), along(g, x.frame[0]))
        ),
        lambda f, g, r: f.along(r["drift"]) * g() + f.along(r["drift"], "future") * g.along(r["frame"][0]),
    ),
    "along each of a frame": (
        form(lambda f, g, x: inner(along_each(f, x.frame), along_each(g, x.frame), weight=x.rate)),
        lambda f, g, r: r["rate"] * sum(f.along(v) * g.along(v) for v in r["frame"]),
    ),
    "tangential by normals": (
        tangential_dirichlet(normals=1),
        lambda f, g, r: (
            sum(a * b for a, b in zip(f.grad(), g.grad(), strict=True))
            - f.along(r["normal"][0]) * g.along(r["normal"][0])
        ),
    ),
    "sum of them": (
        everything,
        lambda f, g, r: (
            r["potential"] * (r["rate"] * f() - 2 * f.along(r["drift"])) * (g.grad()[1] + g.along(r["frame"][1]))
        ),
    ),
}
HIGHER: dict[str, tuple[Form, Scalar]] = {
    "generator": (
        form(lambda f, g, x: inner(f, along(g, x.drift) + 0.5 * second(g, x.covariance))),
        lambda f, g, r: f() * (g.along(r["drift"]) + 0.5 * g.second(r["covariance"])),
    ),
    "second and third at two views": (
        form(lambda f, g, x: inner(x.rate * partial(f, 1, 1, 1), at(partial(g, 0, 2, 0) - second(g), x.future))),
        lambda f, g, r: r["rate"] * f(1, 1, 1) * (g(0, 2, 0, view="future") - g.second(EYE, "future")),
    ),
}


@pytest.mark.parametrize("name", BASES)
def test_forms_of_every_kind(name: str) -> None:
    basis, some, functions = known(name)
    cases = FORMS | (HIGHER if basis.order >= TOP else {})
    found = Measure(basis, basis, {key: bilinear for key, (bilinear, _) in cases.items()}, rows=3)([BATCH])
    for key, (_, scalar) in cases.items():
        assert_close(found[key][np.ix_(some, some)], triple_loop(functions, functions, scalar), what=key)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("gaussian", "matern 7/2"),
        ("fourier", "mixed product"),
        ("monomial", "nested"),
    ],
)
def test_forms_of_two_bases(name: str, other: str) -> None:
    (left, some, fs), (right, few, gs) = known(name), known(other)
    cases = FORMS | HIGHER
    for basis, another in ((left, right), (right, left)):
        found = Measure(basis, another, {f"form {key}": b for key, (b, _) in cases.items()}, rows=5)([BATCH])
        for key, (_, scalar) in cases.items():
            if basis is left:
                assert_close(found[f"form {key}"][np.ix_(some, few)], triple_loop(fs, gs, scalar), what=key)
            else:
                assert_close(found[f"form {key}"][np.ix_(few, some)], triple_loop(gs, fs, scalar), what=key)


@pytest.mark.parametrize("kernel", ["gaussian", "mixed sum"])
def test_functions_of_different_variables(kernel: str) -> None:
    """f of x in three dimensions, g of y in two."""
    left, some, functions = known("constant and landmarks")
    landmarks = Y2[:, :2] + 0.3
    right, plain = LandmarkBasis(KERNELS[kernel][0], landmarks), KERNELS[kernel][1]
    others = functions_by_row([lambda y, z=z: plain(y, z.tolist()) for z in landmarks], ("y",))
    cases: dict[str, tuple[Form, Scalar]] = {
        "values": (form(lambda f, g, x: inner(f, at(g, x.y))), lambda f, g, r: f() * g(view="y")),
        "derivatives": (
            form(lambda f, g, x: inner(partial(f, 1, 0, 2), x.rate * at(partial(g, 2, 1), x.y))),
            lambda f, g, r: r["rate"] * f(1, 0, 2) * g(2, 1, view="y"),
        ),
        "sums": (
            form(lambda f, g, x: inner(along(f, x.drift) - f, at(second(g) + 3 * g, x.y))),
            lambda f, g, r: (f.along(r["drift"]) - f()) * (g(2, 0, view="y") + g(0, 2, view="y") + 3 * g(view="y")),
        ),
    }
    found = Measure(left, right, {key: bilinear for key, (bilinear, _) in cases.items()}, rows=3)([BATCH])
    for key, (_, scalar) in cases.items():
        assert_close(found[key][some], triple_loop(functions, others, scalar), what=key)


@pytest.mark.parametrize("name", [name for name in BASES if BASES[name]()[0].order >= TOP])
def test_functionals_with_derivatives(name: str) -> None:
    basis, some, functions = known(name)
    right_hand_side = functional(
        lambda f, x: (
            inner(partial(f, 1, 1, 1) - 2 * second(f, x.covariance), x.target)
            + inner(at(partial(f, 0, 0, 2), x.future), x.rate, weight=x.potential)
        )
    )
    found = Measure(basis, basis, {"gram": gram}, {"b": right_hand_side}, rows=3)([BATCH])["b"]
    expected = triple_loop(
        functions,
        [functions[0]],
        lambda f, _, r: (
            r["target"] * (f(1, 1, 1) - 2 * f.second(r["covariance"]))
            + r["potential"] * r["rate"] * f(0, 0, 2, view="future")
        ),
    )
    assert_close(found[some], expected[:, 0])


# derivatives that a kernel does not have


@form
def bending(f: Any, g: Any, x: Any) -> Any:
    return inner(second(f), second(g))


@pytest.mark.parametrize(
    ("kernel", "operator", "order"),
    [
        (FunctionKernel(sloping), Laplacian(), 1),
        (Gaussian() + Matern(0.5), SymmetricForm(bending), 2),
        (Radial(rational, [lambda s: rational(s, 1)]), SymmetricForm(bending), 2),
    ],
)
def test_a_kernel_that_is_not_smooth_enough(kernel: Kernel, operator: Operator, order: int) -> None:
    """The message names the kernel, the operator, and kernels that do."""
    what, whose = re.escape(operator.title), re.escape(str(kernel))
    names = rf"{what} takes derivatives of order {order}, and .*{whose} has them up to order"
    with pytest.raises(dsp.SmoothnessError, match=names):
        dsp.SpectralDecomposition(operator, kernel, n_landmarks=3, n_components=2).fit(BATCH["x"])


def test_suggested_kernels_exist_and_do() -> None:
    basis = LandmarkBasis(Exponential(), Y)
    for order in range(2, 38):
        with pytest.raises(dsp.SmoothnessError, match=r"Gaussian\(scale\) or Matern\(nu=") as refused:
            basis.check_order(order, "a form")
        assert Matern(float(str(refused.value).rpartition("=")[2][:-1])).order > order
    with pytest.raises(dsp.SmoothnessError, match=r"use a smoother kernel, such as Gaussian\(scale\)$"):
        basis.check_order(38, "a form")
