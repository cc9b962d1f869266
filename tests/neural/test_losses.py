"""Losses against explicit sums over rows, with values and derivatives of the network from its numpy evaluation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral import operators as op
from daskspectral.basis import NetworkBasis, NeuralBasis
from daskspectral.moments.measure import Measure, block_of
from daskspectral.neural import Loss
from daskspectral.operators import Operator
from daskspectral.workspace import Workspace

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
    "centered": op.Cross(center=True),
    "transfer": op.Transfer(2),
}


def network(seed: int) -> NetworkBasis:
    """A small network at random weights, of points with a mean and a scale."""
    rng = np.random.default_rng(seed + 100)
    network = NeuralBasis((7, 5), features="outputs").initialized(np.zeros((1, D)), outputs=4, seed=seed)
    return replace(network, center=rng.normal(size=D), scale=rng.uniform(0.5, 2, D))


def fields_of(operator: Operator) -> dict[str, Array]:
    """Rows of everything that some operator reads."""
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(ROWS, D, D))
    found = {
        "potential": rng.uniform(0.5, 2, ROWS),
        "matrices": roots @ roots.transpose(0, 2, 1),
        "directions": rng.normal(size=(ROWS, 2, D)),
    }
    fields = {name: v for name, v in found.items() if name in operator.data_fields}
    fields |= {view: rng.normal(size=(ROWS, D)) for view in ("x", *operator.views)}
    return dict(block_of(fields, operator, "float64", Workspace()).fields)


@pytest.fixture(autouse=True)
def double() -> Any:
    """Double precision."""
    with jax.enable_x64(True):
        yield


def function(basis: NetworkBasis) -> Any:
    parameters = {k: [jax.numpy.asarray(v) for v in values] for k, values in basis.variables.items()}
    return lambda x: basis.apply(parameters, x - basis.center)


def measured(operator: Operator, basis: NetworkBasis, fields: dict[str, Array]) -> dict[str, Array]:
    """The mean forms and functionals of a network's outputs as every pass measures them, in numpy."""
    measure = Measure(basis, basis, operator.forms, operator.functionals, None)
    sums = measure([fields])
    return {name: values / len(fields["x"]) for name, values in sums.items()}


def explicit(operator: Operator, basis: NetworkBasis, other: NetworkBasis, fields: dict[str, Array], mu: Any) -> float:
    """The loss by its definition, from the measured matrices of every other row."""
    halves = [{name: values[h::2] for name, values in fields.items()} for h in range(2)]
    if not operator.solver.two_sided:
        grams = [measured(operator, basis, half)["gram"] - np.eye(4) for half in halves]
        energy = np.diag(measured(operator, basis, fields)["form"])
        assert (operator.solver.signed(energy) >= 0).all()
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


@pytest.mark.one_in(9)
@pytest.mark.parametrize("name", OPERATORS)
def test_losses_are_those_of_explicit_sums(name: str) -> None:
    operator, mu = OPERATORS[name], np.array([1.0, 2.0, 0.5, 4.0])
    basis, other = (network(seed) for seed in (1, 2))
    two_sided = operator.solver.two_sided
    fields = fields_of(operator)
    f, g = function(basis), function(other if two_sided else basis)
    rows = {name: jax.numpy.asarray(values) for name, values in fields.items()}
    found = float(Loss.of(operator)(f, g, rows, 1.0 if two_sided else jax.numpy.asarray(mu)))
    wanted = explicit(operator, basis, other if two_sided else basis, fields, mu)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_operators_without_a_loss_are_refused() -> None:
    drift = dsp.forms.form(lambda f, g, x: dsp.forms.inner(f, dsp.forms.partial(g, 1, 0, 0)))
    with pytest.raises(ValueError, match="operator"):
        Loss.of(op.BilinearForm(drift, "eigen"))
    assert Loss.of(op.Transfer(3, "eigen")).two_sided  # by the operator between the same spaces
    assert not Loss.of(op.Generator("drift", 1.0)).two_sided  # by its reversible part
