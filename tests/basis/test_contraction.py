"""What `Measure` sums against a triple loop over points and pairs of functions, for every kernel and form.

The kernels are written here as plain formulas; their gradients come from complex steps, exact to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.errors import SmoothnessError
from daskspectral.forms import (
    Form,
    along,
    at,
    dirichlet,
    form,
    functional,
    grad,
    gram,
    inner,
    partial,
    tangential_dirichlet,
)
from daskspectral.kernels import (
    Dot,
    Exponential,
    FunctionKernel,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Polynomial,
    Radial,
)
from daskspectral.manifolds import Circle, FlatTorus, Implicit, Sphere
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.registry import decode
from tests.common import assert_close, copied

Plain = Callable[[Any, Any], Any]


def sq(x: Any, y: Any) -> Any:
    return ((x - y) ** 2).sum()


def matern32(x: Any, y: Any) -> Any:
    z = np.sqrt(3 * sq(x, y)) / 0.9
    return (1 + z) * np.exp(-z)


def matern52(x: Any, y: Any) -> Any:
    z = np.sqrt(5 * sq(x, y)) / 1.1
    return (1 + z + z * z / 3) * np.exp(-z)


def tilted(x: Any, y: Any) -> Any:
    return np.cos(x.sum(axis=1)) * (2 + np.sin(y.sum(axis=1)))[:, None]


def tilted_gradient(x: Any, y: Any, axis: int) -> Any:
    return -np.sin(x.sum(axis=1)) * (2 + np.sin(y.sum(axis=1)))[:, None]


def gauss(x: Any, y: Any, scale: float = 0.8) -> Any:
    return np.exp(-sq(x, y) / (2 * scale**2))


KERNELS: dict[str, tuple[Kernel, Plain]] = {
    "gaussian": (Gaussian(0.8), gauss),
    "exponential": (Exponential(0.7), lambda x, y: np.exp(-np.sqrt(sq(x, y)) / 0.7)),
    "matern 3/2": (Matern(1.5, 0.9), matern32),
    "matern 5/2": (Matern(2.5, 1.1), matern52),
    "polynomial": (Polynomial(3, 0.5, 1.2), lambda x, y: (0.5 + x @ y / 1.2**2) ** 3),
    "polynomial 1": (Polynomial(1), lambda x, y: 1 + x @ y),
    "linear": (Linear(), lambda x, y: x @ y),
    "radial sum": (
        Gaussian(0.8) + Exponential(1.3),
        lambda x, y: gauss(x, y) + np.exp(-np.sqrt(sq(x, y)) / 1.3),
    ),
    "radial product": (Gaussian(0.8) * Matern(1.5, 0.9), lambda x, y: gauss(x, y) * matern32(x, y)),
    "radial multiple": (2.5 * Gaussian(0.8), lambda x, y: 2.5 * gauss(x, y)),
    "dot sum": (Linear() + Polynomial(2), lambda x, y: x @ y + (1 + x @ y) ** 2),
    "dot product": (Linear() * Polynomial(2), lambda x, y: x @ y * (1 + x @ y) ** 2),
    "dot multiple": (Polynomial(2) * 0.5, lambda x, y: 0.5 * (1 + x @ y) ** 2),
    "mixed sum": (Gaussian(0.8) + Linear(), lambda x, y: gauss(x, y) + x @ y),
    "mixed product": (Matern(2.5, 1.1) * Polynomial(2), lambda x, y: matern52(x, y) * (1 + x @ y) ** 2),
    "mixed multiple": (3 * (Gaussian(0.8) * Linear()), lambda x, y: 3 * gauss(x, y) * (x @ y)),
    "radial": (
        Radial(lambda s: 1 / (1 + s), (lambda s: -1 / (1 + s) ** 2,)),
        lambda x, y: 1 / (1 + sq(x, y)),
    ),
    "dot": (Dot(np.exp, (np.exp,)), lambda x, y: np.exp(x @ y)),
    "function": (
        FunctionKernel(tilted, tilted_gradient),
        lambda x, y: np.cos(x.sum()) * (2 + np.sin(y.sum())),
    ),
}


@dataclass
class Loop:
    """The functions k(., y_i) and a constant first where asked, one point and one function at a time."""

    plain: Plain
    y: Any
    batch: dict[str, Any]
    constant: bool = False
    _known: dict[str, Any] = field(default_factory=dict)

    def _table(self, entry: Callable[[Any, Any], Any], constant: float, view: str) -> Any:
        points = self.batch[view]
        rows = [[entry(x, y) for x in points] for y in self.y]
        if self.constant:
            rows.insert(0, [np.full_like(rows[0][0], constant) for _ in points])
        return np.array(rows)

    def value(self, view: str = "x") -> Any:
        """(p, c, 1)"""
        key = f"value {view}"
        if key not in self._known:
            self._known[key] = self._table(lambda x, y: np.array([self.plain(x, y)]), 1.0, view)
        return self._known[key]

    def grad(self, view: str = "x") -> Any:
        """(p, c, d); 0 where a point is a landmark."""

        def entry(x: Any, y: Any) -> Any:
            if np.array_equal(x, y) and self.plain(x, x) == 1:
                return np.zeros(len(x))
            return np.array([self.plain(x + 1e-30j * e, y).imag / 1e-30 for e in np.eye(len(x))])

        key = f"gradient {view}"
        if key not in self._known:
            self._known[key] = self._table(entry, 0.0, view)
        return self._known[key]

    def d(self, axis: int, view: str = "x") -> Any:
        """(p, c, 1)"""
        return self.grad(view)[:, :, axis : axis + 1]

    def along(self, direction: Any, view: str = "x") -> Any:
        """(p, c, 1)"""
        return np.einsum("pcd,cd->pc", self.grad(view), direction)[:, :, None]


def triple_loop(left: Any, right: Any, weight: Any) -> Any:
    total = np.zeros((len(left), len(right)))
    for i, j, k in itertools.product(range(len(left)), range(len(right)), range(len(weight))):
        total[i, j] += weight[k] * float(left[i, k] @ right[j, k])
    return total


@form
def asymmetric(f: Any, g: Any, x: Any) -> Any:
    return inner(f, partial(g, 0, 1, 0))


@form
def schroedinger(f: Any, g: Any, x: Any) -> Any:
    return inner(grad(f), grad(g)) + inner(f, g, weight=x.potential)


@form
def weighted_gradient(f: Any, g: Any, x: Any) -> Any:
    return 0.5 * inner(x.potential * grad(f), grad(g))


@form
def transfer(f: Any, g: Any, x: Any) -> Any:
    return inner(f, at(g, x.future))


@form
def later(f: Any, g: Any, x: Any) -> Any:
    return inner(at(f, x.future), at(g, x.future)) - inner(grad(at(f, x.future)), grad(at(g, x.future)))


@form
def both_gradients(f: Any, g: Any, x: Any) -> Any:
    return inner(grad(f), at(grad(g), x.future)) + inner(along(at(f, x.future), x.x), along(g, x.drift))


@form
def two_directions(f: Any, g: Any, x: Any) -> Any:
    return inner(along(f, x.drift) - 2 * f, along(g, x.frame[1]) + along(g, x.drift))


@form
def reordered(f: Any, g: Any, x: Any) -> Any:
    return inner(partial(f, 0, 0, 1), g) + inner(f, partial(g, 0, 0, 1)) + inner(partial(f, 0, 0, 0), g)


Terms = list[tuple[float, Any, Any, Any]]


def expected_terms(name: str, a: Loop, b: Loop, batch: dict[str, Any]) -> Terms:
    one, v, drift = np.ones(len(batch["x"])), batch["potential"], batch["drift"]
    frame = batch["frame"][:, 1]
    terms: dict[str, Callable[[], Terms]] = {
        "gram": lambda: [(1, a.value(), b.value(), one)],
        "dirichlet": lambda: [(1, a.grad(), b.grad(), one)],
        "asymmetric": lambda: [(1, a.value(), b.d(1), one)],
        "schroedinger": lambda: [(1, a.grad(), b.grad(), one), (1, a.value(), b.value(), v)],
        "weighted_gradient": lambda: [(0.5, a.grad(), b.grad(), v)],
        "transfer": lambda: [(1, a.value(), b.value("future"), one)],
        "later": lambda: [
            (1, a.value("future"), b.value("future"), one),
            (-1, a.grad("future"), b.grad("future"), one),
        ],
        "both_gradients": lambda: [
            (1, a.grad(), b.grad("future"), one),
            (1, a.along(batch["x"], "future"), b.along(drift), one),
        ],
        "two_directions": lambda: [(1, a.along(drift) - 2 * a.value(), b.along(frame) + b.along(drift), one)],
        "reordered": lambda: [
            (1, a.d(2), b.value(), one),
            (1, a.value(), b.d(2), one),
            (1, a.value(), b.value(), one),
        ],
    }
    return terms[name]()


FORMS: dict[str, Form] = {
    f.name: f
    for f in (
        gram,
        dirichlet,
        asymmetric,
        schroedinger,
        weighted_gradient,
        transfer,
        later,
        both_gradients,
        two_directions,
        reordered,
    )
}


def make_batch(n: int = 13, d: int = 3, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    batch = {
        "x": rng.standard_normal((n, d)),
        "future": rng.standard_normal((n, d)),
        "drift": rng.standard_normal((n, d)),
        "frame": rng.standard_normal((n, 2, d)),
        "potential": rng.standard_normal(n),
        "weight": rng.random(n) + 0.1,
        "target": rng.standard_normal(n),
        "targets": rng.standard_normal((n, 2)),
    }
    for array in batch.values():
        array.flags.writeable = False
    return batch


BATCH = make_batch()
Y = np.random.default_rng(1).standard_normal((4, 3))
Y2 = np.random.default_rng(2).standard_normal((3, 3)) + 0.5


def expected_sum(name: str, a: Loop, b: Loop, batch: dict[str, Any]) -> Any:
    weight = batch.get("weight", np.ones(len(batch["x"])))
    return sum(c * triple_loop(f, g, w * weight) for c, f, g, w in expected_terms(name, a, b, batch))


def measure_one(left: Basis, right: Basis, what: Form, batch: dict[str, Any], **options: Any) -> Any:
    return Measure(left, right, {"form": what}, **options)([batch])["form"]


def measure_between(left: Basis, right: Basis) -> dict[str, Any]:
    """Every form between left and right, also the one whose name stands for the left basis alone."""
    sums = Measure(left, right, {f"{name} of both": what for name, what in FORMS.items()}, rows=6)([BATCH])
    return {name: sums[f"{name} of both"] for name in FORMS}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_every_kernel(kernel: str, name: str) -> None:
    k, plain = KERNELS[kernel]
    basis, loop = LandmarkBasis(k, Y), Loop(plain, Y, BATCH)
    expected = expected_sum(name, loop, loop, BATCH)
    assert_close(measure_one(basis, basis, FORMS[name], BATCH, rows=5), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_forms_in_one_pass_with_the_constant_and_without_weights(kernel: str) -> None:
    k, plain = KERNELS[kernel]
    batch = {name: v for name, v in BATCH.items() if name != "weight"}
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(k, Y)))
    loop = Loop(plain, Y, batch, constant=True)
    sums = Measure(basis, basis, FORMS, rows=6)([batch])
    for name in FORMS:
        assert_close(sums[name], expected_sum(name, loop, loop, batch))
    assert not sums["dirichlet"][0].any()
    assert sums["gram"][0, 0] == len(batch["x"])


@pytest.mark.parametrize("kernels", [("gaussian", "exponential"), ("polynomial", "mixed product"), ("dot", "dot")])
def test_two_bases(kernels: tuple[str, str]) -> None:
    (k, plain), (k2, plain2) = (KERNELS[name] for name in kernels)
    left, right = LandmarkBasis(k, Y), LandmarkBasis(k2, Y2)
    a, b = Loop(plain, Y, BATCH), Loop(plain2, Y2, BATCH, constant=True)
    sums = measure_between(left, Concatenated((ConstantBasis(3), right)))
    flipped = measure_between(Concatenated((ConstantBasis(3), right)), left)
    for name in FORMS:
        assert_close(sums[name], expected_sum(name, a, b, BATCH))
        assert_close(flipped[name], expected_sum(name, b, a, BATCH))


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "polynomial", "mixed sum"])
def test_one_basis_within_another_and_twice(kernel: str) -> None:
    k, plain = KERNELS[kernel]
    part, loop = LandmarkBasis(k, Y), Loop(plain, Y, BATCH)
    whole = Concatenated((ConstantBasis(3), part))
    twice = Concatenated((part, Concatenated((part, ConstantBasis(3)))))
    sums = measure_between(part, whole)
    doubled = Measure(twice, twice, FORMS, rows=6)([BATCH])
    for name in FORMS:
        expected = expected_sum(name, loop, loop, BATCH)
        assert_close(sums[name][:, 1:], expected)
        for i, j in itertools.product((0, 4), (0, 4)):
            assert_close(doubled[name][i : i + 4, j : j + 4], expected)


# the tangential forms


def ellipsoid_normals(x: Any) -> Any:
    normal = x * np.array([1.0, 4.0, 9.0])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def circle_normals(x: Any, m: int) -> Any:
    """The unit vector in the plane of each of m circles, (m, c, 2 m)."""
    normals = np.zeros((m, *x.shape))
    for a in range(m):
        plane = x[:, 2 * a : 2 * a + 2]
        normals[a, :, 2 * a : 2 * a + 2] = plane / np.hypot(plane[:, 0], plane[:, 1])[:, None]
    return normals


def sphere_normals(x: Any) -> Any:
    return (x / np.sqrt((x**2).sum(axis=1))[:, None])[None]


MANIFOLDS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "sphere": (Sphere(3), "normal", sphere_normals),
    "circle": (Circle(), "tangent", lambda x: circle_normals(x, 1)),
    "torus": (FlatTorus(2), "tangent", lambda x: circle_normals(x, 2)),
    "implicit": (Implicit(ellipsoid_normals, 3), "normal", lambda x: ellipsoid_normals(x)[None]),
    "curve": (Implicit(lambda x: sphere_normals(x)[0], 2), "normal", sphere_normals),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_tangential_forms(kernel: str, manifold: str) -> None:
    (k, plain), (surface, field, normals_of) = KERNELS[kernel], MANIFOLDS[manifold]
    d = surface.ambient
    batch = {k: v for k, v in make_batch(11, d, seed=5).items() if k in ("x", "weight")}
    y = np.random.default_rng(6).standard_normal((4, d))
    basis, loop = Concatenated((LandmarkBasis(k, y), ConstantBasis(d))), Loop(plain, y, batch)
    operator = Laplacian(surface)
    assert set(operator.form.fields) == {"x", field}
    normals = normals_of(batch["x"])
    gradient = loop.grad()
    for n in normals:
        gradient = gradient - loop.along(n) * n
    expected = triple_loop(gradient, gradient, batch["weight"])
    found = measure_one(basis, basis, operator.form, batch, operator=operator, rows=4)
    assert_close(found[:4, :4], expected)
    assert not found[4].any()
    assert not found[:, 4].any()
    # the normals as a field of the data
    given = {**batch, "normal": np.moveaxis(normals, 0, 1)}
    found = measure_one(basis, basis, tangential_dirichlet(normals=len(normals)), given, rows=4)
    assert_close(found[:4, :4], expected)


# second derivatives: complex steps of gradients written out


def gauss_gradient(x: Any, y: Any) -> Any:
    return -(x - y) / 0.8**2 * gauss(x, y)


def matern_gradient(x: Any, y: Any) -> Any:
    z = np.sqrt(5 * sq(x, y)) / 1.1
    return -5 / (3 * 1.1**2) * (1 + z) * np.exp(-z) * (x - y)


def polynomial_gradient(x: Any, y: Any) -> Any:
    return 3 / 1.2**2 * (0.5 + x @ y / 1.2**2) ** 2 * y


def mixed_gradient(x: Any, y: Any) -> Any:
    return matern_gradient(x, y) * (1 + x @ y) ** 2 + matern52(x, y) * 2 * (1 + x @ y) * y


@form
def second(f: Any, g: Any, x: Any) -> Any:
    laplacian = partial(g, 2, 0, 0) + partial(g, 0, 2, 0) + partial(g, 0, 0, 2)
    return inner(partial(f, 1, 0, 1), laplacian) + inner(partial(f, 2, 0, 0), partial(g, 2, 0, 0), weight=x.potential)


@pytest.mark.parametrize(
    ("kernel", "gradient"),
    [
        ("gaussian", gauss_gradient),
        ("matern 5/2", matern_gradient),
        ("polynomial", polynomial_gradient),
        ("mixed product", mixed_gradient),
    ],
)
def test_second_derivatives(kernel: str, gradient: Plain) -> None:
    basis = LandmarkBasis(KERNELS[kernel][0], Y)
    steps = 1e-30j * np.eye(3)
    hessian = np.array([[[gradient(x + h, y).imag / 1e-30 for h in steps] for x in BATCH["x"]] for y in Y])
    assert_close(np.array([[gradient(x, y) for x in BATCH["x"]] for y in Y]), Loop(KERNELS[kernel][1], Y, BATCH).grad())
    laplacian = np.trace(hessian, axis1=2, axis2=3)[:, :, None]
    expected = triple_loop(hessian[:, :, 0, 2:], laplacian, BATCH["weight"])
    expected += triple_loop(hessian[:, :, 0, :1], hessian[:, :, 0, :1], BATCH["weight"] * BATCH["potential"])
    assert_close(measure_one(basis, basis, second, BATCH, rows=5), expected)


def test_derivatives_that_the_kernel_does_not_have() -> None:
    for k in (Exponential(), Linear() + FunctionKernel(tilted), Radial(lambda s: 1 / (1 + s))):
        basis = Concatenated((ConstantBasis(3), LandmarkBasis(k, Y)))
        with pytest.raises(SmoothnessError, match="laplacian takes derivatives of order 2, and the constant with"):
            basis.check_order(2, "laplacian")
        with pytest.raises(SmoothnessError):
            measure_one(basis, basis, second, BATCH)
    LandmarkBasis(Matern(1.5), Y).check_order(3, "a form")


# coincident points


@pytest.mark.parametrize("kernel", ["exponential", "radial sum", "matern 3/2", "gaussian"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_landmarks_among_the_points(kernel: str, dtype: str) -> None:
    k, plain = KERNELS[kernel]
    batch = make_batch(20, seed=8)
    y = batch["x"][[3, 7, 11, 19]]
    basis = LandmarkBasis(k, y)

    def scaled(a: Any, b: Any) -> Any:  # 1 at a landmark, where the loop's gradient is 0
        return plain(a, b) / plain(b, b)

    loop, top = Loop(scaled, y, batch), float(plain(y[0], y[0]))
    tolerance = 1e-12 if dtype == "float64" else 3e-5
    for name in ("gram", "dirichlet", "schroedinger", "two_directions"):
        expected = top**2 * expected_sum(name, loop, loop, batch)
        found = measure_one(basis, basis, FORMS[name], batch, dtype=dtype, rows=6)
        assert_close(found, expected, tolerance)
    found = measure_one(basis, basis, dirichlet, batch, dtype=dtype)
    assert np.linalg.eigvalsh(found)[0] > -tolerance * np.abs(found).max()


# arithmetic: dtypes, weights, additivity


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32(kernel: str) -> None:
    k, plain = KERNELS[kernel]
    basis, loop = Concatenated((ConstantBasis(3), LandmarkBasis(k, Y))), Loop(plain, Y, BATCH, constant=True)
    sums = Measure(basis, basis, FORMS, dtype="float32", rows=5)([BATCH])
    for name in FORMS:
        assert_close(sums[name], expected_sum(name, loop, loop, BATCH), 1e-5)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "polynomial", "mixed sum"])
def test_float32_data_are_summed_in_float64(kernel: str) -> None:
    k, plain = KERNELS[kernel]
    single = {name: v.astype(np.float32) for name, v in BATCH.items()}
    double = {name: v.astype(np.float64) for name, v in single.items()}
    basis, loop = LandmarkBasis(k, Y), Loop(plain, Y, double)
    sums = Measure(basis, basis, FORMS, rows=5)([single])
    for name in FORMS:
        assert_close(sums[name], expected_sum(name, loop, loop, double))


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "mixed sum"])
def test_float32_far_from_the_origin(kernel: str) -> None:
    """Points lose digits only when they are cast, and radial kernels cast the centred ones."""
    k, plain = KERNELS["gaussian" if kernel == "mixed sum" else kernel]
    k = k + 2 * k * FunctionKernel(lambda x, y: np.ones((len(y), len(x)))) if kernel == "mixed sum" else k
    factor = 9 if kernel == "mixed sum" else 1
    batch = {**BATCH, "x": np.round(BATCH["x"] * 2**20) / 2**20 + 1000, "future": BATCH["future"] + 1000}
    y = np.round(Y * 2**20) / 2**20 + 1000
    basis, loop = LandmarkBasis(k, y), Loop(plain, y, batch)
    expected = factor * expected_sum("gram", loop, loop, batch)
    assert_close(measure_one(basis, basis, gram, batch, dtype="float32"), expected, 1e-5)
    assert_close(measure_one(basis, basis, gram, batch), expected, 1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "bool"])
def test_weights_of_any_type(dtype: str) -> None:
    weight = np.array([2, 0, 3, 1, 5, 7, 2, 3, 4, 6, 1, 0, 9]).astype(dtype)
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(Exponential(), Y)))
    mass = functional(lambda f, x: inner(f, 1))
    found = Measure(basis, basis, FORMS, {"mass": mass})([{**BATCH, "weight": weight}])
    repeated = {k: np.repeat(v, weight.astype(int), axis=0) for k, v in BATCH.items() if k != "weight"}
    expected = Measure(basis, basis, FORMS, {"mass": mass})([repeated])
    for name in expected:
        assert_close(found[name], expected[name], 1e-13)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), kernel=st.sampled_from(sorted(KERNELS)), seed=st.integers(0, 1000))
def test_any_split_and_block_size_and_weights_that_repeat_rows(data: Any, kernel: str, seed: int) -> None:
    n = data.draw(st.integers(1, 30))
    batch = make_batch(n, seed=seed)
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(KERNELS[kernel][0], Y)))
    functionals = {"b": functional(lambda f, x: inner(f, x.target) + inner(grad(f), x.drift))}
    whole = Measure(basis, basis, FORMS, functionals)([batch])

    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    rows = data.draw(st.integers(1, n + 3))
    pieces = [{k: v[a:b] for k, v in batch.items()} for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
    split = Measure(basis, basis, FORMS, functionals, rows=rows)(pieces)
    at_cut = data.draw(st.integers(0, len(pieces)))
    parts = [Measure(basis, basis, FORMS, functionals, rows=rows)(p) for p in (pieces[:at_cut], pieces[at_cut:])]

    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)))
    weighted = Measure(basis, basis, FORMS, functionals)([{**batch, "weight": counts}])
    repeats = Measure(basis, basis, FORMS, functionals)(
        [{k: np.repeat(v, counts, axis=0) for k, v in batch.items() if k != "weight"}]
    )
    for name, expected in whole.items():
        tolerance = 1e-12 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(split[name], expected, rtol=0, atol=tolerance)
        sums = [p[name] for p in parts if name in p]
        np.testing.assert_allclose(sum(sums), expected, rtol=0, atol=tolerance)
        np.testing.assert_allclose(weighted[name], repeats[name], rtol=0, atol=10 * tolerance)


def test_the_same_rows_in_the_same_blocks_give_the_same_bits() -> None:
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(Gaussian(), Y)))
    first, again = (Measure(basis, basis, FORMS, rows=5)([BATCH]) for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in FORMS)


def test_forms_that_share_a_product_have_arrays_of_their_own() -> None:
    basis = LandmarkBasis(Gaussian(), Y)
    sums = Measure(basis, basis, {"form": gram, "gram": gram})([BATCH])
    assert np.array_equal(sums["form"], sums["gram"])
    assert not np.shares_memory(sums["form"], sums["gram"])


# functionals


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("constant", [False, True])
def test_functionals(kernel: str, constant: bool) -> None:
    k, plain = KERNELS[kernel]
    basis: Basis = LandmarkBasis(k, Y)
    basis = Concatenated((ConstantBasis(3), basis)) if constant else basis
    loop = Loop(plain, Y, BATCH, constant=constant)
    w, v = BATCH["weight"], BATCH["potential"]
    functionals = {
        "mass": functional(lambda f, x: inner(f, 2.0)),
        "target": functional(lambda f, x: inner(f, x.target)),
        "targets": functional(lambda f, x: inner(f, x.targets, weight=x.potential) - inner(at(f, x.future), x.targets)),
        "column": functional(lambda f, x: inner(x.potential * f, x.targets[1])),
        "gradient": functional(lambda f, x: inner(grad(f), x.drift)),
        "hermite": functional(lambda f, x: inner(f, x.target) + inner(grad(f), x.frame[0], weight=x.potential)),
        "slope": functional(lambda f, x: inner(along(f, x.drift), x.target) + inner(partial(f, 1, 0, 0), 1)),
    }
    value, gradient = loop.value()[:, :, 0], loop.grad()
    n = len(w)
    expected = {
        "mass": sum(2 * w[i] * value[:, i] for i in range(n)),
        "target": sum(w[i] * BATCH["target"][i] * value[:, i] for i in range(n)),
        "targets": sum(
            w[i] * (v[i] * value[:, i, None] - loop.value("future")[:, i]) * BATCH["targets"][i] for i in range(n)
        ),
        "column": sum(w[i] * v[i] * BATCH["targets"][i, 1] * value[:, i] for i in range(n)),
        "gradient": sum(w[i] * gradient[:, i] @ BATCH["drift"][i] for i in range(n)),
        "hermite": sum(
            w[i] * (BATCH["target"][i] * value[:, i] + v[i] * gradient[:, i] @ BATCH["frame"][i, 0]) for i in range(n)
        ),
        "slope": sum(
            w[i] * (BATCH["target"][i] * gradient[:, i] @ BATCH["drift"][i] + gradient[:, i, 0]) for i in range(n)
        ),
    }
    together = Measure(basis, basis, {"gram": gram, "dirichlet": dirichlet}, functionals, rows=4)([BATCH])
    single = Measure(basis, basis, {"gram": gram}, functionals, dtype="float32", rows=4)([BATCH])
    for name, vector in expected.items():
        assert_close(together[name], vector)
        assert_close(single[name], vector, 1e-5)
    assert_close(together["dirichlet"], triple_loop(gradient, gradient, w))


@pytest.mark.parametrize("target", ["target", "targets"])
def test_a_gradient_pairs_with_vectors_of_the_same_dimension(target: str) -> None:
    basis = LandmarkBasis(Gaussian(), Y)
    b = functional(lambda f, x: inner(grad(f), getattr(x, target)))
    with pytest.raises(ValueError, match=r"a field of vectors of shape \(n, 3\); the field has rows of shape"):
        Measure(basis, basis, {"gram": gram}, {"b": b})([BATCH])


# bases as values


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "polynomial", "mixed sum"])
def test_values_and_states(kernel: str) -> None:
    k, plain = KERNELS[kernel]
    basis = Concatenated((LandmarkBasis(k, Y), ConstantBasis(3)))
    expected = np.vstack([[[plain(x, y) for x in BATCH["x"]] for y in Y], np.ones((1, 13))])
    assert_close(basis.values(BATCH["x"]), expected, 1e-14)
    single = basis.values(BATCH["x"], "float32")
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    copy = copied(basis)
    assert np.array_equal(copy.values(BATCH["x"]), basis.values(BATCH["x"]))
    assert (copy.size, copy.dimension, copy.order) == (5, 3, k.order)


def test_bases_refused() -> None:
    with pytest.raises(ValueError, match=r"landmarks are points \(p, d\); they have shape \(4,\)"):
        LandmarkBasis(Gaussian(), np.ones(4))
    with pytest.raises(ValueError, match=r"landmarks must be finite; row 1 holds NaN or infinity: leave such rows out"):
        LandmarkBasis(Gaussian(), np.array([[0.0, 1.0], [np.inf, 1.0]]))
    with pytest.raises(TypeError, match=r"a LandmarkBasis takes a kernel of .*\(1.0\); got 'gaussian'"):
        LandmarkBasis("gaussian", np.ones((2, 2)))  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="functions of the same variables, the columns of X; they have 2 and 3 of them"
    ):
        Concatenated((ConstantBasis(2), ConstantBasis(3)))
    with pytest.raises(ValueError, match="Concatenated takes one basis or more; got none"):
        Concatenated(())
    with pytest.raises(TypeError, match=r"the basis of a kernel is LandmarkBasis\(kernel, landmarks\); got \(Gaussian"):
        Concatenated((Gaussian(1.0),))  # type: ignore[arg-type]
    assert Concatenated([ConstantBasis(2)]).bases == (ConstantBasis(2),)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"asks for basis\.Wavelets, which this daskspectral does not have"):
        decode({"$class": "basis.Wavelets", "state": {}}, Basis)


def test_integer_points_and_landmarks() -> None:
    x, y = np.arange(12).reshape(6, 2) % 5, np.array([[0, 1], [2, 2]])
    for k in (Exponential(2.0), Polynomial(2), Gaussian() + Linear()):
        whole, real = LandmarkBasis(k, y), LandmarkBasis(k, y.astype(float))
        found = measure_one(whole, whole, schroedinger, {"x": x, "potential": x[:, 0]})
        expected = measure_one(real, real, schroedinger, {"x": x.astype(float), "potential": x[:, 0].astype(float)})
        assert np.array_equal(found, expected)
