"""Losses against explicit sums over rows, with values and derivatives of the network from its numpy evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import NeuralBasis
from daskspectral.basis.evaluation import Arena
from daskspectral.forms import Atom
from daskspectral.forms.differentiable import feature, form_diagonal, form_matrix, functional_vectors
from daskspectral.moments.measure import Measure, block_of
from daskspectral.neural import Loss, orthogonality
from daskspectral.operators import BilinearForm, Generator, Laplacian, Operator, Transfer
from tests.neural.common import FIRST_ORDER, OPERATORS, fields_of, network

jax = pytest.importorskip("jax")
Array = NDArray[Any]


@pytest.fixture(autouse=True)
def double() -> Any:
    """Double precision."""
    with jax.enable_x64(True):
        yield


def in_jax(fields: dict[str, Array]) -> dict[str, Any]:
    return {name: jax.numpy.asarray(values) for name, values in fields.items()}


def function(basis: NeuralBasis) -> Any:
    parameters = {k: [jax.numpy.asarray(v) for v in values] for k, values in basis.variables.items()}
    return lambda x: basis.apply(parameters, x - basis.origin)


def measured(operator: Operator, basis: NeuralBasis, fields: dict[str, Array]) -> dict[str, Array]:
    """The mean forms and functionals of a network's outputs as every pass measures them, in numpy."""
    measure = Measure(basis, basis, operator.forms, operator.functionals, None)
    sums = measure([fields])
    return {name: values / len(fields["x"]) for name, values in sums.items()}


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_forms_in_jax_are_the_measured_ones(name: str) -> None:
    operator = OPERATORS[name]
    basis, fields = network(features="outputs"), fields_of(operator)
    known, f, data = measured(operator, basis, fields), function(basis), in_jax(fields)
    for form_name, form in operator.forms.items():
        found = form_matrix(form.expression, f, f, data)
        np.testing.assert_allclose(found, known[form_name], rtol=0, atol=1e-12 * np.abs(known[form_name]).max())
        np.testing.assert_allclose(form_diagonal(form.expression, f, data), np.diag(found), rtol=1e-12, atol=1e-13)
    for functional_name, functional in operator.functionals.items():
        found = functional_vectors(functional.expression, f, data)[0]
        np.testing.assert_allclose(found, known[functional_name], rtol=0, atol=1e-13)


def test_forms_of_higher_order_are_those_of_finite_differences() -> None:
    """Second and mixed derivatives, a weight and a sum of terms, each entry by loops over rows."""
    operator, basis = OPERATORS["own form"], network(features="outputs")
    fields = fields_of(operator)
    x, step = fields["x"], 1e-3

    def values(points: Array) -> Array:
        return basis.values(points).T

    def slope(g: Any, direction: Array) -> Any:
        return lambda p: (
            (
                8 * (g(p + step * direction) - g(p - step * direction))
                - (g(p + 2 * step * direction) - g(p - 2 * step * direction))
            )
            / (12 * step)
        )

    e = np.eye(3)
    laplacian = sum(slope(slope(values, e[a]), e[a])(x) for a in range(3))
    mixed = slope(slope(values, e[0]), e[1])(x)
    sums = values(x) + 2 * slope(values, fields["u"])(x)
    wanted = np.zeros((4, 4))
    for row in range(len(x)):
        wanted += fields["potential"][row] * np.outer(laplacian[row], laplacian[row])
        wanted += 0.5 * np.outer(mixed[row], mixed[row]) + np.outer(sums[row], sums[row])
    f = function(basis)
    found = form_matrix(operator.form.expression, f, f, in_jax(fields))
    np.testing.assert_allclose(found, wanted / len(x), atol=1e-6 * np.abs(wanted / len(x)).max())


@pytest.mark.parametrize("activation", ["tanh", "silu", "softplus"])
def test_values_and_derivatives_in_numpy_are_those_of_jax(activation: str) -> None:
    basis = network(features="outputs", activation=activation)
    f, x = function(basis), np.random.default_rng(3).normal(size=(50, 3))
    np.testing.assert_allclose(basis.values(x).T, f(jax.numpy.asarray(x)), rtol=0, atol=1e-12)
    slopes = jax.vmap(jax.jacrev(lambda point: f(point[None])[0]))(jax.numpy.asarray(x))
    u = np.random.default_rng(4).normal(size=(50, 3))
    block = block_of({"x": x, "u": u}, "float64", Arena())
    alphas = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    atoms = [Atom("partial", alpha=alpha) for alpha in alphas]
    at = basis.at(block, atoms)
    for axis, atom in enumerate(atoms):
        np.testing.assert_allclose(at.feature(atom).T, slopes[:, :, axis], rtol=0, atol=1e-12)
        np.testing.assert_allclose(feature(f, atom, in_jax({"x": x})), slopes[:, :, axis], rtol=0, atol=1e-12)


def explicit(operator: Operator, basis: NeuralBasis, other: NeuralBasis, fields: dict[str, Array], mu: Any) -> float:
    """The loss by its definition, from the measured matrices of every other row."""
    halves = [{name: values[h::2] for name, values in fields.items()} for h in range(2)]
    if not operator.solver.two_sided:
        grams = [measured(operator, basis, half)["gram"] - np.eye(4) for half in halves]
        energy = np.diag(measured(operator, basis, fields)["form"])
        assert (energy <= 0).all() if operator.descending else (energy >= 0).all()
        return float(2 * np.sum(np.abs(energy) / mu) + np.sum(grams[0] * grams[1]))
    total, grams = 0.0, []
    for half in halves:
        f, g = basis.values(half["x"]), other.values(half[operator.right_view])
        if operator.center:
            f, g = f - f.mean(axis=1, keepdims=True), g - g.mean(axis=1, keepdims=True)
        total -= sum(f[i] @ g[i] for i in range(4)) / len(half["x"])
        grams.append((f @ f.T / len(half["x"]), g @ g.T / len(half["x"])))
    for i in range(2):
        total += 0.5 * np.sum(grams[i][0] * grams[1 - i][1])
    return float(total)


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_losses_are_those_of_explicit_sums(name: str) -> None:
    operator, mu = OPERATORS[name], np.array([1.0, 2.0, 0.5, 4.0])
    basis, other = (network(features="outputs", seed=seed) for seed in (1, 2))
    two_sided = operator.solver.two_sided
    fields = fields_of(operator, seed=5)
    f, g = function(basis), function(other if two_sided else basis)
    found = float(Loss.of(operator)(f, g, in_jax(fields), 1.0 if two_sided else jax.numpy.asarray(mu)))
    wanted = explicit(operator, basis, other if two_sided else basis, fields, mu)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("name", ["laplacian", "augmentation", "cross"])
def test_a_weight_counts_as_so_many_rows(name: str) -> None:
    operator, basis = OPERATORS[name], network(features="outputs")
    fields = fields_of(operator, rows=8)
    times = np.array([1, 3, 2, 2, 1, 3, 2, 2])
    f = function(basis)
    whole = in_jax({k: np.repeat(v, times, axis=0) for k, v in fields.items()})
    weights = jax.numpy.asarray(times / times.mean())
    for form in operator.forms.values():
        some = form_matrix(form.expression, f, f, in_jax(fields), weights)
        np.testing.assert_allclose(some, form_matrix(form.expression, f, f, whole), rtol=1e-12)


def test_the_square_of_equation_17_has_no_bias() -> None:
    """Over all ways to draw two halves of two rows each from four rows with replacement, its mean is |G - 1|^2."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 2))
    rows = np.array(np.meshgrid(*[np.arange(4)] * 4)).reshape(4, -1).T
    grams = [[values[list(r)].T @ values[list(r)] / 2 for r in (row[:2], row[2:])] for row in rows]
    mean = np.mean([float(orthogonality(jax.numpy.asarray(a), jax.numpy.asarray(b))) for a, b in grams])
    whole = values.T @ values / 4 - np.eye(2)
    np.testing.assert_allclose(mean, np.sum(whole**2), rtol=1e-10)


def test_the_minimum_of_equation_18_is_shrunk_eigenfunctions() -> None:
    """On the line, of functions sum_i W_ij cos(i x), with distinct mu: sqrt(1 - i^2 / mu_j)+ cos(i x), unrotated."""
    mu = jax.numpy.asarray([3.0, 5.0, 6.0])
    x = (jax.numpy.arange(256) + 0.5) * np.pi / 256
    waves = jax.numpy.arange(3)

    def functions(w: Any) -> Any:
        scale = jax.numpy.where(waves == 0, 1.0, np.sqrt(2))
        return lambda points: (scale * jax.numpy.cos(points * waves)) @ w

    loss = Loss.of(Laplacian())
    fields = {"x": jax.numpy.repeat(x, 2)[:, None]}  # both halves have the same rows
    step = jax.jit(jax.grad(lambda w: loss(functions(w), functions(w), fields, mu)))
    w = jax.numpy.asarray(np.eye(3) + 0.1 * np.random.default_rng(0).normal(size=(3, 3)))
    for _ in range(3000):
        w = w - 0.05 * step(w)
    shrunk = np.sqrt(np.maximum(1 - np.arange(3) ** 2 / np.asarray(mu), 0))
    np.testing.assert_allclose(np.abs(w), np.diag(shrunk), atol=2e-3)


def test_operators_without_a_loss_are_refused() -> None:
    drift = dsp.form(lambda f, g, x: dsp.inner(f, dsp.partial(g, 1, 0, 0)))
    with pytest.raises(ValueError, match=r"no loss is known for .*, which is neither symmetric"):
        Loss.of(BilinearForm(drift, "eigen"))
    assert Loss.of(Transfer(3, "eigen")).two_sided  # by the operator between the same spaces
    assert not Loss.of(Generator("drift", 1.0)).two_sided  # by its reversible part
