"""`jacobi`: positions of atoms as a hyperradius and a direction, for potentials with all their symmetries."""

from __future__ import annotations

from typing import Any

import click

from daskspectral.cli import kinds
from daskspectral.cli import options as opt
from daskspectral.cli.commands import Command, say, written


@click.command(
    cls=Command,
    examples=[
        "jacobi atoms.zarr --masses 16,1,1 --out water.zarr --embedding reduced.zarr",
    ],
)
@click.argument("positions")
@click.option("--masses", type=kinds.Words(), help="Masses of the atoms, in any unit: 16,1,1; all alike by default.")
@click.option(
    "--species", type=kinds.Words(), help="Labels that identical atoms share: O,H,H; by default those of equal mass."
)
@opt.fit_row_options
@opt.model_option
@opt.embedding_option
@opt.run_options
def jacobi(positions: str, out: str, embedding: str | None, **options: Any) -> None:
    """Find mass-weighted Jacobi coordinates for POSITIONS, x, y, z of one atom after another in each row.

    `daskspectral invariant` on the coordinates, with --coordinates, learns a potential that translations, rotations,
    reflections and exchanges of identical atoms leave as it is.
    """
    from daskspectral.cli.describing import describe
    from daskspectral.cli.facts import facts_of
    from daskspectral.data.stores import open_zarr
    from daskspectral.data.writing import refuse_existing, refuse_input
    from daskspectral.estimators import JacobiCoordinates

    overwrite = options["overwrite"]
    refuse_existing(out, overwrite)
    refuse_input(out, positions)
    if embedding is not None:
        opt.refuse_same(out, "--embedding", embedding)
        refuse_existing(embedding, overwrite)
        refuse_input(embedding, positions)
    try:
        masses = None if options["masses"] is None else [float(mass) for mass in options["masses"]]
    except ValueError:
        raise click.UsageError(f"--masses are numbers, such as 16,1,1; got {','.join(options['masses'])}") from None
    estimator = JacobiCoordinates(masses, species=options["species"])
    run = opt.chosen(options, "on_invalid", "allow_missing") | {"progress": opt.bar(options["progress"])}
    with opt.scheduler(options):
        estimator.fit(positions, **run)
        estimator.save(out, overwrite=overwrite)
        say(describe(estimator), **facts_of(estimator))
        written("model", out)
        if embedding is not None:
            estimator.transform(positions, out=embedding, overwrite=overwrite, **run)
            shape = open_zarr(embedding).shape
            written("embedding", embedding, f", {shape[0]} rows, {shape[1]} components")
