"""Points, and a small fit on a Fourier lattice, for several files of tests."""

from typing import Any

import numpy as np

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.kernels import Matern
from daskspectral.operators import Operator
from daskspectral.solvers import Penalised

RNG = np.random.default_rng(5)
N = 20_000
NORMAL = RNG.standard_normal((N, 2))
SQUARE = RNG.uniform(0, np.pi, (N, 2))
ANGLES = RNG.uniform(-6 * np.pi, 6 * np.pi, (N, 2))
LINE = RNG.uniform(-6, 6, (N, 1))
for points in (NORMAL, SQUARE, ANGLES, LINE):
    points.flags.writeable = False
X = NORMAL[:4000]
SMALL = FourierLattice(5, kernel=Matern(1.5, 1.5))
STRETCHED = np.sort([a * a + 4 * b * b for a in range(6) for b in range(4)])


def make(operator: Operator | None = None, basis: Any = SMALL, **options: Any) -> dsp.SpectralDecomposition:
    """A small fit of a given prior."""
    given: dict[str, Any] = {"solver": Penalised(1.0), "n_components": 5, "random_state": 0}
    return dsp.SpectralDecomposition(operator, basis, **given | options)


def modes(moments: dsp.Moments) -> dict[str, Any]:
    return {name: values for name, values in moments.arrays.items() if name.startswith("modes")}
