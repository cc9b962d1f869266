"""`daskspectral score`: the same numbers as from Python, as a table."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from tests.cli.common import call, done, everything

pytestmark = pytest.mark.usefixtures("folder")
RNG = np.random.default_rng(0)
OLD, NEW = RNG.uniform(0, np.pi, (2, 3000, 1))
WEIGHTS = RNG.integers(1, 4, 3000).astype(float)
FIT = "fit old.zarr --kernel gaussian:1 --landmarks 40 --components 4 --no-progress"


@pytest.fixture(autouse=True)
def arrays(folder: object) -> None:
    for name, data in {"old": OLD, "new": NEW, "weights": WEIGHTS, "targets": np.sin(NEW[:, 0])}.items():
        zarr.create_array(f"{name}.zarr", data=data, chunks=(500, *data.shape[1:]))


def numbers(table: str) -> np.ndarray:
    return np.array([line.split() for line in table.splitlines()[4:]], dtype=float)


def test_a_decomposition() -> None:
    done(f"{FIT} --out m.zarr")
    before, model = everything(), dsp.load("m.zarr")
    table = done("score m.zarr new.zarr --no-progress")
    assert everything() == before  # nothing is written
    assert table.splitlines()[:4] == [
        f"score       {model.score(NEW):.6g}",
        "rows        3000",
        "",
        "   i    eigenvalue  Ritz value here",
    ]
    found = numbers(table)
    np.testing.assert_allclose(found[:, 1], model.eigenvalues_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found[:, 2].sum(), -model.score(NEW), rtol=1e-5)
    np.testing.assert_allclose(found[:, 2], [0, 1, 4, 9], rtol=0.1, atol=1e-9)
    weighted = done("score m.zarr new.zarr --weights weights.zarr --threads 1")
    assert f"score       {model.score(NEW, sample_weight=WEIGHTS):.6g}\n" in weighted
    assert weighted != table


def test_a_transfer_operator() -> None:
    done(f"{FIT} --operator transfer --lag 1 --constant --out m.zarr")
    model, table = dsp.load("m.zarr"), done("score m.zarr new.zarr")
    assert table.startswith(f"score       {model.score(NEW):.6g}\nrows        2999\n")
    assert "   i  singular value  singular value here" in table
    np.testing.assert_allclose(np.sum(numbers(table)[:, 2] ** 2), model.score(NEW), rtol=1e-5)


def test_a_basis_of_too_few_functions() -> None:
    with pytest.warns(dsp.RankWarning):
        done("fit old.zarr --kernel polynomial:1 --landmarks 40 --components 5 --no-progress --out m.zarr")
    table = done("score m.zarr new.zarr")
    assert table.startswith("score       -inf\n")
    assert len(numbers(table)) == 2


def test_functions_that_the_new_rows_do_not_tell_apart() -> None:
    done(f"{FIT} --out m.zarr")
    zarr.create_array("far.zarr", data=NEW[:20] + 100)
    with pytest.warns(dsp.RankWarning, match="3 of 4 functions vanish on the 20 rows of the score"):
        table = done("score m.zarr far.zarr")
    assert table.startswith("score       -inf\nrows        20\n")
    assert np.isnan(numbers(table)[1:, 2]).all()


def test_a_regressor() -> None:
    done("regress new.zarr targets.zarr --kernel gaussian:1 --landmarks 30 --out r.zarr --no-progress")
    found = done("score r.zarr new.zarr --targets targets.zarr --weights weights.zarr")
    score = dsp.load("r.zarr").score(NEW, np.sin(NEW[:, 0]), WEIGHTS)
    assert found == f"score       {score:.6g}\n"
    assert score > 0.99


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "score m.zarr new.zarr --targets targets.zarr",
            "--targets is for regressors and classifiers, and m.zarr",
        ),
        ("score r.zarr new.zarr", "r.zarr is a regressor: --targets is missing"),
        ("score d.zarr new.zarr", "d.zarr holds DiffusionMap, which has no score"),
        ("score moments.zarr new.zarr", "holds moments, not a model"),
        ("score m.zarr no.zarr", "there is no zarr array at no.zarr"),
        ("score m.zarr one.zarr", "a score of 4 functions needs more than 4 rows, and X has 1 rows"),
    ],
)
def test_errors(line: str, message: str) -> None:
    if " m." in line:
        done(f"{FIT} --out m.zarr")
    elif " r." in line:
        done("regress new.zarr targets.zarr --kernel gaussian:1 --landmarks 30 --out r.zarr")
    else:
        dsp.save(dsp.DiffusionMap(1.0, random_state=0).fit(NEW[:80]), "d.zarr")
        dsp.save(dsp.SpectralDecomposition(n_landmarks=20, n_components=2).fit(NEW).moments_, "moments.zarr")
    zarr.create_array("one.zarr", data=NEW[:1])
    result = call(*line.split())
    assert result.exit_code
    assert message in " ".join(f"{result.output} {result.exception}".split())
