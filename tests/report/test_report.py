"""The report of every kind of model: what is on the page, and what must not be."""

import re
from collections import Counter
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral import report
from daskspectral.engine.sampling import take_rows
from daskspectral.kernels import Gaussian
from daskspectral.plot.views import View
from daskspectral.report import sections
from tests.common import doubtful
from tests.report.common import MODELS, Page, model, rng, spectral, texts

pytestmark = doubtful

SPECTRAL = ["Spectrum", "Held out", "Eigenfunctions", "Landmarks", "Choice", "Rank", "Provenance"]
SECTIONS: dict[str, list[str]] = {
    **dict.fromkeys(("plane", "moons", "line", "table"), SPECTRAL),
    "cross": [*SPECTRAL[:2], "Left singular functions", "Right singular functions", *SPECTRAL[3:]],
    "transfer": [*SPECTRAL[:2], "Singular functions", *SPECTRAL[3:]],
    "lags": [SPECTRAL[0], "Slow processes", *SPECTRAL[1:]],
    "lattice": [*SPECTRAL[:3], "Choice", "Provenance"],
    "turning": ["Spectrum", "Eigenfunctions", *SPECTRAL[4:]],
    "field": [*SPECTRAL[:3], "Patterns", *SPECTRAL[4:]],
    "hermite": ["Held out", "Prediction", "Landmarks", "Choice", "Rank", "Provenance"],
    "invariant": ["Eigenspaces", "Prediction", "Rank", "Provenance"],
    "sdp": ["Spectrum", "Embedding", "Provenance"],
    "moments": ["Rank", "Provenance"],
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_has_a_page_on_which_nothing_runs_or_loads(name: str) -> None:
    estimator, X = model(name)
    for text in (report.render(estimator), report.render(estimator, X)):
        page = Page(text)
        assert page.wrong == []
        assert [title for tag, title in page.headings if tag == "h2"] == SECTIONS[name]
        assert [type(estimator).__name__ in title for tag, title in page.headings if tag == "h1"] == [True]
        assert max(Counter(page.ids).values()) == 1, "ids are unlike one another"
        known = set(page.ids)
        links = [str(a["href"]) for _, a in page.tags if a.get("href")]
        assert all(link.startswith("#") and link[1:] in known for link in links)
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= known
        pictures = page.every("svg")
        assert pictures
        assert all(svg["role"] == "img" and svg["aria-label"] for svg in pictures)
        assert not {"script", "link", "img", "image", "iframe", "object"} & {tag for tag, _ in page.tags}
        attributes = {name for _, given in page.tags for name in given}
        assert not [a for a in attributes if a.startswith("on") or a in ("src", "srcset")]
        assert not re.findall(r"https?:|@import|url\((?!#)|href=\"(?!#)", text)
        assert len(text) < 1_500_000
    if name != "moments":
        head = estimator._repr_html_()  # in a notebook
        assert type(estimator).__name__ in Page(head).words
        assert "sk-" not in head.replace("dsk-", "")
        assert not {"script", "svg", "h1"} & {tag for tag, _ in Page(head).tags}


def test_others_show_scikit_learns_diagram() -> None:
    fitted = model("plane")[0]
    assert "sk-" in clone(fitted)._repr_html_()
    assert "sk-" in make_pipeline(StandardScaler(), fitted)._repr_html_()


def test_the_page_says_the_numbers_of_the_model() -> None:
    estimator, X = map(copy, model("moons"))
    estimator.trusted_ = np.array([True, True, False, True, False, True])
    words = Page(report.render(estimator, X, about="moons.zarr", settings="command: fit\nseed: 7", saved="0.0.9")).words
    values = [f"{value:.6g}" for value in (*estimator.eigenvalues_[1:], *estimator.held_out_[1:])]
    values += [estimator.moments_.fingerprint, f"{estimator.choice_.chosen.score:.5g}", "daskspectral 0.0.9"]
    values += ["Of 5 eigenvalues beyond the constant, 3 are trusted; values 2 and 4 are not.", "trusted3 of 5"]
    assert [text for text in values if text not in words] == []
    assert len(re.findall(r"λ[₀-₉] = [\d.]+ \(not trusted\)", words)) == 2


def test_the_page_says_what_the_fit_warned_of() -> None:
    calm = model("line")[0]
    assert "warned of nothing" in Page(report.render(calm)).words
    doubted = copy(calm)
    doubted.doubts_ = ["TrustWarning: 3 of 4 values are doubtful"]
    assert "3 of 4 values are doubtful" in Page(report.render(doubted)).words


EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


def test_names_from_the_data_are_text() -> None:
    x = rng().standard_normal((400, 2))
    frame = pd.DataFrame(x, columns=[EVIL, "b"])
    named = spectral(Gaussian(1.0), n_components=3).fit(frame)
    values = rng().standard_normal((60, 4, 5)) + np.arange(5.0)
    attrs = {"units": EVIL, "long_name": EVIL}
    data = xr.DataArray(values, dims=("time", EVIL, "lon"), name=f"{EVIL}!", attrs=attrs)
    covariance = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2, random_state=0)
    labelled = covariance.fit(dsp.Rows(data, sample_dims="time"))
    pages = [
        report.render(named, frame, about=EVIL, settings=EVIL, saved=EVIL),
        report.render(labelled, data),
        named._repr_html_(),
    ]
    for text in pages:
        page = Page(text)
        assert page.wrong == []
        assert not {"script", "img"} & {tag for tag, _ in page.tags}
        assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on")]
    assert all(EVIL in Page(text).words for text in pages[:2])


def test_errors() -> None:
    with pytest.raises(TypeError, match="of a fitted estimator of daskspectral or of moments; got ndarray"):
        report.render(np.zeros(3))
    with pytest.raises(ValueError, match="3 columns, the model was fitted on 2"):
        report.render(model("plane")[0], np.zeros((5, 3)))


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, X = model("line")
    path = tmp_path / "report.html"
    report.save(estimator, path, X)
    assert path.read_text(encoding="utf-8") == report.render(estimator, X), "the same model, the same page"
    with pytest.raises(FileExistsError, match="overwrite=True"):
        report.save(estimator, path, X)
    path.write_bytes(b"an older one")

    def half(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="disk full"):
        report.save(estimator, path, X, overwrite=True)
    assert path.read_bytes() == b"an older one"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_cross_draws_the_functions_of_both_views() -> None:
    estimator, (x, y) = model("cross")
    page = report.render(estimator, (x, y))
    left, right = texts(page, "left-singular-functions"), texts(page, "right-singular-functions")
    assert "The first 3 that are not constant, over rows of the data: level lines" in left
    assert "The first 3 that are not constant, over rows of the second view: its values against the column" in right


def test_variances_that_shrink_on_rows_held_out_are_overfitted() -> None:
    estimator = model("field")[0]
    assert estimator.held_out_[0] < estimator.eigenvalues_[0]
    words = texts(report.render(estimator), "held-out")
    assert "fitted values are 16 % larger than the held-out ones: the functions follow accidents of the rows" in words
    assert ": the functions hold up on new rows" in texts(report.render(model("line")[0]), "held-out")
    assert "sst (degC)" in texts(report.render(estimator), "patterns")


def test_a_choice_at_an_edge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = model("moons")[0]
    assert "a better one may lie beyond" not in texts(report.render(estimator), "choice").split("How to read")[0]
    monkeypatch.setattr(estimator, "choice_", replace(estimator.choice_, edge="largest"))
    assert "The best scale is the largest that was tried: a better one may lie beyond" in report.render(estimator)


def test_a_penalty_at_an_end_is_told() -> None:
    curve = np.array([[1e-3, 1.0], [1e-2, 2.0], [1.0, 3.0]])
    (at_an_end,) = sections._penalties(curve, 1e-3)
    assert at_an_end.words == [
        "On rows left out the mean squared error is 1 with the penalty 0.001, which was taken.",
        "It is the last one that was tried.",
    ]


def test_each_panel_holds_its_own_function() -> None:
    estimator, x = model("line")
    (section,) = sections._eigenfunctions(estimator, x)
    for i, picture in enumerate(section.pictures, start=1):
        line = picture.axes.lines[-1]
        values = estimator.transform(np.asarray(line.get_xdata())[:, None])[:, i]
        np.testing.assert_allclose(line.get_ydata(), values)
        assert f"{estimator.eigenvalues_[i]:.3g}" in picture.caption


def test_a_manifold_that_draws_no_points_asks_for_those_of_the_fit() -> None:
    known = dsp.InvariantRegressor()
    known.manifold_ = dsp.manifolds.Implicit(lambda x: x[None], 3)  # its points are known by their normals alone
    with pytest.raises(ValueError, match=r"no points of Implicit.* are drawn here; give the points of the fit"):
        sections._places(SimpleNamespace(estimator=known, landmarks=None), None)  # type: ignore[arg-type]


def test_a_model_of_anomalies_has_a_page_with_its_functions_along_time() -> None:
    field = dsp.datasets.ocean(60)
    rows = dsp.Rows(field, sample_dims="time", latitude="lat", anomaly="month", detrend=1, on_invalid="skip")
    model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2).fit(rows)
    assert "along all 60 rows" in report.render(model, field)
    view = View(model)
    _, points = take_rows(view.source(field), np.arange(60))
    np.testing.assert_allclose(view.evaluate(points), model.transform(field), atol=1e-10)
