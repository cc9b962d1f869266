"""Shared by the scripts of the SDP embedding's figures: certified fits, pictures of points, and k-means."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from daskspectral import DiffusionMap, ReliabilityWarning, SDPEmbedding
from daskspectral.solvers import BurerMonteiro

sys.path.append(str(Path(__file__).resolve().parents[1]))  # of the examples that are no paper's

import data_files as data_files

COLORS = ("tab:blue", "tab:red", "tab:green", "black")
EMBEDDINGS = {"sdp": "SDP", "diffusion": "diffusion"}


def standardized(x: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1, with n - 1 in the variance as in the paper's code."""
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def sdp(x: np.ndarray, bandwidth: float, tolerance: float = 1e-8) -> SDPEmbedding:
    """The exact embedding; raises ValueError where it is not certified to the tolerance."""
    model = SDPEmbedding(bandwidth, method="exact", solver=BurerMonteiro(tolerance=tolerance), random_state=0)
    model.fit(x, progress=False)
    if not model.certificate_.optimal:
        raise ValueError(f"no certificate at bandwidth {bandwidth:g}: {model.certificate_}")
    return model


def diffusion(x: np.ndarray, bandwidth: float, components: int = 2) -> DiffusionMap:
    """The diffusion map; some bandwidths of the paper single out outliers, which the figure shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReliabilityWarning)
        return DiffusionMap(bandwidth, n_components=components, method="exact", random_state=0).fit(x, progress=False)


def gap(model: SDPEmbedding) -> float:
    """The duality gap over the objective: how far from the optimum the embedding can be."""
    return float(model.certificate_.gap / model.objective_)


def scatter(axes: Axes, points: np.ndarray, classes: np.ndarray, size: float = 6, names: Sequence[str] = ()) -> None:
    """Points (n, 2) in the colors of their classes, rare ones on top, with a legend where the classes have names."""
    labels, counts = np.unique(classes, return_counts=True)
    for rank in np.argsort(-counts, kind="stable"):
        at = points[classes == labels[rank]]
        label = names[rank] if names else None
        axes.scatter(at[:, 0], at[:, 1], s=size, c=COLORS[rank], lw=0, alpha=0.8, label=label)
    if names:
        axes.legend(frameon=False, fontsize=8, markerscale=2)


def nmi(e: np.ndarray, labels: np.ndarray, k: int, starts: int) -> float:
    """Normalized mutual information of the labels with k-means from some starts."""
    scaled = e / np.abs(e).max()
    with threadpool_limits(1):  # so few points are slower in several threads
        found = KMeans(k, n_init=starts, random_state=0).fit_predict(scaled)
    return float(normalized_mutual_info_score(labels, found))
