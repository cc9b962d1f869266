"""Whether the parameters of a semidefinite embedding can work, with any data and with these."""

from __future__ import annotations

from typing import Any

from daskspectral.data.source import Source
from daskspectral.passes.bandwidth import check_bandwidth
from daskspectral.passes.embed import FEW, FIRST, check_cache
from daskspectral.passes.embedding import check_scratch
from daskspectral.passes.parameters import (
    check_landmark_choice,
    check_landmark_count,
    check_number,
    check_one_of,
    check_random_state,
    check_whole,
    given_landmarks,
)
from daskspectral.solve.sdp import SDPSolver

METHODS = ("auto", "exact", "sparse", "lowrank")
UNCOVERED = ("nearest", "nan", "raise")


def check_embedding(estimator: Any, on_invalid: str) -> None:
    """Raise ValueError for parameters of an SDPEmbedding that cannot work with any data."""
    check_bandwidth(estimator.bandwidth)
    for name in ("tolerance", "accuracy"):
        check_number(name, getattr(estimator, name))
        if not 1e-100 < getattr(estimator, name) < 1e100:
            raise ValueError(f"{name} must be positive, 1e-100 to 1e100; it is {getattr(estimator, name)!r}")
    check_whole("max_passes", estimator.max_passes)
    check_landmark_count(estimator.n_landmarks)
    if estimator.n_components is not None:
        check_whole("n_components", estimator.n_components)
    check_one_of("method", estimator.method, METHODS)
    check_one_of("on_uncovered", estimator.on_uncovered, UNCOVERED)
    SDPSolver.named(estimator.solver)
    check_cache(estimator.cache, estimator.cache_path)
    for name in ("standardize", "warm_start"):
        check_one_of(name, getattr(estimator, name), (True, False))
    check_one_of("on_invalid", on_invalid, ("raise", "skip"))
    first = FIRST if estimator.n_landmarks == "auto" else int(estimator.n_landmarks)
    check_landmark_choice(estimator.landmarks, estimator.landmark_sample, first)
    check_random_state(estimator.random_state)


def check_embedding_data(estimator: Any, source: Source, checkpoint: Any, on_invalid: str) -> None:
    """Raise ValueError where the parameters of an SDPEmbedding do not fit its data."""
    if "diagonal" in source.readers and len(source.readers["diagonal"].shape) != 1:
        raise ValueError(f"diagonal must have shape ({source.n},); it has {source.readers['diagonal'].shape}")
    if not isinstance(estimator.landmarks, str):
        given_landmarks(estimator.landmarks, source.n_features_in, columns=source.preparation.columns)
    if estimator.cache_path is not None:
        check_scratch(estimator.cache_path, source)
        if on_invalid == "skip":
            raise ValueError("cache_path keeps every row: mend the data and take on_invalid='raise'")
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
