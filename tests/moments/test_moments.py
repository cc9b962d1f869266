"""Moments add, know what they measured, and travel."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.forms import Form, along, dirichlet, form, functional, grad, gram, inner, partial
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.manifolds import Circle, FlatTorus, Implicit, Sphere
from daskspectral.moments import Measure, Moments, block_rows, update_digest
from daskspectral.operators import Laplacian, Operator, SymmetricForm
from daskspectral.registry import decode, encode, foreign

RNG = np.random.default_rng(4)
X, Y = RNG.standard_normal((40, 3)), RNG.standard_normal((5, 3))
WEIGHT = RNG.random(40)


def flat(x: Any) -> Any:
    return np.tile([0.0, 0.0, 1.0], (len(x), 1))


def measure(
    rows: slice = slice(None),
    *,
    kernel: Kernel | None = None,
    landmarks: Any = Y,
    operator: Operator | None = None,
    dtype: str = "float64",
    constant: bool = True,
    preparation: Any = None,
    functionals: Any = None,
) -> Moments:
    operator = operator or Laplacian()
    part = LandmarkBasis(kernel or Gaussian(0.8), landmarks)
    basis = Concatenated((ConstantBasis(3), part)) if constant else part
    task = Measure(basis, basis, operator.forms, functionals or {}, operator, dtype)
    arrays = task([{"x": X[rows], "weight": WEIGHT[rows]}])
    weight = float(WEIGHT[rows].sum())
    return Moments(arrays, weight, len(X[rows]), basis, operator, 1, dtype, preparation or {})


def test_moments_add() -> None:
    a, b, c, whole = measure(slice(9)), measure(slice(9, 30)), measure(slice(30, None)), measure()
    total = a + b + c
    assert total.count == 40
    assert total.skipped == 3
    assert total.weight == pytest.approx(WEIGHT.sum(), rel=1e-15)
    assert total.fingerprint == whole.fingerprint
    for name in ("form", "gram"):
        np.testing.assert_allclose(total.arrays[name], whole.arrays[name], rtol=0, atol=1e-13)
        np.testing.assert_allclose(((b + c) + a).arrays[name], total.arrays[name], rtol=0, atol=1e-13)
    before = a.arrays["gram"].copy()
    assert (a + b).arrays["gram"] is not a.arrays["gram"]
    assert np.array_equal(a.arrays["gram"], before)


def test_the_mean_is_weighted() -> None:
    phi = np.exp(-((X[None] - Y[:, None]) ** 2).sum(axis=2) / (2 * 0.8**2))
    gradient = -phi[:, :, None] * (X[None] - Y[:, None]) / 0.8**2
    moments = measure()
    np.testing.assert_allclose(
        moments.mean("gram")[1:, 1:], np.einsum("ik,jk,k->ij", phi, phi, WEIGHT) / WEIGHT.sum(), rtol=1e-12
    )
    np.testing.assert_allclose(
        moments.mean("form")[1:, 1:],
        np.einsum("ika,jka,k->ij", gradient, gradient, WEIGHT) / WEIGHT.sum(),
        rtol=0,
        atol=1e-14,
    )
    assert moments.mean("gram")[0, 0] == pytest.approx(1, rel=1e-15)
    assert moments.mean("form").dtype == np.float64


OTHERS: dict[str, dict[str, Any]] = {
    "scale": {"kernel": Gaussian(0.9)},
    "kernel": {"kernel": Exponential(0.8)},
    "multiple": {"kernel": 2 * Gaussian(0.8)},
    "landmarks": {"landmarks": Y + np.spacing(Y)},
    "order of landmarks": {"landmarks": Y[::-1]},
    "number of landmarks": {"landmarks": Y[:4]},
    "constant": {"constant": False},
    "dtype": {"dtype": "float32"},
    "preparation": {"preparation": {"columns": [0, 1, 2]}},
    "operator": {"operator": Laplacian(Sphere(3))},
    "form": {"operator": SymmetricForm(dirichlet)},
}


def test_fingerprints() -> None:
    prints = {name: measure(**options).fingerprint for name, options in OTHERS.items()}
    same = measure().fingerprint
    assert len({same, *prints.values()}) == 1 + len(prints)
    assert measure(slice(3)).fingerprint == same
    assert measure(kernel=Gaussian(np.float64(0.8))).fingerprint == same
    assert measure(landmarks=Y.tolist()).fingerprint == same
    numbers: list[Any] = [1, 1.0, np.float32(1), np.int64(1)]
    ones = [Gaussian(scale) for scale in numbers]
    assert len({measure(kernel=k).fingerprint for k in ones}) == 1
    assert len({measure(preparation={"columns": c}).fingerprint for c in ((1, 2), [1, 2])}) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_moments_of_different_things_do_not_add(name: str) -> None:
    other = measure(**OTHERS[name])
    match = "moments of different operators" if name in ("operator", "form") else "give the landmarks of the first"
    with pytest.raises(ValueError, match=match):
        measure() + other
    with pytest.raises(ValueError, match=match):
        other + measure()


def test_surfaces_whose_forms_read_the_same_do_not_add() -> None:
    sphere, plane = (measure(operator=Laplacian(m)) for m in (Sphere(3), Implicit(flat, 3)))
    assert sphere.operator.forms == plane.operator.forms
    assert sphere.fingerprint != plane.fingerprint
    with pytest.raises(ValueError, match=r"different operators do not add: Laplacian\(manifold=Sphere\(d=3\)\)"):
        sphere + plane
    assert (plane + measure(operator=Laplacian(Implicit(flat, 3)))).count == 80


def test_moments_with_and_without_a_right_hand_side_do_not_add() -> None:
    mass = {"mass": functional(lambda f, x: inner(f, 1))}
    with_mass = measure(functionals=mass)
    assert (with_mass + with_mass).arrays["mass"].shape == (6,)
    for pair in [(measure(), with_mass), (with_mass, measure())]:
        with pytest.raises(ValueError, match="moments of different forms do not add"):
            pair[0] + pair[1]
    with pytest.raises(TypeError):
        measure() + 1  # type: ignore[operator]


def test_digests_tell_structures_apart() -> None:
    def digest(value: Any) -> list[bytes]:
        parts: list[bytes] = []

        class Hash:
            update = staticmethod(parts.append)

        update_digest(Hash, value)
        return [b"".join(parts)]

    values = [
        [1, 23], [12, 3], [[1], 23], [1, [23]], ["1", "23"], [], ["a"], [1.0, 1.0], None, True, 1, "1",
        {"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}, {}, {"a": []},
        np.ones(2), np.ones((1, 2)), np.ones(2, np.float32),
    ]  # fmt: skip
    assert len({digest(v)[0] for v in values}) == len(values)
    assert digest({"a": 1, "b": 2.5}) == digest({"b": 2.5, "a": 1.0})


@pytest.mark.parametrize("dump", [pickle.dumps, cloudpickle.dumps])
def test_measures_and_moments_pickle(dump: Callable[[Any], bytes]) -> None:
    basis = Concatenated((ConstantBasis(3), LandmarkBasis(Exponential(), Y)))
    operator = Laplacian(Sphere(3))
    task = Measure(basis, basis, operator.forms, {"mass": functional(lambda f, x: inner(f, 1))}, operator, rows=7)
    expected = task([{"x": X}])
    copy = pickle.loads(dump(task))
    assert copy.left is copy.right  # what the structured sums rest on
    found = copy([{"x": X}])
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    moments = Moments(expected, 40.0, 40, basis, operator)
    again = pickle.loads(dump(moments))
    assert again.fingerprint == moments.fingerprint
    assert (again + moments).weight == 80


def test_block_rows_depend_on_the_basis_alone() -> None:
    assert [block_rows(p) for p in (1, 128, 129, 384, 385, 4000)] == [2048, 2048, 1024, 1024, 2048, 2048]


# operators


@form
def drifting(f: Any, g: Any, x: Any) -> Any:
    return inner(f, along(g, x.drift))


@form
def hessians(f: Any, g: Any, x: Any) -> Any:
    return inner(partial(f, 2, 0), partial(g, 2, 0)) + inner(grad(f), grad(g))


def test_operators_say_what_they_measure() -> None:
    assert Laplacian().forms == {"form": dirichlet, "gram": gram}
    assert Laplacian().derivative_order == 1
    assert Laplacian(Circle()).form.fields == {"x", "tangent"}
    assert Laplacian(FlatTorus(3)).form.fields == {"x", "tangent"}
    assert Laplacian(Sphere(4)).form.fields == {"x", "normal"}
    assert Laplacian(Implicit(flat, 3, 1)).form.fields == {"x", "normal"}
    assert Laplacian(Implicit(flat, 2, 1)).form.fields == {
        "x",
        "normal",
    }  # a curve of which no tangents are known
    own = SymmetricForm(hessians, constants=True)
    assert own.derivative_order == 2
    assert own.kills_constants
    assert own.symmetric
    own.check(2)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Laplacian(Sphere(3)).check(4), "lives in 3 dimensions and the data have 4 columns"),
        (
            lambda: SymmetricForm(hessians).check(3),
            r"the data have 3 columns, and a form takes the orders \(2, 0\)",
        ),
        (lambda: SymmetricForm(drifting), "the form drifting is not symmetric"),
        (lambda: encode(Laplacian(Implicit(lambda x: x, 2))), "move it into a module"),
        (
            lambda: decode({"$class": "operators.Heat", "state": {}}, Operator),
            "operators.Heat, which this",
        ),
    ],
)
def test_operators_refused(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.parametrize("manifold", [None, Sphere(3), Circle(), FlatTorus(2), Implicit(flat, 3)])
def test_states_of_operators(manifold: Any) -> None:
    state = encode(Laplacian(manifold))
    assert decode(state, Operator, trusted=foreign(state)) == Laplacian(manifold)


def test_an_operator_of_ones_own() -> None:
    @dataclass(frozen=True)
    class Shifted(Operator):
        shift: float
        name: str = "shifted"

        @property
        def form(self) -> Form:
            return form(lambda f, g, x: inner(grad(f), grad(g)) + self.shift * inner(f, g))

        def state(self) -> dict[str, Any]:
            return {"operator": self.name}

    one, two = measure(operator=Shifted(1.0)), measure(operator=Shifted(2.0))
    assert one.fingerprint != two.fingerprint
    np.testing.assert_allclose(two.arrays["form"] - one.arrays["form"], one.arrays["gram"], rtol=0, atol=1e-12)
    assert (one + replace(one, skipped=0)).skipped == 1
    with pytest.raises(ValueError, match="different operators"):
        one + two
    assert measure(kernel=Polynomial(2), operator=Shifted(1.0)).operator.forms["gram"] is gram
