"""Buffers of a block are gone with it, whenever Python looks for cycles."""

import gc

import numpy as np

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.basis.evaluation import Arena
from daskspectral.kernels import Gaussian
from tests.common import doubtful


@doubtful
def test_a_pass_leaves_no_buffers_behind() -> None:
    x = np.random.default_rng(0).standard_normal((20_000, 2))
    model = dsp.SpectralDecomposition(basis=Landmarks(Gaussian(1.0), 20), n_components=3, random_state=0)
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, Arena) for one in gc.get_objects())
        model.fit(x).transform(x)
        assert sum(isinstance(one, Arena) for one in gc.get_objects()) == before
    finally:
        gc.enable()
