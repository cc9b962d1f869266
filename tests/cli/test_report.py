"""`daskspectral report`: a page of any saved model, at a path or a URL, never in the place of another unasked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.kernels import Gaussian
from tests.cli.common import call, done, facts
from tests.report.common import Page


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("sample two-moons --noise 0.05 --n 600 --seed 1 --out x.zarr --quiet")
    done("fit x.zarr --kernel gaussian:0.5 --landmarks 30 --components 4 --seed 3 --out model.zarr --quiet")


def test_a_page_with_the_settings_kept_beside_the_model() -> None:
    assert done("report model.zarr x.zarr --out report.html") == "report: report.html\n"
    words = Page(Path("report.html").read_text(encoding="utf-8")).words
    assert "model.zarr" in words
    assert "landmarks: '30'" in words or "landmarks: 30" in words
    assert "over rows of the data" in words
    assert f"daskspectral {dsp.__version__}" in words
    assert facts("report model.zarr --out alone.htm") == {"report": "alone.htm"}
    words = Page(Path("alone.htm").read_text(encoding="utf-8")).words
    assert "over the landmarks" in words
    assert done("report model.zarr x.zarr --config report.html.yaml --out again.html") == "report: again.html\n"
    assert Path("again.html").read_bytes() == Path("report.html").read_bytes()


def test_moments_have_a_page_too() -> None:
    dsp.save(dsp.load("model.zarr").moments_, "moments.zarr")
    done("report moments.zarr --out moments.html")
    assert "No settings are kept beside it" in Page(Path("moments.html").read_text(encoding="utf-8")).words


def test_the_second_view_of_cross() -> None:
    done("sample two-moons --noise 0.1 --n 600 --seed 2 --out y.zarr --quiet")
    done("fit x.zarr --view y.zarr --operator cross --kernel gaussian:0.5 --landmarks 20 --components 3 --out c.zarr")
    done("report c.zarr x.zarr --view y.zarr --out both.html")
    words = Page(Path("both.html").read_text(encoding="utf-8")).words
    assert "over rows of the data" in words
    assert "over rows of the second view" in words
    done("report c.zarr x.zarr --view y.zarr --config both.html.yaml --out again.html")
    assert Path("again.html").read_bytes() == Path("both.html").read_bytes()
    done("report c.zarr x.zarr --out one.html")
    assert "over rows of the second view" not in Page(Path("one.html").read_text(encoding="utf-8")).words
    assert "--view goes with POINTS" in call("report c.zarr --view y.zarr --out no.html").output
    assert "of 2 views of each row; 3 are given" in str(
        call("report c.zarr x.zarr --view y.zarr --view y.zarr --out no.html").exception
    )
    assert not list(Path().glob("no.html*"))


def test_nothing_is_overwritten_unasked() -> None:
    Path("report.html").write_text("mine")
    result = call("report model.zarr --out report.html")
    assert "report.html exists: choose another path, or replace it" in str(result.exception)
    assert Path("report.html").read_text() == "mine"
    done("report model.zarr --out report.html --overwrite")
    assert Path("report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("report model.zarr --out report.pdf", "a report's name must end in .html, .htm"),
        ("report nothing.zarr --out report.html", "there is no saved model at nothing.zarr"),
        ("report model.zarr nothing.zarr --out report.html", "nothing.zarr"),
        ("report x.zarr --out report.html", "is an array, not a model"),
        ("report model.zarr three.zarr --out report.html", "3 columns, the model was fitted on 2"),
    ],
)
def test_errors_leave_nothing(words: str, expected: str) -> None:
    import zarr

    zarr.create_array("three.zarr", data=np.zeros((10, 3)))
    result = call(words)
    assert expected in str(result.exception)
    assert not list(Path().glob("report.*"))


def test_a_model_of_ones_own_is_trusted_by_name() -> None:
    x = np.random.default_rng(0).standard_normal((200, 2))
    model = dsp.SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=20, n_components=3, random_state=0).fit(x)
    model.save("own.zarr")
    assert done("report own.zarr --trust nobody.Kernel --out own.html") == "report: own.html\n"
