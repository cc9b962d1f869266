"""`plot`, `report`, `score`, `verify` and `plan`: what is there is looked at, and left as it is."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.estimators.summary import summary_of
from tests.cli.common import call, done, everything, facts, store
from tests.common import unreliable

pytestmark = [pytest.mark.usefixtures("folder"), unreliable]
RNG = np.random.default_rng(0)
OLD, NEW = RNG.uniform(0, np.pi, (2, 600, 1))
FIT = "fit old.zarr --kernel gaussian:1 --landmarks 20 --components 4"


@pytest.fixture
def model(folder: Path) -> dsp.SpectralDecomposition:
    store(200, old=OLD, new=NEW, weights=RNG.integers(1, 4, 600).astype(float), y=np.sin(NEW[:, 0]))
    done(f"{FIT} --out m.zarr")
    found: dsp.SpectralDecomposition = dsp.load("m.zarr")
    return found


def numbers(table: str) -> np.ndarray:
    return np.array([line.split() for line in table.splitlines()[4:]], dtype=float)


def test_a_score(model: dsp.SpectralDecomposition) -> None:
    before = everything()
    table = done("score m.zarr new.zarr")
    assert everything() == before
    assert table.startswith(f"score       {model.score(NEW):.6g}\n")
    np.testing.assert_allclose(numbers(table)[:, 1], model.eigenvalues_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(numbers(table)[:, 2].sum(), -model.score(NEW), rtol=1e-5)
    store(20, far=NEW[:20] + 100)
    with pytest.warns(dsp.RankWarning):
        table = done("score m.zarr far.zarr")
    assert table.startswith("score       -inf\nrows        20\n")
    assert np.isnan(numbers(table)[1:, 2]).all()


def test_a_score_of_a_regressor(model: dsp.SpectralDecomposition) -> None:
    done("regress new.zarr y.zarr --kernel gaussian:1 --landmarks 20 --alpha 1e-6 --out r.zarr")
    found = facts("score r.zarr new.zarr --targets y.zarr --weights weights.zarr")
    assert found["score"] == dsp.load("r.zarr").score(NEW, np.sin(NEW[:, 0]), zarr.open_array("weights.zarr")[:])


def test_a_page_with_the_settings_saved_with_the_model(model: dsp.SpectralDecomposition) -> None:
    assert facts("report m.zarr old.zarr --out report.html") == {"report": "report.html"}
    assert "landmarks: 20" in Path("report.html").read_text(encoding="utf-8")


def verified(line: str) -> tuple[int, dict[str, Any]]:
    return call(f"verify {line}").exit_code, facts(f"verify {line}")


def test_verify_counts_invalid_rows() -> None:
    x = RNG.standard_normal((300, 2))
    x[3, 0], x[[5, 250], 1], x[7] = np.inf, np.nan, -np.inf
    store(points=x)
    code, found = verified("points.zarr")
    assert (code, found["whole"], found["store"]) == (0, True, "array")
    array = found["arrays"][0]
    assert (array["shape"], array["chunks"], array["damage"], array["invalid"]) == ([300, 2], [100, 2], [], 4)
    assert done("verify points.zarr").splitlines()[-1] == "whole"


def test_verify_reports_every_type_of_damage(model: dsp.SpectralDecomposition) -> None:
    code, found = verified("m.zarr")
    assert (code, found["whole"]) == (0, True)
    assert found["store"].startswith("saved ")
    Path("old.zarr/c/1/0").unlink()
    code, found = verified("old.zarr")
    assert (code, found["whole"]) == (1, False)
    assert "c/1/0" in found["arrays"][0]["damage"][0]
    assert verified("old.zarr --allow-missing")[0] == 0
    name = next(name for name, array in zarr.open_group("m.zarr", mode="r").arrays() if array.ndim == 2)
    zarr.open_array(f"m.zarr/{name}", mode="r+")[0, 0] = 12345.0
    code, found = verified("m.zarr")
    assert code == 1
    assert name in found["damage"][0]


def test_a_plan_is_that_of_the_fit_and_writes_no_file(model: dsp.SpectralDecomposition) -> None:
    before = everything()
    found = facts(f"plan {FIT}")
    plan = model.plan("old.zarr")
    assert (found["rows"], found["tasks"]) == (600, len(plan.ranges.ranges))
    assert found["memory"]["sums"] == plan.memory.sums
    for line in ("regress new.zarr y.zarr --kernel gaussian:1 --landmarks 20", "invariant new.zarr y.zarr"):
        assert done(f"plan {line}").startswith("plan: ")
    assert everything() == before


# -- what `fit` and `info` print


def table(text: str) -> tuple[list[str], list[list[str]]]:
    """The titles of the columns, and the cells of each row by the places of the titles."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if re.match(r" +i  ", line))
    ends = [m.end() for m in re.finditer(r"\S+(?: \S+)*", lines[head])]
    every = [lines[head], *(line for line in lines[head + 1 :] if re.match(r" +\d+  ", line))]
    titles, *rows = [[line[a:b].strip() for a, b in zip([0, *ends], ends, strict=False)] for line in every]
    return titles, rows


def test_the_columns_are_what_the_model_knows() -> None:
    landmarks = dsp.basis.Landmarks(dsp.kernels.Gaussian(0.4), 40)
    model = dsp.SpectralDecomposition(basis=landmarks, n_components=7, random_state=0).fit(RNG.random((3000, 2)))
    titles, rows = table(summary_of(model).text())
    assert titles == ["i", "eigenvalue", "+-", "held-out", "group", "reliable"]
    np.testing.assert_allclose([float(row[1]) for row in rows], model.eigenvalues_, rtol=1e-5)
    np.testing.assert_allclose([float(row[3]) for row in rows], model.validation_values_, rtol=1e-5, atol=1e-9)
    for i, row in enumerate(rows):
        value, ends = model.eigenvalues_[i], model.eigenvalue_errors_[i]
        shown = [float(part) for part in row[2].split()]
        halves = ends - value if len(shown) == 2 else [(ends[1] - ends[0]) / 2]
        np.testing.assert_allclose(shown, halves, rtol=0.06, atol=1e-12)
        members = np.flatnonzero(model.multiplets_ == model.multiplets_[i])
        assert row[4] == (f"{members[0]}-{members[-1]}" if len(members) > 1 else "")
        assert row[5] == ("constant" if i < model.n_constants_ else "yes" if model.reliable_[i] else "")
    assert any(row[4] for row in rows)  # pi^2 times 0, 1, 1, 2, 4, 4, 5
