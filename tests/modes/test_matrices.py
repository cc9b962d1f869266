"""Modes to matrices, against direct sums over rows of products of functions, for every operator that has modes."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral import operators
from daskspectral.basis.lattice import SpanBasis
from daskspectral.forms import Field, along, along_each, form, inner, second
from daskspectral.manifolds import Sphere
from daskspectral.modes.matrices import form_matrix, terms_of, truncated, weights_of
from daskspectral.moments import Measure
from daskspectral.moments.moments import matrices_of
from daskspectral.moments.summing import SumTask
from daskspectral.operators.regression import Regression
from tests.modes.common import ERRORS, METHODS, direct, lattice_of, waves

N = 90


def batch_of(d: int, n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(d)
    factors = rng.standard_normal((n, d, 2))
    return {
        "x": rng.uniform(-1, 1, (n, d)),
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


DERIVATIVES: Any = {((1, 0), (1, 0)): "stiffness", ((2, 0), (0, 0)): Field("matrix")[0, 0], ((1, 2), (0, 1)): 0.7}
OPERATORS: dict[str, tuple[Any, int]] = {  # with the number of variables
    "Laplacian": (operators.Laplacian(), 3),
    "on a sphere": (operators.Laplacian(Sphere(3)), 3),
    "Schroedinger": (operators.Schroedinger("potential"), 1),
    "diffusion": (operators.AnisotropicDiffusion("diffusion"), 3),
    "diffusion by factors": (operators.AnisotropicDiffusion("sigma", factored=True), 2),
    "differential": (operators.DifferentialOperator(DERIVATIVES), 2),
    "generator": (operators.Generator("drift", "sigma"), 2),
    "reversible": (operators.Generator(diffusion="sigma", reversible=True), 2),
    "own": (operators.SymmetricForm(plates), 2),
    "own, skew": (operators.BilinearForm(skew), 2),
    "regression": (Regression(gradients=True, targets=2), 2),
}


def summed(measure: Any, operator: operators.Operator, batch: dict[str, Any], cuts: Any = (37,)) -> dict[str, Any]:
    """The sums of a task over the batch, which comes in parts."""
    edges = [0, *cuts, len(batch["x"])]
    parts = [{k: v[a:b] for k, v in batch.items()} for a, b in itertools.pairwise(edges)]
    return SumTask(measure, operator)(parts)


def modes_of(operator: operators.Operator, lattice: Any, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
    return summed(Measure(lattice, lattice, operator.forms, operator.functionals, operator), operator, batch, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", OPERATORS)
def test_matrices_of_modes_are_direct_sums(name: str, method: str) -> None:
    operator, d = OPERATORS[name]
    lattice, batch = lattice_of(d, method), batch_of(d)
    if name == "on a sphere":
        batch["x"] = Sphere(3).sample(N, np.random.default_rng(0))
    found = matrices_of(lattice, operator, modes_of(operator, lattice, batch))
    wanted = modes_of(operator, SpanBasis(lattice, np.eye(lattice.size)), batch)
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        scale = max(np.abs(values).max(), 1e-3)
        np.testing.assert_allclose(found[name], values, rtol=0, atol=ERRORS[method] * scale, err_msg=name)


@given(data=st.data())
def test_any_pair_of_derivatives(data: Any) -> None:
    """One term of any two multi-indices, by the definition of the functions and of the modes; linear in these."""
    d = data.draw(st.integers(1, 3))
    lattice, rng = lattice_of(d, orders=(2, 1, 1)[:d]), np.random.default_rng(0)
    left, right = (tuple(data.draw(st.lists(st.integers(0, 3), min_size=d, max_size=d))) for _ in range(2))
    x, v = rng.uniform(-1, 1, (20, d)), rng.standard_normal(20)
    operator = operators.DifferentialOperator({(left, right): "v"}, solver="singular")
    (term,) = terms_of(operator.form.expression, d)
    modes = direct(tuple(2 * m for m in lattice.orders), lattice.angles(x), v[None])[0]
    found = form_matrix(lattice.frequencies, [term], {term.weight: modes})
    wanted = (waves(lattice, x, left) * v) @ waves(lattice, x, right).T
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * max(1e-3, np.abs(wanted).max()))


def test_lower_frequencies_need_the_middle_modes() -> None:
    lattice, operator, batch = lattice_of(2), OPERATORS["own, skew"][0], batch_of(2)
    modes = modes_of(operator, lattice, batch)
    lower = lattice.truncated((1, 2))
    places = lattice.frequencies.places(lower.frequencies)
    whole, part = (matrices_of(basis, operator, modes) for basis in (lattice, lower))
    np.testing.assert_array_equal(part["form"], whole["form"][np.ix_(places, places)])
    np.testing.assert_array_equal(part["first"], whole["first"][places])
    assert truncated(np.zeros((3, 13, 9)), (1, 2)).shape == (3, 5, 9)


def test_functions_at_two_points_have_no_modes() -> None:
    with pytest.raises(ValueError, match="modes"):
        weights_of(operators.Cross().forms, operators.Cross().functionals, 2)
