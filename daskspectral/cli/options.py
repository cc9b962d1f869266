"""Options of commands: those of parameters, from their signatures, and those that only the shell has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from daskspectral.cli.commands import Command, configure, help_all, set_output
from daskspectral.cli.parameters import MAPS, SAVED
from daskspectral.cli.settings import use_storage
from daskspectral.cli.signatures import Parameters, docstring, documented
from daskspectral.cli.syntax import COUNT, FIELD, SETS, SYNTAX, type_of

RARE = (
    "lag trajectory manifold density drift diffusion direction coefficient view latitude anomaly detrend "
    "allow-missing landmark-method landmark-sample exclude-landmarks jitter functions-of rotate constant network ridge "
    "rtol gradient-weight dtype device smoothness functions tolerance max-passes time regularization "
    "checkpoint-every plot connect-timeout threads storage-option json quiet"
)
"""Rarely used options: shown by `--help-all` only."""


class Option(click.Option):
    """Option of a command, saved with a result if `kept`.

    Its `kind` is one of values, words to choose from, bool for a flag, or a metavar for any text; in a list if it may
    be given several times. Its `usual` value counts as not given. An option with a callback is not passed to the
    command.
    """

    def __init__(self, kept: bool, words: str, help: str, kind: Any = None, default: Any = None, **more: Any):
        self.usual = more.pop("usual", default)
        self.kept, self.key = kept, words.lstrip("-").replace("/", " ").split()[0]
        if isinstance(kind, list):
            (kind,), more["multiple"] = kind, True
            help = f"{help.removesuffix('.')}; several times for several."
        if kind is bool:
            more["is_flag"] = True
        elif isinstance(kind, str):
            more["metavar"] = kind
        else:
            more["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind
        if default is not None or kind is bool:  # click treats a default of None as a value
            more = {"show_default": kind is not bool or bool(default), **more, "default": default}
        calls, rare = "callback" in more, self.key in RARE.split()
        super().__init__(words.split(), help=help, is_eager=calls, expose_value=not calls, hidden=rare, **more)


Value, Call = (partial(Option, kept) for kept in (True, False))
PICTURES = ("functions", "spectrum", "choice", "timescales", "chapman-kolmogorov")
OPTIONS = (
    # fields and views, each a path
    Value("--trajectory trajectories", "transfer: another trajectory besides POINTS.", ["PATH"]),
    Value("--potential", "schroedinger: values of the potential, (n,).", "PATH"),
    Value("--drift", "generator: the drift, (n, d).", "PATH"),
    Value("--diffusion", "generator: sigma, (n, d, m), or a number; anisotropic: matrices, (n, d, d).", "PATH|NUMBER"),
    Value("--direction", "tangent: a direction for each row, (n, d), or several, (n, m, d).", "PATH"),
    Value("--coefficient coefficients", "differential: C d_A f d_B g, by orders: 1,0:1,0=2.0.", ["A:B=C"]),
    Value("--field fields", "An array that the operator reads besides the points, by its name.", [FIELD]),
    Value("--view views", "Another view of each row of POINTS: y of cross, the versions of augmentation.", ["PATH"]),
    # what is made of them
    Value(
        "--solver",
        "A penalty on rough functions, or a cut of the Gram matrix.",
        ("regularized", "truncated"),
        "regularized",
    ),
    Value("--rotate", "covariance: rotate this number of components to localized patterns, by varimax.", COUNT),
    Value("--map kind", "A semidefinite program, a diffusion map, or a learned kernel.", tuple(MAPS), "sdp"),
    Value("--n rows", "Rows, such as 1e7.", COUNT, 10_000),
    # models
    Value("--functions-of", "Use the functions and columns of this model: sums of such fits add (merge).", "MODEL"),
    Value("--right", "The right singular functions, of a model that has them.", bool, False),
    Value("--sets", "transfer: memberships in this number of metastable sets, found among POINTS.", COUNT),
    Value("--committor", "transfer: the probability of entering the second of two sets of rows first.", SETS),
    Value("--passage-time", "transfer: the mean time until one or two such sets, with its interval.", SETS),
    Value("--equilibrium", "transfer: weights of rows as in equilibrium, --weights of a second fit.", bool, False),
    Value("--gradient", "The gradient instead of the values, (rows, targets x columns).", bool, False),
    Value("--kind", "What to draw; functions by default with POINTS, else spectrum.", PICTURES),
    Call("--details", "Ranks, residuals, effective points, and the candidates of the model choice too.", bool, False),
    Call("--settings only_settings", "The options that created it, for --config.", bool, False),
    Call("--trust", "A class or function of your code that the file may import.", ["MODULE.NAME"]),
    # the run
    Call("--out", "The path of the result: a zarr store, a picture (plot) or an .html file (report).", required=True),
    Call("--plot picture", "Draw the eigenfunctions into this .png, .pdf or .svg."),
    Call("--save-model", "Save the model too, for `predict` of other rows.", "PATH"),
    Call("--overwrite", "Replace outputs that exist.", bool, False),
    Call("--scheduler", "A running dask cluster, tcp://...; threads by default.", "ADDRESS"),
    Call("--connect-timeout", "Seconds for the scheduler to answer.", click.FloatRange(0, min_open=True), 30.0),
    Call("--threads", "Threads, without a cluster; one per core by default.", click.IntRange(1)),
    Call("--progress/--no-progress", "A progress bar on longer work.", bool, True),
    Call(
        "--storage-option storage_options",
        "An option of fsspec for URLs: anon=true.",
        ["KEY=VALUE"],
        callback=use_storage,
    ),
    # of every command
    Call("--config", "Options from a YAML file; the command line has priority.", "PATH", callback=configure),
    Call("--json", "Print one JSON object instead of text.", bool, callback=set_output),
    Call("--quiet", "Print only errors: no text, no warnings, no progress bar.", bool, callback=set_output),
    Call("--help-all", "Show all options, including rarely used ones, and exit.", bool, False, callback=help_all),
)
CALLS = {*(option.key for option in OPTIONS if not option.kept), *SAVED.options.values()}
"""Options that are not saved with results."""
MEASURE = "scheduler connect-timeout threads progress storage-option"
RUN = f"out {MEASURE} overwrite"
EVERY = "config json quiet help-all"


def verb(path: str, *parts: str | click.Argument | Parameters, **more: Any) -> Command:
    """Return a command of the function "module:function" of `cli`, which is imported when it runs.

    Its parts are parameters, arguments as MODEL or [POINTS], and options as in `OPTIONS`; those of every command
    follow.
    """
    return Command(f"cli.{path}", docstring(f"cli.{path}"), partial(_made, (*parts, EVERY)), **more)


def _made(parts: Sequence[str | click.Argument | Parameters]) -> list[click.Parameter]:
    """Return the arguments and options of a command; a parameter of several classes is one option."""
    known, found = {option.key: option for option in OPTIONS}, dict[str, click.Parameter]()
    for part in parts:
        if isinstance(part, click.Argument):
            found[str(part.name)] = part
        elif isinstance(part, Parameters):
            for name, words in part.options.items():
                option, other = _derived(part, name, words), found.get(words)
                if isinstance(option, Option) and isinstance(other, Option) and other.help != option.help:
                    option.help = f"{str(other.help).removesuffix('.')}; {option.help}"
                found[words] = option
        else:
            for word in part.split():
                name, optional = word.strip("[]").lower(), word[0] == "["
                found[word] = click.Argument([name], required=not optional) if word.isupper() else known[word]
    return [*found.values()]


def _derived(part: Parameters, name: str, words: str) -> click.Parameter:
    """Return the option of a parameter; if only one choice reads it, its default is shown and not passed."""
    parameter, key = documented(part.path)[name], words.partition("/")[0]
    kind, help = SYNTAX.get(key) or type_of(parameter.type), parameter.sentence
    if words.isupper():
        return click.Argument([key.lower()], type=kind)
    default = part.defaults.get(name, parameter.default)
    if key in SYNTAX:
        help = f"{help} ({SYNTAX[key].expected})"
    if part.when:
        help = f"{part.when}: {help[0].lower()}{help[1:]}{'' if default is None else f'; {default} by default'}"
    if kind is bool and default is None and key == words:
        words = f"{key}/--no-{key}"
    return Option(part.kept, f"--{words}", f"{help}.", kind, None if part.when else default, usual=default)
