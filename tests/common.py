"""What several tests call: comparisons, clusters, reference arrays."""

import gc
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import xarray as xr
from distributed import LocalCluster
from scipy.signal import lfilter

import daskspectral as dsp
from daskspectral.moments import Moments
from daskspectral.registry import decode, encode, foreign

Scheduling = Callable[[str], AbstractContextManager[None]]

unreliable = pytest.mark.filterwarnings("ignore::daskspectral.errors.ReliabilityWarning")
"""Of tests that fit too few rows or functions for an answer that can be trusted, and ask for something else."""


def named(value: object) -> str:
    """A value in the name of a test: the same in every process, whatever the addresses of its functions."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))[:50]


def assert_close(found: Any, wanted: Any, tolerance: float = 1e-12, *, dtype: Any = np.float64, what: str = "") -> None:
    """An array, or each of a mapping: shape, dtype (None: any), and entries within `tolerance` of the largest one."""
    if isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys()
        for name in wanted:
            assert_close(found[name], wanted[name], tolerance, dtype=dtype, what=name)
        return
    assert np.shape(found) == np.shape(wanted), what
    assert dtype is None or np.asarray(found).dtype == dtype, what
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max(), err_msg=what)


def written(path: str | Path) -> np.ndarray:
    """The values of the one data variable of a result, as plain xarray opens it."""
    (variable,) = xr.open_zarr(path).data_vars.values()
    return np.asarray(variable.values)


def assert_same_moments(found: Moments, wanted: Moments, tolerance: float = 1e-13) -> None:
    """The same sums up to rounding, of as many rows."""
    assert found.arrays.keys() == wanted.arrays.keys()
    for name, sums in wanted.arrays.items():
        if name == "point sums":  # which nearly cancel where the mean was subtracted
            size = np.sqrt(wanted.weight * wanted.arrays["point squares"]).max()
            np.testing.assert_allclose(found.arrays[name], sums, rtol=0, atol=tolerance * size, err_msg=name)
        else:
            assert_close(found.arrays[name], sums, tolerance, what=name)
    assert (found.count, found.skipped, found.weight) == (wanted.count, wanted.skipped, wanted.weight)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """All entries of nested mappings and lists: what holds each, and the keys that lead to it."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, (*path, key)
        yield from places(value[key], (*path, key))


def assert_same_arrays(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


def assert_same_bits(found: Moments, wanted: Moments) -> None:
    """The same sums to the last bit, of as many rows."""
    assert found.fingerprint == wanted.fingerprint
    assert_same_arrays(found.arrays, wanted.arrays)
    assert (found.count, found.skipped, found.rows) == (wanted.count, wanted.skipped, wanted.rows)
    assert found.weight == wanted.weight


def autoregression(n: int, decay: float = 0.9, seed: int = 0) -> np.ndarray:
    """Rows (n, 1) of a stationary process of variance 1, whose eigenvalues are the powers of its decay."""
    rng = np.random.default_rng(seed)
    kicks = np.sqrt(1 - decay**2) * rng.standard_normal(n)
    kicks[0] = rng.standard_normal()
    return np.asarray(lfilter([1.0], [1.0, -decay], kicks))[:, None]


def reloaded(model: Any, **options: Any) -> Any:
    """The model, or moments, saved and loaded."""
    with TemporaryDirectory() as folder:
        dsp.save(model, Path(folder) / "m.zarr")
        return dsp.load(Path(folder) / "m.zarr", **options)


def copied(basis: Any) -> Any:
    """The basis, from its state."""
    state = encode(basis)
    return decode(state, type(basis), trusted=foreign(state))


def reference_arrays(name: str) -> dict[str, Any]:
    """Arrays that independent code computed, from `data_reference`."""
    with np.load(Path(__file__).parent / "data_reference" / f"{name}.npz") as arrays:
        return dict(arrays)


def small_model(count: int = 20) -> dsp.SpectralDecomposition:
    """A model with fits of half a second."""
    landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), count)
    return dsp.SpectralDecomposition(basis=landmarks, n_components=3, folds=None, random_state=0)


def koopman(operator: dsp.operators.Transfer, basis: Any = None, **options: Any) -> dsp.Koopman:
    """The estimator with an operator."""
    method = None if operator.reversible else operator.solver.name
    kind: dict[str, Any] = {"reversible": operator.reversible, "method": method, "center": operator.center}
    return dsp.Koopman(operator.lag, basis=basis, **kind, **options)


@contextmanager
def local_cluster(**options: Any) -> Iterator[LocalCluster]:
    """A cluster whose forgotten sockets are collected before the next test."""
    with LocalCluster(threads_per_worker=1, dashboard_address=None, **options) as started:
        yield started
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
