"""What the options of a command make, what is refused before any work, and how a command runs: plan, bar, scheduler."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli.commands import Formatter, say, session, tell, written
from daskspectral.cli.options import number_of

if TYPE_CHECKING:
    from daskspectral.data.rows import Rows
    from daskspectral.kernels import Kernel
    from daskspectral.operators import Operator
    from daskspectral.passes.sums import PassPlan


SHORT = ("potential", "drift", "diffusion", "direction")
"""Fields with options of their own."""
READ = ("sample_dims", "latitude", "anomaly", "detrend", "columns", "standardize", "on_invalid", "allow_missing")
LANDMARKS = {
    "landmarks": "count",
    "landmark_method": "method",
    "landmark_sample": "sample",
    "spread": "spread",
    "constant": "constant",
    "exclude_landmarks": "exclude",
}
"""The options of landmarks, and what they set."""


def given(options: Mapping[str, Any], *names: str, **renamed: str) -> dict[str, Any]:
    """The options with a value by the parameters that they set, which have their names unless they are `renamed`."""
    wanted = {**{name: name for name in names}, **renamed}
    return {to: options[name] for name, to in wanted.items() if options.get(name) is not None}


def refuse_given(names: Collection[str], why: str) -> None:
    """Raise click's UsageError, the option and `why`, if one of these options of the command that runs was given.

    A value that is the default, as settings of a result have it, does not count.
    """
    context = click.get_current_context()
    for option in context.command.params:
        name = str(option.name)
        typed = context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        if name in names and typed and context.params[name] != option.default:
            raise click.UsageError(f"--{name.replace('_', '-')} {why}")


def rows_of(data: Any, options: Mapping[str, Any], **more: Any) -> Rows:
    """DATA as the options of the command say that they are read."""
    from daskspectral.data.rows import Rows

    return Rows(data, **given(options, *READ), **more)


def width_of(points: str, options: Mapping[str, Any]) -> int:
    """Return the number of columns of POINTS, 0 for an array of another shape, which the estimator refuses."""
    from daskspectral.data.columns import Wanted
    from daskspectral.data.containers import reader_of
    from daskspectral.data.labelled import stack_rows

    wanted = Wanted.by_user(options.get("columns"))
    stacked = stack_rows(points, sample_dims=options["sample_dims"], latitude=options["latitude"], wanted=wanted)
    if stacked is not None:
        return stacked.layout.width
    shape = reader_of(points, "POINTS").shape
    return shape[1] if len(shape) == 2 else 0


def kernel_of(options: Mapping[str, Any]) -> Kernel | str:
    """The kernel that the options name; the word auto leaves it to the data. Raises ValueError for an unknown name."""
    from daskspectral.kernels import parse

    text = str(options["kernel"])
    return text if text == "auto" else parse(text)


def functions_of(options: Mapping[str, Any], width: int) -> Any:
    """The basis that the options name, for POINTS of so many columns.

    Raises click's UsageError for options of another basis.
    """
    from daskspectral.basis import FourierLattice, Landmarks, NeuralBasis
    from daskspectral.choosing.landmarks import by_column
    from daskspectral.data.columns import are_names, check_columns

    lattice, network = options["lattice"], options.get("network")
    kernel, periods = kernel_of(options), options["periods"]
    if lattice is None and network is None:
        return Landmarks(kernel, periods=periods, **given(options, **LANDMARKS))
    if lattice is not None and network is not None:
        raise click.UsageError("--network and --lattice are two bases; give one of them")
    refuse_given(LANDMARKS, "is for landmarks, without --lattice or --network")
    if network is not None or lattice == "auto":
        refuse_given(("kernel", "periods"), "is for landmarks, or for --lattice with its highest frequency")
        return lattice if network is None else NeuralBasis(network)
    if periods is not None and width:
        columns = options["columns"]
        width, columns = (len(columns), None) if are_names(columns) else (width, check_columns(columns, width))
        periods = by_column(periods, width, columns)
    return FourierLattice(lattice if len(lattice) > 1 else lattice[0], kernel=kernel, periods=periods or None)


def solver_of(options: Mapping[str, Any]) -> Any:
    """The solver that the options name. Raises click's UsageError for options of the other one."""
    from daskspectral.solvers import Cut, Penalised

    if options["solver"] == "penalised":
        refuse_given(("rtol", "ridge"), "is for --solver cut")
        return Penalised(options["penalty"])
    refuse_given(("penalty",), "is for --solver penalised")
    return Cut(options["rtol"], ridge=options["ridge"])


def operator_of(options: Mapping[str, Any], dimension: int) -> Operator:
    """The operator that the options name, of points with `dimension` columns.

    Raises click's UsageError unless fields and views are those that the operator reads, and as `operators.names.parse`.
    """
    from daskspectral.manifolds.names import parse_manifold
    from daskspectral.operators import names

    text: str = options["operator"]
    head, *words = text.split(":")
    manifold = options["manifold"]
    read = {
        "manifold": None if manifold is None else parse_manifold(manifold, dimension),
        "density": options["density"],
        "lag": options["lag"],
        "further": options["further"],
        "diffusion": number_of(options["diffusion"]) if head == "generator" else None,
        "coefficients": options["coefficients"] or None,
        "views": 1 + len(options["views"]) if head == "augmentation" else None,
    }
    if head == "transfer" and not words and options["lag"] is None:
        raise click.UsageError("--operator transfer needs --lag, the rows or the time from a state to its future")
    found = names.parse(text, **read)
    if options["trajectories"] and found.lag is None:
        raise click.UsageError(f"--trajectory is for --operator transfer, and {text} reads rows one by one")
    if len(options["views"]) != (0 if found.lag is not None else len(found.views) - 1):
        raise click.UsageError(f"--operator {text} has {len(found.views) - 1} --view; {len(options['views'])} given")
    fields = fields_of(options)
    if wrong := sorted(fields.keys() ^ found.data_fields):
        reads = ", ".join(f"--field {name}=PATH" for name in sorted(found.data_fields)) or "no --field"
        raise click.UsageError(f"--operator {text} reads {reads}; {wrong[0]} is missing, or given for nothing")
    return found


def fields_of(options: Mapping[str, Any]) -> dict[str, str]:
    """The paths of the fields by name. Raises click's UsageError for one given twice."""
    pairs = [*options["fields"], *((name, options[name]) for name in SHORT if options.get(name) is not None)]
    pairs = [(name, path) for name, path in pairs if name != "diffusion" or number_of(path) is None]
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise click.UsageError(f"the field {repeated[0]} is given twice")
    return dict(pairs)


def points_of(points: Any, options: Mapping[str, Any]) -> Any:
    """The points, a list of several trajectories, or a tuple of the points and their other views.

    Raises click's UsageError for weights of several trajectories.
    """
    if options.get("trajectories"):
        if options["weights"] is not None:
            raise click.UsageError("--weights are for one trajectory; those of several are given in Python, as a list")
        return [points, *options["trajectories"]]
    return (points, *options["views"]) if options["views"] else points


def targets_of(estimator: Any, model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a regressor from the file MODEL is compared with or updated by; nothing for a spectral decomposition.

    Raises click's UsageError for options of the other kind of model, and for a regressor without targets.
    """
    from daskspectral.spectral import SpectralDecomposition

    found = given(options, "gradients", targets="y")
    if isinstance(estimator, SpectralDecomposition):
        if found:
            raise click.UsageError(f"--targets and --gradients are for regressors, and {model} is none")
        return {}
    if options["fields"] or options["views"] or options.get("trajectories"):
        raise click.UsageError(f"--field, --view and --trajectory are for spectral decompositions, and {model} is none")
    if "y" not in found:
        raise click.UsageError(f"{model} is a regressor: --targets is missing, all of them, old and new")
    return found


def refuse(options: Mapping[str, Any], *inputs: str | None) -> None:
    """Raise an error, before any work, for an output or a checkpoint that cannot be written, or replaces an input."""
    from daskspectral.data.writing import refuse_existing, refuse_input

    if not session().planning:
        refuse_existing(options["out"], options["overwrite"])
        refuse_input(options["out"], *inputs)
    if options.get("checkpoint") is not None:
        from daskspectral.engine.checkpoint import checkpoint_directory

        checkpoint_directory(options["checkpoint"])


def finish(model: Any, options: Mapping[str, Any], what: str = "model") -> None:
    """Save what was fitted, describe it, and say where it is."""
    from daskspectral.store import save

    save(model, options["out"], overwrite=options["overwrite"])
    tell(model)
    written(what, options["out"])


def saving(options: Mapping[str, Any]) -> dict[str, Any]:
    """What a fit is told of its bar and of its checkpoint."""
    return {**given(options, "checkpoint", "checkpoint_every"), "progress": bar(options)}


def bar(options: Mapping[str, Any]) -> bool | None:
    """A bar on a terminal, none elsewhere or with --no-progress or --quiet."""
    return None if options["progress"] and not session().quiet else False


@contextmanager
def planned() -> Iterator[None]:
    """Print the plan of a fit on the error stream when it is made."""
    planning, handler = logging.getLogger("daskspectral.plan"), logging.StreamHandler()
    before = planning.level, planning.propagate
    handler.setFormatter(Formatter())
    planning.addHandler(handler)
    planning.setLevel(logging.INFO)
    planning.propagate = False
    try:
        yield
    finally:
        planning.removeHandler(handler)
        planning.setLevel(before[0])
        planning.propagate = before[1]


def say_plan(plan: PassPlan) -> None:
    """Print the tasks and the peak memory of a pass."""
    memory = {name: int(value) for name, value in vars(plan.memory).items() if isinstance(value, int)}
    tasks, epochs = len(plan.ranges.ranges), len(plan.ranges.epochs)
    rows = plan.ranges.ranges[-1][1] if tasks else 0
    say(f"plan: {plan}", tasks=tasks, epochs=epochs, rows=rows, memory=memory)


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

    refuse_secrets(address if "://" in address else f"tcp://{address}")
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
    import asyncio

    from distributed import Security
    from distributed.comm.core import connect

    security = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(seconds):
        comm = await connect(address, timeout=seconds, **security)  # type: ignore[no-untyped-call]
    await comm.close()
