"""`regress`: by a kernel. `invariant`: by functions that a group leaves as they are."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli.commands import session
from daskspectral.cli.making import functions_of, given, kernel_of, opened, rows_of
from daskspectral.cli.options import BASIS, LABELLED, RUN, SAVED, VALID, verb
from daskspectral.cli.running import finish, refuse, saving, say_plan, scheduler


@verb(
    "POINTS TARGETS",
    f"gradients gradient-weight {LABELLED} {BASIS} alpha columns periods standardize weights rtol dtype device seed "
    f"{VALID} {SAVED} out {RUN}",
    examples=[
        "regress points.zarr y.zarr --out regressor.zarr",
        "regress points.zarr y.zarr --gradients b.zarr --landmarks 100 --out hermite.zarr",
    ],
)
def regress(points: str, targets: str, **options: Any) -> None:
    """Regress TARGETS, and gradients if known, on POINTS."""
    from daskspectral.regression import HermiteRegressor

    kernel_of(options)  # an unknown one is an error before POINTS are opened
    array, width = _opened(points, targets, options)
    chosen = given(options, "gradient_weight", "alpha", "rtol", "dtype", "device", seed="random_state")
    _fit(HermiteRegressor(functions_of(options, width), **chosen), array, targets, options)


@verb(
    "POINTS TARGETS",
    f"{LABELLED} manifold group smoothness functions gradients gradient-weight solver alpha weights {VALID} {SAVED} "
    f"out {RUN}",
    examples=[
        "invariant points.zarr y.zarr --group signflips --out invariant.zarr",
        "invariant sphere.zarr s.zarr --manifold sphere --group permutations --out ball.zarr",
    ],
)
def invariant(points: str, targets: str, **options: Any) -> None:
    """Regress TARGETS among functions invariant under a group.

    POINTS lie on a manifold.
    """
    from daskspectral.groups.names import parse_group
    from daskspectral.invariance import InvariantRegressor
    from daskspectral.invariance.levels import InvariantSolver
    from daskspectral.manifolds.names import parse_manifold

    solvers = InvariantSolver.family()
    solver = options["solver"].replace("-", "_")
    if options["alpha"] is not None and not solvers[solver].penalised:
        penalised = " or ".join(name.replace("_", "-") for name, found in solvers.items() if found.penalised)
        raise click.UsageError(f"--alpha is for --solver {penalised}")
    array, width = _opened(points, targets, options)
    estimator = InvariantRegressor(
        None if options["manifold"] is None else parse_manifold(options["manifold"], width),
        None if options["group"] is None else parse_group(options["group"], width),
        solver=solver,
        **given(options, "smoothness", "alpha", "gradient_weight", functions="n_eigenfunctions"),
    )
    _fit(estimator, array, targets, options)


def _opened(points: str, targets: str, options: dict[str, Any]) -> tuple[Any, int]:
    """The points and their columns, after an error for a line that cannot be, or outputs that cannot be written."""
    if options["gradient_weight"] is not None and options["gradients"] is None:
        raise click.UsageError("--gradient-weight is for --gradients")
    refuse(options, points, targets, options["weights"], options["gradients"])
    return opened(points, options)


def _fit(estimator: Any, array: Any, targets: str, options: dict[str, Any]) -> None:
    """Fit a regressor, save and describe it, or tell its plan."""
    rows, read = rows_of(array, options), given(options, "gradients", weights="sample_weight")
    with scheduler(options):
        if session().planning:
            say_plan(estimator.plan(rows, targets, **read))
            return
        estimator.fit(rows, targets, **read, **saving(options))
        finish(estimator, options)
