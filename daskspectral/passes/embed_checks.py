"""Whether the parameters of a semidefinite embedding can work, with any data and with these."""

from __future__ import annotations

from typing import Any

from daskspectral.data.source import Source
from daskspectral.kernels import Gaussian
from daskspectral.passes.bandwidth import check_bandwidth
from daskspectral.passes.embed import FEW, scratch_of
from daskspectral.passes.embedding import check_scratch
from daskspectral.passes.landmarks import given_points, of_kernel
from daskspectral.passes.parameters import (
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
)
from daskspectral.solvers import Ascent

METHODS = ("auto", "exact", "sparse", "lowrank")
UNCOVERED = ("nearest", "nan", "raise")


def check_embedding(estimator: Any) -> None:
    """Raise ValueError for parameters of an SDPEmbedding that cannot work with any data."""
    check_bandwidth(estimator.bandwidth)
    check_number("accuracy", estimator.accuracy)
    if not 1e-100 < estimator.accuracy < 1e100:
        raise ValueError(f"accuracy must be positive, 1e-100 to 1e100; it is {estimator.accuracy!r}")
    if estimator.n_components is not None:
        check_whole("n_components", estimator.n_components)
    check_one_of("method", estimator.method, METHODS)
    if not isinstance(estimator.solver, (Ascent, type(None))):
        raise TypeError(f"solver must be daskspectral.solvers.Ascent(...), or None; got {estimator.solver!r}")
    scratch_of(estimator.cache)
    check_one_of("warm_start", estimator.warm_start, (True, False))
    of_kernel(estimator.landmarks, Gaussian(1.0), count="auto")
    check_random_state(estimator.random_state)


def check_embedding_data(estimator: Any, source: Source, checkpoint: Any) -> None:
    """Raise ValueError where the parameters of an SDPEmbedding do not fit its data."""
    if "diagonal" in source.readers and len(source.readers["diagonal"].shape) != 1:
        raise ValueError(f"diagonal must have shape ({source.n},); it has {source.readers['diagonal'].shape}")
    given_points(of_kernel(estimator.landmarks, Gaussian(1.0), count="auto"), source)
    path = scratch_of(estimator.cache)
    if path is not None:
        check_scratch(path, source)
        if source.on_invalid == "skip":
            raise ValueError("a scratch array keeps every row: mend the data and take on_invalid='raise'")
    pairs = estimator.method in ("exact", "sparse") or (estimator.method == "auto" and source.n <= FEW)
    if estimator.warm_start and checkpoint is not None:
        raise ValueError("warm_start starts from a fit that the checkpoint does not hold: leave one of them out")
    if pairs and checkpoint is not None:
        raise ValueError("a checkpoint is of the passes over chunks: give method='lowrank', or no checkpoint")
    if estimator.n_components is not None and estimator.n_components >= source.n:
        raise ValueError(
            f"n_components={estimator.n_components} needs more than the {source.n} rows of X: the kernel of n points "
            "has n - 1 directions; lower it"
        )
