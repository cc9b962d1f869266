"""`embed`: coordinates of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from daskspectral.cli.commands import written
from daskspectral.cli.making import LANDMARKS, given, is_given, kernel_of, rows_of
from daskspectral.cli.options import LABELLED, RUN, SAVED, VALID, verb
from daskspectral.cli.running import bar, finish, refuse, refuse_same, saving, scheduler

if TYPE_CHECKING:
    from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding

MAPS = {  # the options that each map reads, of those that not all of them read
    "sdp": (
        *("components", "method", "landmarks", "landmark_method", "landmark_sample", "accuracy"),
        *("device", "columns", "standardize", "tolerance", "max_passes"),
        *("checkpoint", "checkpoint_every"),
    ),
    "diffusion": ("components", "method", "landmarks", "landmark_method", "time", "density"),
    "kernel": ("kernel", "regularization", "tolerance", "max_passes"),
}


@verb(
    "POINTS",
    f"bandwidth map method landmarks accuracy landmark-method landmark-sample {LABELLED} tolerance max-passes columns "
    f"standardize device components time density kernel regularization extrapolate seed {VALID} "
    f"{SAVED} out embedding {RUN}",
    examples=[
        "embed points.zarr --landmarks 100 --out embedder.zarr --embedding coordinates.zarr",
        "embed points.zarr --map diffusion --bandwidth 0.5 --landmarks 100 --out diffusion.zarr",
    ],
)
def embed(points: str, **options: Any) -> None:
    """Embed the rows of POINTS.

    The result is the SDP embedding, a diffusion map, or a kernel that is learned.
    """
    from daskspectral.data.stores import open_zarr

    out, embedding, overwrite = options["out"], options["embedding"], options["overwrite"]
    if embedding is not None:
        refuse_same(out, "--embedding", embedding)
    refuse(options, points)
    if embedding is not None:
        refuse({**options, "out": embedding}, points)
    estimator = _estimator(options)
    rows, progress = rows_of(points, options), bar(options)
    with scheduler(options):
        estimator.fit(rows, **(saving(options) if options["kind"] == "sdp" else {"progress": progress}))
        finish(estimator, options)
        if embedding is not None:
            far = given(options, "extrapolate")
            estimator.transform(rows, out=embedding, overwrite=overwrite, progress=progress, **far)
            shape = open_zarr(embedding).shape
            written("embedding", embedding, f", {shape[0]} rows, {shape[1]} components")


def _estimator(options: dict[str, Any]) -> SDPEmbedding | DiffusionMap | KernelEmbedding:
    """The estimator that the options name. Raises click's UsageError for an option of another map."""
    from daskspectral.basis import Landmarks
    from daskspectral.embedding import DiffusionMap, KernelEmbedding, SDPEmbedding
    from daskspectral.solvers import Ascent

    kind = options["kind"]
    for name in dict.fromkeys(name for names in MAPS.values() for name in names):
        readers = [other for other, names in MAPS.items() if name in names]
        if kind not in readers and is_given(name):
            raise click.UsageError(f"--{name.replace('_', '-')} is for --map {' or '.join(readers)}")
    if kind == "diffusion" and options["landmarks"] == "auto":
        raise click.UsageError("--landmarks auto is for --map sdp")
    if kind == "kernel" and options["on_invalid"] == "skip":
        raise click.UsageError("--on-invalid skip is for --map sdp or diffusion: a kernel is learned from all rows")
    shared: dict[str, Any] = {"bandwidth": options["bandwidth"], "random_state": options["seed"]}
    steps = given(options, "tolerance", "max_passes")
    if kind == "kernel":
        if options["kernel"] is not None:
            shared["kernel"] = kernel_of(options)
        return KernelEmbedding(**shared, **steps, **given(options, "regularization"))
    shared |= given(options, "method", components="n_components")
    landmarks = Landmarks(**given(options, **LANDMARKS))
    if kind == "diffusion":
        return DiffusionMap(**shared, landmarks=landmarks, **given(options, "time", density="alpha"))
    own = given(options, "accuracy", "device")
    return SDPEmbedding(**shared, landmarks=landmarks, **own, solver=Ascent(**steps))
