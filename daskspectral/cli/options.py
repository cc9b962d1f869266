"""Options that several commands share, and the scheduler that they choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from daskspectral.cli.choices import LANDMARKS
from daskspectral.cli.commands import session
from daskspectral.cli.kinds import Box, Columns, Count, Folds, Lattice, OrAuto, Periods, Words
from daskspectral.cli.storage import storage_option

if TYPE_CHECKING:
    from daskspectral.data.rows import Rows
    from daskspectral.kernels import Kernel

KEYS = (
    ". The keys for tls:// are named by DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__CLIENT__CERT and ...__CLIENT__KEY "
    "in the environment, or by distributed.comm.tls in dask's configuration"
)
F = TypeVar("F", bound=Callable[..., Any])


LABELS = ("sample_dims", "latitude")
OUT_HELP = "Where the result goes:"
COMPONENTS_HELP = "How many functions, or coordinates, are wanted"
DENSITY_HELP = "The power of the sampling density that is divided out"
KERNEL_HELP = "The functions at landmarks, name[:parameter...], terms joined by +"
LANDMARKS_HELP = "How many landmarks"
METHOD_HELP = "How landmarks are chosen."
DTYPE_HELP = "Precision of the arithmetic, or of the numbers written"
MANIFOLD_HELP = "Where the points lie, sphere, circle, torus, a periodic box:LOWER:UPPER or interval:LOWER:UPPER"
TARGETS_HELP = "For a regressor, the zarr array of targets"
GRADIENTS_HELP = "A zarr array of the targets' gradients"
ALPHA_HELP = "Weight of the penalty of a regression"
SOLVER_HELP = "How the solution is found"
COLUMNS_HELP = "Columns to use, 0,2,5 or 0:8"
STANDARDIZE_HELP = "Bring columns to mean 0 and standard deviation 1"
CHECKPOINT_HELP = "A directory for the sums so far, from which the same command goes on"
DEVICE_HELP = "Where functions are evaluated and multiplied: cuda is a GPU (extra gpu)"
CHECKPOINT = ("checkpoint", "checkpoint_every")
EVERY_HELP = "Seconds between writes of the checkpoint"
UNCOVERED_HELP = (
    "sdp: what becomes of points that no row of the fit is within reach of: the direction of their nearest row, NaN, "
    "or an error; nearest by default."
)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


progress_option = click.option(
    "--progress/--no-progress", default=True, show_default=True, help="A progress bar on longer work."
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace outputs that exist.")
out_option = click.option("--out", required=True, help=f"{OUT_HELP} a new zarr array.")
measure_options = together(
    click.option("--scheduler", metavar="ADDRESS", help="A running dask cluster, tcp://...; threads by default."),
    click.option(
        "--connect-timeout",
        type=click.FloatRange(0, min_open=True),
        default=30.0,
        show_default=True,
        help="Seconds for the scheduler to answer.",
    ),
    click.option("--threads", type=click.IntRange(1), help="Threads, without a cluster; one per core by default."),
    progress_option,
    storage_option,
)
run_options = together(
    measure_options,
    overwrite_option,
)
missing_option = click.option(
    "--allow-missing", is_flag=True, help="Take missing chunks as fill values, not as an error."
)
fit_row_options = together(
    click.option(
        "--on-invalid",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="Rows with NaN or infinity: an error, or (skip) left out.",
    ),
    missing_option,
)
apply_row_options = together(
    click.option(
        "--on-invalid",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="Rows with NaN or infinity: an error, or (skip) NaN in the output.",
    ),
    missing_option,
)
checkpoint_options = together(
    click.option("--checkpoint", help=f"{CHECKPOINT_HELP}."),
    click.option("--checkpoint-every", type=float, default=60.0, show_default=True, help=f"{EVERY_HELP}."),
)


periods_option = click.option("--periods", type=Periods(), help="Columns that are periodic, as angles: 0:6.283185.")
columns_option = click.option("--columns", type=Columns(), help=f"{COLUMNS_HELP}.")
label_options = together(
    click.option(
        "--sample-dims",
        type=Words(),
        help="Dimensions of labelled POINTS that make rows: time, or time,lat,lon; all others are columns.",
    ),
    click.option(
        "--latitude", help="The coordinate in degrees, of rows or columns, by whose cosine these are weighted."
    ),
)
standardize_option = click.option("--standardize", is_flag=True, help=f"{STANDARDIZE_HELP}.")
space_options = together(
    click.option(
        "--manifold",
        help=f"{MANIFOLD_HELP}; by default the columns' ranges.",
    ),
    click.option("--group", help="permutations, cyclic, signflips, rotations:K, joined by +; none by default."),
    click.option(
        "--smoothness",
        type=float,
        help="Order of the Sobolev norm, above half the manifold's dimension; by default 2, or half of it plus 1.",
    ),
    click.option("--functions", type=Count(), help="Eigenfunctions of the manifold, at most; chosen by default."),
)

landmark_sample_option = click.option(
    "--landmark-sample", type=Count(), help="Rows among which landmark methods other than uniform choose."
)
basis_options = together(
    click.option(
        "--kernel",
        default="auto",
        show_default=True,
        help=f"{KERNEL_HELP}; auto: kernel and scale are chosen on rows held out.",
    ),
    click.option("--landmarks", type=OrAuto(Count()), default="auto", show_default=True, help=f"{LANDMARKS_HELP}."),
    click.option(
        "--landmark-method",
        type=click.Choice(LANDMARKS),
        default="kmeans++",
        show_default=True,
        help=METHOD_HELP,
    ),
    landmark_sample_option,
    click.option(
        "--lattice",
        "basis",
        type=Lattice(),
        help="Highest frequency of Fourier functions, in place of landmarks, for 1 to 4 columns: 15, or 30,20; auto: "
        "landmarks, a lattice and a network are compared.",
    ),
    click.option(
        "--lattice-box",
        type=Box(),
        help="The ends of the data of --lattice by column, none for a periodic one: -1:1,0:5; found by default.",
    ),
    click.option(
        "--lattice-margin",
        type=float,
        help="Share of the width by which the period of --lattice is larger; by default 0.2, of a regression 0.3.",
    ),
)
solution_options = together(
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
        help=f"{SOLVER_HELP}; a penalty on rough functions, or a cut of the Gram matrix alone.",
    ),
    click.option(
        "--penalty",
        type=OrAuto(click.FLOAT),
        default="auto",
        show_default=True,
        help="penalised: its strength, 1 being usual.",
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
rtol_option = click.option(
    "--rtol", type=float, help="Relative cut of the Gram matrix's eigenvalues; of fit with --solver cut."
)
device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "auto"]),
    default="cpu",
    show_default=True,
    help=f"{DEVICE_HELP}.",
)
dtype_option = click.option(
    "--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True, help=f"{DTYPE_HELP}."
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Of random numbers; the same seed gives the same result."
)
trust_option = click.option(
    "--trust",
    multiple=True,
    metavar="MODULE.NAME",
    help="A class or function of your own that the file may ask for; several times for several.",
)
embedding_option = click.option("--embedding", help="A new zarr array for the coordinates of every row.")
model_option = click.option("--out", required=True, help=f"{OUT_HELP} a new zarr group.")


def rows_of(data: Any, options: Mapping[str, Any], **given: Any) -> Rows:
    """DATA as the options of the command say that they are read."""
    from daskspectral.data.rows import Rows

    names = (*LABELS, "columns", "standardize", "on_invalid", "allow_missing")
    known = {name: options[name] for name in names if options.get(name) is not None}
    return Rows(data, **known, **given)


def functions_of(options: Mapping[str, Any], width: int) -> Any:
    """The basis that the options name, for POINTS of so many columns.

    Raises click's UsageError for options of another basis.
    """
    from dataclasses import replace

    from daskspectral.basis import Landmarks
    from daskspectral.data.source import check_columns
    from daskspectral.passes.periods import by_column

    lattice, kernel = basis_of(options), kernel_of(options)
    network, periods = options.get("network"), options["periods"]
    if lattice is None and network is None:
        named = {"spread": "spread", "constant": "constant", "exclude": "exclude_landmarks"}
        others = {name: options[option] for name, option in named.items() if option in options}
        method, sample = options["landmark_method"], options["landmark_sample"]
        return Landmarks(kernel, options["landmarks"], method=method, sample=sample, periods=periods, **others)
    if lattice is not None and network is not None:
        raise click.UsageError("--network and --lattice are two bases; give one of them")
    for name in ("landmarks", "landmark_method", "landmark_sample", "spread", "constant", "exclude_landmarks"):
        if name in options and is_given(name):
            raise click.UsageError(f"--{name.replace('_', '-')} is for landmarks, without --lattice or --network")
    if network is not None or lattice == "auto":
        for name in ("kernel", "periods"):
            if is_given(name):
                raise click.UsageError(f"--{name} is for landmarks, or for --lattice with its highest frequency")
        return lattice if network is None else network
    if periods is not None and width:
        periods = by_column(periods, width, check_columns(options["columns"], width))
    return replace(lattice, kernel=kernel, periods=periods or None)


def solver_of(options: Mapping[str, Any]) -> Any:
    """The solver that the options name. Raises click's UsageError for options of the other one."""
    from daskspectral.solvers import Cut, Penalised

    if options["solver"] == "penalised":
        for name, default in {"rtol": None, "ridge": 0.0}.items():
            if options[name] != default:  # a result's settings have the defaults too
                raise click.UsageError(f"--{name} is for --solver cut")
        return Penalised(options["penalty"])
    if options["penalty"] != "auto":
        raise click.UsageError("--penalty is for --solver penalised")
    return Cut(options["rtol"], ridge=options["ridge"])


def kernel_of(options: Mapping[str, Any]) -> Kernel | str:
    """The kernel that the options name; the word auto leaves it to the data. Raises ValueError for an unknown name."""
    from daskspectral.kernels import parse

    text = str(options["kernel"])
    return text if text == "auto" else parse(text)


def basis_of(options: Mapping[str, Any]) -> Any:
    """The lattice that the options name, in its box; None for landmarks. Raises click's UsageError for a box alone."""
    basis, box, margin = options["basis"], options["lattice_box"], options["lattice_margin"]
    if box is None and margin is None:
        return basis
    if basis is None or basis == "auto":
        raise click.UsageError("--lattice-box and --lattice-margin are for --lattice with its highest frequency")
    from dataclasses import replace

    return replace(basis, box=box, margin=margin)


def is_given(name: str) -> bool:
    """Whether an option of the command that runs was given, and not as its default, which settings of a result have."""
    context = click.get_current_context()
    if context.get_parameter_source(name) is click.core.ParameterSource.DEFAULT:
        return False
    option = next(option for option in context.command.params if option.name == name)
    return bool(context.params[name] != option.default)


def chosen(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The options with these names."""
    return {name: options[name] for name in names}


def opened(points: str, options: Mapping[str, Any]) -> tuple[Any, int]:
    """What an estimator is given for POINTS: labelled data by their path, an open zarr array; and how many columns.

    0 columns stand for an array of another shape, which the estimator refuses.
    """
    from daskspectral.data.labelled import stack_rows
    from daskspectral.data.stores import open_zarr

    laid = stack_rows(points, **chosen(options, *LABELS))
    if laid is not None:
        return points, laid.layout.width
    array = open_zarr(points)
    return array, int(array.shape[1]) if array.ndim == 2 else 0


def bar(wanted: bool) -> bool | None:
    """A bar on a terminal, none elsewhere or with --no-progress or --quiet."""
    return None if wanted and not session().quiet else False


def refuse_checkpoint(options: Mapping[str, Any]) -> None:
    """Raise ValueError or OSError, before any work, for a --checkpoint path that cannot hold a checkpoint."""
    if options["checkpoint"] is not None:
        from daskspectral.engine.checkpoint import checkpoint_directory

        checkpoint_directory(options["checkpoint"])


def refuse_same(out: str, option: str, other: str) -> None:
    """Raise click's UsageError where one of two outputs would be in the other."""
    from daskspectral.data.writing import refuse_input

    try:
        refuse_input(out, other)
        refuse_input(other, out)
    except ValueError:
        raise click.UsageError(f"--out {out} and {option} {other} need places of their own") from None


@contextmanager
def scheduler(options: Mapping[str, Any]) -> Iterator[None]:
    """Use the cluster, or the number of threads, that the run options name.

    Raises OSError where no scheduler answers, or where it has no workers, ValueError for a credential in its address.
    """
    address, threads = options["scheduler"], options["threads"]
    if address is None:
        import dask

        with dask.config.set({} if threads is None else {"num_workers": threads}):
            yield
        return
    import asyncio

    from distributed import Client

    from daskspectral.data.remote import refuse_secrets

    refuse_secrets(address, host_of="tcp")
    timeout = options["connect_timeout"]
    try:
        asyncio.run(_greet(address, timeout))
        client = Client(address, timeout=timeout)  # type: ignore[no-untyped-call]
    except Exception as error:  # of any kind: what answers there may speak another protocol
        reason = str(error) or f"nothing came back within --connect-timeout {timeout:g} s"
        keys = KEYS if address.startswith("tls://") else ""
        raise OSError(f"no dask scheduler answers at {address} (tcp://host:port is wanted): {reason}{keys}") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise OSError(f"the dask cluster at {address} has no workers yet; start some, then run this again")
        yield


async def _greet(address: str, seconds: float) -> None:
    """Raise TimeoutError or OSError where no scheduler answers in time; a Client would wait forever."""
    import asyncio

    from distributed import Security
    from distributed.comm.core import connect

    security = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(seconds):
        comm = await connect(address, timeout=seconds, **security)  # type: ignore[no-untyped-call]
    await comm.close()
