"""Every operator by its name in a shell gives what the same operator gives in Python; other options are refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral import operators
from daskspectral.cli import choices
from daskspectral.cli.names import parse_manifold
from daskspectral.data.readers import open_zarr
from daskspectral.operators.names import NAMES
from tests.cli.common import call, done

pytestmark = pytest.mark.usefixtures("folder")
BASIS = "--kernel gaussian:1 --landmarks 25 --components 4 --folds none"
N, D = 400, 2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
ARRAYS = {
    "x": X,
    "y": X[:, :1] + RNG.standard_normal((N, 1)),
    "x1": X + 0.1 * RNG.standard_normal((N, D)),
    "x2": X - 0.1 * RNG.standard_normal((N, D)),
    "v": (X**2).sum(axis=1),
    "b": -X,
    "sigma": np.broadcast_to(np.eye(D), (N, D, D)) * (1 + 0.1 * X[:, :1, None] ** 2),
    "u": RNG.standard_normal((N, D)),
}

CASES: dict[str, tuple[operators.Operator, dict[str, str], tuple[str, ...]]] = {
    "laplacian --density 0.5": (operators.Laplacian(density=0.5), {}, ()),
    "laplacian --manifold interval:-6:6": (operators.Laplacian(dsp.manifolds.Interval([-6] * D, [6] * D)), {}, ()),
    "covariance": (operators.Covariance(), {}, ()),
    "schroedinger --potential v.zarr": (operators.Schroedinger(), {"potential": "v"}, ()),
    "schroedinger --field potential=v.zarr": (operators.Schroedinger(), {"potential": "v"}, ()),
    "anisotropic --diffusion sigma.zarr": (operators.AnisotropicDiffusion(), {"diffusion": "sigma"}, ()),
    "anisotropic:factored --diffusion sigma.zarr": (
        operators.AnisotropicDiffusion(factored=True),
        {"diffusion": "sigma"},
        (),
    ),
    "tangent --direction u.zarr": (operators.TangentPropagation(), {"direction": "u"}, ()),
    "differential --coefficient 1,0:1,0=2 --coefficient 0,0:0,0=w --field w=v.zarr": (
        operators.DifferentialOperator({((1, 0), (1, 0)): 2.0, ((0, 0), (0, 0)): "w"}),
        {"w": "v"},
        (),
    ),
    "partial:1": (operators.PartialDerivative(1), {}, ()),
    "generator --drift b.zarr --diffusion 1.5": (operators.Generator("drift", 1.5), {"drift": "b"}, ()),
    "generator --drift b.zarr --diffusion sigma.zarr": (
        operators.Generator(),
        {"drift": "b", "diffusion": "sigma"},
        (),
    ),
    "generator:reversible --diffusion 2": (operators.Generator("drift", 2.0, True), {}, ()),
    "transfer --lag 2": (operators.Transfer(2), {}, ()),
    "transfer:2:eigen": (operators.Transfer(2, "eigen"), {}, ()),
    "cross --view y.zarr": (operators.Cross(), {}, ("y",)),
    "cross:center --view y.zarr": (operators.Cross(center=True), {}, ("y",)),
    "augmentation --view x1.zarr --view x2.zarr": (operators.Augmentation(3), {}, ("x1", "x2")),
}


def written() -> None:
    for name, array in ARRAYS.items():
        zarr.create_array(f"{name}.zarr", data=array, chunks=(100, *array.shape[1:]))


def values(model: Any) -> Any:
    return getattr(model, model.solver_.values)


@pytest.mark.parametrize("line", CASES)
@pytest.mark.filterwarnings("ignore::daskspectral.errors.RankWarning")
def test_the_same_as_in_python(line: str) -> None:
    written()
    operator, fields, views = CASES[line]
    done(f"fit x.zarr --operator {line} {BASIS} --out m.zarr")
    found = dsp.load("m.zarr")
    data = X if not views else (X, *(ARRAYS[view] for view in views))
    settings: dict[str, Any] = {"n_landmarks": 25, "n_components": 4, "folds": None, "random_state": 0}
    own = dsp.SpectralDecomposition(operator, dsp.kernels.Gaussian(1.0), **settings)
    own.fit(data, fields={name: ARRAYS[array] for name, array in fields.items()})
    assert type(found.operator) is type(operator)
    np.testing.assert_allclose(values(found), values(own), rtol=1e-9, atol=1e-11)


def test_every_named_operator_is_tried() -> None:
    assert {line.split()[0].partition(":")[0] for line in CASES} == set(NAMES)
    assert tuple(named.usage for named in NAMES.values()) == choices.OPERATORS


REFUSED: list[tuple[str, type[Exception], str]] = [
    ("heat", ValueError, "there is no operator 'heat'; the operators are laplacian"),
    ("schrodinger", ValueError, r"no operator 'schrodinger' \(did you mean schroedinger\?\)"),
    ("schroedinger", click.UsageError, "--operator schroedinger needs --potential, an array with a row for each row"),
    ("generator --diffusion 1", click.UsageError, "--operator generator needs --drift"),
    ("generator --drift b.zarr", click.UsageError, "--operator generator needs --diffusion"),
    (
        "laplacian --potential v.zarr",
        click.UsageError,
        "--potential is a field that .*laplacian does not read; it .*none",
    ),
    ("schroedinger --potential v.zarr --field w=v.zarr", click.UsageError, "--field w is a field .*it reads potential"),
    (
        "schroedinger --potential v.zarr --field potential=v.zarr",
        click.UsageError,
        "the field potential is given twice",
    ),
    (
        "generator --drift b.zarr --diffusion 1 --lag 3",
        click.UsageError,
        "--lag is for the operator transfer; generato",
    ),
    ("cross --view y.zarr --density 1", click.UsageError, "--density is for the operator laplacian; cross does not"),
    ("transfer:2 --manifold sphere", click.UsageError, "--manifold is for the operator laplacian; transfer does not"),
    ("laplacian --coefficient 1:1=2", click.UsageError, "--coefficient is for the operator differential; laplacian do"),
    ("anisotropic --diffusion 2.0", click.UsageError, "--operator anisotropic needs --diffusion, an array"),
    ("differential", click.UsageError, "--operator differential needs --coefficient, such as"),
    ("differential --coefficient 1,0=2", ValueError, "a coefficient is written ALPHA:BETA=C"),
    ("differential --coefficient 1,0:1,0=w", click.UsageError, "--operator differential needs --field w=PATH"),
    ("transfer", click.UsageError, "--operator transfer needs --lag"),
    ("transfer:2 --lag 3", ValueError, "the lag is given twice"),
    ("cross", click.UsageError, "--operator cross takes 1 --view, of the points y; 0 given"),
    ("cross --view y.zarr --view x1.zarr", click.UsageError, "takes 1 --view, of the points y; 2 given"),
    ("laplacian --view y.zarr", click.UsageError, "--operator laplacian takes no --view; 1 given"),
    ("augmentation", click.UsageError, "--operator augmentation needs --view, once for each"),
    (
        "schroedinger --field potential",
        click.UsageError,
        "'potential' is no field with its array, such as drift=b.zarr",
    ),
    ("schroedinger --potential no.zarr", FileNotFoundError, "there is no zarr array at no.zarr"),
    ("generator --drift v.zarr --diffusion 1", ValueError, "drift"),
]


@pytest.mark.parametrize(("line", "error", "message"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_an_operator_does_not_read_is_refused(line: str, error: type[Exception], message: str) -> None:
    written()
    before = sorted(os.listdir())
    result = call(f"fit x.zarr --operator {line} {BASIS} --out m.zarr")
    assert sorted(os.listdir()) == before
    if error is click.UsageError:
        assert result.exit_code == 2
        assert re.search(message, " ".join(result.output.split()))
    else:
        assert isinstance(result.exception, error)
        assert re.search(message, str(result.exception))


def fitted(line: str) -> Callable[..., str]:
    written()
    done(f"fit x.zarr --operator {line} {BASIS} --out m.zarr")
    return done


def test_a_score_and_an_update_take_the_fields_and_the_views() -> None:
    fitted("schroedinger --potential v.zarr")
    assert "score" in done("score m.zarr x.zarr --field potential=v.zarr")
    with pytest.raises(ValueError, match="reads the fields potential"):
        done("score m.zarr x.zarr")
    for name in ("x", "v"):
        array = zarr.open_array(f"{name}.zarr", mode="r+")
        array.append(ARRAYS[name][:100])
    assert "rows        500" in done("update m.zarr x.zarr --field potential=v.zarr --out n.zarr")


def test_the_plan_of_an_operator_with_fields() -> None:
    written()
    assert done(f"fit x.zarr --operator schroedinger --potential v.zarr {BASIS} --plan").startswith(
        "plan: 1 task in 1 epoch;"
    )
    assert not os.path.exists("m.zarr")


def test_a_score_of_two_views() -> None:
    fitted("cross --view y.zarr")
    assert "score" in done("score m.zarr x.zarr --view y.zarr")
    done("transform m.zarr y.zarr --right --out r.zarr")
    assert open_zarr("r.zarr").shape == (N, 4)


@pytest.mark.parametrize(
    ("name", "d", "manifold"),
    [
        ("sphere", 3, dsp.manifolds.Sphere(3)),
        ("circle", 2, dsp.manifolds.Circle()),
        ("torus", 4, dsp.manifolds.FlatTorus(2)),
        ("box:-1:2", 2, dsp.manifolds.PeriodicBox([-1, -1], [2, 2])),
        ("interval:0:1", 1, dsp.manifolds.Interval([0], [1])),
    ],
)
def test_manifolds_by_name(name: str, d: int, manifold: dsp.manifolds.Manifold) -> None:
    assert parse_manifold(name, d) == manifold


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torus", "an even number of columns; got 3"),
        ("plane", "no manifold 'plane'; the manifolds are sphere, circle, torus"),
        ("box:a:b", "bounds of a box or an interval are numbers, as in box:-1:1; got 'box:a:b'"),
    ],
)
def test_no_such_manifold(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_manifold(name, 3)
