"""The report of every kind of model: what is on the page, and what must not be."""

import base64
import re
from collections import Counter
from copy import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from daskspectral import report
from daskspectral.kernels import Gaussian
from tests.common import unreliable
from tests.report.common import MODELS, Page, model, rng, spectral

pytestmark = unreliable

SPECTRAL = ["Spectrum", "Eigenfunctions", "Choice", "Provenance"]
SECTIONS: dict[str, list[str]] = {
    **dict.fromkeys(("moons", "turning"), SPECTRAL),
    "cross": ["Spectrum", "Left singular functions", "Right singular functions", *SPECTRAL[2:]],
    "lags": ["Spectrum", "Slow processes", *SPECTRAL[1:]],
    "field": [*SPECTRAL[:2], "Patterns", *SPECTRAL[2:]],
    "hermite": ["Held out", "Prediction", "Choice", "Provenance"],
    "invariant": ["Eigenspaces", "Prediction", "Provenance"],
    "sdp": ["Spectrum", "Embedding", "Provenance"],
    "moments": ["Provenance"],
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", MODELS)
def test_every_type_of_model_has_a_page_without_scripts_and_links(name: str) -> None:
    estimator, X = model(name)
    for text in (report.render(estimator), report.render(estimator, X)):
        page = Page(text)
        assert page.wrong == []
        assert [title for tag, title in page.headings if tag == "h2"] == SECTIONS[name]
        assert [type(estimator).__name__ in title for tag, title in page.headings if tag == "h1"] == [True]
        assert max(Counter(page.ids).values()) == 1
        links = [str(a["href"]) for _, a in page.tags if a.get("href")]
        assert all(link.startswith("#") and link[1:] in page.ids for link in links)
        pictures = page.every("img")
        assert pictures or name == "moments"
        for one in pictures:
            kind, _, content = str(one["src"]).partition(",")
            assert kind == "data:image/svg+xml;base64"
            assert b"<script" not in base64.b64decode(content)
            assert one["alt"]
        assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.tags}
        assert not [a for _, given in page.tags for a in given if a.startswith("on") or a == "srcset"]
        assert not re.findall(r"https?:|@import|url\(", text)
        assert len(text) < 2_000_000
    if name != "moments":
        head = estimator._repr_html_()  # in a notebook
        assert type(estimator).__name__ in Page(head).words
        assert "sk-" not in head.replace("dsk-", "")
        assert not {"script", "img", "h1"} & {tag for tag, _ in Page(head).tags}


def test_others_show_scikit_learns_diagram() -> None:
    fitted = model("hermite")[0]
    assert "sk-" in clone(fitted)._repr_html_()
    assert "sk-" in make_pipeline(StandardScaler(), fitted)._repr_html_()


def test_the_page_has_the_numbers_of_the_model() -> None:
    estimator, X = map(copy, model("moons"))
    estimator.reliable_ = np.array([True, True, False, True, False, True])
    estimator.warnings_ = ["ReliabilityWarning: 3 of 4 values are unreliable"]
    words = Page(report.render(estimator, X, about="moons.zarr", settings="command: fit\nseed: 7")).words
    values = [f"{value:.6g}" for value in (*estimator.eigenvalues_[1:], *estimator.validation_values_[1:])]
    values += [estimator.moments_.fingerprint, f"{estimator.search_results_.chosen.score:.5g}", "seed: 7"]
    values += ["3 of 4 values are unreliable", "reliable3 of 5"]
    assert [text for text in values if text not in words] == []
    assert len(re.findall(r"λ[₀-₉] = [\d.]+ \(not reliable\)", words)) == 2


EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)> $x^2$ \u5b57\x08"


def test_names_from_the_data_are_text() -> None:
    x = rng().standard_normal((400, 2))
    frame = pd.DataFrame(x, columns=[EVIL, "b"])
    named = spectral(Gaussian(1.0), n_components=3).fit(frame)
    values = rng().standard_normal((60, 4, 5)) + np.arange(5.0)
    attrs = {"units": EVIL, "long_name": EVIL}
    data = xr.DataArray(values, dims=("time$", EVIL, "lon"), name=f"{EVIL}!", attrs=attrs)
    covariance = dsp.EOF(2, random_state=0)
    labeled = covariance.fit(dsp.Rows(data, sample_dims="time$"))
    for text in (
        report.render(named, frame, about=EVIL, settings=EVIL),
        report.render(labeled, data),
        named._repr_html_(),
    ):
        page = Page(text)
        assert page.wrong == []
        assert "script" not in {tag for tag, _ in page.tags}
        assert all(str(img["src"]).startswith("data:image/svg+xml") for img in page.every("img"))
        assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on")]


@pytest.mark.slow
def test_a_file_is_the_page_and_files_are_not_overwritten(tmp_path: Path) -> None:
    estimator, X = model("moons")
    path = tmp_path / "report.html"
    report.save(estimator, path, X)
    assert path.read_text(encoding="utf-8") == report.render(estimator, X), "the same model, the same page"
    with pytest.raises(FileExistsError):
        report.save(estimator, path, X)
