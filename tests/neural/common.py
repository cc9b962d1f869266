"""What tests of networks share: small networks, and every kind of operator that has a loss, with fields of its data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import NeuralBasis
from daskspectral.basis.evaluation import Arena
from daskspectral.moments.measure import block_of, of_operator
from daskspectral.operators import (
    AnisotropicDiffusion,
    Augmentation,
    Cross,
    Generator,
    Laplacian,
    Operator,
    Schroedinger,
    SymmetricForm,
    TangentPropagation,
    Transfer,
)

Array = NDArray[Any]
D, ROWS = 3, 24


@dsp.form
def curvature(f: Any, g: Any, x: Any) -> Any:
    """Second derivatives, a weight, and a sum of terms."""
    return (
        dsp.inner(dsp.second(f), dsp.second(g), weight=x.potential)
        + 0.5 * dsp.inner(dsp.partial(f, 1, 1, 0), dsp.partial(g, 1, 1, 0))
        + dsp.inner(f + 2 * dsp.along(f, x.u), g + 2 * dsp.along(g, x.u))
    )


OPERATORS: dict[str, Operator] = {
    "laplacian": Laplacian(),
    "schroedinger": Schroedinger("potential"),
    "reversible": Generator(diffusion=1.0, reversible=True),  # whose eigenvalues go down
    "anisotropic": AnisotropicDiffusion("matrices"),
    "tangents": TangentPropagation("directions"),
    "augmentation": Augmentation(3),
    "cross": Cross(),
    "centred": Cross(center=True),
    "transfer": Transfer(2),
    "own form": SymmetricForm(curvature),
}
FIRST_ORDER = [name for name in OPERATORS if name != "own form"]


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
    return dict(of_operator(block_of(fields, "float64", Arena()), operator).fields)
