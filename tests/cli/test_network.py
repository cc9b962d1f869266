"""Networks in a shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.basis import NeuralBasis
from tests.cli.common import call, done
from tests.common import written

pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def arrays(folder: Path) -> None:
    x = np.random.default_rng(0).uniform(0, 1, (1000, 2))
    zarr.create_array("x.zarr", data=x, chunks=(500, 2))


def test_a_fit_and_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NeuralBasis, "__dataclass_fields__", NeuralBasis.__dataclass_fields__)
    defaults = NeuralBasis.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "steps", 40)
    told = done("fit x.zarr --network 12,10 --components 3 --no-progress --out m.zarr")
    assert "a network of 2 hidden layers" in told
    model = dsp.load("m.zarr")
    network = model.basis_.parts[-1]
    assert (network.hidden, network.steps, network.frozen) == ((12, 10), 40, True)
    done("transform m.zarr x.zarr --out f.zarr --no-progress")
    assert written("f.zarr").shape == (1000, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--network 0", "hidden of a NeuralBasis is a whole number of 1 or more"),
        ("--network deep", "no list of neurons of hidden layers such as 96,96,96"),
        ("--network 8 --lattice 4", "--network and --lattice are two bases"),
    ],
)
def test_what_is_no_network_is_refused(options: str, message: str) -> None:
    result = call(f"fit x.zarr {options} --out m.zarr")
    assert result.exit_code == 2
    assert message in result.output
