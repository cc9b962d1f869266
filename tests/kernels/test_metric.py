"""Kernels in a metric: derivatives in the columns of the data, by finite differences."""

import numpy as np
import pytest

from daskspectral.kernels import Gaussian, Mahalanobis, Matern
from daskspectral.testing import check_kernel


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Matern(2.5, 1.2)], ids=str)
@pytest.mark.parametrize("matrix", [[[1.0, 0.2], [0.2, 0.5]], [[1.0, 0.0, 0.3], [0.2, 0.5, 0.0]]])
def test_derivatives_follow_from_the_chain_rule(kernel: Gaussian | Matern, matrix: list[list[float]]) -> None:
    check_kernel(Mahalanobis(kernel, matrix), 2)


def test_points_have_a_row_of_the_matrix_for_each_column() -> None:
    with pytest.raises(ValueError, match="it has 1, and the points have 2 columns"):
        Mahalanobis(Gaussian(1.0), [[1.0]]).embedded(np.zeros((1, 2)))
