"""The command `daskspectral`: what the estimators do, from a shell, on zarr paths and URLs."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
import numpy as np

from daskspectral import __version__, kernels, operators
from daskspectral.data.convert import convert
from daskspectral.data.readers import open_zarr, refuse_input
from daskspectral.data.samples import SAMPLES, write_sample
from daskspectral.data.source import open_source
from daskspectral.data.writer import refuse_existing
from daskspectral.errors import Stopped, raise_on_signals
from daskspectral.estimators import HermiteRegressor, SpectralDecomposition, load, save
from daskspectral.landmarks import METHODS
from daskspectral.moments import Moments

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


def main(arguments: list[str] | None = None) -> None:
    """Run the command: errors of the input are one message and exit code 1, signals exit with 128 + number."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    logging.captureWarnings(True)
    try:
        with raise_on_signals(signal.SIGTERM, signal.SIGUSR1):
            code = command.main(arguments, prog_name="daskspectral", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as interrupt:
        cause = interrupt.__cause__ or interrupt  # click makes its own of Ctrl-C
        click.echo(_with_notes("stopped by Ctrl-C; nothing was half-written", cause), err=True)
        sys.exit(128 + signal.SIGINT)
    except Stopped as stopped:
        click.echo(_with_notes(f"{stopped}; nothing was half-written", stopped), err=True)
        sys.exit(128 + stopped.number)
    except (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError) as error:
        click.echo(_with_notes(f"Error: {error}", error), err=True)
        sys.exit(1)
    if isinstance(code, int) and code:
        sys.exit(code)


def _with_notes(text: str, error: BaseException) -> str:
    return "\n".join([text, *getattr(error, "__notes__", [])])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
@click.option("-v", "--verbose", is_flag=True, help="Say what is chosen along the way.")
def command(verbose: bool) -> None:
    """Spectral decompositions of operators, learned from arrays that do not fit in memory."""
    if verbose:
        logging.getLogger("daskspectral").setLevel(logging.INFO)


def _run_options(function: F) -> F:
    options = [
        click.option("--scheduler", metavar="ADDRESS", help="A running dask cluster, tcp://...; threads by default."),
        click.option("--threads", type=click.IntRange(1), help="Threads, without a cluster; one per core by default."),
        click.option("--progress/--no-progress", default=True, help="A progress bar on longer work."),
        click.option("--overwrite", is_flag=True, help="Replace outputs that exist."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@contextmanager
def _scheduler(address: str | None, threads: int | None) -> Iterator[None]:
    if address is None:
        import dask

        with dask.config.set({} if threads is None else {"num_workers": threads}):
            yield
        return
    from distributed import Client

    try:
        client = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise OSError(f"no dask scheduler answers at {address} (tcp://host:port is wanted): {error}") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise OSError(f"the dask cluster at {address} has no workers yet; start some, then run this again")
        yield


@command.command()
@click.argument("points")
@click.option("--operator", default="laplacian", show_default=True, help="laplacian, or transfer with --lag.")
@click.option("--lag", type=Count(), help="Rows from a state to its future: POINTS are one trajectory.")
@click.option("--manifold", help="sphere, circle or torus: the tangential form there.")
@click.option("--kernel", default="gaussian:median", show_default=True, help="name[:parameter...], terms joined by +.")
@click.option("--landmarks", type=Count(), default=500, show_default=True, help="How many.")
@click.option("--method", type=click.Choice(METHODS), default="uniform", show_default=True, help="How they are chosen.")
@click.option("--landmark-sample", type=Count(), help="Rows the other methods choose among.")
@click.option("--components", type=Count(), default=16, show_default=True)
@click.option("--columns", type=Columns(), help="Columns to use: 0,2,5 or 0:8.")
@click.option("--standardize", is_flag=True, help="Bring columns to mean 0 and standard deviation 1.")
@click.option("--constant/--no-constant", default=None, help="The constant function in the basis.")
@click.option("--weights", help="A zarr array of sample weights, one a row.")
@click.option("--ridge", type=float, default=0.0)
@click.option("--rtol", type=float, help="Relative cut of the Gram matrix.")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--on-invalid", type=click.Choice(["raise", "skip"]), default="raise", show_default=True)
@click.option("--allow-missing", is_flag=True, help="Chunks that are not stored hold fill values on purpose.")
@click.option("--checkpoint", help="A directory for the sums so far; the same command goes on from there.")
@click.option("--checkpoint-every", type=float, default=60.0, show_default=True, help="Seconds.")
@click.option("--plan", "only_plan", is_flag=True, help="Print tasks and peak memory, and stop.")
@click.option("--out", help="Where the model goes: a new zarr group.")
@click.option("--plot", "picture", help="Draw the eigenfunctions into this .png, .pdf or .svg.")
@_run_options
def fit(points: str, **options: Any) -> None:
    """Fit a spectral decomposition to the zarr array POINTS (a path or URL)."""
    out, picture, overwrite = options["out"], options["picture"], options["overwrite"]
    if not options["only_plan"]:
        if out is None:
            raise click.UsageError("fit needs --out, where the model goes")
        refuse_existing(out, overwrite)
        refuse_input(out, points, options["weights"])
    if picture:
        from daskspectral.plot import refuse_picture

        refuse_picture(picture, overwrite)
    kernel = kernels.parse(options["kernel"])
    columns = options["columns"]
    source = open_source(points, columns=columns, weight=options["weights"])
    estimator = SpectralDecomposition(
        _operator(options["operator"], options["lag"], options["manifold"], source.dimension),
        kernel,
        n_components=options["components"],
        n_landmarks=options["landmarks"],
        landmarks=options["method"],
        landmark_sample=options["landmark_sample"],
        columns=columns,
        standardize=options["standardize"],
        constant=options["constant"],
        ridge=options["ridge"],
        rtol=options["rtol"],
        dtype=options["dtype"],
        random_state=options["seed"],
    )
    with _scheduler(options["scheduler"], options["threads"]):
        click.echo(f"plan: {estimator.plan(points, sample_weight=options['weights'])}", err=True)
        if options["only_plan"]:
            return
        names = ("on_invalid", "allow_missing", "checkpoint", "checkpoint_every")
        run = {name: options[name] for name in names}
        estimator.fit(points, sample_weight=options["weights"], progress=_bar(options["progress"]), **run)
        estimator.save(out, overwrite=overwrite)
        click.echo(describe(estimator))
        if picture:
            from daskspectral.plot import save_eigenfunctions

            save_eigenfunctions(estimator, points, picture, overwrite=overwrite)
            click.echo(f"picture: {picture}")
    click.echo(f"model: {out}")


def _operator(name: str, lag: int | None, manifold: str | None, dimension: int) -> operators.Operator:
    """The operator that the options name. Raises click's UsageError where they do not go together."""
    if name != "transfer":
        if lag is not None:
            raise click.UsageError("--lag is for --operator transfer")
        return operators.parse(name, manifold, dimension)
    if lag is None or manifold is not None:
        raise click.UsageError(
            "--operator transfer needs --lag, the rows from a state to its future, and no --manifold"
        )
    return operators.Transfer(lag)


@command.command()
@click.argument("model")
@click.argument("points")
@click.option("--out", required=True, help="Where the embedding goes: a new zarr array (rows, components).")
@click.option("--right", is_flag=True, help="The right functions of a model with singular values.")
@click.option("--on-invalid", type=click.Choice(["raise", "skip"]), default="raise", help="skip: such rows become NaN.")
@click.option("--allow-missing", is_flag=True, help="Chunks that are not stored hold fill values on purpose.")
@_run_options
def transform(model: str, points: str, out: str, right: bool, on_invalid: str, **options: Any) -> None:
    """Evaluate the functions of MODEL at every row of the zarr array POINTS."""
    refuse_existing(out, options["overwrite"])
    refuse_input(out, model, points)
    estimator = SpectralDecomposition.load(model)
    if right and estimator.moments_.operator.solver != "singular":
        raise click.UsageError(f"--right is for models with singular values, and {model} has eigenvalues")
    functions = estimator.transform_right if right else estimator.transform
    with _scheduler(options["scheduler"], options["threads"]):
        run = {name: options[name] for name in ("overwrite", "allow_missing")}
        functions(points, out=out, on_invalid=on_invalid, progress=_bar(options["progress"]), **run)
    shape = open_zarr(out).shape
    click.echo(f"embedding: {out}, {shape[0]} rows, {shape[1]} components")


@command.command()
@click.argument("model")
@click.argument("points")
@click.option("--out", required=True, help="Where the new model goes; MODEL itself with --overwrite.")
@click.option("--weights", help="A zarr array of sample weights, one a row.")
@click.option("--on-invalid", type=click.Choice(["raise", "skip"]), default="raise", show_default=True)
@click.option("--allow-missing", is_flag=True, help="Chunks that are not stored hold fill values on purpose.")
@_run_options
def update(model: str, points: str, out: str, weights: str | None, **options: Any) -> None:
    """Fold the rows appended to POINTS since MODEL was fitted into a new model; only these are read."""
    refuse_existing(out, options["overwrite"])
    refuse_input(out, points, weights)
    estimator = SpectralDecomposition.load(model)
    with _scheduler(options["scheduler"], options["threads"]):
        run = {name: options[name] for name in ("on_invalid", "allow_missing")}
        estimator.update(points, sample_weight=weights, progress=_bar(options["progress"]), **run)
        estimator.save(out, overwrite=options["overwrite"])
    click.echo(describe(estimator))
    click.echo(f"model: {out}")


@command.command()
@click.argument("parts", nargs=-1, required=True)
@click.option("--out", required=True, help="Where the sum goes.")
@click.option("--overwrite", is_flag=True, help="Replace outputs that exist.")
def merge(parts: tuple[str, ...], out: str, overwrite: bool) -> None:
    """Add the moments of PARTS (models or moments, measured with one basis) and solve again; no data are read."""
    refuse_existing(out, overwrite)
    refuse_input(out, *parts)
    repeated = [part for part in parts if parts.count(part) > 1]
    if repeated:
        raise click.UsageError(f"{repeated[0]} is given twice: its rows would count twice")
    first, *others = [load(part) for part in parts]
    total = _moments(first)
    for part in others:
        total = total + _moments(part)
    merged = total if isinstance(first, Moments) else first.fit_moments(total)
    save(merged, out, overwrite=overwrite)
    click.echo(describe(merged))
    click.echo(f"{'moments' if isinstance(merged, Moments) else 'model'}: {out}")


def _moments(what: SpectralDecomposition | Moments) -> Moments:
    return what if isinstance(what, Moments) else what.moments_


@command.command()
@click.argument("model")
def info(model: str) -> None:
    """Say what a saved model or saved moments hold."""
    click.echo(describe(load(model)))


@command.command()
@click.argument("name", type=click.Choice(list(SAMPLES)))
@click.option("--n", "rows", type=Count(), default=10_000, show_default=True, help="Rows, such as 1e7.")
@click.option("--dimension", type=Count(), help="Columns, where the distribution has a choice.")
@click.option("--noise", type=float, help="Standard deviation of added noise.")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True)
@click.option("--chunk-rows", type=Count(), help="Rows of a chunk; 16 to 32 MB by default.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--out", required=True)
@click.option("--overwrite", is_flag=True)
@click.option("--progress/--no-progress", default=True)
def sample(name: str, rows: int, out: str, progress: bool, **options: Any) -> None:
    """Write points of a known distribution, chunk by chunk, to a new zarr array."""
    write_sample(name, out, rows, progress=_bar(progress), **options)
    click.echo(f"{name}: {out}, {rows} rows, {open_zarr(out).shape[1]} columns")


@command.command(name="convert")
@click.argument("source")
@click.option("--out", required=True)
@click.option("--dataset", help="The array inside a .npz, HDF5 or NetCDF file.")
@click.option("--columns", help="Columns to keep: names of a table, numbers of an array, separated by commas.")
@click.option("--dtype", help="float32 or float64; that of the data by default.")
@click.option("--chunk-rows", type=Count())
@click.option("--flatten", is_flag=True, help="Make one row of each entry of the first axis.")
@click.option("--on-invalid", type=click.Choice(["raise", "skip", "keep"]), default="raise", show_default=True)
@click.option("--overwrite", is_flag=True)
@click.option("--progress/--no-progress", default=True)
def convert_command(source: str, out: str, columns: str | None, progress: bool, **options: Any) -> None:
    """Bring a .npy, .npz, Parquet, HDF5, NetCDF or CSV file into a checked zarr array."""
    chosen = None if columns is None else columns.split(",")
    report = convert(source, out, columns=chosen, progress=_bar(progress), **options)
    skipped = f", {report.skipped} invalid rows left out" if report.skipped else ""
    click.echo(f"{report.path}: {report.rows} rows, {report.columns} columns{skipped}")


def _bar(wanted: bool) -> bool | None:
    """A bar on a terminal, none elsewhere or with --no-progress."""
    return None if wanted else False


def describe(what: SpectralDecomposition | HermiteRegressor | Moments) -> str:
    """A table of a fitted model, or a summary of moments, for people."""
    moments: Moments = what if isinstance(what, Moments) else what.moments_
    lines = [f"operator    {moments.operator}"]
    for name, basis in {"basis": moments.basis, "right basis": moments.right_basis}.items():
        if basis is not None:
            lines.append(f"{name:11s} {basis.description}: {basis.size} functions of {basis.dimension} variables")
    lines += [
        f"rows        {moments.count}" + (f", {moments.skipped} invalid ones left out" if moments.skipped else ""),
        f"weight      {moments.weight:g}",
        f"arithmetic  {moments.dtype}",
    ]
    if isinstance(what, Moments):
        return "\n".join([*lines, f"moments     {', '.join(moments.arrays)}"])
    if isinstance(what, HermiteRegressor):
        lines += [f"rank        {what.rank_}", f"penalty     {what.alpha_:g}", f"score       {what.gcv_:g}"]
        return "\n".join(lines)
    singular = moments.operator.solver == "singular"
    values = what.singular_values_ if singular else what.eigenvalues_
    rank = " and ".join(map(str, what.rank_)) if singular else what.rank_
    lines += [f"rank        {rank}", "", "   i    eigenvalue   residual"]
    if singular:
        lines[-1] = "   i  singular value   residual"
    for i, (value, residual) in enumerate(zip(values, what.residuals_, strict=True)):
        shown = 0.0 if abs(value) < 1e-12 * np.abs(values).max() else value
        lines.append(f"{i:4d}  {shown:{14 if singular else 12}.6g}  {residual:9.1e}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
