"""The options that say which operator is meant, and where the arrays are that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli.choices import OPERATORS
from daskspectral.cli.kinds import Count, number_of
from daskspectral.cli.options import DENSITY_HELP, MANIFOLD_HELP, F, together

if TYPE_CHECKING:
    from daskspectral.operators import Operator

SHORT = ("potential", "drift", "diffusion", "direction")
"""Fields with options of their own."""


class Field(click.ParamType):  # type: ignore[type-arg]
    """A field and its array: name=path."""

    name = "name=path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The name and the path."""
        if isinstance(value, tuple):
            return value
        name, equals, path = str(value).partition("=")
        if not equals or not name or not path:
            self.fail(f"{value!r} is no field with its array, such as drift=b.zarr")
        return name, path


def _short(name: str, text: str) -> Callable[[F], F]:
    return click.option(f"--{name}", metavar="PATH", help=f"{text}; short for --field {name}=PATH.")


data_options = together(
    click.option(
        "--field",
        "fields",
        type=Field(),
        multiple=True,
        help="An array that the operator reads besides the points, a row for each row; several times for several.",
    ),
    click.option(
        "--view",
        "views",
        multiple=True,
        metavar="PATH",
        help="Another view of each row of POINTS: y of cross, the augmented versions of augmentation.",
    ),
)
trajectory_option = click.option(
    "--trajectory",
    "trajectories",
    multiple=True,
    metavar="PATH",
    help="transfer: another trajectory besides POINTS; several times for several.",
)
operator_options = together(
    click.option(
        "--operator",
        default="laplacian",
        show_default=True,
        help=f"What is decomposed: {', '.join(OPERATORS)}.",
    ),
    click.option("--lag", type=Count(), help="transfer: rows from a state to its future; POINTS are a trajectory."),
    trajectory_option,
    click.option(
        "--manifold",
        help=f"{MANIFOLD_HELP}; laplacian: the tangential form there; none by default.",
    ),
    click.option(
        "--density",
        type=float,
        help=f"{DENSITY_HELP}; laplacian: 1 for Laplace-Beltrami; 0 by default.",
    ),
    _short("potential", "schroedinger: values of the potential, (n,)"),
    _short("drift", "generator: the drift, (n, d)"),
    click.option(
        "--diffusion",
        metavar="PATH|NUMBER",
        help="generator: the noise sigma, (n, d, m), or a number for a multiple of the identity; anisotropic: "
        "the matrices, (n, d, d), or with anisotropic:factored their factors; short for --field diffusion=PATH.",
    ),
    _short("direction", "tangent: a direction for each row, (n, d), or several, (n, m, d)"),
    click.option(
        "--coefficient",
        "coefficients",
        multiple=True,
        metavar="A:B=C",
        help="differential: the term C d_A f d_B g, orders by column and a number or a field, such as 1,0:1,0=2.0; "
        "several times for several.",
    ),
    data_options,
)


def operator_of(options: Mapping[str, Any], dimension: int) -> Operator:
    """The operator that the options name, of points with `dimension` columns.

    Raises click's UsageError for options that the operator does not read or that are missing, ValueError for names that
    are none.
    """
    from daskspectral.cli.names import parse_manifold
    from daskspectral.operators import names

    text: str = options["operator"]
    head, *words = text.split(":")
    manifold = options["manifold"]
    sigma = number_of(options["diffusion"]) if head == "generator" else None
    given = {
        "manifold": None if manifold is None else parse_manifold(manifold, dimension),
        "density": options["density"],
        "lag": options["lag"],
        "diffusion": sigma,
        "coefficients": options["coefficients"] or None,
        "views": 1 + len(options["views"]) if head == "augmentation" else None,
    }
    if head in names.NAMES:
        for name, value in given.items():
            if value is not None and name not in names.NAMES[head].options:
                raise click.UsageError(f"--{names.not_read(name, head)}".replace("--coefficients", "--coefficient"))
        if head == "transfer" and not words and options["lag"] is None:
            raise click.UsageError("--operator transfer needs --lag, the rows from a state to its future")
        if head == "differential" and not options["coefficients"]:
            raise click.UsageError("--operator differential needs --coefficient, such as --coefficient 1,0:1,0=2.0")
        if head == "augmentation" and not options["views"]:
            raise click.UsageError("--operator augmentation needs --view, once for each augmented version of POINTS")
    found = names.parse(text, **given)
    if options["trajectories"] and found.lag is None:
        raise click.UsageError(f"--trajectory is for --operator transfer, and {text} reads rows one by one")
    _check_fields(fields_of(options), found, text)
    wanted, views = found.views[1:] if found.lag is None else (), options["views"]
    if len(views) != len(wanted):
        needs = f"{len(wanted)} --view, of the points {', '.join(wanted)}" if wanted else "no --view"
        raise click.UsageError(f"--operator {text} takes {needs}; {len(views)} given")
    return found


def fields_of(options: Mapping[str, Any]) -> dict[str, str]:
    """The paths of the fields by name. Raises click's UsageError for one given twice."""
    pairs = [*options["fields"], *((name, options[name]) for name in SHORT if options.get(name) is not None)]
    pairs = [(name, path) for name, path in pairs if name != "diffusion" or number_of(path) is None]
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise click.UsageError(f"the field {repeated[0]} is given twice")
    return dict(pairs)


def points_of(points: Any, options: Mapping[str, Any]) -> Any:
    """The points, a list of several trajectories, or a tuple of the points and their other views.

    Raises click's UsageError for weights of several trajectories.
    """
    if options.get("trajectories"):
        if options["weights"] is not None:
            raise click.UsageError("--weights are for one trajectory; those of several are given in Python, as a list")
        return [points, *options["trajectories"]]
    return (points, *options["views"]) if options["views"] else points


def _check_fields(given: Mapping[str, str], operator: Operator, text: str) -> None:
    reads = operator.data_fields
    for name in given:
        if name not in reads:
            others = f"it reads {', '.join(sorted(reads))}" if reads else "it reads none"
            option = f"--{name}" if name in SHORT else f"--field {name}"
            raise click.UsageError(f"{option} is a field that --operator {text} does not read; {others}")
    for name in sorted(reads - given.keys()):
        option = f"--{name}" if name in SHORT else f"--field {name}=PATH"
        raise click.UsageError(f"--operator {text} needs {option}, an array with a row for each row of POINTS")
