"""Table of commands: function, arguments and options of each (see `options.verb`)."""

from itertools import chain

import click

from daskspectral.cli import parameters as par
from daskspectral.cli.options import MEASURE, RUN, verb

COMMANDS = (
    verb(
        "spectral:fit",
        *("POINTS", par.OPERATOR, par.TRANSFER, par.LAPLACIAN),
        "trajectory potential drift diffusion direction coefficient field view functions-of trust",
        *(par.LANDMARKS, par.LATTICE, par.NETWORK, par.FEATURES),
        *("solver", par.REGULARIZED, par.TRUNCATED, par.FOLDS, par.SPECTRAL, "rotate"),
        *(par.ROWS, par.PREPARED, par.WEIGHTS, par.SAVED),
        f"plot {RUN}",
    ),
    verb("spectral:update", "MODEL POINTS field view trust", par.TARGETS, par.GRADIENTS, par.WEIGHTS, par.VALID, RUN),
    verb("spectral:merge", click.Argument(["parts"], nargs=-1, required=True), "out overwrite trust storage-option"),
    verb(
        "estimators:cluster",
        "POINTS",
        *(par.CLUSTERS, par.ROWS, par.PREPARED, par.WEIGHTS, par.SAVED),
        f"save-model {RUN}",
    ),
    verb("estimators:embed", "POINTS", par.EMBEDDING, "map", *chain(*par.MAPS.values()), par.ROWS, RUN),
    verb(
        "estimators:regress",
        "POINTS TARGETS",
        *(par.GRADIENTS, par.GRADIENT_WEIGHT, par.LANDMARKS, par.LATTICE, par.RIDGE),
        *(par.ROWS, par.PREPARED, par.WEIGHTS, par.SAVED),
        RUN,
    ),
    verb(
        "estimators:invariant",
        "POINTS TARGETS",
        *(par.GROUP, par.INVARIANCE, par.GROUP_SOLVER, par.LEAST_SQUARES, par.GRADIENTS, par.GRADIENT_WEIGHT),
        *(par.ROWS, par.WEIGHTS, par.SAVED),
        RUN,
    ),
    verb(
        "using:transform", "MODEL POINTS right sets committor passage-time equilibrium trust", par.FAR, par.VALID, RUN
    ),
    verb("using:predict", "MODEL POINTS", "gradient trust", par.VALID, RUN),
    verb("using:score", "MODEL POINTS field view trajectory trust", par.TARGETS, par.WEIGHTS, par.VALID, MEASURE),
    verb("using:info", "MODEL", "details settings trust storage-option"),
    verb("inspecting:plot", "MODEL [POINTS]", "kind trust", par.PANELS, "out storage-option overwrite"),
    verb("inspecting:report", "MODEL [POINTS]", "view out trust storage-option overwrite"),
    verb("inspecting:verify", "STORE", par.COMPLETE, "storage-option"),
    verb(
        "inspecting:plan",
        click.Argument(["command"], type=click.Choice(["fit", "regress", "invariant"])),
        click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED),
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    ),
    verb("inspecting:sample", par.DRAWING, "n", "out overwrite progress storage-option"),
)
