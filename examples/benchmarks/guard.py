"""What a redrawing of the package must keep: results of the starting commit beside today's, case by case.

Every estimator, operator, basis, kernel, manifold, group and command on small data, with eigenvalues, functions,
predictions, certificates, and the errors that bad input is refused with. The starting commit runs its own copy of this
file, on a checkout of its own; cases are compared by name. Those that today's file does not have must be named in
`LEFT`, with the reason.

    python examples/benchmarks/guard.py
    python examples/benchmarks/guard.py --only kernels --only commands

Columns: cases with the same bits; within a relative 1e-9 of the largest entry; differing. Each that differs is named;
residuals below 1e-9 are alike, and what was changed on purpose is in `MEANT`, with the reason.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import threadpoolctl

START = "c2f0c1224ca7768184f0e84cc48e2751766b17f8"
LEFT = {  # beginnings of names of cases that are gone, and why
    "refusals: spectral solver": "a solver is an object, and None its default",
    "refusals: spectral rtol": "an argument of the solver by rank cut, which checks it",
}
MEANT = {  # arrays that changed, and why
    **dict.fromkeys(
        [
            "operators: DifferentialOperator, cut|trusted_",
            "operators: DifferentialOperator, penalised|trusted_",
            "operators: Transfer, singular, half precision|trusted_",
        ],
        "values that half of the landmarks change by a tenth are not trusted",
    ),
    "kernels: periodic, second|transform": "the chain rule is taken in another order: 9e-9, of values to 2e-11",
    **dict.fromkeys(
        [f"operators: Covariance, half precision|{name}" for name in ("held_out_", "eigenvalue_errors_")],
        "norms of functions on each fold are added in another order: 1e-8, of single precision",
    ),
    "bases: SoftCells, Laplacian, penalised|eigenvalue_errors_": "of a value that is 0 but for rounding",
}
CLOSE = 1e-9
ROOT = Path(__file__).resolve().parents[2]
Case = Callable[[], dict[str, Any]]
RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (300, 2)) + 0.3 * RNG.standard_normal((300, 1))
X3, Y3 = RNG.standard_normal((300, 3)), RNG.standard_normal((300, 3))
BOXED = RNG.uniform(-1, 1, (300, 2))
DISK = BOXED[np.linalg.norm(BOXED, axis=1) < 1]
POINTS, NEW, WEIGHT = X[:40], RNG.uniform(-1, 1, (25, 2)), RNG.uniform(0.5, 2, 300)
POTENTIAL, TARGET = np.sum(X**2, axis=1), np.sin(2 * X[:, 0]) + X[:, 1] ** 2
SLOPES = np.stack([2 * np.cos(2 * X[:, 0]), 2 * X[:, 1]], axis=1)
WALK = np.cumsum(RNG.standard_normal((400, 2)), axis=0) / 10
WALK -= 0.5 * WALK.mean(axis=0)


# -- the words of today's constructors: what is edited when they change -----------------------------------------------


def nouns(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options by their names at the start, as today's arguments of an estimator, and of `Rows`."""
    from daskspectral import basis as b
    from daskspectral import solvers

    own = dict(options)
    words = ("columns", "standardize", "sample_dims", "latitude", "fields", "on_invalid")
    rows = {name: own.pop(name) for name in words if name in own}
    names = {"kernel": "kernel", "n_landmarks": "count", "landmark_sample": "sample", "spread": "spread"}
    names |= {"periods": "periods", "constant": "constant", "exclude_landmarks": "exclude"}
    given = {names[name]: own.pop(name) for name in names if name in own}
    points = own.pop("landmarks", None)
    given |= {} if points is None else {"method" if isinstance(points, str) else "points": points}
    if given.get("kernel", "") is None:
        del given["kernel"]
    basis = own.get("basis")
    if isinstance(basis, b.FourierLattice):
        own["basis"] = b.FourierLattice(**{**vars(basis), **{n: v for n, v in given.items() if n == "kernel"}})
    elif given and basis is None:
        own["basis"] = b.Landmarks(**given)
    cut = {name: own.pop(name) for name in ("rtol", "min_support", "ridge") if name in own}
    if own.get("solver") == "cut" or (cut and "solver" not in own):
        own["solver"] = solvers.Cut(**cut)
    if "penalty" in own:
        own["solver"] = solvers.Penalised(own.pop("penalty"))
    return own, rows


def spectral(x: Any, operator: Any = None, **given: Any) -> Any:
    """A fitted decomposition; `fit_` before an option of `fit`."""
    import daskspectral as dsp

    own, rows = nouns({k.removeprefix("fit_"): v for k, v in given.items() if k != "fit_sample_weight"})
    model = dsp.SpectralDecomposition(operator, **{"n_components": 5, "random_state": 0, **own})
    return model.fit(dsp.Rows(x, **rows), sample_weight=given.get("fit_sample_weight"))


def hermite_of(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    import daskspectral as dsp

    rtol = {name: options[name] for name in ("rtol",) if name in options}
    own, rows = nouns({name: value for name, value in options.items() if name != "rtol"})
    return dsp.HermiteRegressor(**{"random_state": 0, **own, **rtol}), rows


def embedding_of(kind: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    import daskspectral as dsp
    from daskspectral import solvers

    own, rows = nouns({name: value for name, value in options.items() if name != "solver"})
    if "basis" in own:
        own["landmarks"] = replace(own.pop("basis"), method="cholesky")
    if "solver" in options:
        own["solver"] = solvers.Ascent(options["solver"])
    return getattr(dsp, kind)(**{"random_state": 0, **own}), rows


def at_points(kernel: Any = None, points: Any = POINTS, **more: Any) -> dict[str, Any]:
    """Kernels at given landmarks."""
    from daskspectral.kernels import Gaussian

    return {"kernel": kernel or Gaussian(0.8), "landmarks": points, **more}


CUT: dict[str, Any] = {"solver": "cut", "rtol": 1e-8}
PENALISED: dict[str, Any] = {"penalty": 1.0}


# -- what is kept of a result -----------------------------------------------------------------------------------------


def arrays_of(model: Any, *names: str) -> dict[str, Any]:
    """The numeric attributes of these names that a model has."""
    found = {name: getattr(model, name, None) for name in names}
    return {name: np.asarray(value) for name, value in found.items() if value is not None}


def spectrum_of(model: Any, new: Any = NEW, sums: bool = False) -> dict[str, Any]:
    """Values, functions and error bars of a decomposition, and its sums."""
    values = "eigenvalues_ singular_values_ standard_errors_ held_out_ eigenvalue_errors_ trusted_ rank_ residuals_"
    found = arrays_of(model, *values.split())
    for verb in ("transform", "transform_right"):
        try:
            found[verb] = np.asarray(getattr(model, verb)(new))
        except (AttributeError, ValueError, TypeError):
            continue
    if sums:
        found |= {f"sum {name}": np.asarray(a) for name, a in model.moments_.arrays.items()}
    return found


# -- the cases of each room -------------------------------------------------------------------------------------------


def kernels() -> Iterator[tuple[str, Case]]:
    from daskspectral import kernels as k
    from daskspectral import operators as o

    scales = (0.3, 1.0, 3.0)
    found = {f"{c.__name__}({s})": c(s) for c in (k.Gaussian, k.Exponential) for s in scales}
    found |= {f"Matern({nu}, {s})": k.Matern(nu, s) for nu in (0.5, 1.5, 2.5, 3.5) for s in scales}
    found |= {f"Polynomial({d})": k.Polynomial(d) for d in (1, 2, 3, 5)}
    found |= {"Linear": k.Linear(), "sum": k.Gaussian(1.0) + k.Linear(), "product": k.Gaussian(1.0) * k.Matern(2.5, 2)}
    found |= {"multiple": 2.5 * k.Matern(1.5, 0.7), "periodic": k.Periodic(k.Gaussian(0.7), (2.0, None))}
    found |= {"metric": k.Mahalanobis(k.Gaussian(1.0), [[1.0, 0.2], [0.2, 0.5]])}
    found |= {"parsed": k.parse("gaussian:0.5+linear"), "parsed matern": k.parse("matern:2.5:0.4")}
    second = o.DifferentialOperator({((2, 0), (2, 0)): 1.0, ((1, 0), (1, 0)): 0.5})
    for (name, kernel), (title, operator) in itertools.product(
        found.items(), {"values": o.Covariance(), "slopes": o.Laplacian(), "second": second}.items()
    ):
        yield (
            f"{name}, {title}",
            lambda kernel=kernel, operator=operator: {
                **spectrum_of(spectral(X, operator, **at_points(kernel), **CUT, folds=None), sums=True),
                "gram": kernel.values(NEW, POINTS),
            },
        )


def operators() -> Iterator[tuple[str, Case]]:
    from daskspectral import operators as o

    matrices = np.einsum("nij,nkj->nik", *[RNG.standard_normal((300, 2, 2))] * 2)
    drift = -SLOPES
    found: dict[str, tuple[Any, dict[str, Any]]] = {
        "Laplacian": (o.Laplacian(), {}),
        "Laplacian, density 1": (o.Laplacian(density=1.0), {}),
        "Covariance": (o.Covariance(), {}),
        "Schroedinger": (o.Schroedinger(), {"potential": POTENTIAL}),
        "AnisotropicDiffusion": (o.AnisotropicDiffusion(), {"diffusion": matrices}),
        "AnisotropicDiffusion, factored": (o.AnisotropicDiffusion(factored=True), {"diffusion": matrices}),
        "TangentPropagation": (o.TangentPropagation(), {"direction": SLOPES}),
        "Augmentation": (o.Augmentation(), {"y": X + 0.1 * Y3[:, :2]}),
        "Generator": (o.Generator(diffusion=0.7), {"drift": drift}),
        "Generator, reversible": (o.Generator(diffusion=0.7, reversible=True), {}),
        "PartialDerivative": (o.PartialDerivative(0), {}),
        "Cross": (o.Cross(), {"y": X + 0.3 * Y3[:, :2]}),
        "Cross, centred": (o.Cross(center=True), {"y": X + 0.3 * Y3[:, :2]}),
        "DifferentialOperator": (o.DifferentialOperator({((1, 0), (1, 0)): 1.0, ((0, 0), (0, 0)): "potential"}), {}),
    }
    found["DifferentialOperator"][1]["potential"] = POTENTIAL
    for solver in ("singular", "eigen"):
        found[f"Transfer, {solver}"] = (o.Transfer(2, solver), {})
    found["Transfer, centred"] = (o.Transfer(1, center=True), {})
    ways = {"cut": CUT, "penalised": PENALISED, "no folds": {**PENALISED, "folds": None}}
    ways |= {"weights": {**PENALISED, "fit_sample_weight": WEIGHT}, "constant": {**CUT, "constant": True}}
    ways |= {"half precision": {**CUT, "dtype": "float32", "rtol": 1e-4}, "standardized": {**CUT, "standardize": True}}
    for (name, (operator, fields)), (way, options) in itertools.product(found.items(), ways.items()):
        walk = name.startswith("Transfer")
        if walk and way == "weights":
            continue
        x, points = (WALK, WALK[::10]) if walk else (X, POINTS)

        def case(operator: Any = operator, fields: Any = fields, x: Any = x, points: Any = points, o: Any = options):
            more = {"fit_fields": fields} if fields and "y" not in fields else {}
            x = (x, fields["y"]) if "y" in fields else x
            return spectrum_of(spectral(x, operator, **at_points(points=points), **o, **more), sums=True)

        yield f"{name}, {way}", case


def bases() -> Iterator[tuple[str, Case]]:
    from daskspectral import basis as b
    from daskspectral import kernels as k
    from daskspectral import manifolds as m
    from daskspectral import operators as o

    landmarks = b.LandmarkBasis(k.Gaussian(0.8), POINTS)
    frequencies = np.random.default_rng(1).standard_normal((20, 2))
    network = b.NeuralBasis((5, 4)).initialised(2, outputs=6, centre=np.zeros(2), scale=np.ones(2), seed=0)
    found = {
        "LandmarkBasis": landmarks,
        "MonomialBasis": b.MonomialBasis(2, 4),
        "MonomialBasis, scaled": b.MonomialBasis(2, 3, constant=False, scale=2.0),
        "FourierBasis": b.FourierBasis(frequencies, 1.5),
        "FourierLattice": b.FourierLattice(3, box=((-3.0, 3.0), (-3.0, 3.0))),
        "FourierLattice, found box": b.FourierLattice(2),
        "Concatenated": b.Concatenated((b.ConstantBasis(2), landmarks, b.MonomialBasis(2, 2, constant=False))),
        "Vanishing": b.Vanishing(b.MonomialBasis(2, 3), b.BoxEdge([-1.0, -1.0], [1.0, 1.0])),
        "Vanishing ball": b.Vanishing(b.LandmarkBasis(k.Gaussian(0.8), DISK[:40]), b.BallEdge(1.0)),
        "CallableBasis": b.CallableBasis(_waves, _wave_slopes, d=2),
        "SoftCells": b.SoftCells(POINTS[:8], 0.5),
        "NeuralBasis": network,
        "NeuralBasis, outputs": b.NeuralBasis((5,), features="outputs").initialised(
            2, outputs=6, centre=np.zeros(2), scale=np.ones(2), seed=1
        ),
    }
    kinds = {"Laplacian": (o.Laplacian(), {}), "Covariance": (o.Covariance(), {})}
    kinds["Schroedinger"] = (o.Schroedinger(), {"fit_fields": {"potential": POTENTIAL}})
    kinds["Cross"] = (o.Cross(), {})
    for (name, basis), (title, (operator, more)), (way, options) in itertools.product(
        found.items(), kinds.items(), {"cut": CUT, "penalised": PENALISED}.items()
    ):

        def case(
            name: str = name,
            title: str = title,
            basis: Any = basis,
            operator: Any = operator,
            more: Any = more,
            o: Any = options,
        ) -> dict[str, Any]:
            x = {"Vanishing": BOXED, "Vanishing ball": DISK}.get(name, X)
            more = {key: {n: v[: len(x)] for n, v in fields.items()} for key, fields in more.items()}
            x = (x, x + 0.3 * Y3[: len(x), :2]) if title == "Cross" else x
            return spectrum_of(spectral(x, operator, basis=basis, **o, **more), sums=True)

        yield f"{name}, {title}, {way}", case
    sphere = m.Sphere(3).sample(300, np.random.default_rng(2))
    harmonic = b.HarmonicBasis(m.Sphere(3), 25)
    from daskspectral import groups as g

    for name, basis in {
        "HarmonicBasis": harmonic,
        "InvariantBasis": b.InvariantBasis(harmonic, g.Permutations(3)),
    }.items():
        yield (
            name,
            lambda basis=basis: spectrum_of(
                spectral(sphere, o.Laplacian(manifold=m.Sphere(3)), basis=basis, **CUT), sphere[:20], sums=True
            ),
        )


def _waves(x: Any) -> Any:
    return np.stack([np.ones(len(x)), np.sin(x[:, 0]), np.cos(x[:, 1]), np.sin(x.sum(axis=1))])


def _wave_slopes(x: Any) -> Any:
    zero, both = np.zeros(len(x)), np.cos(x.sum(axis=1))
    first = np.stack([zero, np.cos(x[:, 0]), zero, both])
    return np.stack([first, np.stack([zero, zero, -np.sin(x[:, 1]), both])], axis=2)


def choices() -> Iterator[tuple[str, Case]]:
    from daskspectral import basis as b
    from daskspectral import kernels as k
    from daskspectral import operators as o

    data = {"square": X, "three columns": X3, "circle": X3[:, :2] / np.linalg.norm(X3[:, :2], axis=1)[:, None]}
    data |= {"clusters": np.concatenate([X[:150], X[150:] + 6]), "scales": X3 * [1.0, 10, 100]}
    ways: dict[str, dict[str, Any]] = {"default": {}, "given kernel": {"kernel": k.Gaussian("median")}}
    ways |= {"given penalty": PENALISED, "cut": {"solver": "cut"}, "lattice": {"basis": b.FourierLattice(4)}}
    ways |= {name: {"landmarks": name, "n_landmarks": 60} for name in ("uniform", "farthest", "cholesky", "leverage")}
    ways |= {"periods": {"periods": {0: 40.0}}, "blocks": {"folds": "blocks"}, "five folds": {"folds": 5}}
    ways |= {"auto basis": {"basis": "auto"}, "outside": {"exclude_landmarks": True}}
    for (name, x), (way, options) in itertools.product(data.items(), ways.items()):
        yield f"{name}, {way}", lambda x=x, options=options: spectrum_of(spectral(x, **options), x[:20])
    yield "transfer", lambda: spectrum_of(spectral(WALK, o.Transfer(2)))
    yield "covariance", lambda: spectrum_of(spectral(X3, o.Covariance()), X3[:9])
    potential = {"fit_fields": {"potential": POTENTIAL}}
    yield "schroedinger", lambda: spectrum_of(spectral(X, o.Schroedinger(), **potential))


def manifolds() -> Iterator[tuple[str, Case]]:
    from daskspectral import manifolds as m

    found = {
        "circle": m.Circle(),
        "sphere": m.Sphere(3),
        "sphere in R^4": m.Sphere(4),
        "torus": m.FlatTorus(2),
        "box": m.PeriodicBox([0, 0], [1, 2]),
        "cell": m.PeriodicCell.hexagonal(0.7, 2.0),
        "interval": m.Interval([2] * 2, [3] * 2),
        "rotations": m.SO3(),
        "product": m.Product(m.Sphere(3), m.PeriodicBox([0], [2])),
        "product of circles": m.Product(m.Circle(), m.Circle()),
    }
    for name, manifold in found.items():
        x = manifold.sample(30, np.random.default_rng(0))
        yield f"{name}, points", lambda manifold=manifold, x=x: {"x": x, "distance": manifold.distance(x)}
        yield f"{name}, normals", lambda manifold=manifold, x=x: {"normals": manifold.normals(x)}
        yield f"{name}, tangents", lambda manifold=manifold, x=x: _known(manifold.tangents(x))
        yield f"{name}, off it", lambda manifold=manifold, x=x: _known(manifold.check(3 * x + 1))
        yield (
            f"{name}, eigenvalues",
            lambda manifold=manifold: {
                "values": [manifold.eigenvalue(i) for i in range(6)],
                "multiplicities": [manifold.multiplicity(i) for i in range(6)],
            },
        )
        for level in range(6):
            yield (
                f"{name}, level {level}",
                lambda manifold=manifold, x=x, level=level: {"values": manifold.eigenfunctions(level).values(x)},
            )


def _known(value: Any) -> dict[str, Any]:
    return {"known": 0 if value is None else value}


def groups() -> Iterator[tuple[str, Case]]:
    from daskspectral import groups as g
    from daskspectral import manifolds as m
    from daskspectral.manifolds import invariant_coefficients

    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    cube = g.Generated([g.Permutations(3), g.SignFlips(3)])
    pairs: dict[str, tuple[Any, Any]] = {
        "permutations": (m.Sphere(3), g.Permutations(3)),
        "sign flips": (m.Sphere(3), g.SignFlips(3)),
        "cube": (m.Sphere(3), cube),
        "cyclic": (m.Sphere(4), g.Cyclic(4)),
        "rotations of a plane": (m.Circle(), g.Rotations(5)),
        "SO(3)": (m.Sphere(6), g.SpecialOrthogonal(3, 2)),
        "O(3)": (m.Sphere(6), g.FullOrthogonal(3, 2)),
        "Lie": (m.Sphere(3), g.LieGroup([np.pad(turn, (0, 1))], [np.diag([1, 1, -1])])),
        "phases": (m.FlatTorus(2), g.PhaseRotations([1, -1])),
        "translations": (m.PeriodicBox([0, 0], [1, 1]), g.Translations([[0.5, 0.5]])),
        "all translations": (m.PeriodicBox([0, 0], [1, 2]), g.ContinuousTranslations([[1, 0]])),
        "automorphisms": (m.PeriodicBox([0, 0], [1, 1]), g.Automorphisms([[[0, -1], [1, 0]]])),
        "orthogonal": (m.SO3(), g.Orthogonal([np.kron(np.eye(3)[[2, 0, 1]], np.eye(3))])),
        "exchange": (m.Product(m.Circle(), m.Circle()), g.Exchange(2)),
        "product": (m.Product(m.Circle(), m.Circle()), g.DirectProduct(g.Rotations(3), g.Rotations(4))),
        "molecule": (m.Sphere(7), g.MolecularSymmetry([1.0, 1.0, 2.0])),
        "space group": (m.PeriodicBox([0, 0], [1, 1]), g.SpaceGroup(
            m.PeriodicBox([0, 0], [1, 1]), [([[0, -1], [1, 0]], [0.5, 0.0])], "p4")),
    }  # fmt: skip
    for name, (manifold, group) in pairs.items():
        yield (
            f"{name}, elements",
            lambda group=group, manifold=manifold: {
                "matrices": [i.matrix for i in group.generators],
                "algebra": [f.matrix for f in group.algebra],
                "order": -1 if group.order is None else group.order,
                "checked": [] if group.check(manifold) is None else 0,
            },
        )
        for level in range(6):
            yield (
                f"{name}, level {level}",
                lambda group=group, manifold=manifold, level=level: _projector(
                    manifold.eigenfunctions(level),
                    invariant_coefficients(manifold.eigenfunctions(level), group.generators, group.algebra),
                    manifold.sample(12, np.random.default_rng(1)),
                ),
            )


def _projector(space: Any, coefficients: Any, x: Any) -> dict[str, Any]:
    """Invariant functions, up to a rotation among them."""
    values = np.asarray(space.values(x))
    values = values if values.shape[0] == len(x) else values.T
    functions = values @ (coefficients.toarray() if hasattr(coefficients, "toarray") else np.asarray(coefficients))
    return {"dimension": functions.shape[1], "kernel": functions @ functions.T}


def regressions() -> Iterator[tuple[str, Case]]:
    import daskspectral as dsp
    from daskspectral import groups as g
    from daskspectral import kernels as k
    from daskspectral import manifolds as m
    from daskspectral.basis import FourierLattice

    kinds: dict[str, dict[str, Any]] = {"default": {}, "given": {"kernel": k.Matern(2.5, 1.0), "landmarks": POINTS}}
    kinds |= {"gcv": {"alpha": "gcv"}, "alpha": {"alpha": 1e-3}, "lattice": {"basis": FourierLattice(4)}}
    kinds |= {"weight": {"gradient_weight": 0.1}, "columns": {"columns": [0, 1]}, "standardized": {"standardize": True}}
    kinds |= {"single": {"dtype": "float32"}, "few folds": {"folds": 4}, "farthest": {"landmarks": "farthest"}}
    kinds |= {"periods": {"periods": {0: 9.0}}, "dot": {"kernel": k.Polynomial(3), "n_landmarks": 20}}
    data = {
        "values": (TARGET, {}),
        "slopes": (TARGET, {"gradients": SLOPES}),
        "weights": (TARGET, {"sample_weight": WEIGHT}),
    }
    data["targets"] = (np.stack([TARGET, POTENTIAL], axis=1), {})
    for (kind, options), (what, (y, more)) in itertools.product(kinds.items(), data.items()):

        def hermite(options: Any = options, y: Any = y, more: Any = more) -> dict[str, Any]:
            model, rows = hermite_of(options)
            model = model.fit(dsp.Rows(X, **rows), y, **more)
            found = arrays_of(model, "alpha_", "coefficients_", "cv_error_", "intercept_", "errors_")
            return found | {
                "values": model.predict(NEW),
                "slopes": model.predict_gradient(NEW),
                "score": model.score(X, y),
            }

        yield f"Hermite, {kind}, {what}", hermite
    sphere = m.Sphere(3).sample(300, np.random.default_rng(3))
    y = np.sum(sphere**4, axis=1) + 0.1 * TARGET
    vectors = sphere**3 + 0.05 * Y3
    rules = {"least squares": {"alpha": 0.0}, "ridge": {"alpha": 1e-3}, "chosen": {}, "levels": {"smoothness": 2.0}}
    rules |= {"projection": {"solver": "projection"}, "few": {"n_eigenfunctions": 16}}
    cube = g.Generated([g.Permutations(3), g.SignFlips(3)])
    some = {"permutations": g.Permutations(3), "cube": cube, "none": None, "turns": g.Rotations(4, 3)}
    for (name, options), (title, group) in itertools.product(rules.items(), some.items()):

        def invariant(options: Any = options, group: Any = group) -> dict[str, Any]:
            model = dsp.InvariantRegressor(m.Sphere(3), group, **{"n_eigenfunctions": 49, **options}).fit(sphere, y)
            return {
                "values": model.predict(sphere[:20]),
                "slopes": model.predict_gradient(sphere[:20]),
                "score": model.score(sphere, y),
            }

        yield f"Invariant, {name}, {title}", invariant
    for output in ("vector", "pseudovector"):

        def equivariant(output: str = output) -> dict[str, Any]:
            model = dsp.InvariantRegressor(m.Sphere(3), cube, n_eigenfunctions=36, output=output).fit(sphere, vectors)
            return {"values": model.predict(sphere[:20])}

        yield f"Invariant, {output}", equivariant


def embeddings() -> Iterator[tuple[str, Case]]:
    import daskspectral as dsp
    from daskspectral import kernels as k

    moons = dsp.datasets.half_moons(120, noise=0.05, random_state=0) if hasattr(dsp.datasets, "half_moons") else X[:120]
    moons = np.asarray(moons[0] if isinstance(moons, tuple) else moons)
    ways: dict[str, dict[str, Any]] = {"default": {}, "bandwidth": {"bandwidth": 0.5}, "power": {"solver": "power"}}
    ways |= {"exact": {"method": "exact", "n_components": 6}, "lowrank": {"method": "lowrank", "n_landmarks": 90}}
    ways |= {"columns": {"columns": [0]}, "standardized": {"standardize": True}, "loose": {"accuracy": 0.05}}
    for name, options in ways.items():

        def sdp(options: Any = options) -> dict[str, Any]:
            model, rows = embedding_of("SDPEmbedding", {"n_components": 4, **options})
            model = model.fit(dsp.Rows(moons, **rows))
            found = arrays_of(model, "embedding_", "objective_", "spectrum_", "bandwidth_", "rank_")
            certificate = model.certificate_
            found |= arrays_of(certificate, "gap", "least_eigenvalue", "optimal")
            return found | {"new": model.transform(moons[:15] + 0.01)}

        yield f"SDP, {name}", sdp
        times = {n: v for n, v in options.items() if n in ("bandwidth", "method", "n_landmarks")}

        def diffusion(times: Any = times) -> dict[str, Any]:
            model = embedding_of("DiffusionMap", {"n_components": 3, **times})[0].fit(moons)
            return {**arrays_of(model, "eigenvalues_", "embedding_", "bandwidth_"), "new": model.transform(moons[:9])}

        yield f"DiffusionMap, {name}", diffusion
    for name, options in {"alpha": {"alpha": 1.0}, "time": {"time": 2.0}, "markov": {"symmetric": False}}.items():
        yield (
            f"DiffusionMap, {name}",
            lambda options=options: arrays_of(
                dsp.DiffusionMap(0.5, random_state=0, **options).fit(moons), "eigenvalues_", "embedding_"
            ),
        )
    for name, options in {
        "gaussian": {"kernel": k.Gaussian(0.7)},
        "matern": {"kernel": k.Matern(2.5, 0.7)},
        "auto": {},
    }.items():

        def kernelised(options: Any = options) -> dict[str, Any]:
            model = dsp.KernelEmbedding(**options, regularization=1e-3, random_state=0).fit(moons)
            found = arrays_of(model, "embedding_", "objective_", "spectrum_", "dual_", "rank_")
            return found | {"new": model.transform(moons[:9]), "kernel": model.learned_kernel_(moons[:9], moons)}

        yield f"KernelEmbedding, {name}", kernelised


def containers() -> Iterator[tuple[str, Case]]:
    """Rows in every container, and what is done with a fitted model."""
    import dask.array as da
    import pandas as pd
    import xarray as xr

    import daskspectral as dsp

    frame = pd.DataFrame(X, columns=["a", "b"])
    field = xr.DataArray(X.reshape(30, 10, 2), dims=("time", "place", "column"), coords={"column": ["a", "b"]})
    hole = X.copy()
    hole[5, 0] = np.nan
    found: dict[str, tuple[Any, dict[str, Any]]] = {
        "numpy": (X, {}),
        "chunks": (da.from_array(X, chunks=(70, 2)), {}),
        "frame": (frame, {}),
        "labelled": (field, {"sample_dims": ("time", "place")}),
        "one dimension": (field, {"sample_dims": "time"}),
        "list": (X.tolist(), {}),
        "columns": (X3, {"columns": [0, 2]}),
        "skipped": (hole, {"fit_on_invalid": "skip"}),
        "refused": (hole, {}),
        "several": ([X[:100], X[100:]], {}),
        "single": (X.astype("float32"), {}),
        "integers": (np.round(10 * X).astype(int), {}),
        "text": (np.array([["a", "b"]] * 20), {}),
        "one row": (X[:1], {}),
        "one column": (X[:, 0], {}),
        "empty": (X[:0], {}),
        "infinite": (np.where(X > 1.2, np.inf, X), {}),
        "equal rows": (np.ones((50, 2)), {}),
        "cube": (X.reshape(30, 10, 2), {}),
        "no array": (None, {}),
        "lost file": ("no-such-store.zarr", {}),
    }
    for name, (x, options) in found.items():
        for way, more in {"cut": at_points(points=None, **CUT), "default": {}}.items():
            given = {k: v for k, v in more.items() if k != "landmarks"}

            def case(x: Any = x, options: Any = options, given: Any = given) -> dict[str, Any]:
                model = spectral(x, **given, **options)
                return arrays_of(model, "eigenvalues_", "held_out_")

            yield f"{name}, {way}", case

    def saved() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.zarr"
            dsp.save(spectral(X, **at_points(), **CUT), path)
            return spectrum_of(dsp.load(path), sums=True)

    def merged() -> dict[str, Any]:
        first, second = (spectral(x, **at_points(), **CUT) for x in (X[:100], X[100:]))
        return spectrum_of(first.fit_moments(first.moments_ + second.moments_), sums=True)

    def updated() -> dict[str, Any]:
        model = spectral(X[:200], **at_points(), **CUT)
        return spectrum_of(model.update(X), sums=True)

    def scored() -> dict[str, Any]:
        model = spectral(X, **at_points(), **CUT)
        return {"score": model.score(X[:50]), "plan": model.plan(X).memory.sums}

    def searched() -> dict[str, Any]:
        from sklearn.model_selection import GridSearchCV

        model = dsp.SpectralDecomposition(n_components=3, random_state=0, **nouns({**at_points(), **CUT})[0])
        search = GridSearchCV(model, {"n_components": [2, 3]}, cv=3).fit(X)
        return {"scores": search.cv_results_["mean_test_score"]}

    yield from {"saved": saved, "merged": merged, "updated": updated, "scored": scored, "searched": searched}.items()


def refusals() -> Iterator[tuple[str, Case]]:
    """Arguments that are wrong: the kind of error."""
    from daskspectral import basis as b
    from daskspectral import groups as g
    from daskspectral import kernels as k
    from daskspectral import manifolds as m
    from daskspectral import operators as o

    values = {"negative": -1, "zero": 0, "text": "no-such", "nan": np.nan, "list": [1], "none": None}
    names = "n_components n_landmarks penalty folds dtype device columns periods spread kernel"
    for name, (kind, value) in itertools.product(names.split(" "), values.items()):
        yield f"spectral {name} {kind}", lambda n=name, v=value: spectrum_of(spectral(X[:60], **{n: v}))
    for name, (kind, value) in itertools.product(("n_landmarks", "alpha", "folds", "gradient_weight"), values.items()):
        yield (
            f"hermite {name} {kind}",
            lambda n=name, v=value: {"y": hermite_of({n: v})[0].fit(X[:60], TARGET[:60]).predict(NEW)},
        )
    for name, (kind, value) in itertools.product(("bandwidth", "n_components", "accuracy", "method"), values.items()):
        yield (
            f"sdp {name} {kind}",
            lambda n=name, v=value: arrays_of(embedding_of("SDPEmbedding", {n: v})[0].fit(X[:60]), "objective_"),
        )
    makers = {
        "Gaussian": k.Gaussian, "Matern": lambda v: k.Matern(1.5, v), "nu": lambda v: k.Matern(v, 1.0),
        "Polynomial": k.Polynomial, "parse": k.parse, "operator": o.parse, "lag": o.Transfer,
        "axis": o.PartialDerivative,
        "Sphere": m.Sphere, "FlatTorus": m.FlatTorus, "PeriodicBox": lambda v: m.PeriodicBox([v], [1]),
        "Permutations": g.Permutations, "Rotations": g.Rotations, "Translations": g.Translations,
        "FourierLattice": b.FourierLattice, "MonomialBasis": lambda v: b.MonomialBasis(2, v), "hidden": b.NeuralBasis,
        "BallEdge": b.BallEdge, "density": lambda v: o.Laplacian(density=v),
    }  # fmt: skip
    for (name, make), (kind, value) in itertools.product(makers.items(), values.items()):
        yield f"{name} {kind}", lambda make=make, value=value: {"made": [] if make(value) is None else 1}


def commands() -> Iterator[tuple[str, Case]]:
    """Every verb of the shell, in a folder of its own: exit status, and the arrays that it wrote."""
    import zarr
    from click.testing import CliRunner

    from daskspectral.cli import command as main

    def run(lines: list[str]) -> dict[str, Any]:
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                np.save("x.npy", X)
                np.save("y.npy", TARGET)
                codes = [CliRunner().invoke(main, line.split()).exit_code for line in [*PREPARED, *lines]]
                found: dict[str, Any] = {"codes": codes}
                if Path("out.zarr").exists():
                    opened = zarr.open("out.zarr", mode="r")
                    arrays = {"array": opened} if isinstance(opened, zarr.Array) else dict(opened.arrays())
                    found |= {name: np.asarray(array[...]) for name, array in arrays.items()}
                return found
            finally:
                os.chdir(before)

    fit = "fit x.zarr --kernel gaussian:0.8 --landmarks 40 --components 4 --seed 0"
    apply = "transform model.zarr x.zarr --out out.zarr"
    sphere = "sample sphere --n 300 --out s.zarr"
    verbs = {name: [f"{fit} {more} --out model.zarr", apply] for name, more in OPTIONS.items()}
    verbs |= {f"sample {name}": [f"sample {name} --n 100 --seed 1 --out out.zarr"] for name in SAMPLES.split()}
    verbs |= {f"help {name}": [f"{name} --help"] for name in VERBS.split()}
    verbs |= {f"wrong: {line}": [line] for line in WRONG}
    verbs["fit lattice"] = ["fit x.zarr --lattice 3 --components 4 --out model.zarr", apply]
    verbs["fit by default"] = ["fit x.zarr --components 4 --seed 0 --out model.zarr", apply]
    verbs["fit tangential"] = [sphere, f"{fit.replace('x.zarr', 's.zarr')} --manifold sphere --out model.zarr"]
    verbs["regress"] = ["regress x.zarr y.zarr --out model.zarr --seed 0", apply.replace("transform", "predict")]
    verbs["regress"] += ["score model.zarr x.zarr --targets y.zarr", "info model.zarr"]
    verbs["embed"] = ["embed x.zarr --out model.zarr --seed 0", apply, "report model.zarr --out a.html"]
    verbs["invariant"] = [sphere, "invariant s.zarr y.zarr --group permutations --manifold sphere --out model.zarr"]
    verbs["invariant"] += ["predict model.zarr s.zarr --out out.zarr"]
    twice = [f"{fit.replace('x.zarr', half)} --out m{half}" for half in ("x.zarr", "s.zarr")]
    verbs["merge"] = [sphere, *twice, "merge mx.zarr ms.zarr --out model.zarr", "update mx.zarr s.zarr"]
    looks = [
        "info model.zarr",
        "info model.zarr --json",
        "verify model.zarr",
        "verify x.zarr",
        "score model.zarr x.zarr",
    ]
    looks += ["plot model.zarr x.zarr --out a.png", "plot model.zarr --out b.svg", "report model.zarr --out c.html"]
    verbs["looks"] = [f"{fit} --out model.zarr", *looks, f"plan {fit}", "plan regress x.zarr y.zarr"]
    for name, lines in verbs.items():
        yield name, lambda lines=lines: run(lines)


OPTIONS = {
    "fit": "",
    "fit cut": "--solver cut",
    "fit covariance": "--operator covariance",
    "fit constant": "--constant",
    "fit standardized": "--standardize",
    "fit columns": "--columns 0",
    "fit single": "--dtype float32",
    "fit farthest": "--landmark-method farthest",
    "fit blocks": "--folds blocks",
    "fit transfer": "--operator transfer:2",
}
SAMPLES = (
    "two-moons sphere circle gaussian torus torus-surface swiss-roll uniform ou langevin torsions blobs double-well"
)
VERBS = "convert embed fit info invariant merge plan plot predict regress report sample score transform update verify"
WRONG = """
nothing
fit
fit no.zarr --out m.zarr
fit x.zarr
fit x.zarr --kernel nothing --out m.zarr
fit x.zarr --components 0 --out m.zarr
fit x.zarr --operator nothing --out m.zarr
fit x.zarr --out x.zarr
fit x.zarr --folds 1 --out m.zarr
transform x.zarr x.zarr --out out.zarr
predict x.zarr x.zarr --out out.zarr
info no.zarr
plan nothing
merge --out m.zarr
sample nothing --out out.zarr
regress x.zarr --out m.zarr
embed x.zarr --method nothing --out m.zarr
invariant x.zarr y.zarr --group nothing --out m.zarr
""".strip().splitlines()
PREPARED = ["convert x.npy --out x.zarr", "convert y.npy --out y.zarr"]
ROOMS = (kernels, operators, bases, choices, manifolds, groups, regressions, embeddings, containers, refusals, commands)


# -- running and comparing --------------------------------------------------------------------------------------------


def collected(only: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of all cases, "room: case|array"; an error is the name of its class."""
    import dask

    found: dict[str, np.ndarray] = {}
    with dask.config.set(scheduler="synchronous"), threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for room in ROOMS:
            if only and room.__name__ not in only:
                continue
            for name, case in room():
                try:
                    result = case()
                except Exception as error:  # what is refused stays refused, whatever the kind of error
                    result = {"error": next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")}
                found |= {f"{room.__name__}: {name}|{key}": np.asarray(value) for key, value in result.items()}
    return found


def reference() -> Path:
    """The results of the starting commit, which are kept between runs."""
    kept = Path(tempfile.gettempdir()) / f"daskspectral-guard-{START[:12]}.npz"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "archive", START], cwd=ROOT, capture_output=True, check=True).stdout
            subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
            script = Path(folder) / "examples" / "benchmarks" / "guard.py"
            subprocess.run(
                [sys.executable, str(script), "--collect", str(kept)],
                env={**os.environ, "PYTHONPATH": folder},
                check=True,
            )
    return kept


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference over the largest entry; infinite for other shapes, text or infinities."""
    if a.shape != b.shape or a.dtype.kind in "USO" or b.dtype.kind in "USO":
        return 0.0 if a.shape == b.shape and (a == b).all() else np.inf
    a, b = a.astype(complex), b.astype(complex)
    known = np.isfinite(a)
    if not ((known == np.isfinite(b)).all() and (np.abs(a[known] - b[known]) < np.inf).all()):
        return np.inf
    size = np.abs(a[known]).max(initial=0.0)
    return float(np.abs(a[known] - b[known]).max(initial=0.0) / (size or 1.0))


@click.command(help=__doc__)
@click.option("--only", multiple=True, type=click.Choice([room.__name__ for room in ROOMS]))
@click.option("--collect", type=click.Path(path_type=Path), help="write this checkout's results, compare nothing")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="write the difference of each case here")
def main(only: tuple[str, ...], collect: Path | None, json_path: Path | None) -> None:
    if collect is not None:
        np.savez_compressed(collect, **collected(only))
        return
    with np.load(reference()) as opened:
        then = {key: opened[key] for key in opened.files if not only or key.split(":")[0] in only}
    now = collected(only)
    gone = {key for key in then if not any(key.startswith(beginning) for beginning in LEFT)}
    worst: dict[str, float] = {}
    for key in sorted(gone | now.keys()):
        case = key.split("|")[0]
        value = difference(then[key], now[key]) if key in then and key in now else np.inf
        if key in MEANT or (key.endswith("residuals_") and np.abs(now.get(key, np.inf)).max(initial=0.0) < CLOSE):
            value = 0.0
        worst[case] = max(worst.get(case, 0.0), value)
    if json_path is not None:
        json_path.write_text(json.dumps(worst, indent=1))
    for case, value in worst.items():
        if value > CLOSE:
            click.echo(f"{value:9.2g}  {case}")
    for room in dict.fromkeys(case.split(":")[0] for case in worst):
        own = np.array([value for case, value in worst.items() if case.startswith(f"{room}:")])
        counts = (own == 0).sum(), ((own > 0) & (own <= CLOSE)).sum(), (own > CLOSE).sum()
        click.echo("{:12} {:5} same bits, {:5} close, {:5} differing".format(room, *counts))
    if max(worst.values(), default=0.0) > CLOSE:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
