"""Features of images
==================

Features of images that do not change under small shifts: equation (20) of Cabannes and Bach (2024).

The eigenfunctions of `E |f(xi) - f(xi')|²`, over pairs of versions of an image moved by one pixel, are features learned
without labels. A linear classifier on 64 of them is compared with one on 64 principal components and one on 64
eigenfunctions of the Laplacian, the constant left out. All three are fitted to the same four fifths of the images, of
which a few have labels that train the classifier. The accuracy is measured on the last fifth, which is used only for
this. The scale of the Gaussian kernel, whether components are whitened, and the classifier's penalty are chosen by
cross-validation on the labeled images, afresh for each draw of them; the number of landmarks is fixed.

The file holds images X (n, side²) uint8 and their classes y (n,), such as the ten thousand test images of MNIST. A
pixel must be narrower than a stroke. Where it is not, as in images of 8 x 8, a shift by one pixel destroys the
differences between the classes.

With --network the same operator's functions are learned by a network, too (extra `neural`). On MNIST's test images, 64
functions, 1000 labels and 1500 steps a classifier on them is right in 88 % of the cases, on those of landmarks in 94 %.

Usage::

    python examples/mnist_features.py [--data mnist.npz] [--whole] [--labels 1000] [--network 1500] [--out X]

The numbers of the README are those of --whole, which compares more scales and penalties in more draws, with 1000
landmarks. Without a file the images are the 1797 digits that scikit-learn brings, three times as wide.
"""

# sphinx_gallery_thumbnail_path = '../pictures/mnist_features.png'

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import data_files
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV, KFold

from daskspectral import SpectralDecomposition, plot
from daskspectral.basis import Landmarks, NeuralBasis
from daskspectral.kernels import Gaussian
from daskspectral.operators import Augmentation, Laplacian, Operator

PICTURE = "mnist_features.png"
MOVES = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))  # rows down, columns to the right
NAMES = {
    "augmentation": "functions invariant to shifts",
    "laplacian": "eigenfunctions of the Laplacian",
    "pca": "principal components",
    "network": "functions of a network, invariant to shifts",
}
COLORS = {"augmentation": "tab:blue", "laplacian": "tab:green", "pca": "tab:orange", "network": "tab:red"}
HIDDEN = (512, 256)  # neurons of the network


class Study(NamedTuple):
    """What is compared: `scales` in median distances between images, `penalties` C of the classifier, `draws` of the
    labeled images, `sizes`, the numbers of labels in the picture besides --labels, and the basis functions."""

    scales: tuple[float, ...] = (0.6,)
    penalties: tuple[float, ...] = (0.1, 1.0)
    draws: int = 3
    sizes: tuple[int, ...] = (100, 300)
    landmarks: int = 500


WHOLE = Study((0.4, 0.6, 0.8, 1.0), (0.01, 0.1, 1.0, 10.0), 5, (100, 200, 500), 1000)
Features = Callable[[np.ndarray], np.ndarray]


def main(
    data: str | Path | None = None,
    labels: int = 1000,
    out: str | Path = ".",
    components: int = 64,
    steps: int = 0,
    study: Study | None = None,
) -> dict[str, float]:
    """Fit, classify, check and draw; the numbers are medians over draws of the labeled images."""
    study = study or Study()
    picture = Path(out) / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    plot.refuse_picture(picture, overwrite=True)
    images, digits = load(data)
    order = np.random.default_rng(0).permutation(len(images))
    seen, held_out = np.split(order, [len(images) * 4 // 5])
    if not 100 <= labels <= len(seen):
        raise ValueError(f"labels must be between 100 and the {len(seen)} images that are not held out; got {labels}")
    candidates = learn(images[seen], study, components, steps)
    values = {name: [(f(images[seen]), f(images[held_out])) for f in features] for name, features in candidates.items()}
    sizes = [*(size for size in study.sizes if size < labels), labels]
    accuracy = {
        name: np.array(
            [
                [classify(v, digits[seen], digits[held_out], size, s, study.penalties) for s in range(study.draws)]
                for size in sizes
            ]
        )
        for name, v in values.items()
    }
    draw(sizes, accuracy, components, picture)

    numbers = {f"accuracy, {name}": float(np.median(found[-1])) for name, found in accuracy.items()}
    for other in ("laplacian", "pca"):
        numbers[f"errors of {other} over errors of augmentation"] = float(
            np.median((1 - accuracy[other][-1]) / (1 - accuracy["augmentation"][-1]))
        )
        assert numbers[f"errors of {other} over errors of augmentation"] > 1, numbers
    return numbers


def load(path: str | Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, side^2) from 0 to 1, float32, and their classes (n,)."""
    images, classes = data_files.digits() if path is None else data_files.load(path)
    if round(images.shape[1] ** 0.5) ** 2 != images.shape[1]:
        raise ValueError(f"X must be (n, side^2); X is {images.shape}")
    if images.dtype != np.uint8:
        raise ValueError(f"X must be uint8, from 0 to 255; it is {images.dtype}")
    return images.astype(np.float32) / 255, classes


def moved(images: np.ndarray, down: int, right: int) -> np.ndarray:
    """Images (n, side^2) moved by some pixels; pixels that come in from outside are 0."""
    side = round(images.shape[1] ** 0.5)
    grid = np.pad(images.reshape(-1, side, side), ((0, 0), (side, side), (side, side)))
    return grid[:, side - down : 2 * side - down, side - right : 2 * side - right].reshape(images.shape)


def learn(images: np.ndarray, study: Study, components: int, steps: int = 0) -> Mapping[str, list[Features]]:
    """For each method, the candidates of cross-validation: functions from images to features."""
    views = tuple(moved(images, *move) for move in MOVES)
    median = np.median(pairwise_distances(images[:1000])[np.triu_indices(min(1000, len(images)), 1)])

    def fit(operator: Operator, data: np.ndarray | tuple[np.ndarray, ...], scale: float) -> Features:
        kernel = Gaussian(float(scale * median))
        basis = Landmarks(kernel, study.landmarks)
        model = SpectralDecomposition(operator, basis, n_components=components + 1, random_state=0).fit(data)
        return lambda x: model.transform(x)[:, 1:]  # the first function is constant

    def network() -> Features:
        basis = NeuralBasis(HIDDEN, outputs=components, steps=steps)
        model = SpectralDecomposition(Augmentation(len(views)), basis, n_components=components + 1, random_state=0)
        model.fit(views)
        return lambda x: model.transform(x)[:, 1:]

    return {
        "augmentation": [fit(Augmentation(len(views)), views, scale) for scale in study.scales],
        "laplacian": [fit(Laplacian(), images, scale) for scale in study.scales],
        "pca": [PCA(components, whiten=whiten, random_state=0).fit(images).transform for whiten in (False, True)],
        **({"network": [network()]} if steps else {}),
    }


def classify(
    values: list[tuple[np.ndarray, np.ndarray]],
    seen: np.ndarray,
    held_out: np.ndarray,
    labels: int,
    draw: int,
    penalties: tuple[float, ...],
) -> float:
    """The accuracy on held-out images of the classifier and features that are best in cross-validation."""
    labeled = np.random.default_rng(draw).choice(len(seen), labels, replace=False)
    folds = KFold(5, shuffle=True, random_state=draw)
    best = (0.0, 0.0)
    for known, unknown in values:
        search = GridSearchCV(LogisticRegression(max_iter=5000), {"C": penalties}, cv=folds)
        search.fit(known[labeled], seen[labeled])
        if search.best_score_ > best[0]:
            best = search.best_score_, search.score(unknown, held_out)
    return best[1]


def draw(sizes: list[int], accuracy: Mapping[str, np.ndarray], components: int, picture: Path) -> None:
    """The accuracy against the number of labels: medians, and the range of the draws."""
    figure, (axes,) = plot.panels(["accuracy on held-out images"], columns=1, width=4.4, aspect=0.75)
    for name, title in ((name, NAMES[name]) for name in accuracy):
        axes.fill_between(sizes, *np.quantile(accuracy[name], (0, 1), axis=1), color=COLORS[name], alpha=0.2, lw=0)
        axes.semilogx(
            sizes,
            np.median(accuracy[name], axis=1),
            "o-",
            color=COLORS[name],
            markersize=4,
            label=f"{components} {title}",
        )
    axes.set(xticks=sizes, xticklabels=map(str, sizes))
    axes.minorticks_off()
    axes.set_xlabel("labels", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    plot.save_figure(figure, picture, overwrite=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="file with the arrays X (n, side^2) uint8 and y (n,); digits without it")
    parser.add_argument("--labels", type=int, default=1000, help="images whose labels are used")
    parser.add_argument("--whole", action="store_true", help="more scales, penalties, draws and landmarks: minutes")
    parser.add_argument("--out", default=".", help="folder for the picture; made if missing")
    parser.add_argument(
        "--network", type=int, default=0, metavar="STEPS", help="a network too, trained in so many steps"
    )
    arguments = parser.parse_args()
    given = arguments.data, arguments.labels, arguments.out
    study = WHOLE if arguments.whole else Study()
    for name, value in main(*given, steps=arguments.network, study=study).items():
        print(f"{name}: {value:.4g}")
