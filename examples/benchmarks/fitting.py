"""Shared by the benchmarks of automatic fits: a fit with its time and warnings, its settings, many fits at once."""

from __future__ import annotations

import ast
import multiprocessing
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import click
import dask
import numpy as np
import threadpoolctl

from daskspectral import SpectralDecomposition
from daskspectral.basis import MonomialBasis
from daskspectral.kernels.names import parse
from daskspectral.solvers import Cut, Penalised

Array = np.ndarray
Settings = dict[str, Any]
SOLVERS = {"cut": Cut, "penalised": Penalised}


@dataclass(frozen=True)
class Fit:
    """A fitted model (None where the fit refused), seconds, and what was said: the class and the first words.

    cpu: seconds of all threads of this process, while the fit ran.
    """

    model: SpectralDecomposition | None
    seconds: float
    said: tuple[str, ...] = field(default=())
    cpu: float = float("nan")

    @property
    def values(self) -> Array:
        """The eigenvalues or singular values; none where the fit refused."""
        if self.model is None:
            return np.empty(0)
        found = vars(self.model)
        return found["singular_values_"] if "singular_values_" in found else found["eigenvalues_"]


def fit(x: Any, **settings: Any) -> Fit:
    """Fit with these parameters, of parts too. A fit that refuses with a ValueError is told like a warning."""
    model: SpectralDecomposition | None = SpectralDecomposition().set_params(**settings)
    start, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(x)
        except ValueError as error:
            model, refusal = None, [first_words(error)]
        else:
            refusal = []
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    said = dict.fromkeys([first_words(w.message) for w in caught if issubclass(w.category, UserWarning)] + refusal)
    return Fit(model, seconds, tuple(said), cpu)


def first_words(message: Warning | BaseException, words: int = 8) -> str:
    """The class and the first words, with # for numbers, so that messages that differ in these alone are one."""
    text = " ".join(str(message).split()[:words])
    return f"{type(message).__name__}: {re.sub(r'[0-9][0-9.e+-]*', '#', text)}"


def classes(said: Iterable[str]) -> str:
    """The classes of what was said, each with how often: `RankWarning 5`."""
    counts = Counter(text.split(":")[0] for text in said)
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))


def told(said: Iterable[str]) -> list[str]:
    """What was said, the most frequent first, as notes below a table."""
    return [f"{number} times {text} ..." for text, number in Counter(said).most_common()]


# -- settings --------------------------------------------------------------------------------------------------------


def settings_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --set name=value, repeatable: parameters of SpectralDecomposition in place of its defaults."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_settings,
        help="a parameter of SpectralDecomposition, as solver=cut, basis__kernel=gaussian:0.3, basis=monomial:2:4",
    )(function)


def _settings(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> Settings:
    found: Settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        found[name] = _value(name, value)
    try:
        SpectralDecomposition().set_params(**found)
    except (ValueError, TypeError) as error:
        raise click.BadParameter(str(error)) from error
    return found


def _value(name: str, text: str) -> Any:
    if name.endswith("kernel") and text != "auto":
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    if name == "solver" and text in SOLVERS:
        return SOLVERS[text]()
    if name.endswith("basis") and text.startswith("monomial:"):
        try:
            return MonomialBasis(*(int(number) for number in text.split(":")[1:]))
        except (TypeError, ValueError) as error:
            raise click.BadParameter(f"{text!r} is not monomial:COLUMNS:DEGREE: {error}") from error
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


# -- many fits -------------------------------------------------------------------------------------------------------


def processes_option(default: int) -> Callable[..., Any]:
    return click.option(
        "--processes", default=default, show_default=True, help="fits at once, each on one thread; they share the times"
    )


def parallel(function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], processes: int, label: str) -> list[Any]:
    """function(*job) for every job, in their order: here for one process, else in processes of one thread each."""
    with click.progressbar(length=len(jobs), label=label, file=sys.stderr) as bar:

        def counted(result: Any) -> Any:
            bar.update(1)
            return result

        if processes == 1:
            return [counted(function(*job)) for job in jobs]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context, _alone) as pool:
            futures = [pool.submit(function, *job) for job in jobs]
            return [counted(future.result()) for future in futures]


def _alone() -> None:
    threadpoolctl.threadpool_limits(1, user_api="blas")
    dask.config.set(scheduler="synchronous")
