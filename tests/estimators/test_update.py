"""`update` folds in rows that were appended to the very array that was measured, and refuses any other."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from click.testing import CliRunner

import daskspectral as dsp
from daskspectral.cli import command
from daskspectral.errors import TrustWarning

X = np.random.default_rng(0).standard_normal((6000, 2))


def fitted(x: np.ndarray) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.5), landmarks=X[:20], n_components=4).fit(x)


def test_rows_appended_in_another_container_are_those_of_the_same_array() -> None:
    whole = fitted(X)
    for container in (X, da.from_array(X, chunks=(1500, 2)), X.tolist()):
        grown = fitted(X[:3000]).update(X[:4500]).update(container)
        assert grown.moments_.rows == len(X)
        for name, value in whole.moments_.arrays.items():
            np.testing.assert_allclose(grown.moments_.arrays[name], value, rtol=1e-12, atol=1e-12 * np.abs(value).max())


def test_few_rows_grow_twice() -> None:
    grown = fitted(X[:300]).update(X[:700]).update(X[:4000])
    assert grown.moments_.rows == grown.moments_.count == 4000


def test_another_array_is_refused() -> None:
    other = X.copy()
    other[7, 1] += 1e-9
    with pytest.raises(ValueError, match=r"its first rows differ"):
        fitted(X[:3000]).update(other)


def test_moments_of_several_arrays_cannot_be_updated_from_one(tmp_path: Path) -> None:
    first, second = fitted(X[:2000]), fitted(X[2000:5000])
    both = first.fit_moments(sum([first.moments_, second.moments_]))
    with pytest.raises(ValueError, match=r"added up from several arrays"):
        both.update(X)
    dsp.save(both, tmp_path / "both.zarr")
    with pytest.raises(ValueError, match=r"added up from several arrays"):
        dsp.load(tmp_path / "both.zarr").update(X)


def test_moments_say_in_what_they_differ() -> None:
    first = fitted(X[:2000]).moments_
    other = dsp.SpectralDecomposition(
        kernel=dsp.kernels.Gaussian(1.5), landmarks=X[:20], n_components=4, dtype="float32"
    )
    other.fit(X)
    with pytest.raises(ValueError, match=r"different dtypes, and do not add"):
        first + other.moments_
    wider = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(2.5), landmarks=X[:20], n_components=4).fit(X)
    with pytest.raises(ValueError, match=r"different bases \(kernel, landmarks\), and do not add"):
        first + wider.moments_


def test_a_part_given_twice_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zarr")
    dsp.save(fitted(X), path)
    done = CliRunner().invoke(command, ["merge", path, path, "--out", str(tmp_path / "b.zarr")])
    assert done.exit_code == 2
    assert "given twice" in done.output


def test_rows_that_the_functions_do_not_suit_are_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    near, far = rng.uniform(0, 1, (600, 2)), rng.uniform(0, 12, (600, 2))
    model = dsp.SpectralDecomposition(n_components=6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(near)
        like = copy.deepcopy(model)
    with pytest.warns(TrustWarning, match="held-out values are .* after the update, .* before"):
        model.update(np.vstack([near, far]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "(?!.*after the update)", TrustWarning)
        like.update(np.vstack([near, rng.uniform(0, 1, (600, 2))]))
