"""The defaults that --help shows are those in force, and those of the estimators and functions behind the commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.data.convert import convert
from daskspectral.data.samples import write_sample
from daskspectral.passes.score import measure_score

BEHIND: dict[str, list[Callable[..., Any]]] = {
    "fit": [dsp.SpectralDecomposition, dsp.SpectralDecomposition.fit, dsp.operators.Laplacian],
    "update": [dsp.SpectralDecomposition.update, dsp.HermiteRegressor.update],
    "merge": [dsp.save],
    "embed": [dsp.SDPEmbedding, dsp.SDPEmbedding.fit, dsp.DiffusionMap, dsp.DiffusionMap.fit],
    "regress": [dsp.HermiteRegressor, dsp.HermiteRegressor.fit],
    "invariant": [dsp.InvariantRegressor, dsp.InvariantRegressor.fit],
    "transform": [dsp.SpectralDecomposition.transform, dsp.SDPEmbedding.transform],
    "predict": [dsp.HermiteRegressor.predict],
    "score": [measure_score, dsp.HermiteRegressor.score],
    "info": [],
    "sample": [write_sample],
    "convert": [convert],
}
OTHER_NAMES = {
    "landmarks": "n_landmarks",
    "landmark_method": "landmarks",
    "components": "n_components",
    "functions": "n_eigenfunctions",
    "weights": "sample_weight",
}
# a command is to be repeatable, has a bar unless told otherwise, and asks for these: the command's own
OF_THE_COMMAND = {"seed", "progress", "connect_timeout", "rows", "operator", "kind"}


def options() -> Iterator[tuple[str, click.Option]]:
    for name, subcommand in command.commands.items():
        for option in subcommand.params:
            if isinstance(option, click.Option):
                yield name, option


def shown(option: click.Option) -> str | None:
    """The default that the help of an option names."""
    record = option.get_help_record(click.Context(command))
    assert record is not None
    text = " ".join(record[1].split())
    found = re.search(r"\[default: ([^];]*)", text) or re.search(r"(?:^|[:;,] )([^:;,]+) by default", text)
    return found and found[1]


def behind(name: str, option: click.Option) -> list[Any]:
    """The defaults of the parameters that an option is passed on as."""
    assert option.name is not None
    parameter = OTHER_NAMES.get(option.name, option.name)
    if option.name == "method" and name in ("fit", "regress"):
        parameter = "landmarks"
    signatures = [inspect.signature(function).parameters for function in BEHIND[name]]
    return [s[parameter].default for s in signatures if parameter in s]


def as_number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


PASSED_ON = [(n, o) for n, o in options() if behind(n, o) and o.name not in OF_THE_COMMAND | {"kernel", "manifold"}]


@pytest.mark.parametrize(("name", "option"), PASSED_ON, ids=lambda v: v if isinstance(v, str) else v.name)
def test_help_says_the_default_in_force(name: str, option: click.Option) -> None:
    text = shown(option)
    for default in behind(name, option):
        if default is None or isinstance(default, bool):
            assert text is None or isinstance(as_number(text), str), f"help says {text}, and the default is {default}"
        elif default is not inspect.Parameter.empty:
            assert as_number(text) == as_number(default)
    if isinstance(option.default, (str, int, float)) and not option.is_flag:
        assert as_number(text) == as_number(option.default)


def test_every_option_with_a_default_says_it() -> None:
    silent = [
        (name, option.opts[0])
        for name, option in options()
        if isinstance(option.default, (str, int, float)) and not option.is_flag and shown(option) is None
    ]
    assert silent == []


def test_every_number_in_the_help_is_compared() -> None:
    compared = {(n, o.name) for n, o in PASSED_ON}
    numbers = {(n, o.name) for n, o in options() if isinstance(as_number(shown(o)), float)}
    assert {name for _, name in numbers - compared} <= OF_THE_COMMAND
    assert ("embed", "tolerance") in numbers & compared


def test_the_default_kernel_is_that_of_the_estimators() -> None:
    for name, option in options():
        if option.name == "kernel":
            assert name in ("fit", "regress")
            assert behind(name, option) == [option.default]
