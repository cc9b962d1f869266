"""What operators say of themselves, their states, and what they refuse."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskspectral.operators import (
    AnisotropicDiffusion,
)

# what is refused


@given(seed=st.integers(0, 10**6), rank=st.integers(0, 3), dtype=st.sampled_from([np.float32, np.float64]))
def test_factors_of_diffusions(seed: int, rank: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    sigma = rng.standard_normal((6, 3, rank)) * rng.uniform(1e-6, 1e6, (6, 1, 1))
    d = (sigma @ sigma.swapaxes(1, 2)).astype(dtype)
    d = 0.5 * (d + d.swapaxes(1, 2))
    columns = AnisotropicDiffusion("d").derived_fields({"d": d})["columns of d"]
    again = np.einsum("kma,kmb->kab", columns, columns)
    size = np.abs(d).max(axis=(1, 2), keepdims=True)
    assert (np.abs(again - d) <= 64 * np.finfo(dtype).eps * size).all()
