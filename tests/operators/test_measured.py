"""What one pass measures for each operator, against triple loops over rows and pairs of functions.

Values, gradients and second derivatives of the functions are written out here by hand.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.forms import Field
from daskspectral.kernels import Matern
from daskspectral.moments import Measure
from daskspectral.operators import (
    AnisotropicDiffusion,
    Augmentation,
    DifferentialOperator,
    Generator,
    Laplacian,
    Operator,
    PartialDerivative,
    Schroedinger,
    TangentPropagation,
    Transfer,
)
from tests.common import assert_close

N, D = 9, 2
RNG = np.random.default_rng(7)
LANDMARKS = RNG.standard_normal((4, D))
SIGMA = RNG.standard_normal((N, D, 3))
DIFFUSION = np.einsum("kam,kbm->kab", SIGMA, SIGMA)
FIELDS = {
    "x": RNG.standard_normal((N, D)),
    "x1": RNG.standard_normal((N, D)),
    "x2": RNG.standard_normal((N, D)),
    "y": RNG.standard_normal((N, 3)),
    "future": RNG.standard_normal((N, D)),
    "weight": RNG.random(N) + 0.5,
    "potential": RNG.standard_normal(N),
    "direction": RNG.standard_normal((N, D)),
    "directions": RNG.standard_normal((N, 5, D)),
    "drift": RNG.standard_normal((N, D)),
    "sigma": SIGMA,
    "diffusion": DIFFUSION,
}
Jets = list[tuple[float, Any, Any]]  # value, gradient and second derivatives of each function at one point


def matern(x: Any, y: Any) -> tuple[float, Any, Any]:
    u, a = x - y, math.sqrt(5) / 1.1
    r = math.sqrt(u @ u)
    e = math.exp(-a * r)
    slope = -(a**2) / 3 * (1 + a * r) * e
    return (1 + a * r + (a * r) ** 2 / 3) * e, slope * u, slope * np.eye(len(x)) + a**4 / 3 * e * np.outer(u, u)


BASIS = Concatenated((ConstantBasis(D), LandmarkBasis(Matern(2.5, 1.1), LANDMARKS)))


def jets(x: Any) -> Jets:
    return [(1.0, np.zeros(D), np.zeros((D, D))), *(matern(x, y) for y in LANDMARKS)]


@dataclass(frozen=True)
class Case:
    """An operator and its forms at one row: `form(f, g, row)` of jets at the views, the Grams as well."""

    operator: Operator
    form: Callable[[Any, Any, Mapping[str, Any]], float]
    gram: Callable[[Any, Any], float] = lambda f, g: f["x"][0] * g["x"][0]
    first: Callable[[Any], float] = lambda f: f["x"][0]


def pairs_of_views(f: Any, g: Any, views: tuple[str, ...]) -> float:
    pairs = list(itertools.permutations(views, 2))
    return sum((f[v][0] - f[w][0]) * (g[v][0] - g[w][0]) for v, w in pairs) / len(pairs)


def augmented(operator: Augmentation, views: tuple[str, ...]) -> Case:
    return Case(
        operator,
        lambda f, g, r: pairs_of_views(f, g, views),
        lambda f, g: sum(f[v][0] * g[v][0] for v in views) / len(views),
        lambda f: sum(f[v][0] for v in views) / len(views),
    )


def ito(f: Any, g: Any, row: Any, a: Any) -> float:
    _, gradient, hessian = g["x"]
    return float(f["x"][0] * (row["drift"] @ gradient + 0.5 * np.sum(a * hessian)))


VIEWS = ("x", "x1", "x2")
MIXED = {
    ((0, 1), (2, 0)): 0.3,
    ((1, 0), (0, 1)): "potential",
    ((0, 0), (0, 0)): -2,
    ((0, 0), (1, 1)): Field("drift")[1],
}


CASES: dict[str, Case] = {
    "laplacian": Case(Laplacian(), lambda f, g, r: f["x"][1] @ g["x"][1]),
    "partial derivative": Case(PartialDerivative(1), lambda f, g, r: f["x"][0] * g["x"][1][1]),
    "differential": Case(
        DifferentialOperator(MIXED),
        lambda f, g, r: (
            0.3 * f["x"][1][1] * g["x"][2][0, 0]
            + r["potential"] * f["x"][1][0] * g["x"][1][1]
            - 2 * f["x"][0] * g["x"][0]
            + r["drift"][1] * f["x"][0] * g["x"][2][0, 1]
        ),
    ),
    "diffusion": Case(AnisotropicDiffusion(), lambda f, g, r: f["x"][1] @ r["diffusion"] @ g["x"][1]),
    "schroedinger": Case(
        Schroedinger(), lambda f, g, r: f["x"][1] @ g["x"][1] + r["potential"] * f["x"][0] * g["x"][0]
    ),
    "generator": Case(Generator(diffusion="sigma"), lambda f, g, r: ito(f, g, r, r["diffusion"])),
    "reversible generator": Case(
        Generator(diffusion="sigma", reversible=True), lambda f, g, r: -0.5 * f["x"][1] @ r["diffusion"] @ g["x"][1]
    ),
    "several tangents": Case(
        TangentPropagation("directions"),
        lambda f, g, r: sum((f["x"][1] @ u) * (g["x"][1] @ u) for u in r["directions"]) / 5,
    ),
    "transfer": Case(Transfer(), lambda f, g, r: f["x"][0] * g["future"][0]),
    "three augmentations": augmented(Augmentation(3), VIEWS),
}


def at_views(row: int) -> list[dict[str, Any]]:
    """The jets of every function, by view."""
    seen = {v: jets(FIELDS[v][row]) for v in ("x", "x1", "x2", "future")}
    return [{v: functions[i] for v, functions in seen.items()} for i in range(BASIS.size)]


def triple_loop(size: tuple[int, int], summand: Callable[[int, int, int], float]) -> Any:
    total = np.zeros(size)
    for k in range(N):
        for i in range(size[0]):
            for j in range(size[1]):
                total[i, j] += FIELDS["weight"][k] * summand(k, i, j)
    return total


@pytest.mark.parametrize("name", CASES)
def test_operators_against_triple_loops(name: str) -> None:
    case, size = CASES[name], (BASIS.size, BASIS.size)
    operator = case.operator
    seen = [at_views(k) for k in range(N)]
    rows = [{k: v[row] for k, v in FIELDS.items()} for row in range(N)]
    wanted = {
        "form": triple_loop(size, lambda k, i, j: case.form(seen[k][i], seen[k][j], rows[k])),
        "gram": triple_loop(size, lambda k, i, j: case.gram(seen[k][i], seen[k][j])),
    }
    first = triple_loop((BASIS.size, 1), lambda k, i, j: case.first(seen[k][i]))[:, 0]
    read = {*operator.views, *operator.data_fields, "weight"}
    batch = {k: v for k, v in FIELDS.items() if k in read}
    found = Measure(BASIS, BASIS, operator.forms, operator.functionals, operator, rows=4)([batch])
    for part, matrix in wanted.items():
        assert_close(found[part], matrix)
    assert_close(found["first"], first)
    if operator.symmetric:
        assert_close(found["form"], found["form"].T)
    if operator.kills_constants:
        assert np.array_equal(found["form"][:, 0], np.zeros(BASIS.size))
