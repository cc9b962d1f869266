"""What the tests of several bases share."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from daskspectral.forms import at, form, grad, inner


def triple_loop(left: Any, right: Any, weight: Any) -> Any:
    """Over pairs of functions, whose values at the points are rows, and over points."""
    total = np.zeros((len(left), len(right)))
    for i, j, k in itertools.product(range(len(left)), range(len(right)), range(len(weight))):
        total[i, j] += weight[k] * left[i, k] * right[j, k]
    return total


@form
def later(f: Any, g: Any, x: Any) -> Any:
    return inner(grad(at(f, x.future)), grad(at(g, x.future))) + inner(f, at(g, x.future))
