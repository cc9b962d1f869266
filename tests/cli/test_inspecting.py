"""`plot`, `verify` and `plan`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from tests.cli.common import call, done, everything, facts

pytestmark = pytest.mark.usefixtures("folder")
FIT = "fit points.zarr --kernel gaussian:1 --landmarks 30 --components 4"


def points(path: str = "points.zarr", n: int = 300, d: int = 2) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((n, d))
    zarr.create_array(path, data=x, chunks=(100, d))
    return x


BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("ending", BEGINNINGS)
def test_pictures(ending: str) -> None:
    points()
    done("fit points.zarr --landmarks 30 --components 4 --out m.zarr")
    assert done(f"plot m.zarr points.zarr --components 3 --out f.{ending}") == f"picture: f.{ending}\n"
    done(f"plot m.zarr --out s.{ending}")
    done(f"plot m.zarr --kind choice --out c.{ending}")
    for name in "fsc":
        assert Path(f"{name}.{ending}").read_bytes().startswith(BEGINNINGS[ending])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plot m.zarr --kind functions --out f.png", "--kind functions needs POINTS"),
        ("plot m.zarr points.zarr --kind choice --out f.png", "POINTS and --components are for --kind functions"),
        ("plot m.zarr --components 3 --out f.png", "POINTS and --components are for --kind functions; --kind spectrum"),
        ("plot m.zarr --kind functons --out f.png", "functions"),
        ("plan embed points.zarr", "'embed' is not one of 'fit', 'regress', 'invariant'"),
        ("plan fit points.zarr --landmark 3", "No such option '--landmark'"),
    ],
)
def test_usage(line: str, message: str) -> None:
    result = call(line)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_pictures_of_what_has_none() -> None:
    x = points()
    zarr.create_array("y.zarr", data=x[:, 0], chunks=(100,))
    done("regress points.zarr y.zarr --kernel gaussian:1 --landmarks 30 --out r.zarr")
    before = everything()
    with pytest.raises(TypeError, match="pictures are drawn of a fitted SpectralDecomposition"):
        done("plot r.zarr --out p.png")
    with pytest.raises(ValueError, match=r"points\.zarr is an array, not a model"):
        done("plot points.zarr --out p.png")
    with pytest.raises(ValueError, match=r"must end in \.png"):
        done("plot r.zarr --out p.bmp")
    assert everything() == before


def verified(path: str, *words: str) -> tuple[int, dict[str, Any]]:
    return call("verify", path, *words).exit_code, facts("verify", path, *words)


def test_verify_counts_what_columns_hold() -> None:
    x = points("whole.zarr")
    x[3, 0], x[[5, 250], 1], x[7, 1] = np.inf, np.nan, -np.inf
    zarr.create_array("points.zarr", data=x, chunks=(100, 2))
    code, found = verified("points.zarr")
    assert (code, found["whole"], found["store"]) == (0, True, "array")
    array = found["arrays"][0]
    assert (array["shape"], array["chunks"], array["files"], array["damage"]) == ([300, 2], [100, 2], 3, [])
    for i, column in enumerate(array["columns"]):
        valid = x[np.isfinite(x[:, i]), i]
        assert (column["nan"], column["infinite"]) == (int(np.isnan(x[:, i]).sum()), 1)
        assert (column["least"], column["greatest"]) == (valid.min(), valid.max())
        assert column["mean"] == pytest.approx(valid.mean(), rel=1e-12)
        assert column["histogram"] == np.histogram(valid, 24)[0].tolist()
    text = done("verify points.zarr")
    assert text.splitlines()[-1] == "whole"
    assert "█" in text


def test_verify_tells_of_every_kind_of_damage() -> None:
    points()
    done(f"{FIT} --out m.zarr")
    code, found = verified("m.zarr")
    assert (code, found["whole"]) == (0, True)
    assert found["store"].startswith("saved ")
    Path("points.zarr/c/1/0").unlink()
    code, found = verified("points.zarr")
    assert (code, found["whole"]) == (1, False)
    (text,) = found["arrays"][0]["damage"]
    assert "chunk c/1/0 (rows 100 to 200) is missing, and 1 of 3 chunks" in text
    assert verified("points.zarr", "--allow-missing")[0] == 0
    Path("points.zarr/c/2/0").write_bytes(Path("points.zarr/c/2/0").read_bytes()[:40])
    code, found = verified("points.zarr")
    assert code == 1
    assert len(found["arrays"][0]["damage"]) == 2
    assert "2 things are damaged" in call("verify points.zarr").output
    name = next(name for name, array in zarr.open_group("m.zarr", mode="r").arrays() if array.ndim == 2)
    array = zarr.open_array(f"m.zarr/{name}", mode="r+")
    array[0, 0] = 12345.0
    code, found = verified("m.zarr")
    assert code == 1
    assert f"its array {name} is not what was saved" in found["damage"][0]


def test_verify_of_other_things() -> None:
    Path("x.npy").write_bytes(b"")
    zarr.create_group("g.zarr").create_array("empty", shape=(0, 2), chunks=(1, 2), dtype="f8")
    zarr.open_group("g.zarr", mode="r+").create_array("when", data=np.array(["2020-01-01"], "datetime64[ns]"))
    assert verified("g.zarr")[0] == 0
    with pytest.raises(FileNotFoundError, match=r"there is no store at no\.zarr"):
        done("verify no.zarr")
    with pytest.raises(ValueError, match=r"x\.npy is a file, and a zarr store is wanted"):
        done("verify x.npy")
    Path("points.zarr").mkdir()
    Path("points.zarr/zarr.json").write_text("{")
    with pytest.raises(OSError, match="is damaged, and no zarr metadata can be read"):
        done("verify points.zarr")


@pytest.mark.parametrize(
    "line",
    [
        FIT,
        f"{FIT} --operator schroedinger --potential y.zarr",
        "regress points.zarr y.zarr --kernel gaussian:1 --landmarks 30",
        "invariant points.zarr y.zarr --manifold interval:-6:6",
    ],
)
def test_a_plan_writes_nothing(line: str) -> None:
    x = points()
    zarr.create_array("y.zarr", data=x[:, 0] ** 2, chunks=(100,))
    before = everything()
    assert done(f"plan {line}").startswith("plan: ")
    assert facts(f"plan {line}")["rows"] == 300
    assert everything() == before


def test_a_plan_is_that_of_the_fit() -> None:
    points()
    model = dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), n_landmarks=30, n_components=4)
    plan = model.plan("points.zarr")
    found = facts(f"plan {FIT}")
    assert (found["tasks"], found["epochs"]) == (len(plan.ranges.ranges), len(plan.ranges.epochs))
    assert found["memory"]["sums"] == plan.memory.sums
    assert sorted(os.listdir()) == ["points.zarr"]


def test_a_result_without_error_bars_is_whole() -> None:
    points(n=60)
    done(f"{FIT} --folds none --out m.zarr")
    done("transform m.zarr points.zarr --out e.zarr")
    code, found = verified("e.zarr")
    assert (code, found["whole"]) == (0, True), found
    bounds = next(array for array in found["arrays"] if array["name"] == "e.zarr/eigenvalue_lower")
    assert (bounds["files"], bounds["columns"][0]["nan"]) == (1, 4)  # NaN as it was meant, in a file
