"""Losses against explicit sums over rows, with values and derivatives of the network from its numpy evaluation."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral import operators as op
from daskspectral.basis import NeuralBasis
from daskspectral.basis.evaluation import Arena
from daskspectral.forms.differentiable import form_diagonal, form_matrices, functional_vectors
from daskspectral.moments.measure import Measure, block_of
from daskspectral.neural import Loss
from daskspectral.operators import Operator

jax = pytest.importorskip("jax", reason="networks are trained by JAX: extra `neural`")
Array = NDArray[Any]


D, ROWS = 3, 24


OPERATORS: dict[str, Operator] = {
    "laplacian": op.Laplacian(),
    "schroedinger": op.Schroedinger("potential"),
    "reversible": op.Generator(diffusion=1.0, reversible=True),  # whose eigenvalues go down
    "anisotropic": op.AnisotropicDiffusion("matrices"),
    "tangents": op.TangentPropagation("directions"),
    "augmentation": op.Augmentation(3),
    "cross": op.Cross(),
    "centred": op.Cross(center=True),
    "transfer": op.Transfer(2),
}


def network(d: int = D, outputs: int = 4, seed: int = 0, **options: Any) -> NeuralBasis:
    """A small network at random weights, of points with a mean and a scale of their own."""
    rng = np.random.default_rng(seed + 100)
    place = {"centre": rng.normal(size=d), "scale": rng.uniform(0.5, 2, d)}
    return NeuralBasis((7, 5), **options).initialised(d, outputs=outputs, seed=seed, **place)


def fields_of(operator: Operator, seed: int = 0, rows: int = ROWS) -> dict[str, Array]:
    """Rows of everything that some operator reads."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(rows, D, D))
    found = {
        "x": rng.normal(size=(rows, D)),
        "potential": rng.uniform(0.5, 2, rows),
        "matrices": roots @ roots.transpose(0, 2, 1),
        "directions": rng.normal(size=(rows, 2, D)),
        "u": rng.normal(size=(rows, D)),
    }
    found = {name: v for name, v in found.items() if name in operator.data_fields or name == "x"}
    views = {view: rng.normal(size=(rows, D)) for view in operator.views if view != "x"}
    fields = {**found, **views}
    return dict(block_of(fields, operator, "float64", Arena()).fields)


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


@pytest.mark.parametrize(("i", "name"), list(enumerate(OPERATORS)))
def test_forms_in_jax_are_the_measured_ones(i: int, name: str) -> None:
    operator = OPERATORS[name]
    basis = network(features="outputs", activation=("tanh", "silu")[i % 2])
    fields = fields_of(operator)
    known, f, data = measured(operator, basis, fields), function(basis), in_jax(fields)
    for form_name, form in operator.forms.items():
        found = form_matrices(form.expression, f, f, data)[0]
        np.testing.assert_allclose(found, known[form_name], rtol=0, atol=1e-12 * np.abs(known[form_name]).max())
        np.testing.assert_allclose(form_diagonal(form.expression, f, data), np.diag(found), rtol=1e-12, atol=1e-13)
    for functional_name, functional in operator.functionals.items():
        found = functional_vectors(functional.expression, f, data)[0]
        np.testing.assert_allclose(found, known[functional_name], rtol=0, atol=1e-13)


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


@pytest.mark.parametrize("name", OPERATORS)
def test_losses_are_those_of_explicit_sums(name: str) -> None:
    operator, mu = OPERATORS[name], np.array([1.0, 2.0, 0.5, 4.0])
    basis, other = (network(features="outputs", seed=seed) for seed in (1, 2))
    two_sided = operator.solver.two_sided
    fields = fields_of(operator, seed=5)
    f, g = function(basis), function(other if two_sided else basis)
    found = float(Loss.of(operator)(f, g, in_jax(fields), 1.0 if two_sided else jax.numpy.asarray(mu)))
    wanted = explicit(operator, basis, other if two_sided else basis, fields, mu)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_a_weight_counts_as_so_many_rows() -> None:
    operator, basis = OPERATORS["augmentation"], network(features="outputs")
    fields = fields_of(operator, rows=8)
    times = np.array([1, 3, 2, 2, 1, 3, 2, 2])
    f = function(basis)
    whole = in_jax({k: np.repeat(v, times, axis=0) for k, v in fields.items()})
    weights = jax.numpy.asarray(times / times.mean())
    for form in operator.forms.values():
        some = form_matrices(form.expression, f, f, in_jax(fields), weights)[0]
        np.testing.assert_allclose(some, form_matrices(form.expression, f, f, whole)[0], rtol=1e-12)


def test_operators_without_a_loss_are_refused() -> None:
    drift = dsp.forms.form(lambda f, g, x: dsp.forms.inner(f, dsp.forms.partial(g, 1, 0, 0)))
    with pytest.raises(ValueError, match=r"no loss is known for .*, which is neither symmetric"):
        Loss.of(op.BilinearForm(drift, "eigen"))
    assert Loss.of(op.Transfer(3, "eigen")).two_sided  # by the operator between the same spaces
    assert not Loss.of(op.Generator("drift", 1.0)).two_sided  # by its reversible part
