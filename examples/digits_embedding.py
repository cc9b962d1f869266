"""Digits in a semidefinite embedding
==================================

Handwritten digits embedded and colored, without parameters, for new images too, in columns that separate the digits.

`SDPEmbedding` with its defaults chooses the bandwidth, and proves that its columns are optimal: as many as the rank of
the optimum, and further ones stage by stage. The images that it was not fitted to are embedded by its extension; five
nearest neighbors among the others name them. scikit-learn's 1797 images of 8 x 8 pixels; no label is used in the fit.

Usage::

    python examples/digits_embedding.py [--n 1797] [--out FOLDER]
"""

# sphinx_gallery_thumbnail_path = '../pictures/digits_embedding.png'

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from daskspectral import SDPEmbedding, plot

PICTURE = "digits_embedding.png"
COLUMNS = 10
LEFT_OUT = 6  # every sixth image is new to the fit


def main(n: int = 1797, out: str | Path = ".") -> dict[str, float]:
    """Embed n images and classify the new ones; check and draw."""
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    images, digits = load_digits(return_X_y=True)
    chosen = np.sort(np.random.default_rng(0).permutation(len(images))[:n])
    images, digits = images[chosen], digits[chosen]
    new = np.arange(len(images)) % LEFT_OUT == 0

    sdp = SDPEmbedding(n_components=COLUMNS, random_state=0).fit(images[~new])
    coordinates = sdp.transform(images[new])
    numbers = {
        "bandwidth": sdp.bandwidth_,
        "columns that the optimum has": float(sdp.rank_),
        "accuracy of the optimum's columns": accuracy(
            sdp.embedding_[:, : sdp.rank_], digits[~new], coordinates[:, : sdp.rank_], digits[new]
        ),
        f"accuracy of {COLUMNS} columns": accuracy(sdp.embedding_, digits[~new], coordinates, digits[new]),
        "accuracy of the pixels": accuracy(images[~new], digits[~new], images[new], digits[new]),
    }
    draw(sdp.embedding_, digits[~new], coordinates, digits[new], picture)
    assert all(certificate.optimal for certificate in sdp.certificates_)
    assert numbers[f"accuracy of {COLUMNS} columns"] >= numbers["accuracy of the pixels"] - 0.04, numbers
    return numbers


def accuracy(known: np.ndarray, labels: np.ndarray, new: np.ndarray, wanted: np.ndarray) -> float:
    """Share of the new rows that five nearest neighbors name right."""
    return float(KNeighborsClassifier(5).fit(known, labels).score(new, wanted))


def draw(known: np.ndarray, labels: np.ndarray, new: np.ndarray, wanted: np.ndarray, picture: Path) -> None:
    """The first columns in pairs, a color for each digit; new images are ringed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pairs = [(0, 1), (2, 3), (4, 5)]
    colors = pyplot.colormaps["tab10"].colors
    figure, axes = pyplot.subplots(1, len(pairs), figsize=(13, 4.6), layout="constrained")
    for axis, (a, b) in zip(axes, pairs, strict=True):
        for digit in range(10):
            at, ringed = labels == digit, wanted == digit
            axis.scatter(known[at, a], known[at, b], s=5, color=colors[digit], label=str(digit))
            axis.scatter(new[ringed, a], new[ringed, b], s=22, facecolor="none", edgecolor=colors[digit], linewidth=0.7)
        axis.set(xlabel=f"column {a + 1}", ylabel=f"column {b + 1}", aspect="equal")
        axis.locator_params(nbins=5)
    figure.legend(*axes[0].get_legend_handles_labels(), title="digit", loc="outside right center", markerscale=3)
    figure.suptitle("Digits in the columns of a semidefinite embedding; rings: images that it was not fitted to")
    figure.savefig(picture, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=lambda text: int(float(text)), default=1797, help="images; 1797 by default")
    parser.add_argument("--out", default=".", help="folder of the picture")
    options = parser.parse_args()
    for name, value in main(options.n, options.out).items():
        print(f"{name}: {value:.4g}")
