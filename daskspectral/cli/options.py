"""Every option of every command: its kind, default and help, whether settings keep it, and whether few need it.

A test compares the defaults and the words with those of the constructors: no help text imports these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from daskspectral.cli import kinds
from daskspectral.cli.commands import Command, configure, help_all, speak
from daskspectral.cli.settings import use_storage

FLOAT32 = ("float64", "float32")
DEVICES = ("cpu", "cuda", "auto")
METHODS = ("uniform", "kmeans++", "cholesky", "farthest")
LEFT_OUT = ("raise", "skip", "pairwise")
ANOMALIES = ("month", "season", "dayofyear", "hour")
FAR = ("nearest", "nan", "raise")
SOLVERS = ("penalised", "cut")
MAPS = ("sdp", "diffusion", "kernel")
PICTURES = ("functions", "spectrum", "choice", "timescales", "chapman-kolmogorov")
BANDWIDTH = kinds.number_or("auto", "median")
STORE: dict[str, Any] = {"callback": use_storage, "is_eager": True}
CONFIG: dict[str, Any] = {"callback": configure, "is_eager": True}
HELP: dict[str, Any] = {"callback": help_all, "is_eager": True}
SAMPLES = (*("two-moons", "sphere", "circle", "gaussian", "torus", "swiss-roll", "uniform", "ou", "langevin", "blobs"),)
OPERATORS = (
    *("laplacian", "covariance", "schroedinger", "anisotropic[:factored]", "tangent", "differential[:solver]"),
    *("partial:axis[:solver]", "generator[:reversible]", "transfer[:lag[:solver]]", "cross[:center]", "augmentation"),
)

RARE = (
    "lag further sets committor passage-time equilibrium trajectory manifold density drift diffusion direction "
    "coefficient view latitude anomaly detrend allow-missing landmark-method landmark-sample exclude-landmarks "
    "spread functions-of rotate constant network ridge rtol gradient-weight dtype "
    "device smoothness functions tolerance max-passes time regularization extrapolate trust "
    "checkpoint-every plot connect-timeout threads storage-option json quiet"
)
"""Options that few need, left to --help-all."""


class Option(click.Option):
    """An option, of all commands or of those named before its first word.

    It is `kept` with a result if it changes what comes out, unlike one of where a call runs, and what it writes and
    shows. Its `kind` is one of values, words to choose from, bool for a flag, or what stands for any text in a help; in
    a list if it may be given several times. One with a callback is nothing that the command's function is called with.
    """

    def __init__(self, kept: bool, words: str, help: str, kind: Any = None, default: Any = None, **more: Any):
        of, dashes, spelled = words.partition("--")
        self.kept, self.of, self.key = kept, of.split(), spelled.replace("/", " ").split()[0]
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


Value, Call = (partial(Option, kept) for kept in (True, False))


class Argument(click.Argument):
    """An argument, `kept` with a result as an option is."""

    def __init__(self, name: str, *, kept: bool = True, **more: Any):
        super().__init__([name], **more)
        self.kept = kept


OPTIONS = (
    # what is decomposed
    Value("--operator", f"What is decomposed: {', '.join(OPERATORS)}.", default="laplacian"),
    Value("--lag", "transfer: rows, or time such as 6h, to the future; POINTS are a trajectory.", kinds.LAG),
    Value("--further", "transfer: further lags in the same pass, multiples of the lag: 2,5,10.", kinds.LAGS),
    Value("--trajectory trajectories", "transfer: another trajectory besides POINTS.", ["PATH"]),
    Value("--manifold", "Where points lie: sphere, circle, torus, periodic box:LOWER:UPPER, interval:LOWER:UPPER."),
    Value("--density", "laplacian, diffusion: power of the density that is divided out; 0 by default.", float),
    Value("--potential", "schroedinger: values of the potential, (n,).", "PATH"),
    Value("--drift", "generator: the drift, (n, d).", "PATH"),
    Value("--diffusion", "generator: sigma, (n, d, m), or a number; anisotropic: matrices, (n, d, d).", "PATH|NUMBER"),
    Value("--direction", "tangent: a direction for each row, (n, d), or several, (n, m, d).", "PATH"),
    Value("--coefficient coefficients", "differential: C d_A f d_B g, by orders: 1,0:1,0=2.0.", ["A:B=C"]),
    Value("--field fields", "An array that the operator reads besides the points, by its name.", [kinds.FIELD]),
    Value("--view views", "Another view of each row of POINTS: y of cross, the versions of augmentation.", ["PATH"]),
    # the rows
    Value("--sample-dims", "Dimensions of labelled POINTS that make rows: time, or time,lat,lon.", kinds.NAMES),
    Value("--latitude", "The coordinate in degrees, of rows or columns, by whose cosine these are weighted."),
    Value("--anomaly", "Of labelled POINTS in time: less the mean over each of these.", ANOMALIES),
    Value("--detrend", "Of labelled POINTS in time: less a polynomial of this degree too.", kinds.COUNT),
    Value("--columns", "Columns to use, 0,2,5 or 0:8, or their names, malt,ash.", kinds.COLUMNS),
    Value("--standardize", "Bring columns to mean 0 and standard deviation 1.", bool, False),
    Value("--on-invalid", "Rows with NaN: an error, left out (NaN in results), or used in part.", LEFT_OUT, "raise"),
    Value("--allow-missing", "Take missing chunks as fill values, not as an error.", bool, False),
    Value("--weights", "A zarr array of sample weights, one a row."),
    Value("--gradients", "A zarr array of the targets' gradients, (rows, columns of POINTS)."),
    Value("--targets", "For a regressor, the zarr array of targets; of an update all of them, old and new."),
    # the functions
    Value("--kernel", "At landmarks, name[:parameter...], joined by +; auto: chosen on rows held out.", default="auto"),
    Value("embed --kernel", "kernel: in whose space one is learned, name[:parameter...]; matern:1.5:auto by default."),
    Value("--landmarks", "How many landmarks.", kinds.COUNT_OR_AUTO, "auto"),
    Value("embed --landmarks", "lowrank: how many landmarks; auto by default (diffusion: 500).", kinds.COUNT_OR_AUTO),
    Value("--landmark-method", "How landmarks are chosen.", METHODS, "kmeans++"),
    Value("embed --landmark-method", "How landmarks are chosen.", METHODS, "cholesky"),
    Value("--landmark-sample", "Rows among which landmark methods other than uniform choose.", kinds.COUNT),
    Value("--exclude-landmarks/--keep-landmarks", "Leave landmarks out of the sums; by default with a kink.", bool),
    Value("--spread", "How far, in scales, landmarks are moved off the data.", kinds.number_or("auto"), "auto"),
    Value("--constant/--no-constant", "Add the constant function to the basis; the operator decides by default.", bool),
    Value("--periods", "Columns that are periodic, as angles: 0:6.283185.", kinds.PERIODS),
    Value("--lattice", "Highest Fourier frequency, in place of landmarks: 15, or 30,20; auto: compare.", kinds.LATTICE),
    Value("--network", "Neurons of a network's hidden layers, in place of landmarks: 96,96,96.", kinds.NEURONS),
    # the solution
    Value("--components", "How many functions; covariance: or a share of the variance.", kinds.COUNT_OR_SHARE, 16),
    Value("embed --components", "How many coordinates; by default the rank; diffusion: 2.", kinds.COUNT),
    Value("plot --components", "How many functions are drawn; 16 by default.", kinds.COUNT),
    Value("--rotate", "covariance: turn as many components to patterns large in few places, by varimax.", kinds.COUNT),
    Value("--solver", "A penalty on rough functions, or a cut of the Gram matrix.", SOLVERS, "penalised"),
    Value("--penalty", "penalised: its strength, 1 being usual.", kinds.number_or("auto"), "auto"),
    Value("--ridge", "cut: added to the form's diagonal, times its mean.", float, 0.0),
    Value("--rtol", "Relative cut of the Gram matrix's eigenvalues; of fit with --solver cut.", float),
    Value("--folds", "Parts of the rows, for error bars: a number, blocks, random, labels, none.", kinds.FOLDS, "10"),
    Value("--alpha", "Weight of the penalty, or gcv; cross-validated by default.", kinds.number_or("gcv")),
    Value("invariant --alpha", "least-squares: weight of the penalty; cross-validated by default.", float),
    Value("--gradient-weight", "Weight of a gradient against a value; 1 by default.", float),
    Value("--dtype", "Precision of the arithmetic, or of the numbers written.", FLOAT32, "float64"),
    Value("--device", "Where functions are evaluated and multiplied: cuda is a GPU (extra gpu).", DEVICES, "cpu"),
    Value("--seed", "Of random numbers; the same seed gives the same result.", int, 0),
    # functions of a manifold that a group leaves as they are
    Value("--group", "permutations, cyclic, signflips, rotations:K, joined by +; none by default."),
    Value("--smoothness", "Order of the Sobolev norm; by default 2, or half the dimension plus 1.", float),
    Value("--functions", "Eigenfunctions of the manifold, at most; chosen by default.", kinds.COUNT),
    Value("invariant --solver", "How the solution is found.", ("least-squares", "projection"), "least-squares"),
    # coordinates
    Value("--bandwidth", "Of the kernel exp(-r^2 / bandwidth^2), or how it is chosen.", BANDWIDTH, "auto"),
    Value("--map kind", "A semidefinite program, a diffusion map, or a learned kernel.", MAPS, "sdp"),
    Value("--method", "All pairs of points, or landmarks.", ("auto", "exact", "lowrank"), "auto"),
    Value("--accuracy", "sdp: error of landmarks, relative to the Gram matrix; 0.001 by default.", float),
    Value("--tolerance", "sdp, kernel: relative duality gap; 1e-10 by default, of kernel 1e-07.", float),
    Value("--max-passes", "sdp, kernel: steps at most; 10000 by default, of kernel 100.", kinds.COUNT),
    Value("--time", "diffusion: power of the eigenvalues; 1 by default.", float),
    Value("--regularization", "kernel: weight of its penalty; 0.0001 by default.", float),
    Value("--extrapolate", "At far points: the nearest place's values, NaN, or an error; nearest by default.", FAR),
    Call("--embedding", "A new zarr array for the coordinates of every row."),
    # arrays to work on
    Value("--n rows", "Rows, such as 1e7.", kinds.COUNT, 10_000),
    Value("--dimension", "Columns, where the distribution leaves a choice.", kinds.COUNT),
    Value("--noise", "Standard deviation of added noise.", float),
    Value("--chunk-rows", "Rows of a chunk; 16 to 32 MB by default.", kinds.COUNT),
    # models
    Value("--functions-of", "Take the functions and columns of this model: sums of such fits add (merge).", "MODEL"),
    Value("--right", "The right singular functions, of a model that has them.", bool, False),
    Value("--sets", "transfer: memberships in so many metastable sets, found among POINTS.", kinds.COUNT),
    Value("--committor", "transfer: the chance of entering the second of two sets of rows first.", kinds.SETS),
    Value("--passage-time", "transfer: the mean time until one or two such sets, with its interval.", kinds.SETS),
    Value("--equilibrium", "transfer: weights of rows as in equilibrium, --weights of a second fit.", bool, False),
    Value("--gradient", "The gradient in place of the values, (rows, targets x columns).", bool, False),
    Value("--kind", "What is drawn; functions by default if POINTS are given, else spectrum.", PICTURES),
    Call("--details", "Ranks, residuals and effective points too, and the candidates of the choice.", bool, False),
    Call("--settings only_settings", "The options with which it was made, for --config.", bool, False),
    Call("--trust", "A class or function of your own that the file may ask for.", ["MODULE.NAME"]),
    # the run
    Call("--checkpoint", "A directory for the sums so far, from which the same command goes on."),
    Call("--checkpoint-every", "Seconds between writes of the checkpoint.", float, 60.0),
    Call("--out", "Where the result goes: a zarr store, of plot a picture, of report an .html file.", required=True),
    Call("--plot picture", "Draw the eigenfunctions into this .png, .pdf or .svg."),
    Call("--overwrite", "Replace outputs that exist.", bool, False),
    Call("--scheduler", "A running dask cluster, tcp://...; threads by default.", "ADDRESS"),
    Call("--connect-timeout", "Seconds for the scheduler to answer.", click.FloatRange(0, min_open=True), 30.0),
    Call("--threads", "Threads, without a cluster; one per core by default.", click.IntRange(1)),
    Call("--progress/--no-progress", "A progress bar on longer work.", bool, True),
    Call("--storage-option storage_options", "An option of fsspec for URLs: anon=true.", ["KEY=VALUE"], **STORE),
    # of every command
    Call("--config", "Options from a YAML file; the command line wins.", "PATH", **CONFIG),
    Call("--json", "Print one JSON object in place of text.", bool, callback=speak),
    Call("--quiet", "Print errors alone: no text, no warnings, no bar.", bool, callback=speak),
    Call("--help-all", "Show all options, those that few need too, and exit.", bool, False, **HELP),
)
LABELLED = "sample-dims latitude anomaly detrend"
VALID = "on-invalid allow-missing"
OPERATOR = "operator lag further trajectory manifold density potential drift diffusion direction coefficient field view"
BASIS = "kernel landmarks landmark-method landmark-sample lattice"
SAVED = "checkpoint checkpoint-every"
MEASURE = "scheduler connect-timeout threads progress storage-option"
RUN = f"{MEASURE} overwrite"
EVERY = "config json quiet help-all"


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
