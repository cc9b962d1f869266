"""Options that several commands share, and the scheduler that they choose."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from daskspectral.basis import FourierLattice, NeuralBasis
from daskspectral.engine.checkpoint import checkpoint_directory
from daskspectral.kernels import Kernel, parse
from daskspectral.landmarks import METHODS

F = TypeVar("F", bound=Callable[..., Any])


class Count(click.ParamType):  # type: ignore[type-arg]
    """A whole number, written 10000, 1e4 or 10_000."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number as an int."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number")
        if not number.is_integer():
            self.fail(f"{value!r} is not a whole number")
        return int(number)


class OrAuto(click.ParamType):  # type: ignore[type-arg]
    """The word auto, or what another type takes."""

    def __init__(self, other: click.ParamType):  # type: ignore[type-arg]
        self.other = other
        self.name = f"{other.name}|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as the other type has it."""
        return value if value == "auto" else self.other.convert(value, param, ctx)


class Folds(click.ParamType):  # type: ignore[type-arg]
    """A number of folds, the words blocks and none, or the path of a zarr array of labels."""

    name = "folds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, None, or the text as it is."""
        if not isinstance(value, str):
            return value
        return None if value == "none" else int(value) if value.isdecimal() else value


class Columns(click.ParamType):  # type: ignore[type-arg]
    """Column numbers: 0,2,5 or 0:8."""

    name = "columns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers as a list, in order."""
        if isinstance(value, list):
            return value
        try:
            chosen: list[int] = []
            for part in value.split(","):
                first, colon, last = part.partition(":")
                chosen.extend(range(int(first), int(last)) if colon else [int(first)])
        except ValueError:
            self.fail(f"{value!r} is not a list of column numbers such as 0,2,5 or 0:8")
        return chosen


def default(function: Callable[..., Any], parameter: str) -> str:
    """The default of a parameter, as a help text says it."""
    value = inspect.signature(function).parameters[parameter].default
    return f"{value:g}" if isinstance(value, float) else str(value)


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


measure_options = _all(
    click.option("--scheduler", metavar="ADDRESS", help="A running dask cluster, tcp://...; threads by default."),
    click.option(
        "--connect-timeout",
        type=click.FloatRange(0, min_open=True),
        default=30.0,
        show_default=True,
        help="Seconds for the scheduler to answer.",
    ),
    click.option("--threads", type=click.IntRange(1), help="Threads, without a cluster; one per core by default."),
    click.option("--progress/--no-progress", default=True, help="A progress bar on longer work."),
)
run_options = _all(
    measure_options,
    click.option("--overwrite", is_flag=True, help="Replace outputs that exist."),
)
missing_option = click.option(
    "--allow-missing", is_flag=True, help="Take missing chunks as fill values, not as an error."
)
fit_row_options = _all(
    click.option(
        "--on-invalid",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="Rows with NaN or infinity: an error, or (skip) left out.",
    ),
    missing_option,
)
apply_row_options = _all(
    click.option(
        "--on-invalid",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="Rows with NaN or infinity: an error, or (skip) NaN in the output.",
    ),
    missing_option,
)
checkpoint_options = _all(
    click.option("--checkpoint", help="A directory for the sums so far; the same command goes on from there."),
    click.option("--checkpoint-every", type=float, default=60.0, show_default=True, help="Seconds between writes."),
)


class Periods(click.ParamType):  # type: ignore[type-arg]
    """Periods of columns: 0:6.283185,2:360."""

    name = "periods"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The periods by the numbers of their columns."""
        if isinstance(value, dict):
            return value
        try:
            pairs = [part.split(":") for part in value.split(",")]
            return {int(column): float(period) for column, period in pairs}
        except ValueError:
            self.fail(f"{value!r} is not a list of columns with their periods such as 0:6.283185,2:360")


class Lattice(click.ParamType):  # type: ignore[type-arg]
    """A Fourier lattice by its highest frequency, or one for each column; "auto" compares it with landmarks."""

    name = "m"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str) or value == "auto":
            return value
        try:
            orders = tuple(int(part) for part in value.split(","))
            return FourierLattice(orders if len(orders) > 1 else orders[0])
        except ValueError as error:
            if "invalid literal" not in str(error):
                self.fail(str(error))
            self.fail(f"{value!r} is no highest frequency such as 15, nor one for each column such as 30,20")


class Network(click.ParamType):  # type: ignore[type-arg]
    """A network by the neurons of its hidden layers."""

    name = "neurons"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return NeuralBasis(tuple(int(part) for part in value.split(",")))
        except ValueError as error:
            if "invalid literal" not in str(error):
                self.fail(str(error))
            self.fail(f"{value!r} is no list of neurons of hidden layers such as 96,96,96")


periods_option = click.option("--periods", type=Periods(), help="Columns that are periodic, as angles: 0:6.283185.")
columns_option = click.option("--columns", type=Columns(), help="Columns to use: 0,2,5 or 0:8.")
standardize_option = click.option(
    "--standardize", is_flag=True, help="Bring columns to mean 0 and standard deviation 1."
)
basis_options = _all(
    click.option(
        "--kernel",
        default="auto",
        show_default=True,
        help="name[:parameter...], terms joined by +; auto: kernel and scale are chosen on rows held out.",
    ),
    click.option("--landmarks", type=OrAuto(Count()), default="auto", show_default=True, help="How many."),
    click.option(
        "--landmark-method",
        type=click.Choice(METHODS),
        default="kmeans++",
        show_default=True,
        help="How they are chosen.",
    ),
    click.option("--landmark-sample", type=Count(), help="Rows among which the methods other than uniform choose."),
    click.option(
        "--lattice",
        "basis",
        type=Lattice(),
        help="Highest frequency of Fourier functions, in place of landmarks, for 1 to 4 columns: 15, or 30,20; auto: "
        "landmarks, a lattice and a network are compared.",
    ),
)
solution_options = _all(
    click.option(
        "--exclude-landmarks/--keep-landmarks",
        default=None,
        help="Rows that are landmarks out of the sums, or in them; by default out for kernels with a kink.",
    ),
    click.option(
        "--spread",
        type=OrAuto(click.FLOAT),
        default="auto",
        show_default=True,
        help="How far, in scales, landmarks are moved off the data.",
    ),
    click.option(
        "--solver",
        type=click.Choice(["penalised", "cut"]),
        default="penalised",
        show_default=True,
        help="A penalty on rough functions, or a cut of the Gram matrix alone.",
    ),
    click.option(
        "--penalty", type=OrAuto(click.FLOAT), default="auto", show_default=True, help="Its strength, 1 being usual."
    ),
    click.option(
        "--folds",
        type=Folds(),
        default="10",
        show_default=True,
        help="Parts of the rows, for error bars: a number, blocks (of rows in time), a zarr array of labels, none.",
    ),
)
weights_option = click.option("--weights", help="A zarr array of sample weights, one a row.")
rtol_option = click.option("--rtol", type=float, help="Relative cut of the eigenvalues of the Gram matrix.")
dtype_option = click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True)
seed_option = click.option("--seed", type=int, default=0, show_default=True)
trust_option = click.option(
    "--trust",
    multiple=True,
    metavar="MODULE.NAME",
    help="A class or function of your own that the file may ask for; several times for several.",
)
model_option = click.option("--out", required=True, help="Where the model goes: a new zarr group.")


def kernel_of(options: Mapping[str, Any]) -> Kernel | str:
    """The kernel that the options name; the word auto leaves it to the data. Raises ValueError for an unknown name."""
    text = str(options["kernel"])
    return text if text == "auto" else parse(text)


def chosen(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The options with these names."""
    return {name: options[name] for name in names}


def width(array: Any) -> int:
    """The number of columns of an array (n, d); 0 for another shape, which the estimator refuses."""
    return int(array.shape[1]) if array.ndim == 2 else 0


def bar(wanted: bool) -> bool | None:
    """A bar on a terminal, none elsewhere or with --no-progress."""
    return None if wanted else False


def refuse_checkpoint(options: Mapping[str, Any]) -> None:
    """Raise ValueError or OSError, before any work, for a --checkpoint path that cannot hold a checkpoint."""
    if options["checkpoint"] is not None:
        checkpoint_directory(options["checkpoint"])


class _Shown(logging.Handler):
    """Log records as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message alone."""
        click.echo(record.getMessage(), err=True)


@contextmanager
def plan_shown() -> Iterator[None]:
    """Print the plan of a fit when it is made."""
    planning, shown = logging.getLogger("daskspectral.plan"), _Shown()
    before = planning.level, planning.propagate
    planning.addHandler(shown)
    planning.setLevel(logging.INFO)
    planning.propagate = False
    try:
        yield
    finally:
        planning.removeHandler(shown)
        planning.level, planning.propagate = before


@contextmanager
def scheduler(options: Mapping[str, Any]) -> Iterator[None]:
    """Use the cluster, or the number of threads, that the run options name.

    Raises OSError where no scheduler answers, or where it has no workers.
    """
    address, threads = options["scheduler"], options["threads"]
    if address is None:
        import dask

        with dask.config.set({} if threads is None else {"num_workers": threads}):
            yield
        return
    from distributed import Client

    timeout = options["connect_timeout"]
    try:
        asyncio.run(_greet(address, timeout))
        client = Client(address, timeout=timeout)  # type: ignore[no-untyped-call]
    except Exception as error:  # of any kind: what answers there may speak another protocol
        reason = str(error) or f"nothing came back within --connect-timeout {timeout:g} s"
        raise OSError(f"no dask scheduler answers at {address} (tcp://host:port is wanted): {reason}") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise OSError(f"the dask cluster at {address} has no workers yet; start some, then run this again")
        yield


async def _greet(address: str, seconds: float) -> None:
    """Raise TimeoutError or OSError where no scheduler answers in time; a Client would wait forever."""
    from distributed import Security
    from distributed.comm.core import connect

    security = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(seconds):
        comm = await connect(address, timeout=seconds, **security)  # type: ignore[no-untyped-call]
    await comm.close()
