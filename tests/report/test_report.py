"""The report of every kind of model: what is on the page, and what must not be."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import daskspectral as dsp
from daskspectral import report
from daskspectral.errors import TrustWarning
from daskspectral.kernels import Gaussian
from tests.report.common import MODELS, Page, model, rng, spectral

SPECTRAL = ["Spectrum", "Held out", "Eigenfunctions", "Landmarks", "Choice", "Rank and support", "Cost", "Provenance"]
SECTIONS: dict[str, list[str]] = {
    **dict.fromkeys(("plane", "moons", "line", "sphere", "many"), SPECTRAL),
    "cross": [*SPECTRAL[:2], "Left singular functions", "Right singular functions", *SPECTRAL[3:]],
    "transfer": [*SPECTRAL[:2], "Singular functions", *SPECTRAL[3:]],
    "lattice": ["Spectrum", "Held out", "Eigenfunctions", "Choice", "Rank and support", "Cost", "Provenance"],
    "turning": ["Spectrum", "Eigenfunctions", "Choice", "Rank and support", "Cost", "Provenance"],
    "field": [*SPECTRAL[:3], "Patterns", *SPECTRAL[4:]],
    "without_folds": ["Spectrum", *SPECTRAL[2:]],
    "graph": ["Spectrum", "Eigenfunctions", "Landmarks", "Provenance"],
    "hermite": ["Held out", "Prediction", "Landmarks", "Choice", "Rank and support", "Cost", "Provenance"],
    "invariant": ["Eigenspaces", "Prediction", "Rank and support", "Cost", "Provenance"],
    "classifier": ["Eigenspaces", "Held out", "Cost", "Provenance"],
    **{name: ["Spectrum", "Embedding", "Cost", "Provenance"] for name in ("sdp", "kernelised")},
    "diffusion": ["Spectrum", "Embedding", "Provenance"],
    "moments": ["Rank and support", "Cost", "Provenance"],
}


@pytest.mark.parametrize("points", [False, True], ids=["alone", "points"])
@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_has_a_page(name: str, points: bool) -> None:
    estimator, X = model(name)
    text = report.render(estimator, X if points else None, about=f"{name}.zarr")
    page = Page(text)
    assert [title for tag, title in page.headings if tag == "h2"] == SECTIONS[name]
    assert page.headings[0][0] == "h1"
    assert type(estimator).__name__ in page.headings[0][1]
    assert [tag for tag, _ in page.headings].count("h1") == 1
    assert max(Counter(page.ids).values()) == 1, "ids are unlike one another"
    known = set(page.ids)
    links = [str(a["href"]) for _, a in page.tags if a.get("href")]
    assert all(link.startswith("#") and link[1:] in known for link in links)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= known
    pictures = page.every("svg")
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in pictures)
    assert len(pictures) >= 1
    assert len(text) < 1_500_000


@pytest.mark.parametrize("name", ["moons", "field", "sphere", "many"])
def test_nothing_on_a_page_runs_or_loads(name: str) -> None:
    estimator, X = model(name)
    text = report.render(estimator, X)
    page = Page(text)
    assert not {"script", "link", "img", "image", "iframe", "object", "embed", "video"} & {tag for tag, _ in page.tags}
    assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on") or a in ("src", "srcset")]
    assert "@import" not in text
    assert not re.findall(r"https?:|url\((?!#)|href=\"(?!#)", text)


def test_a_page_has_the_colours_of_its_style_alone() -> None:
    text = report.render(*model("moons"))
    style, body = text.split("</style>", 1)
    assert not re.findall(r"#[0-9a-f]{6}\b", body), "a colour that would not follow the theme"
    used, light, dark = set(re.findall(r"var\(--([\w-]+)\)", body)), *style.split("prefers-color-scheme: dark", 1)
    assert {"ink", "series-0", "diverging-5"} < used
    for name in used:
        assert f"--{name}:" in light
        assert f"--{name}:" in dark


def luminance(colour: str) -> float:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lines_stand_out_in_both_themes(theme: str) -> None:
    style = report.render(model("moments")[0]).split("</style>")[0]
    part = style.split("prefers-color-scheme: dark")[0 if theme == "light" else 1]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part))
    for name in ("ink", "muted", "link", "doubt", *(f"series-{i}" for i in range(6))):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
        assert contrast(colours[name], colours["card"]) >= 4.5, name
    assert contrast(colours["cloud"], colours["paper"]) >= 3
    steps = [luminance(colours[f"sequential-{i}"]) for i in range(10)]
    assert len(set(np.sign(np.diff(steps)))) == 1, "the scale is told apart by lightness"
    steps = [luminance(colours[f"diverging-{i}"]) for i in range(11)]
    assert len(set(np.sign(np.diff(steps[:6])))) == len(set(np.sign(np.diff(steps[5:])))) == 1


def test_the_page_says_the_numbers_of_the_model() -> None:
    estimator, X = model("moons")
    words = Page(report.render(estimator, X, about="moons.zarr", settings="command: fit\nseed: 7", saved="0.0.9")).words
    assert estimator.moments_.fingerprint in words
    assert "2\u202f000" in words
    assert f"{estimator.choice_.chosen.score:.5g}" in words
    assert "seed: 7" in words
    assert "daskspectral 0.0.9" in words
    for value, other in zip(estimator.eigenvalues_[1:], estimator.held_out_[1:], strict=True):
        assert f"{value:.6g}" in words
        assert f"{other:.6g}" in words
    trusted = estimator.trusted_
    assert (f"the first {trusted} are trusted" if trusted > 1 else "only the first is trusted") in words


def test_the_page_says_what_the_fit_warned_of(tmp_path: Path) -> None:
    x = rng().standard_normal((300, 2))
    with pytest.warns(TrustWarning) as told:
        estimator = dsp.SpectralDecomposition(n_components=40, random_state=0).fit(x)
    texts = [str(w.message) for w in told if issubclass(w.category, TrustWarning)]
    assert texts
    estimator.save(tmp_path / "model.zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = dsp.load(tmp_path / "model.zarr")
        words = Page(report.render(again)).words
    assert again.warnings_ == estimator.warnings_ == [f"TrustWarning: {text}" for text in texts]
    for text in texts:
        assert text[1:] in words
    calm = model("line")[0]
    assert calm.warnings_ == []
    assert "warned of nothing" in Page(report.render(calm)).words


EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


def test_names_from_the_data_are_text() -> None:
    import pandas as pd
    import xarray as xr

    x = rng().standard_normal((400, 2))
    frame = pd.DataFrame(x, columns=[EVIL, "b"])
    named = spectral(Gaussian(1.0), n_components=3).fit(frame)
    values = rng().standard_normal((60, 4, 5)) + np.arange(5.0)
    attrs = {"units": EVIL, "long_name": EVIL}
    data = xr.DataArray(values, dims=("time", EVIL, "lon"), name=f"{EVIL}!", attrs=attrs)
    covariance = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2, random_state=0)
    labelled = covariance.fit(data, sample_dims="time")
    labels = np.where(x[:, 0] > 0, EVIL, "b")
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    told = dsp.InvariantClassifier(dsp.manifolds.Sphere(2), dsp.groups.Permutations(2)).fit(unit, labels)
    texts = [
        report.render(named, frame, about=EVIL, settings=EVIL, saved=EVIL),
        report.render(labelled, data),
        report.render(told),
        named._repr_html_(),
    ]
    for text in texts:
        page = Page(text)
        assert not {"script", "img"} & {tag for tag, _ in page.tags}
        assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on")]
    assert all(EVIL in Page(text).words for text in texts[:3])


def test_errors() -> None:
    with pytest.raises(TypeError, match="of a fitted estimator of daskspectral or of moments; got ndarray"):
        report.render(np.zeros(3))
    with pytest.raises(NotFittedError):
        report.render(dsp.SpectralDecomposition())
    with pytest.raises(ValueError, match="3 columns, the model was fitted on 2"):
        report.render(model("plane")[0], np.zeros((5, 3)))


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, X = model("line")
    path = tmp_path / "report.html"
    report.save(estimator, path, X)
    assert path.read_text(encoding="utf-8") == report.render(estimator, X), "the same model, the same page"
    path.write_bytes(b"an older one")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        report.save(estimator, path, X)

    def half(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_bytes", half)
        with pytest.raises(OSError, match="disk full"):
            report.save(estimator, path, X, overwrite=True)
    assert path.read_bytes() == b"an older one"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(ValueError, match=r"a report's name must end in \.html, \.htm"):
        report.save(dsp.SpectralDecomposition(), tmp_path / "report.pdf")
    with pytest.raises(FileNotFoundError):
        report.refuse_report(tmp_path / "nowhere" / "report.html", overwrite=False)
