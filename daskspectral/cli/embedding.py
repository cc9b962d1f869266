"""`embed`: coordinates of every row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli import kinds
from daskspectral.cli import options as opt
from daskspectral.cli.choices import BANDWIDTHS, EMBEDDINGS, LANDMARKS, UNCOVERED
from daskspectral.cli.commands import Command, tell, written

if TYPE_CHECKING:
    from daskspectral.estimators import DiffusionMap, KernelEmbedding, SDPEmbedding

LANDMARK_OPTIONS = ("landmarks", "landmark_method", "landmark_sample")
SHARED = {"components": "n_components", "method": "method"}
MAPS = {  # the options that each map reads besides --bandwidth, --seed and those of landmarks, and what they set
    "sdp": {**SHARED, **{name: name for name in ("accuracy", "cache", "device")}},
    "diffusion": {**SHARED, "time": "time", "density": "alpha"},
    "kernel": {name: name for name in ("kernel", "regularization", "tolerance", "max_passes")},
}
ALSO = {  # further options of a map
    "sdp": (*LANDMARK_OPTIONS, "columns", "standardize", "cache_path", "on_uncovered", "tolerance", "max_passes"),
    "diffusion": LANDMARK_OPTIONS[:2],
    "kernel": (),
}


class _Bandwidth(click.ParamType):  # type: ignore[type-arg]
    """A number, or a word for the way in which it is chosen."""

    name = "|".join([*BANDWIDTHS, "number"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """The word, or the number as a float."""
        try:
            return value if value in BANDWIDTHS else float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number, nor one of {', '.join(BANDWIDTHS)}")


@click.command(
    cls=Command,
    examples=[
        "embed points.zarr --landmarks 100 --out embedder.zarr --embedding coordinates.zarr",
        "embed points.zarr --map diffusion --bandwidth 0.5 --landmarks 100 --out diffusion.zarr",
    ],
)
@click.argument("points")
@click.option(
    "--bandwidth",
    type=_Bandwidth(),
    default="auto",
    show_default=True,
    help="Bandwidth of the kernel exp(-r^2 / bandwidth^2), in the units of POINTS, or how it is chosen.",
)
@click.option(
    "--map",
    "kind",
    type=click.Choice(["sdp", "diffusion", "kernel"]),
    default="sdp",
    show_default=True,
    help="How points are embedded: by a semidefinite program, a diffusion map, or a kernel that is learned.",
)
@click.option(
    "--method",
    type=click.Choice(EMBEDDINGS),
    default="auto",
    show_default=True,
    help="sparse is for --map sdp.",
)
@click.option(
    "--landmarks",
    type=kinds.OrAuto(kinds.Count()),
    help=f"{opt.LANDMARKS_HELP}; lowrank alone: auto by default, as many as --accuracy takes (diffusion: 500).",
)
@click.option(
    "--accuracy",
    type=float,
    help="sdp: relative error of the Gram matrix up to which landmarks stand for all points; 0.001 by default.",
)
@click.option(
    "--landmark-method",
    type=click.Choice(LANDMARKS),
    default="cholesky",
    show_default=True,
    help=opt.METHOD_HELP,
)
@opt.landmark_sample_option
@opt.label_options
@click.option(
    "--tolerance",
    type=float,
    help="sdp, kernel: relative duality gap that counts as optimal; 1e-10 by default, of kernel 1e-07.",
)
@click.option(
    "--max-passes",
    type=kinds.Count(),
    help="sdp, kernel: products with the kernel, or steps, at most; 10000 by default, of kernel 100.",
)
@click.option("--columns", type=kinds.Columns(), help=f"{opt.COLUMNS_HELP}; sdp alone.")
@click.option("--standardize", is_flag=True, default=None, help=f"{opt.STANDARDIZE_HELP}; sdp alone.")
@click.option(
    "--cache",
    type=click.Choice(["auto", "always", "never"]),
    help="sdp: whether kernel values at landmarks are kept between passes; auto by default: where they fit in memory.",
)
@click.option(
    "--cache-path", help="sdp: keep them, or the sparse kernel, in a scratch zarr store at this path; it stays there."
)
@click.option(
    "--device", type=click.Choice(["cpu", "cuda", "auto"]), help=f"{opt.DEVICE_HELP}; sdp alone; cpu by default."
)
@click.option(
    "--components",
    type=kinds.Count(),
    help=f"{opt.COMPONENTS_HELP}; of sdp the rank of the optimum unless given, and beyond it stage by stage; of "
    "diffusion 2; kernel: all.",
)
@click.option("--time", type=float, help="diffusion: power of the eigenvalues; 1 by default.")
@click.option(
    "--density",
    type=float,
    help=f"{opt.DENSITY_HELP}; diffusion: before its kernel is normalised; 0 by default.",
)
@click.option("--kernel", help=f"{opt.KERNEL_HELP}; kernel: in whose space one is learned; matern:1.5:auto by default.")
@click.option("--regularization", type=float, help="kernel: weight of its penalty; 0.0001 by default.")
@click.option("--on-uncovered", type=click.Choice(UNCOVERED), help=opt.UNCOVERED_HELP)
@opt.seed_option
@opt.fit_row_options
@click.option("--checkpoint", help=f"{opt.CHECKPOINT_HELP}; sdp at landmarks alone.")
@click.option(
    "--checkpoint-every",
    type=float,
    help=f"{opt.EVERY_HELP}; 60 by default.",
)
@opt.model_option
@opt.embedding_option
@opt.run_options
def embed(points: str, out: str, embedding: str | None, **options: Any) -> None:
    """Embed the rows of POINTS: the SDP embedding, a diffusion map, or a kernel that is learned."""
    from daskspectral.data.stores import open_zarr
    from daskspectral.data.writing import refuse_existing, refuse_input

    overwrite = options["overwrite"]
    refuse_existing(out, overwrite)
    refuse_input(out, points)
    if options["cache_path"] is not None:
        opt.refuse_same(out, "--cache-path", options["cache_path"])
    if embedding is not None:
        opt.refuse_same(out, "--embedding", embedding)
        refuse_existing(embedding, overwrite)
        refuse_input(embedding, points)
    opt.refuse_checkpoint(options)
    estimator = _estimator(options)
    rows, progress = opt.rows_of(points, options), opt.bar(options["progress"])
    with opt.scheduler(options):
        estimator.fit(rows, **_given(options, {name: name for name in opt.CHECKPOINT}), progress=progress)
        estimator.save(out, overwrite=overwrite)
        tell(estimator)
        written("model", out)
        if embedding is not None:
            uncovered = _given(options, {"on_uncovered": "on_uncovered"})
            estimator.transform(rows, out=embedding, overwrite=overwrite, progress=progress, **uncovered)
            shape = open_zarr(embedding).shape
            written("embedding", embedding, f", {shape[0]} rows, {shape[1]} components")


def _estimator(options: dict[str, Any]) -> SDPEmbedding | DiffusionMap | KernelEmbedding:
    """The estimator that the options name. Raises click's UsageError for an option of another map."""
    from daskspectral.basis import Landmarks
    from daskspectral.estimators import DiffusionMap, KernelEmbedding, SDPEmbedding
    from daskspectral.solvers import Ascent

    kind = options["kind"]
    reads = {other: [*MAPS[other], *ALSO[other]] for other in MAPS}
    readers = {name: [other for other in reads if name in reads[other]] for names in reads.values() for name in names}
    readers |= {name: ["sdp"] for name in opt.CHECKPOINT}
    for name, maps in readers.items():
        if kind not in maps and opt.is_given(name):
            raise click.UsageError(f"--{name.replace('_', '-')} is for --map {' or '.join(maps)}")
    if kind == "diffusion" and (options["method"] == "sparse" or options["landmarks"] == "auto"):
        raise click.UsageError("--method sparse and --landmarks auto are for --map sdp")
    if kind == "kernel" and options["on_invalid"] == "skip":
        raise click.UsageError("--on-invalid skip is for --map sdp or diffusion: a kernel is learned from all rows")
    found = _given(options, MAPS[kind]) | {"bandwidth": options["bandwidth"], "random_state": options["seed"]}
    if "kernel" in found:
        found["kernel"] = opt.kernel_of(found)
    if kind == "kernel":
        return KernelEmbedding(**found)
    chosen = {"landmarks": "count", "landmark_method": "method", "landmark_sample": "sample"}
    found["landmarks"] = Landmarks(**_given(options, chosen))
    if kind == "diffusion":
        return DiffusionMap(**found)
    if options["cache_path"] is not None:
        if options["cache"] is not None:
            raise click.UsageError("--cache and --cache-path are two places for kernel values; give one of them")
        found["cache"] = Path(options["cache_path"]) if "://" not in options["cache_path"] else options["cache_path"]
    ascent = _given(options, {"tolerance": "tolerance", "max_passes": "max_passes"})
    return SDPEmbedding(**found, solver=Ascent(**ascent))


def _given(options: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {parameter: options[name] for name, parameter in names.items() if options[name] is not None}
