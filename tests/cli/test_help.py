"""The defaults that --help shows are those in force, and those of the estimators and functions behind the commands."""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import click

import daskspectral as dsp
from daskspectral import landmarks, plot
from daskspectral.basis import Landmarks
from daskspectral.cli import command
from daskspectral.datasets import SAMPLES, write
from daskspectral.embedding import bandwidth, diffusion, sdp
from daskspectral.invariance.levels import InvariantSolver
from daskspectral.passes import parameters
from daskspectral.passes.score import measure_score

BEHIND: dict[str, list[Callable[..., Any]]] = {
    "fit": [dsp.SpectralDecomposition, dsp.SpectralDecomposition.fit, dsp.operators.Laplacian, dsp.Rows],
    "update": [dsp.SpectralDecomposition.update, dsp.HermiteRegressor.update, dsp.Rows],
    "merge": [dsp.save],
    "embed": [
        *(dsp.SDPEmbedding, dsp.SDPEmbedding.fit, dsp.DiffusionMap, dsp.DiffusionMap.fit),
        *(dsp.KernelEmbedding, dsp.KernelEmbedding.fit, dsp.Rows),
    ],
    "plan": [],
    "plot": [plot.eigenfunctions],
    "report": [],
    "verify": [],
    "regress": [dsp.HermiteRegressor, dsp.HermiteRegressor.fit, dsp.Rows],
    "invariant": [dsp.InvariantRegressor, dsp.InvariantRegressor.fit, dsp.Rows],
    "transform": [dsp.SpectralDecomposition.transform, dsp.SDPEmbedding.transform, dsp.Rows],
    "predict": [dsp.HermiteRegressor.predict, dsp.Rows],
    "score": [measure_score, dsp.HermiteRegressor.score, dsp.Rows],
    "info": [],
    "sample": [write],
}
OF_LANDMARKS = {"landmarks": "count", "landmark_method": "method", "landmark_sample": "sample"}
PARTS: dict[str, dict[Callable[..., Any], tuple[str, ...]]] = {  # of estimators, with the options of each
    "fit": {
        Landmarks: (*OF_LANDMARKS, "spread", "periods", "constant", "exclude_landmarks"),
        dsp.solvers.Penalised: ("penalty",),
        dsp.solvers.Cut: ("rtol", "ridge"),
    },
    "regress": {Landmarks: (*OF_LANDMARKS, "periods")},
    "embed": {
        dsp.SDPEmbedding.parts["landmarks"]: tuple(OF_LANDMARKS),
        dsp.solvers.Ascent: ("tolerance", "max_passes"),
    },
}
OTHER_NAMES = {
    **OF_LANDMARKS,
    "exclude_landmarks": "exclude",
    "components": "n_components",
    "functions": "n_eigenfunctions",
    "weights": "sample_weight",
}
# a command is to be repeatable, has a bar unless told otherwise, and asks for these: the command's own
OF_THE_COMMAND = {"seed", "progress", "connect_timeout", "rows", "operator", "kind"}


@functools.cache
def options() -> tuple[tuple[str, Any], ...]:
    every = ((name, option) for name, subcommand in command.commands.items() for option in subcommand.params)
    return tuple((name, option) for name, option in every if isinstance(option, click.Option))


def shown(option: Any) -> str | None:
    """The default that the help of an option names."""
    option.hidden = False
    record = option.get_help_record(click.Context(command))
    text = " ".join(record[1].split())
    found = re.search(r"\[default: ([^];]*)", text) or re.search(r"(?:^|[:;,] )([^:;,]+) by default", text)
    return found and found[1]


def behind(name: str, option: Any) -> list[Any]:
    """The defaults of the parameters that an option is passed on as."""
    parameter = OTHER_NAMES.get(option.name, option.name)
    special = {("embed", "density"): "alpha", ("plot", "components"): "count"}
    parameter = special.get((name, option.name), parameter)
    functions = [part for part, names in PARTS.get(name, {}).items() if option.name in names]
    functions += [] if option.name in OF_LANDMARKS else BEHIND[name]
    signatures = [inspect.signature(function).parameters for function in functions]
    found = [s[parameter].default for s in signatures if parameter in s]
    return [*found, diffusion.LANDMARKS] if (name, option.name) == ("embed", "landmarks") else found


def as_number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


PASSED_ON = [(n, o) for n, o in options() if behind(n, o) and o.name not in OF_THE_COMMAND | {"kernel", "manifold"}]


def test_help_says_the_default_in_force() -> None:
    for name, option in PASSED_ON:
        text, defaults = shown(option), behind(name, option)
        if len(set(defaults)) > 1:  # two estimators: each default is named
            record = option.get_help_record(click.Context(command))
            assert all(str(default) in record[1] for default in defaults if default is not None), option.name
            continue
        for default in defaults:
            if default is None or isinstance(default, bool):
                assert text is None or isinstance(as_number(text), str), option.name
            elif default is not inspect.Parameter.empty:
                spelled = default.replace("_", "-") if isinstance(default, str) else default
                assert as_number(text) == as_number(spelled), (name, option.name)
        if isinstance(option.default, (str, int, float)) and not option.is_flag:
            assert as_number(text) == as_number(option.default), (name, option.name)


def test_words_of_options_are_those_of_the_package() -> None:
    solvers = tuple(name.replace("_", "-") for name in InvariantSolver.family())
    wanted = {
        **dict.fromkeys([("fit", "landmark_method"), ("embed", "landmark_method")], landmarks.METHODS),
        ("transform", "extrapolate"): parameters.EXTRAPOLATE,
        **{("embed", "method"): sdp.METHODS, ("invariant", "solver"): solvers},
        ("sample", "name"): tuple(SAMPLES),
    }
    kinds = {(n, p.name): p.type for n, subcommand in command.commands.items() for p in subcommand.params}
    assert {name: tuple(kinds[name].choices) for name in wanted} == wanted
    assert kinds["embed", "bandwidth"].words == bandwidth.WORDS
    assert set(kinds["plan", "command"].choices) <= set(command.commands)
