"""Every option of every command: its kind, default and help, whether settings keep it, and whether few need it.

A test compares the defaults and the words with those of the constructors: no help text imports these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import click

from daskspectral.cli import kinds
from daskspectral.cli.commands import Command, configure, help_all, speak
from daskspectral.cli.settings import use_storage

FLOAT32 = ("float64", "float32")
DEVICES = ("cpu", "cuda", "auto")
METHODS = ("uniform", "kmeans++", "cholesky", "farthest", "leverage")
INVALID = "A row with NaN or infinity: an error,"
LEFT_OUT = ("raise", "skip", "pairwise")
ANOMALIES = ("month", "season", "dayofyear", "hour")
EXTRAPOLATE = ("nearest", "nan", "raise")
SAMPLES = (
    *("two-moons", "sphere", "circle", "gaussian", "torus", "torus-surface", "swiss-roll", "uniform", "ou"),
    *("langevin", "torsions", "blobs", "double-well"),
)
OPERATORS = (
    *("laplacian", "covariance", "schroedinger", "anisotropic[:factored]", "tangent", "differential[:solver]"),
    *("partial:axis[:solver]", "generator[:reversible]", "transfer[:lag[:solver]]", "cross[:center]", "augmentation"),
)

OUT = "Where the result goes:"
KERNEL = "The functions at landmarks, name[:parameter...], terms joined by +"
DENSITY = "The power of the sampling density that is divided out"
MANIFOLD = "Where the points lie, sphere, circle, torus, a periodic box:LOWER:UPPER or interval:LOWER:UPPER"
COMPONENTS = "How many functions, or coordinates, are wanted"
SOLVER = "How the solution is found"
ALPHA = "Weight of the penalty of a regression"
TARGETS = "For a regressor, the zarr array of targets"
GRADIENTS = "A zarr array of the targets' gradients"
STANDARDIZE = "Bring columns to mean 0 and standard deviation 1"
DTYPE = "Precision of the arithmetic, or of the numbers written"
DEVICE = "Where functions are evaluated and multiplied: cuda is a GPU (extra gpu)"
CHECKPOINT = "A directory for the sums so far, from which the same command goes on"
RARE = (
    "lag further sets committor passage-time equilibrium trajectory manifold density drift diffusion direction "
    "coefficient view latitude anomaly detrend allow-missing landmark-method landmark-sample exclude-landmarks "
    "spread functions-of rotate constant lattice-box lattice-margin network ridge rtol gradient-weight dtype "
    "device smoothness functions tolerance max-passes cache cache-path time regularization extrapolate trust "
    "checkpoint-every plot connect-timeout threads storage-option json quiet log-file"
)
"""Options that few need, left to --help-all."""


class Option(click.Option):
    """An option, of all commands or of those named before its first word.

    Its `kind` is one of values, words to choose from, bool for a flag, or what stands for any text in a help; in a list
    where it may be given several times. One with a callback is nothing that the command's function is called with.
    """

    role: ClassVar = "call"

    def __init__(self, words: str, help: str, kind: Any = None, default: Any = None, **more: Any):
        of, dashes, spelled = words.partition("--")
        self.of, self.key = of.split(), spelled.replace("/", " ").split()[0]
        self.rare = self.key in RARE.split()
        if isinstance(kind, list):
            (kind,), more["multiple"] = kind, True
            help = f"{help.removesuffix('.')}; several times for several."
        if kind is bool:
            more["is_flag"] = True
        elif isinstance(kind, str):
            more["metavar"] = kind
        else:
            more["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind
        if default is not None or kind is bool:  # click takes a default of None for a value
            more |= {"default": default, "show_default": kind is not bool or bool(default)}
        super().__init__((dashes + spelled).split(), help=help, expose_value="callback" not in more, **more)


class Call(Option):
    """Of one call, where it runs and what it writes and shows: from the command line, or a file of one's own."""


class Value(Option):
    """Changes the values that come out: kept with a result, and taken from it by --config."""

    role = "value"


class Input(Option):
    """Says what is read: kept with a result, and never taken from it; it is to be given anew."""

    role = "input"


class Typed(Option):
    """Given on the command line alone."""

    role = "typed"


class Argument(click.Argument):
    """An argument, which says what is read unless it has another role."""

    def __init__(self, name: str, role: str = "input", **more: Any):
        super().__init__([name], **more)
        self.role = role


OPTIONS = (
    # what is decomposed
    Value("--operator", f"What is decomposed: {', '.join(OPERATORS)}.", default="laplacian"),
    Value("--lag", "transfer: rows, or time such as 6h, to the future; POINTS are a trajectory.", kinds.LAG),
    Value("--further", "transfer: further lags in the same pass, multiples of the lag: 2,5,10.", kinds.LAGS),
    Input("--trajectory trajectories", "transfer: another trajectory besides POINTS.", ["PATH"]),
    Value("--manifold", f"{MANIFOLD}; laplacian: the tangential form there; none by default."),
    Value("--density", f"{DENSITY}; laplacian: 1 for Laplace-Beltrami; 0 by default.", float),
    Input("--potential", "schroedinger: values of the potential, (n,); short for --field potential=PATH.", "PATH"),
    Input("--drift", "generator: the drift, (n, d); short for --field drift=PATH.", "PATH"),
    Value(
        "--diffusion",
        "generator: the noise sigma, (n, d, m), or a number for a multiple of the identity; anisotropic: the matrices, "
        "(n, d, d), or with anisotropic:factored their factors; short for --field diffusion=PATH.",
        "PATH|NUMBER",
    ),
    Input(
        "--direction",
        "tangent: a direction for each row, (n, d), or several, (n, m, d); short for --field direction=PATH.",
        "PATH",
    ),
    Value(
        "--coefficient coefficients",
        "differential: the term C d_A f d_B g, orders by column and a number or a field, such as 1,0:1,0=2.0.",
        ["A:B=C"],
    ),
    Input("--field fields", "An array that the operator reads besides the points, a row for each row.", [kinds.FIELD]),
    Input(
        "--view views",
        "Another view of each row of POINTS: y of cross, the augmented versions of augmentation.",
        ["PATH"],
    ),
    # the rows
    Value(
        "--sample-dims",
        "Dimensions of labelled POINTS that make rows: time, or time,lat,lon; all others are columns.",
        kinds.NAMES,
    ),
    Value("--latitude", "The coordinate in degrees, of rows or columns, by whose cosine these are weighted."),
    Value("--anomaly", "Of labelled POINTS in time: less the mean over each of these.", ANOMALIES),
    Value("--detrend", "Of labelled POINTS in time: less a polynomial of this degree too.", kinds.COUNT),
    Value("--columns", "Columns to use, 0,2,5 or 0:8, or their names, malt,ash.", kinds.COLUMNS),
    Value("embed --columns", "Columns to use, 0,2,5 or 0:8, or their names; sdp alone.", kinds.COLUMNS),
    Value("--standardize", f"{STANDARDIZE}.", bool, False),
    Value("embed --standardize", f"{STANDARDIZE}; sdp alone.", bool, False),
    Value("--on-invalid", f"{INVALID} (skip) left out, or (pairwise) used where it has numbers.", LEFT_OUT, "raise"),
    Value(
        "transform predict --on-invalid",
        f"{INVALID} (skip) NaN, or (pairwise) a fit to its numbers.",
        LEFT_OUT,
        "raise",
    ),
    Input("--allow-missing", "Take missing chunks as fill values, not as an error.", bool, False),
    Input("--weights", "A zarr array of sample weights, one a row."),
    Input("--gradients", f"{GRADIENTS}, (rows, columns of POINTS)."),
    Input("update --gradients", f"{GRADIENTS}; all of them, old and new."),
    Input("update --targets", f"{TARGETS}; all of them, old and new."),
    Input("score --targets", f"{TARGETS}."),
    # the functions
    Value("--kernel", f"{KERNEL}; auto: kernel and scale are chosen on rows held out.", default="auto"),
    Value("embed --kernel", f"{KERNEL}; kernel: in whose space one is learned; matern:1.5:auto by default."),
    Value("--landmarks", "How many landmarks.", kinds.COUNT_OR_AUTO, "auto"),
    Value(
        "embed --landmarks",
        "How many landmarks; lowrank alone: auto by default, as many as --accuracy takes (diffusion: 500).",
        kinds.COUNT_OR_AUTO,
    ),
    Value("--landmark-method", "How landmarks are chosen.", METHODS, "kmeans++"),
    Value("embed --landmark-method", "How landmarks are chosen.", METHODS, "cholesky"),
    Value("--landmark-sample", "Rows among which landmark methods other than uniform choose.", kinds.COUNT),
    Value(
        "--exclude-landmarks/--keep-landmarks",
        "Rows that are landmarks out of the sums, or in them; by default out for kernels with a kink.",
        bool,
    ),
    Value("--spread", "How far, in scales, landmarks are moved off the data.", kinds.number_or("auto"), "auto"),
    Value("--constant/--no-constant", "Add the constant function to the basis; the operator decides by default.", bool),
    Value("--periods", "Columns that are periodic, as angles: 0:6.283185.", kinds.PERIODS),
    Value(
        "--lattice",
        "Highest frequency of Fourier functions, in place of landmarks, for 1 to 4 columns, of transfer and cross with "
        "--periods of all: 15, or 30,20; auto: landmarks and a lattice are compared.",
        kinds.LATTICE,
    ),
    Value(
        "--lattice-box",
        "The ends of the data of --lattice by column, none for a periodic one: -1:1,0:5; found by default.",
        kinds.BOX,
    ),
    Value(
        "--lattice-margin",
        "Share of the width by which the period of --lattice is larger; by default 0.2, of a regression 0.3.",
        float,
    ),
    Value(
        "--network",
        "Neurons of the hidden layers of a network, in place of landmarks: 96,96,96 (extra neural).",
        kinds.NEURONS,
    ),
    # the solution
    Value("--components", f"{COMPONENTS}; covariance: or a share of the variance.", kinds.COUNT_OR_SHARE, 16),
    Value("--rotate", "covariance: turn as many components to patterns large in few places, by varimax.", kinds.COUNT),
    Value(
        "--solver",
        f"{SOLVER}; a penalty on rough functions, or a cut of the Gram matrix alone.",
        ("penalised", "cut"),
        "penalised",
    ),
    Value("--penalty", "penalised: its strength, 1 being usual.", kinds.number_or("auto"), "auto"),
    Value("--ridge", "cut: added to the form's diagonal, times its mean.", float, 0.0),
    Value("--rtol", "Relative cut of the Gram matrix's eigenvalues; of fit with --solver cut.", float),
    Value(
        "--folds",
        "Parts of the rows, for error bars: a number, blocks (of rows in time), random, a zarr array of labels, none.",
        kinds.FOLDS,
        "10",
    ),
    Value("--alpha", f"{ALPHA}, or gcv; chosen by cross-validation by default.", kinds.number_or("gcv")),
    Value("invariant --alpha", f"{ALPHA}, of least-squares; chosen by cross-validation by default.", float),
    Value("--gradient-weight", "Weight of a gradient against a value; 1 by default.", float),
    Value("--dtype", f"{DTYPE}.", FLOAT32, "float64"),
    Value("--device", f"{DEVICE}.", DEVICES, "cpu"),
    Value("embed --device", f"{DEVICE}; sdp alone.", DEVICES, "cpu"),
    Value("--seed", "Of random numbers; the same seed gives the same result.", int, 0),
    # functions of a manifold that a group leaves as they are
    Value("invariant --manifold", f"{MANIFOLD}; by default the columns' ranges."),
    Value("--group", "permutations, cyclic, signflips, rotations:K, joined by +; none by default."),
    Value(
        "--smoothness",
        "Order of the Sobolev norm, above half the manifold's dimension; by default 2, or half of it plus 1.",
        float,
    ),
    Value("--functions", "Eigenfunctions of the manifold, at most; chosen by default.", kinds.COUNT),
    Value("invariant --solver", f"{SOLVER}.", ("least-squares", "projection"), "least-squares"),
    # coordinates
    Value(
        "--bandwidth",
        "Bandwidth of the kernel exp(-r^2 / bandwidth^2), in the units of POINTS, or how it is chosen.",
        kinds.number_or("auto", "median", "local"),
        "auto",
    ),
    Value(
        "--map kind",
        "How points are embedded: by a semidefinite program, a diffusion map, or a kernel that is learned.",
        ("sdp", "diffusion", "kernel"),
        "sdp",
    ),
    Value("--method", "sparse is for --map sdp.", ("auto", "exact", "sparse", "lowrank"), "auto"),
    Value(
        "--accuracy",
        "sdp: relative error of the Gram matrix up to which landmarks stand for all points; 0.001 by default.",
        float,
    ),
    Value(
        "--tolerance",
        "sdp, kernel: relative duality gap that counts as optimal; 1e-10 by default, of kernel 1e-07.",
        float,
    ),
    Value(
        "--max-passes",
        "sdp, kernel: products with the kernel, or steps, at most; 10000 by default, of kernel 100.",
        kinds.COUNT,
    ),
    Call(
        "--cache",
        "sdp: whether kernel values at landmarks are kept between passes; auto by default: where they fit in memory.",
        ("auto", "always", "never"),
    ),
    Call("--cache-path", "sdp: keep them, or the sparse kernel, in a scratch zarr store at this path; it stays there."),
    Value(
        "embed --components",
        f"{COMPONENTS}; of sdp the rank of the optimum unless given, and beyond it stage by stage; of diffusion 2; "
        "kernel: all.",
        kinds.COUNT,
    ),
    Value("--time", "diffusion: power of the eigenvalues; 1 by default.", float),
    Value("embed --density", f"{DENSITY}; diffusion: before its kernel is normalised; 0 by default.", float),
    Value("--regularization", "kernel: weight of its penalty; 0.0001 by default.", float),
    Value(
        "--extrapolate",
        "Values at points far from the rows of the fit: those of the nearest place of the fit, NaN, or an error; "
        "nearest by default.",
        EXTRAPOLATE,
    ),
    Call("--embedding", "A new zarr array for the coordinates of every row."),
    # arrays to work on
    Value("--n rows", "Rows, such as 1e7.", kinds.COUNT, 10_000),
    Value("--dimension", "Columns, where the distribution leaves a choice.", kinds.COUNT),
    Value("--noise", "Standard deviation of added noise.", float),
    Value("--chunk-rows", "Rows of a chunk; 16 to 32 MB by default.", kinds.COUNT),
    # models
    Input("--functions-of", "Take the functions and columns of this model: sums of such fits add (merge).", "MODEL"),
    Value("--right", "The right singular functions, of a model that has them.", bool, False),
    Value("--sets", "transfer: memberships in so many metastable sets, found among POINTS.", kinds.COUNT),
    Input(
        "--committor",
        "transfer: the chance of entering the second of two sets first, with its interval; arrays (n,) of booleans say "
        "which rows of the trajectory POINTS are in them.",
        kinds.SETS,
    ),
    Input("--passage-time", "transfer: the mean time until one or two such sets, with its interval.", kinds.SETS),
    Value("--equilibrium", "transfer: weights of rows as in equilibrium, --weights of a second fit.", bool, False),
    Value("--gradient", "The gradient in place of the values, (rows, targets x columns).", bool, False),
    Value(
        "plot --kind",
        "The functions over POINTS, the values with their error bars, the candidates of the automatic choice, or of "
        "transfer timescales by the lag, or the Chapman-Kolmogorov test; by default functions where POINTS are given, "
        "else spectrum.",
        ("functions", "spectrum", "choice", "timescales", "chapman-kolmogorov"),
    ),
    Value("plot --components", f"{COMPONENTS}; 16 by default.", kinds.COUNT),
    Call("--details", "Ranks, residuals and effective points too, and the candidates of the choice.", bool, False),
    Call("--settings only_settings", "The options with which it was made, for --config.", bool, False),
    Typed("--trust", "A class or function of your own that the file may ask for.", ["MODULE.NAME"]),
    # the run
    Call("--probe", "Choose the functions, time two tasks, and tell the time of the pass.", bool, False),
    Call(
        "--workers",
        "Processes of which --probe tells the time, each of the --threads of ARGUMENTS; by default 1, or those of its "
        "--scheduler.",
        kinds.COUNT,
    ),
    Call("--checkpoint", f"{CHECKPOINT}."),
    Call("embed --checkpoint", f"{CHECKPOINT}; sdp at landmarks alone."),
    Call("--checkpoint-every", "Seconds between writes of the checkpoint.", float, 60.0),
    Call("--out", f"{OUT} a new zarr group.", required=True),
    Call("sample --out", f"{OUT} a new zarr array.", required=True),
    Call("update --out", f"{OUT} a new zarr group, or MODEL itself with --overwrite.", required=True),
    Call("transform --out", f"{OUT} a new zarr array (rows, components).", required=True),
    Call("predict --out", f"{OUT} a new zarr array (rows, targets).", required=True),
    Call("plot --out", f"{OUT} a .png, .svg or .pdf.", required=True),
    Call("report --out", f"{OUT} an .html file.", required=True),
    Call("--plot picture", "Draw the eigenfunctions into this .png, .pdf or .svg."),
    Call("--overwrite", "Replace outputs that exist.", bool, False),
    Call("--scheduler", "A running dask cluster, tcp://...; threads by default.", "ADDRESS"),
    Call("--connect-timeout", "Seconds for the scheduler to answer.", click.FloatRange(0, min_open=True), 30.0),
    Call("--threads", "Threads, without a cluster; one per core by default.", click.IntRange(1)),
    Call("--progress/--no-progress", "A progress bar on longer work.", bool, True),
    Call(
        "--storage-option storage_options",
        "An option of fsspec for URLs, anon=true or endpoint_url=https://..., with credentials from the environment.",
        ["KEY=VALUE"],
        callback=use_storage,
        is_eager=True,
    ),
    # of every command
    Call(
        "--config",
        "Options from a YAML file, by their names, or those that a result was made with, by its path, but for what was "
        "read; the command line wins.",
        "PATH",
        is_eager=True,
        callback=configure,
    ),
    Call("--json", "Print one JSON object in place of text.", bool, callback=speak),
    Call("--quiet", "Print errors alone: no text, no warnings, no bar.", bool, callback=speak),
    Call(
        "--log-file",
        "Append what is chosen along the way, warnings, results and errors to this file.",
        "PATH",
        callback=speak,
    ),
    Call(
        "--help-all",
        "Show all options, those that few need too, and exit.",
        bool,
        False,
        is_eager=True,
        callback=help_all,
    ),
)
LABELLED = "sample-dims latitude anomaly detrend"
VALID = "on-invalid allow-missing"
OPERATOR = "operator lag further trajectory manifold density potential drift diffusion direction coefficient field view"
BASIS = "kernel landmarks landmark-method landmark-sample lattice lattice-box lattice-margin"
SAVED = "checkpoint checkpoint-every"
MEASURE = "scheduler connect-timeout threads progress storage-option"
RUN = f"{MEASURE} overwrite"
EVERY = "config json quiet log-file help-all"


def verb(
    *parameters: str | Argument, examples: Sequence[str] = (), **more: Any
) -> Callable[[Callable[..., Any]], Command]:
    """A command of a function, with these arguments, written MODEL or [POINTS], and the options of these names.

    Those of every command come last.
    """

    def decorate(function: Callable[..., Any]) -> Command:
        name = function.__name__
        known = {option.key: option for option in OPTIONS if not option.of}
        known |= {option.key: option for option in OPTIONS if name in option.of}
        params: list[click.Parameter] = []
        for given in (*parameters, EVERY):
            if isinstance(given, Argument):
                params.append(given)
                continue
            for word in given.split():
                argument = Argument(word.strip("[]").lower(), required=word[0] != "[") if word.isupper() else None
                params.append(argument or known[word])
        return Command(name, callback=function, params=params, help=function.__doc__, examples=examples, **more)

    return decorate
