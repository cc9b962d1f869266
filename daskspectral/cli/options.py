"""Every option of every command: its kind, default and help, whether settings keep it, and whether few need it.

A test compares the defaults and the words with those of the constructors: no help text imports these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from daskspectral.cli.commands import Command, configure, help_all, speak
from daskspectral.cli.settings import use_storage


class OptionType(click.ParamType):  # type: ignore[type-arg]
    """Text as `read` has it, which raises ValueError for what is `wrong`; some words stay as they are."""

    def __init__(self, name: str, read: Callable[[str], Any], wrong: str, *words: str):
        self.name, self.read, self.wrong, self.words = "|".join([name, *words]), read, wrong, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text, or a default as it is."""
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            return self.read(value)
        except ValueError:
            self.fail(f"{value!r} is {self.wrong}")


def number_of(text: str | None) -> float | None:
    """The number that a text is; None for none, and for other text."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise click.BadParameter(f"{text!r} is not a whole number")
    return int(number)


def _count_or_share(text: str) -> float:
    number = float(text)
    return number if 0 < number < 1 else _whole(text)


def _lag(text: str) -> int | str:
    from daskspectral.operators.lags import lag_of

    return lag_of(text)


def _folds(text: str) -> Any:
    return None if text == "none" else int(text) if text.isdecimal() else text


def _columns(text: str) -> list[int] | list[str]:
    parts = [part.partition(":") for part in text.split(",")]
    if not any(first.strip().isdecimal() for first, _, _ in parts):
        return [*_names(text)]
    ranges = [range(int(first), int(last) if colon else int(first) + 1) for first, colon, last in parts]
    return [number for numbers in ranges for number in numbers]


def _names(text: str) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(","))
    if not all(found):
        raise ValueError
    return found


def _periods(text: str) -> dict[int, float]:
    pairs = [part.split(":") for part in text.split(",")]
    return {int(column): float(period) for column, period in pairs}


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _field(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise ValueError
    return name, path


def number_or(*words: str) -> OptionType:
    """A number, or one of these words."""
    return OptionType("number", float, f"not a number, nor one of {', '.join(words)}", *words)


COUNT = OptionType("count", _whole, "not a number")
COUNT_OR_SHARE = OptionType("count|share", _count_or_share, "no number of components, nor a share such as 0.95")
LAG = OptionType("rows|time", _lag, "no number of rows, nor a time such as 6h or 1D")
COUNT_OR_AUTO = OptionType("count", _whole, "not a number", "auto")
FOLDS = OptionType("folds", _folds, "no folds")
COLUMNS = OptionType("columns", _columns, "not a list of column numbers such as 0,2,5 or 0:8, or of names")
NAMES = OptionType("names", _names, "not a list of names such as time,lat,lon")
SETS = OptionType("sets", _names, "no array of booleans, nor two such as a.zarr,b.zarr")
PERIODS = OptionType("periods", _periods, "not a list of columns with their periods such as 0:6.283185,2:360")
LATTICE = OptionType("m", _sizes, "no highest frequency such as 15, nor one for each column such as 30,20", "auto")
LAGS = OptionType("multiples", _sizes, "no list of multiples of the lag such as 2,5,10")
NEURONS = OptionType("neurons", _sizes, "no list of neurons of hidden layers such as 96,96,96")
FIELD = OptionType("name=path", _field, "no field with its array, such as drift=b.zarr")


FLOAT32 = ("float64", "float32")
DEVICES = ("cpu", "cuda", "auto")
METHODS = ("uniform", "kmeans++", "cholesky", "farthest")
LEFT_OUT = ("raise", "skip", "pairwise")
ANOMALIES = ("month", "season", "dayofyear", "hour")
FAR = ("nearest", "nan", "raise")
SOLVERS = ("penalised", "cut")
MAPS = ("sdp", "diffusion", "kernel")
PICTURES = ("functions", "spectrum", "choice", "timescales", "chapman-kolmogorov")
BANDWIDTH = number_or("auto", "median")
STORE: dict[str, Any] = {"callback": use_storage, "is_eager": True}
CONFIG: dict[str, Any] = {"callback": configure, "is_eager": True}
HELP: dict[str, Any] = {"callback": help_all, "is_eager": True}
SAMPLES = (*("two-moons", "sphere", "circle", "gaussian", "torus", "swiss-roll", "uniform", "ou", "langevin", "blobs"),)
OPERATORS = (
    *("laplacian", "covariance", "schroedinger", "anisotropic[:factored]", "tangent", "differential[:solver]"),
    *("partial:axis[:solver]", "generator[:reversible]", "transfer[:lag[:solver]]", "cross[:center]", "augmentation"),
)

RARE = (
    "lag further trajectory manifold density drift diffusion direction "
    "coefficient view latitude anomaly detrend allow-missing landmark-method landmark-sample exclude-landmarks "
    "spread functions-of rotate constant network ridge rtol gradient-weight dtype "
    "device smoothness functions tolerance max-passes time regularization "
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
        more["hidden"] = self.key in RARE.split()
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
    Value("--lag", "transfer: rows, or time such as 6h, to the future; POINTS are a trajectory.", LAG),
    Value("--further", "transfer: further lags in the same pass, multiples of the lag: 2,5,10.", LAGS),
    Value("--trajectory trajectories", "transfer: another trajectory besides POINTS.", ["PATH"]),
    Value("--manifold", "Where points lie: sphere, circle, torus, periodic box:LOWER:UPPER, interval:LOWER:UPPER."),
    Value("--density", "laplacian, diffusion: power of the density that is divided out; 0 by default.", float),
    Value("--potential", "schroedinger: values of the potential, (n,).", "PATH"),
    Value("--drift", "generator: the drift, (n, d).", "PATH"),
    Value("--diffusion", "generator: sigma, (n, d, m), or a number; anisotropic: matrices, (n, d, d).", "PATH|NUMBER"),
    Value("--direction", "tangent: a direction for each row, (n, d), or several, (n, m, d).", "PATH"),
    Value("--coefficient coefficients", "differential: C d_A f d_B g, by orders: 1,0:1,0=2.0.", ["A:B=C"]),
    Value("--field fields", "An array that the operator reads besides the points, by its name.", [FIELD]),
    Value("--view views", "Another view of each row of POINTS: y of cross, the versions of augmentation.", ["PATH"]),
    # the rows
    Value("--sample-dims", "Dimensions of labelled POINTS that make rows: time, or time,lat,lon.", NAMES),
    Value("--latitude", "The coordinate in degrees, of rows or columns, by whose cosine these are weighted."),
    Value("--anomaly", "Of labelled POINTS in time: less the mean over each of these.", ANOMALIES),
    Value("--detrend", "Of labelled POINTS in time: less a polynomial of this degree too.", COUNT),
    Value("--columns", "Columns to use, 0,2,5 or 0:8, or their names, malt,ash.", COLUMNS),
    Value("--standardize", "Bring columns to mean 0 and standard deviation 1.", bool, False),
    Value("--on-invalid", "Rows with NaN: an error, left out (NaN in results), or used in part.", LEFT_OUT, "raise"),
    Value("--allow-missing", "Take missing chunks as fill values, not as an error.", bool, False),
    Value("--weights", "A zarr array of sample weights, one a row."),
    Value("--gradients", "A zarr array of the targets' gradients, (rows, columns of POINTS)."),
    Value("--targets", "For a regressor, the zarr array of targets; of an update all of them, old and new."),
    # the functions
    Value("--kernel", "At landmarks, name[:parameter...], joined by +; auto: chosen on rows held out.", default="auto"),
    Value("embed --kernel", "kernel: in whose space one is learned, name[:parameter...]; matern:1.5:auto by default."),
    Value("--landmarks", "How many landmarks.", COUNT_OR_AUTO, "auto"),
    Value("embed --landmarks", "lowrank: how many landmarks; auto by default (diffusion: 500).", COUNT_OR_AUTO),
    Value("--landmark-method", "How landmarks are chosen.", METHODS, "kmeans++"),
    Value("embed --landmark-method", "How landmarks are chosen.", METHODS, "cholesky"),
    Value("--landmark-sample", "Rows among which landmark methods other than uniform choose.", COUNT),
    Value("--exclude-landmarks/--keep-landmarks", "Leave landmarks out of the sums; by default with a kink.", bool),
    Value("--spread", "How far, in scales, landmarks are moved off the data.", number_or("auto"), "auto"),
    Value("--constant/--no-constant", "Add the constant function to the basis; the operator decides by default.", bool),
    Value("--periods", "Columns that are periodic, as angles: 0:6.283185.", PERIODS),
    Value("--lattice", "Highest Fourier frequency, in place of landmarks: 15, or 30,20; auto: compare.", LATTICE),
    Value("--network", "Neurons of a network's hidden layers, in place of landmarks: 96,96,96.", NEURONS),
    # the solution
    Value("--components", "How many functions; covariance: or a share of the variance.", COUNT_OR_SHARE, 16),
    Value("embed --components", "How many coordinates; by default the rank; diffusion: 2.", COUNT),
    Value("plot --components", "How many functions are drawn; 16 by default.", COUNT),
    Value("--rotate", "covariance: turn as many components to patterns large in few places, by varimax.", COUNT),
    Value("--solver", "A penalty on rough functions, or a cut of the Gram matrix.", SOLVERS, "penalised"),
    Value("--penalty", "penalised: its strength, 1 being usual.", number_or("auto"), "auto"),
    Value("--ridge", "cut: added to the form's diagonal, times its mean.", float, 0.0),
    Value("--rtol", "Relative cut of the Gram matrix's eigenvalues; of fit with --solver cut.", float),
    Value("--folds", "Parts of the rows, for error bars: a number, blocks, random, labels, none.", FOLDS, "10"),
    Value("--alpha", "Weight of the penalty, or gcv; cross-validated by default.", number_or("gcv")),
    Value("invariant --alpha", "least-squares: weight of the penalty; cross-validated by default.", float),
    Value("--gradient-weight", "Weight of a gradient against a value; 1 by default.", float),
    Value("--dtype", "Precision of the arithmetic, or of the numbers written.", FLOAT32, "float64"),
    Value("--device", "Where functions are evaluated and multiplied: cuda is a GPU (extra gpu).", DEVICES, "cpu"),
    Value("--seed", "Of random numbers; the same seed gives the same result.", int, 0),
    # functions of a manifold that a group leaves as they are
    Value("--group", "permutations, cyclic, signflips, rotations:K, joined by +; none by default."),
    Value("--smoothness", "Order of the Sobolev norm; by default 2, or half the dimension plus 1.", float),
    Value("--functions", "Eigenfunctions of the manifold, at most; chosen by default.", COUNT),
    Value("invariant --solver", "How the solution is found.", ("least-squares", "projection"), "least-squares"),
    # coordinates
    Value("--bandwidth", "Of the kernel exp(-r^2 / bandwidth^2), or how it is chosen.", BANDWIDTH, "auto"),
    Value("--map kind", "A semidefinite program, a diffusion map, or a learned kernel.", MAPS, "sdp"),
    Value("--method", "All pairs of points, or landmarks.", ("auto", "exact", "lowrank"), "auto"),
    Value("--accuracy", "sdp: error of landmarks, relative to the Gram matrix; 0.001 by default.", float),
    Value("--tolerance", "sdp, kernel: relative duality gap; 1e-10 by default, of kernel 1e-07.", float),
    Value("--max-passes", "sdp, kernel: steps at most; 10000 by default, of kernel 100.", COUNT),
    Value("--time", "diffusion: power of the eigenvalues; 1 by default.", float),
    Value("--regularization", "kernel: weight of its penalty; 0.0001 by default.", float),
    Value("--extrapolate", "At far points: the nearest place's values, NaN, or an error; nearest by default.", FAR),
    # arrays to work on
    Value("--n rows", "Rows, such as 1e7.", COUNT, 10_000),
    Value("--dimension", "Columns, where the distribution leaves a choice.", COUNT),
    Value("--noise", "Standard deviation of added noise.", float),
    Value("--chunk-rows", "Rows of a chunk; 16 to 32 MB by default.", COUNT),
    # models
    Value("--functions-of", "Take the functions and columns of this model: sums of such fits add (merge).", "MODEL"),
    Value("--right", "The right singular functions, of a model that has them.", bool, False),
    Value("--sets", "transfer: memberships in so many metastable sets, found among POINTS.", COUNT),
    Value("--committor", "transfer: the chance of entering the second of two sets of rows first.", SETS),
    Value("--passage-time", "transfer: the mean time until one or two such sets, with its interval.", SETS),
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
    Call("--help-all", "Show all options, also those that few need, and exit.", bool, False, **HELP),
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
