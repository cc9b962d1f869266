"""The semidefinite embedding's passes on an accelerator: the same embedding, and kernel values never leave it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis
from daskspectral.devices import Device
from daskspectral.kernels import Gaussian
from daskspectral.passes.embedding import BlockTask, CoverTask, Features, TotalTask
from daskspectral.passes.extension import Extension
from daskspectral.passes.probe import ProbeTask
from daskspectral.solve.sdp import Frame, Prove, Pull
from tests.common import assert_close

ROWS, LANDMARKS = 3000, 40


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (ROWS, 2))


def embedding(**options: Any) -> dsp.SDPEmbedding:
    fixed: dict[str, Any] = {"bandwidth": 1.0, "method": "lowrank", "n_landmarks": LANDMARKS, "random_state": 0}
    return dsp.SDPEmbedding(**{**fixed, **options})


@pytest.mark.parametrize("bounded", [False, True])
def test_the_same_embedding(bounded: bool, points: np.ndarray, stand_in: Device, gotten: list[tuple[int, ...]]) -> None:
    given = {"diagonal": 1 + points[:, 0] ** 2} if bounded else {}
    here = embedding(cache="never").fit(points, **given)
    assert not gotten
    there = clone(here).set_params(device="auto").fit(points, **given)
    assert gotten
    assert not [shape for shape in gotten if np.prod(shape) >= LANDMARKS * ROWS]  # kernel values stay there
    assert there.certificate_.optimal
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    assert_close(there.spectrum_, here.spectrum_, 1e-7)
    assert_close(there.certificate_.approximation, here.certificate_.approximation, 1e-3)  # of differences
    assert_close(there.embedding_, here.embedding_, 1e-5)
    gotten.clear()
    new = points[:100] + 0.01
    found = there.transform(new, diagonal=np.ones(100)) if bounded else there.transform(new)
    assert [shape for shape in gotten if shape[0] == 100]
    assert not [shape for shape in gotten if shape[0] == LANDMARKS]
    same = clone(here)
    same.__dict__.update({k: v for k, v in vars(there).items() if k.endswith("_")})
    assert_close(found, same.transform(new, diagonal=np.ones(100)) if bounded else same.transform(new), 1e-10)


@pytest.mark.parametrize("bounded", [False, True])
def test_sums_of_each_pass(bounded: bool, points: np.ndarray, stand_in: Device) -> None:
    basis = LandmarkBasis(Gaussian(0.15), points[:LANDMARKS])  # which do not cover all rows
    frame = Frame.of(basis.values(basis.landmarks), basis.values(points).sum(axis=1))
    batch = {"x": points} | ({"diagonal": 1 + points[:, 0] ** 2} if bounded else {})
    v = np.random.default_rng(1).standard_normal((LANDMARKS, 3))
    extension = Extension(
        *(basis.kernel, basis.landmarks, frame.masses, frame.total, v, np.zeros((1, 3)), 1.0, (3,), 3),
        whitening=frame.whitening,
        fit_rows=points[:1],
        row_weights=np.zeros((1, 3)),
        unit=bounded,
    )

    def sums(device: str) -> list[dict[str, Any]]:
        features = Features(basis, device=device)
        blocks = (Pull(frame.masses, frame.total), Prove(frame.masses, frame.total))
        found = [TotalTask(features)([batch]), CoverTask(features)([batch], frame)]
        found += [BlockTask(features, block)([batch], v) for block in blocks]
        found.append(ProbeTask(replace(extension, device=device), points[:20])([batch]))
        return [{k: getattr(value, "value", value) for k, value in part.items()} for part in found]

    for there, here in zip(sums("cuda"), sums("cpu"), strict=True):
        assert_close(there, here, 1e-10, dtype=None)
