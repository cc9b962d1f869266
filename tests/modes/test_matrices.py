"""Modes to matrices, against direct sums over rows of products of functions, for every operator that has modes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskspectral.basis import FourierLattice
from daskspectral.forms import Field, along, along_each, form, functional, grad, inner, partial, second
from daskspectral.manifolds import Circle, FlatTorus, PeriodicBox, Sphere
from daskspectral.modes import nufft, pairing_terms_of, terms_of
from daskspectral.modes.matrices import form_matrix, functional_vector, truncated
from daskspectral.modes.sums import mode_sum
from daskspectral.modes.terms import ModeWeight
from daskspectral.moments import Measure
from daskspectral.moments.lattice import expanded
from daskspectral.moments.modes import ModeMeasure, weights_of
from daskspectral.moments.summing import SumTask
from daskspectral.operators import (
    AnisotropicDiffusion,
    BilinearForm,
    DifferentialOperator,
    Generator,
    Laplacian,
    Operator,
    PartialDerivative,
    Schroedinger,
    SymmetricForm,
    TangentPropagation,
)
from daskspectral.operators.regression import Regression
from tests.basis.common import triple_loop
from tests.basis.test_lattice import waves
from tests.modes.test_mode_sums import METHODS

N = 90
ORDERS = {1: (7,), 2: (3, 2), 3: (1, 2, 1), 4: (1, 1, 1, 2)}
TOLERANCE = {"matmul": 1e-12, "nufft": 1e-8}


def lattice_of(d: int, method: str = "matmul", orders: Any = None) -> FourierLattice:
    """A lattice of d variables, with sides of its own, the last but one periodic."""
    periods = None if d < 2 else [*[None] * (d - 2), 3.0, None]
    box = [(-1.1, 1.1 + a / 4) for a in range(d)]
    return FourierLattice(orders or ORDERS[d], box=box, periods=periods, method=method)


def batch_of(d: int, n: int = N, points: Any = None) -> dict[str, Any]:
    rng = np.random.default_rng(d)
    factors = rng.standard_normal((n, d, 2))
    return {
        "x": rng.uniform(-1, 1, (n, d)) if points is None else points,
        "weight": rng.uniform(0.1, 2, n),
        "potential": rng.standard_normal(n),
        "stiffness": rng.uniform(1, 2, n),
        "drift": rng.standard_normal((n, d)),
        "sigma": rng.standard_normal((n, d, 3)),
        "diffusion": factors @ factors.transpose(0, 2, 1) + np.eye(d),
        "directions": rng.standard_normal((n, 2, d)),
        "matrix": rng.standard_normal((n, d, d)),
        "y": rng.standard_normal((n, 2)),
        "gradients": rng.standard_normal((n, 2, d)),
    }


def index(d: int, *orders: int) -> tuple[int, ...]:
    return (*orders, *(0,) * d)[:d]


@form
def plates(f: Any, g: Any, x: Any) -> Any:
    """Second derivatives, weighed and not, and derivatives along fields of both functions."""
    bent = inner(second(f), second(g), weight=x.stiffness) + 0.3 * inner(second(f, x.matrix), second(g, x.matrix))
    return bent - 2 * inner(f, g, weight=x.potential) + inner(along(f, x.drift), along(g, x.drift), weight=x.stiffness)


@form
def skew(f: Any, g: Any, x: Any) -> Any:
    """Not symmetric: sums of atoms with weights of their own, on one side and on both."""
    left = 0.5 * f + x.stiffness * along(f, x.drift)
    return inner(left, along(g, x.drift) * x.potential + second(g)) + inner(
        along_each(f, x.directions), along_each(g, x.directions), weight=x.potential
    )


def operators(d: int) -> dict[str, Operator]:
    one, two, mixed = index(d, 1), index(d, 2), index(d, 1, 2)
    last = (*(0,) * (d - 1), 1)
    return {
        "Laplacian": Laplacian(),
        "Schroedinger": Schroedinger("potential"),
        "diffusion": AnisotropicDiffusion("diffusion"),
        "diffusion by factors": AnisotropicDiffusion("sigma", factored=True),
        "tangents": TangentPropagation("drift"),
        "several tangents": TangentPropagation("directions"),
        "constant coefficients": DifferentialOperator({(one, one): 2.0, (last, last): 1.0, (two, two): 0.1}),
        "fields for coefficients": DifferentialOperator(
            {(one, one): "stiffness", (two, index(d)): Field("matrix")[0, 0]}
        ),
        "mixed": DifferentialOperator({(mixed, last): 0.7, (index(d), one): "potential", (index(d), index(d)): 0.2}),
        "first column": PartialDerivative(0),
        "generator": Generator("drift", "sigma"),
        "generator of isotropic noise": Generator("drift", 1.4),
        "reversible": Generator(diffusion="sigma", reversible=True),
        "reversible, isotropic": Generator(diffusion=1.4, reversible=True),
        "own": SymmetricForm(plates),
        "own, skew": BilinearForm(skew),
        "regression": Regression(gradients=True, targets=2),
        "regression on one": Regression(),
    }


def summed(measure: Any, operator: Operator, batch: dict[str, Any], cuts: Any = (37,)) -> dict[str, Any]:
    """The sums of a task over the batch, which comes in parts."""
    edges = [0, *cuts, len(batch["x"])]
    parts = [{k: v[a:b] for k, v in batch.items()} for a, b in itertools.pairwise(edges)]
    return SumTask(measure, operator)(parts)


def both(lattice: FourierLattice, operator: Operator, batch: dict[str, Any]) -> tuple[Any, Any]:
    """The sums of forms and functionals, from modes and by direct products of functions."""
    modes = summed(ModeMeasure(lattice, weights_of(operator, lattice.dimension), operator), operator, batch)
    direct = Measure(lattice, lattice, operator.forms, operator.functionals, operator)
    return expanded(lattice, operator, modes), summed(direct, operator, batch)


def assert_alike(found: Any, wanted: Any, tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert found[name].shape == wanted[name].shape, name
        scale = max(np.abs(wanted[name]).max(), 1e-3)
        np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("name", operators(2))
def test_matrices_of_modes_are_direct_sums(name: str, d: int, method: str) -> None:
    if d > nufft.DIMENSIONS and method == "nufft":
        method = "matmul"
    operator, batch = operators(d)[name], batch_of(d)
    if name == "regression on one":
        batch["y"] = batch.pop("gradients")[:, 0, 0]
    found, wanted = both(lattice_of(d, method), operator, batch)
    assert_alike(found, wanted, TOLERANCE[method])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("manifold", "d"),
    [(Circle(), 2), (Sphere(3), 3), (Sphere(4), 4), (FlatTorus(2), 4), (PeriodicBox([0, 0], [3, 3]), 2)],
)
def test_tangential_forms(manifold: Any, d: int, method: str) -> None:
    method = "matmul" if d > nufft.DIMENSIONS else method
    x = manifold.sample(N, np.random.default_rng(0))
    found, wanted = both(lattice_of(d, method), Laplacian(manifold), batch_of(d, points=x))
    assert_alike(found, wanted, TOLERANCE[method])


def test_the_sphere_needs_six_modes_beside_one() -> None:
    """x_a x_b, each once."""
    assert len(weights_of(Laplacian(Sphere(3)), 3)) == 1 + 6
    assert len(weights_of(Laplacian(), 3)) == 1
    assert len(weights_of(Schroedinger(), 2)) == 2
    assert len(weights_of(AnisotropicDiffusion(), 3)) == 1 + 6


def test_a_triple_loop() -> None:
    """Over pairs of functions and rows, without any code of the package but the order of the functions."""
    lattice, batch = lattice_of(2), batch_of(2, 11)
    x, w = batch["x"], batch["weight"]
    value, first, last = (waves(lattice, x, alpha) for alpha in ((0, 0), (1, 0), (0, 1)))
    along_drift = batch["drift"][:, 0] * first + batch["drift"][:, 1] * last
    laplacian = waves(lattice, x, (2, 0)) + waves(lattice, x, (0, 2))
    wanted = {
        "Laplacian": triple_loop(first, first, w) + triple_loop(last, last, w),
        "tangents": triple_loop(along_drift, along_drift, w),
        "generator of isotropic noise": triple_loop(value, along_drift + 0.98 * laplacian, w),
        "Schroedinger": triple_loop(first, first, w)
        + triple_loop(last, last, w)
        + triple_loop(value, value, w * batch["potential"]),
    }
    for name, matrix in wanted.items():
        operator = operators(2)[name]
        measure = ModeMeasure(lattice, weights_of(operator, 2), operator)
        sums = expanded(lattice, operator, summed(measure, operator, batch))
        np.testing.assert_allclose(sums["form"], matrix, rtol=0, atol=1e-12 * np.abs(matrix).max(), err_msg=name)
        np.testing.assert_allclose(sums["gram"], triple_loop(value, value, w), rtol=0, atol=1e-12 * w.sum())
        np.testing.assert_allclose(sums["first"], value @ w, rtol=0, atol=1e-12 * w.sum())


def modes_at(lattice: FourierLattice, x: Any, weights: dict[ModeWeight, Any]) -> Any:
    sums = mode_sum(tuple(2 * m for m in lattice.orders), "matmul")
    sums.add(lattice.angles(x), np.array(list(weights.values())))
    return dict(zip(weights, sums.result(), strict=True))


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_any_pair_of_derivatives(data: Any) -> None:
    """One term of any two multi-indices, by the definition of the functions."""
    d = data.draw(st.integers(1, 3))
    lattice, rng = lattice_of(d, orders=(2, 1, 1)[:d]), np.random.default_rng(0)
    left, right = (tuple(data.draw(st.lists(st.integers(0, 3), min_size=d, max_size=d))) for _ in range(2))
    x, v = rng.uniform(-1, 1, (20, d)), rng.standard_normal(20)
    operator = DifferentialOperator({(left, right): "v"}, solver="singular")
    (term,) = terms_of(operator.form.expression, d)
    found = form_matrix(lattice, [term], modes_at(lattice, x, {term.weight: v}))
    wanted = (waves(lattice, x, left) * v) @ waves(lattice, x, right).T
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * max(1e-3, np.abs(wanted).max()))


@settings(deadline=None, max_examples=30)
@given(a=st.floats(-3, 3), b=st.floats(-3, 3), d=st.integers(1, 3), cut=st.integers(0, N))
def test_matrices_are_linear_in_modes_and_modes_add_over_rows(a: float, b: float, d: int, cut: int) -> None:
    lattice, operator, batch = lattice_of(d), operators(d)["own"], batch_of(d)
    measure = ModeMeasure(lattice, weights_of(operator, d), operator)
    one, two, whole = (
        {k: v for k, v in SumTask(measure, operator)([part]).items() if k.startswith("modes")}
        for part in (
            {k: v[: max(cut, 1)] for k, v in batch.items()},
            {k: v[max(cut, 1) :] for k, v in batch.items()},
            batch,
        )
    )
    if cut < N:
        for name in whole:
            np.testing.assert_allclose(one[name] + two[name], whole[name], atol=1e-13 * N * 100)
        mixed = {name: a * one[name] + b * two[name] for name in whole}
        matrices = [expanded(lattice, operator, m)["form"] for m in (one, two, mixed)]
        scale = np.abs(matrices[0]).max() + np.abs(matrices[1]).max()
        np.testing.assert_allclose(matrices[2], a * matrices[0] + b * matrices[1], rtol=0, atol=1e-12 * scale)


def test_lower_frequencies_need_the_middle_modes() -> None:
    lattice, operator, batch = lattice_of(2), operators(2)["own, skew"], batch_of(2)
    modes = summed(ModeMeasure(lattice, weights_of(operator, 2), operator), operator, batch)
    lower = lattice.truncated((1, 2))
    places = lattice.places(lower)
    whole, part = expanded(lattice, operator, modes), expanded(lower, operator, modes)
    np.testing.assert_array_equal(part["form"], whole["form"][np.ix_(places, places)])
    np.testing.assert_array_equal(part["first"], whole["first"][places])
    assert truncated(np.zeros((3, 13, 9)), (1, 2)).shape == (3, 5, 9)


def test_functionals_of_derivatives_and_several_targets() -> None:
    @functional
    def slope(f: Any, x: Any) -> Any:
        return inner(grad(f), x.drift, weight=x.potential) + inner(partial(f, 1, 1), 2.0) + inner(f, x.potential)

    lattice, batch = lattice_of(2), batch_of(2)
    terms = pairing_terms_of(slope.expression, 2)
    weights = {t.weight: t.weight.of(batch) for t in terms}
    ones = {k: np.ones(N) if v is None else v for k, v in weights.items()}
    found = functional_vector(lattice, terms, modes_at(lattice, batch["x"], ones))
    x, v, u = batch["x"], batch["potential"], batch["drift"]
    wanted = (
        waves(lattice, x, (1, 0)) @ (u[:, 0] * v)
        + waves(lattice, x, (0, 1)) @ (u[:, 1] * v)
        + 2 * waves(lattice, x, (1, 1)).sum(axis=1)
        + waves(lattice, x, (0, 0)) @ v
    )
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11)
