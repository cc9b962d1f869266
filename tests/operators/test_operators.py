"""What operators say of themselves, their states, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.forms import along, at, form, grad, inner
from daskspectral.manifolds import Sphere
from daskspectral.operators import (
    AnisotropicDiffusion,
    Augmentation,
    BilinearForm,
    Covariance,
    Cross,
    DifferentialOperator,
    Generator,
    Laplacian,
    Operator,
    SymmetricForm,
    Transfer,
)


@form
def weighted(f: Any, g: Any, x: Any) -> Any:
    return inner(grad(f), grad(g), weight=x.conductivity[1])


@form
def drifting(f: Any, g: Any, x: Any) -> Any:
    return inner(f, along(g, x.drift))


@form
def paired(f: Any, g: Any, x: Any) -> Any:
    return inner(f, at(g, x.other), weight=x.trust)


FIRST, SECOND = ((1, 0), (1, 0)), ((0, 0), (0, 2))


def facts(o: Operator) -> tuple[Any, ...]:
    return o.solver.name, o.views, o.right_view, o.own_right_basis, set(o.data_fields), o.kills_constants, list(o.forms)


ONE, TWO, RANKED = ["form", "gram"], ["form", "gram", "right_gram"], ["form", "gram", "energy"]


FACTS: list[tuple[Operator, tuple[Any, ...]]] = [
    (Laplacian(Sphere(3)), ("symmetric", ("x",), "x", False, set(), True, ONE)),
    (DifferentialOperator({SECOND: "c"}), ("singular", ("x",), "x", False, {"c"}, True, ONE)),
    (Generator(), ("eigen", ("x",), "x", False, {"drift", "diffusion"}, True, RANKED)),
    (Generator(reversible=True), ("symmetric", ("x",), "x", False, {"diffusion"}, True, ONE)),
    (Cross(), ("singular", ("x", "y"), "y", True, set(), False, TWO)),
    (Transfer(), ("singular", ("x", "future"), "future", False, set(), False, TWO)),
    (Augmentation(3), ("symmetric", ("x", "x1", "x2"), "x", False, set(), True, ONE)),
    (SymmetricForm(weighted), ("symmetric", ("x",), "x", False, {"conductivity"}, False, ONE)),
    (BilinearForm(paired), ("singular", ("x", "other"), "other", False, {"trust"}, False, TWO)),
    (Covariance(), ("principal", ("x",), "x", False, set(), True, ["gram"])),
]


@pytest.mark.parametrize(("operator", "expected"), FACTS, ids=[str(operator) for operator, _ in FACTS])
def test_what_operators_say(operator: Operator, expected: tuple[Any, ...]) -> None:
    assert facts(operator) == expected
    assert list(operator.functionals) == (["first", "right_first"] if "right_gram" in operator.forms else ["first"])


# what is refused


@given(seed=st.integers(0, 10**6), rank=st.integers(0, 3), dtype=st.sampled_from([np.float32, np.float64]))
def test_factors_of_diffusions(seed: int, rank: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    sigma = rng.standard_normal((6, 3, rank)) * rng.uniform(1e-6, 1e6, (6, 1, 1))
    d = (sigma @ sigma.swapaxes(1, 2)).astype(dtype)
    d = 0.5 * (d + d.swapaxes(1, 2))
    columns = AnisotropicDiffusion("d").derived_fields({"d": d})["columns of d"]
    again = np.einsum("kma,kmb->kab", columns, columns)
    size = np.abs(d).max(axis=(1, 2), keepdims=True)
    assert (np.abs(again - d) <= 64 * np.finfo(dtype).eps * size).all()
