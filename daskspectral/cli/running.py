"""Objects from the options of a command, checks before any work, and the plan, progress bar and scheduler."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from daskspectral.basis import FourierBasis, Landmarks, NeuralBasis
from daskspectral.choosing.landmarks import by_column
from daskspectral.cli import parameters as par
from daskspectral.cli import settings
from daskspectral.cli.commands import Formatter, say, session, written
from daskspectral.cli.signatures import given
from daskspectral.cli.syntax import number_of
from daskspectral.data.columns import ColumnSelection, are_names, check_columns
from daskspectral.data.containers import reader_of
from daskspectral.data.labeled import stack_rows
from daskspectral.data.remote import refuse_secrets
from daskspectral.data.rows import Rows
from daskspectral.data.stores import open_existing
from daskspectral.data.writing import refuse_existing, refuse_input
from daskspectral.engine.checkpoint import checkpoint_directory
from daskspectral.estimators.summary import summary_of
from daskspectral.kernels import Kernel
from daskspectral.kernels import parse as parse_kernel
from daskspectral.manifolds.names import parse_manifold
from daskspectral.operators import Operator
from daskspectral.operators.names import parse as parse_operator
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.sums import PassPlan
from daskspectral.solvers import Regularized, Truncated
from daskspectral.spectral.estimator import SpectralEstimator
from daskspectral.store import save

SHORT = ("potential", "drift", "diffusion", "direction")
"""Fields with an option each."""
AT_LANDMARKS = {*par.LANDMARKS.keys, *par.FEATURES.keys} - {"kernel", "periods"}
"""Options that a basis at landmarks alone has."""


def refuse_given(names: Collection[str], why: str) -> None:
    """Raise click's UsageError, with `why`, if one of these options was given, not as its usual value."""
    context = click.get_current_context()
    for option in context.command.params:
        name = str(option.name)
        typed = context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        if name in names and typed and context.params[name] != getattr(option, "usual", None):
            raise click.UsageError(f"--{name.replace('_', '-')} {why}")


def rows_of(data: Any, options: Mapping[str, Any], **more: Any) -> Rows:
    """Return data as the options read them."""
    return Rows(data, **given(options, par.ROWS, par.PREPARED), **more)


def width_of(points: str, options: Mapping[str, Any]) -> int:
    """Return the number of columns of POINTS; 0 for an array that the estimator rejects."""
    wanted = ColumnSelection.by_user(options.get("columns"))
    stacked = stack_rows(points, sample_dims=options["sample_dims"], latitude=options["latitude"], wanted=wanted)
    if stacked is not None:
        return stacked.layout.width
    shape = reader_of(points, "POINTS").shape
    return shape[1] if len(shape) == 2 else 0


def kernel_of(options: Mapping[str, Any]) -> Kernel | str:
    """Return the kernel of the options, or "auto"; raise ValueError for an unknown name."""
    text = str(options["kernel"])
    return text if text == "auto" else parse_kernel(text)


def functions_of(options: Mapping[str, Any], width: int) -> Any:
    """Return the basis of the options for `width` columns; raise click's UsageError for options of another."""
    lattice, network = options["lattice"], options.get("network")
    kernel, periods = kernel_of(options), options["periods"]
    if lattice is None and network is None:
        return Landmarks(**given(options, par.LANDMARKS, par.FEATURES) | {"kernel": kernel})
    if lattice is not None and network is not None:
        raise click.UsageError("--network and --lattice exclude each other, got both")
    refuse_given(AT_LANDMARKS, "is for landmarks, without --lattice or --network")
    if network is not None or lattice == "auto":
        refuse_given(("kernel", "periods"), "is for landmarks, or for --lattice with its highest frequency")
        return lattice if network is None else NeuralBasis(network)
    if periods is not None and width:
        columns = options["columns"]
        width, columns = (len(columns), None) if are_names(columns) else (width, check_columns(columns, width))
        periods = by_column(periods, width, columns)
    return FourierBasis(lattice if len(lattice) > 1 else lattice[0], kernel=kernel, periods=periods or None)


def solver_of(options: Mapping[str, Any]) -> Any:
    """Return the solver of the options; raise click's UsageError for options of the other one."""
    if options["solver"] == "regularized":
        refuse_given(par.TRUNCATED.keys, "is for --solver truncated")
        return Regularized(**given(options, par.REGULARIZED))
    refuse_given(par.REGULARIZED.keys, "is for --solver regularized")
    return Truncated(**given(options, par.TRUNCATED))


def operator_of(options: Mapping[str, Any], dimension: int) -> Operator:
    """Return the operator of the options, for points with `dimension` columns.

    Raises click's UsageError unless fields and views are those of the operator, and as `operators.names.parse`.
    """
    text: str = options["operator"]
    head, *words = text.split(":")
    manifold = options["manifold"]
    read = {
        **given(options, par.LAPLACIAN, par.TRANSFER),
        "manifold": None if manifold is None else parse_manifold(manifold, dimension),
        "diffusion": number_of(options["diffusion"]) if head == "generator" else None,
        "coefficients": options["coefficients"] or None,
        "views": 1 + len(options["views"]) if head == "augmentation" else None,
    }
    if head == "transfer" and not words and options["lag"] is None:
        raise click.UsageError("--operator transfer needs --lag, the rows or the time from a state to its future")
    found = parse_operator(text, **read)
    if options["trajectories"] and not of_trajectories(found):
        raise click.UsageError(f"--trajectory is for --operator transfer, and {text} reads rows one by one")
    if len(options["views"]) != (0 if of_trajectories(found) else len(found.views) - 1):
        raise click.UsageError(f"--operator {text} has {len(found.views) - 1} --view; {len(options['views'])} given")
    fields = fields_of(options)
    if fields.keys() != found.data_fields:
        reads = ", ".join(f"--field {name}=PATH" for name in sorted(found.data_fields)) or "no --field"
        raise click.UsageError(f"--operator {text} requires {reads}, got {', '.join(sorted(fields)) or 'none'}")
    return found


def fields_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths of the fields by name; raise click's UsageError for one given twice."""
    pairs = [*options["fields"], *((name, options[name]) for name in SHORT if options.get(name) is not None)]
    pairs = [(name, path) for name, path in pairs if name != "diffusion" or number_of(path) is None]
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise click.UsageError(f"each field must be passed once, got {repeated[0]} twice")
    return dict(pairs)


def points_of(points: Any, options: Mapping[str, Any]) -> Any:
    """Return the points, a list of trajectories, or a tuple of the points and their other views.

    Raises click's UsageError for weights of several trajectories.
    """
    if options.get("trajectories"):
        if options["weights"] is not None:
            raise click.UsageError("--weights are for one trajectory; those of several are given in Python, as a list")
        return [points, *options["trajectories"]]
    return (points, *options["views"]) if options["views"] else points


def targets_of(estimator: Any, model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the targets of a regressor from the file MODEL; empty for a spectral decomposition.

    Raises click's UsageError for options of the other kind of model, and for a regressor without targets.
    """
    found = given(options, par.TARGETS, par.GRADIENTS)
    if isinstance(estimator, SpectralEstimator):
        if found:
            raise click.UsageError(
                f"--targets and --gradients require a regressor, got {type(estimator).__name__} in {model}"
            )
        return {}
    if options["fields"] or options["views"] or options.get("trajectories"):
        raise click.UsageError(
            f"--field, --view and --trajectory require a spectral decomposition, got a regressor in {model}"
        )
    if "y" not in found:
        raise click.UsageError(f"a regressor requires --targets for all rows, old and new; pass --targets for {model}")
    return found


def refuse(options: Mapping[str, Any], *inputs: str | None) -> None:
    """Raise an error for an output or a checkpoint that cannot be written, or would replace an input."""
    if not session().planning:
        refuse_existing(options["out"], options["overwrite"])
        refuse_input(options["out"], *inputs)
    if options.get("checkpoint") is not None:
        checkpoint_directory(options["checkpoint"])


def finish(model: Any, options: Mapping[str, Any], what: str = "model") -> None:
    """Save and describe a fitted model, and print its path."""
    save(model, options["out"], overwrite=options["overwrite"])
    print_summary(model)
    written(what, options["out"])


def saving(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a fit for its bar and its checkpoint."""
    return {**given(options, par.SAVED), "progress": bar(options)}


def bar(options: Mapping[str, Any]) -> bool | None:
    """Return None for a bar on a terminal only, False with --no-progress or --quiet."""
    return None if options["progress"] and not session().quiet else False


def kept(path: str) -> str | None:
    """Return the settings that created the zarr store at a path or URL, as YAML, or None.

    Raises FileNotFoundError without a zarr store, and as `daskspectral.data.remote.reaching`.
    """
    found = open_existing(path, "zarr store").attrs.get(settings.ATTRIBUTE)
    return None if found is None else str(found)


def print_summary(what: Any, *, details: bool = False) -> None:
    """Print the summary of a fitted model or of moments, or with --json keep it."""
    found = summary_of(what)
    say(found.text(details=details), **found.json())


@contextmanager
def planned() -> Iterator[None]:
    """Print the plan of a fit to the error stream when it is made."""
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
    tasks, epochs = plan.ranges.tasks, len(plan.ranges.epochs)
    rows = plan.ranges.ranges[-1][1] if tasks else 0
    say(f"plan: {plan}", tasks=tasks, epochs=epochs, rows=rows, memory=memory)


@contextmanager
def scheduler(options: Mapping[str, Any]) -> Iterator[None]:
    """Use the cluster, or the number of threads, of the options.

    Raises OSError if no scheduler answers, or if it has no workers, ValueError for a credential in its address.
    """
    address, threads = options["scheduler"], options["threads"]
    if address is None:
        import dask

        with dask.config.set({} if threads is None else {"num_workers": threads}):
            yield
        return
    import asyncio

    from distributed import Client

    refuse_secrets(address if "://" in address else f"tcp://{address}")
    timeout = options["connect_timeout"]
    try:
        asyncio.run(_check_reachable(address, timeout))
        client = Client(address, timeout=timeout)  # type: ignore[no-untyped-call]
    except Exception as error:  # of any type: another protocol may answer
        reason = str(error) or f"no answer within --connect-timeout {timeout:g} s"
        raise OSError(f"no dask scheduler answers at {address} (expected tcp://host:port): {reason}") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise OSError(f"the dask cluster at {address} has no workers. Start some, then run the command again")
        yield


async def _check_reachable(address: str, seconds: float) -> None:
    """Raise TimeoutError or OSError if no scheduler answers in time; a Client would wait forever."""
    import asyncio

    from distributed import Security
    from distributed.comm.core import connect

    security = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(seconds):
        comm = await connect(address, timeout=seconds, **security)  # type: ignore[no-untyped-call]
    await comm.close()
