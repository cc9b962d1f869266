"""Scripts run in this process, and are told to log as they would in one of their own."""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True, scope="package")
def folders() -> Iterator[None]:
    """Scripts import modules of their folder."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("benchmarks", "paper"):
            patch.syspath_prepend(EXAMPLES / folder)
        yield


@pytest.fixture(autouse=True)
def same_level() -> Iterator[None]:
    """The log is as before after each of them."""
    own = logging.getLogger("daskspectral")
    level = own.level
    yield
    own.setLevel(level)


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """scikit-learn's digits at three times their size, so that a pixel is narrower than a stroke."""
    path, small = tmp_path_factory.mktemp("digits") / "digits.npz", load_digits()
    images = np.round(ndimage.zoom(small.images, (1, 3, 3), order=1) / 16 * 255)
    np.savez(path, X=images.astype(np.uint8).reshape(len(images), -1), y=small.target)
    return path
