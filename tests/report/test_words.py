"""What a report says in words: of both views, of values held out, of what is drawn and of what is not."""

from __future__ import annotations

import re
import warnings
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import daskspectral as dsp
from daskspectral import report
from daskspectral.kernels import Gaussian
from daskspectral.plot import canvas
from daskspectral.report import functions, sections
from tests.report.common import Page, field, model, path, rng, spectral, texts


def test_cross_draws_the_functions_of_both_views() -> None:
    estimator, (x, y) = model("cross")
    page = report.render(estimator, (x, y))
    left, right = texts(page, "left-singular-functions"), texts(page, "right-singular-functions")
    assert "The first 3 that are not constant, over rows of the data: level lines" in left
    assert "The first 3 that are not constant, over rows of the second view: its values against the column" in right
    assert "The second view has 60 of its own" in texts(page, "landmarks")
    alone = report.render(estimator)
    assert "over the landmarks" in texts(alone, "right-singular-functions")
    assert "over the landmarks" in texts(report.render(estimator, x), "right-singular-functions")
    with pytest.raises(ValueError, match="of 2 views of each row; 3 are given"):
        report.render(estimator, (x, y, y))
    with pytest.raises(ValueError, match="the second view has 2 columns, the model was fitted on 1"):
        report.render(estimator, (x, x))


def test_right_functions_are_those_of_the_model() -> None:
    estimator, (_, y) = model("cross")
    axes = dsp.plot.eigenfunction(estimator, y, 1, right=True)
    (line,) = [line for line in axes.lines if len(line.get_xdata()) > 2]
    x = np.asarray(line.get_xdata())
    np.testing.assert_allclose(line.get_ydata(), estimator.transform_right(x[:, None])[:, 1])
    with pytest.raises(ValueError, match="right functions of other variables are those of Cross"):
        dsp.plot.eigenfunction(model("plane")[0], None, 1, right=True)


def test_several_trajectories_and_views_are_taken_as_the_fit_took_them() -> None:
    trajectories = [path(3000), path(2000)]
    transfer = spectral(Gaussian(0.6), dsp.operators.Transfer(10), n_components=3).fit(trajectories)
    words = texts(report.render(transfer, trajectories), "singular-functions")
    assert "of the first of 2 trajectories" in words
    x = rng().standard_normal((800, 2))
    views = (x, x + 0.1 * rng(3).standard_normal(x.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dsp.errors.TrustWarning)
        changed = spectral(Gaussian(1.0), dsp.operators.Augmentation(), n_components=3).fit(views)
    assert "over rows of the data" in texts(report.render(changed, views), "eigenfunctions")


def test_variances_that_shrink_on_rows_held_out_are_overfitted() -> None:
    estimator = field()[0]
    assert estimator.held_out_[0] < estimator.eigenvalues_[0]
    words = texts(report.render(estimator), "held-out")
    assert "fitted values are 16 % larger than the held-out ones: the functions follow accidents of the rows" in words
    assert "0 of 4 differ by less than a tenth" in words


def test_functions_do_not_hold_up_where_the_fit_warns_that_they_do_not() -> None:
    estimator = model("cross")[0]
    assert any("follow accidents" in text for text in estimator.warnings_)
    words = texts(report.render(estimator), "held-out")
    assert "not all of the functions hold up on new rows" in words
    close = np.abs(estimator.held_out_ / estimator.singular_values_ - 1) < 0.09
    assert f"{close.sum()} of 4 differ by less than a tenth" in words
    assert ": the functions hold up on new rows" in texts(report.render(model("lattice")[0]), "held-out")


def test_the_only_value_is_told_in_the_singular_and_drawn_without_a_warning() -> None:
    x = rng().standard_normal((800, 2))
    estimator = spectral(Gaussian(1.0), n_components=1).fit(x)
    page = report.render(estimator, x)
    assert "1 eigenvalue; it is trusted" in Page(page).words
    assert "Held out" not in [title for _, title in Page(page).headings]
    assert dsp.plot.held_out(estimator).get_xlim()[1] > 0


def test_names_are_cut_to_what_an_axis_holds() -> None:
    names = ["a very long name " * 9, "温度 \u202e°C", "bell\x07"]
    frame = pd.DataFrame(rng().standard_normal((300, 3)), columns=names)
    estimator = spectral(Gaussian(2.0), n_components=3).fit(frame)
    page = report.render(estimator, frame)
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert max(map(len, drawn)) <= 33
    assert any(text.endswith("\N{HORIZONTAL ELLIPSIS}") for text in drawn)
    assert "\u202e" not in "".join(drawn)
    assert not re.findall(r"[\x00-\x08]", page)


def test_support_is_told_of_functions_that_sit_somewhere() -> None:
    assert "effective points" in texts(report.render(model("plane")[0]), "rank-and-support")
    for name in ("field", "lattice", "turning"):
        assert "effective points" not in texts(report.render(model(name)[0]), "rank-and-support"), name


def test_defaults_that_say_nothing_are_not_in_the_title() -> None:
    title = Page(report.render(model("plane")[0])).headings[0][1]
    assert title == "SpectralDecomposition of Laplacian()"
    assert "Laplacian(manifold=Sphere(d=3))" in Page(report.render(model("sphere")[0])).headings[0][1]


def test_the_penalty_that_was_taken_is_told_with_its_error() -> None:
    estimator = model("hermite")[0]
    words = texts(report.render(estimator), "held-out")
    least = np.asarray(estimator.cv_curve_, dtype=float)[:, 1].min()
    assert f"the mean squared error is {abs(least):.3g} with the penalty {estimator.alpha_:.3g}" in words


def test_columns_in_units_of_their_own_fill_the_picture() -> None:
    x = np.column_stack([rng().random(1000) * 360, rng(1).random(1000)])
    estimator = spectral(Gaussian(1.0), standardize=True, n_components=3).fit(x)
    raw = dsp.GraphLaplacian(Gaussian(20.0), Gaussian(50.0), n_components=3, n_landmarks=20, random_state=0).fit(
        x[:300]
    )
    for axes in (dsp.plot.eigenfunction(raw, x, 1), dsp.plot.landmarks(raw, x), dsp.plot.landmarks(estimator, x)):
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert 0.2 < axes.get_aspect() * (high - low) / (right - left) < 5


def test_hollow_marks_stay_hollow_where_many_are_drawn_as_one_path() -> None:
    x = rng().random((1500, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = spectral(Gaussian(0.3), n_components=45, n_landmarks=100).fit(x)
    count = len(estimator.eigenvalues_) - estimator.trusted_
    assert count > 30
    page = report.render(estimator)
    spectrum = page.split('<section id="spectrum"', 1)[1].split("</section>", 1)[0]
    every = re.findall(r'<path d="(?:M[\d. ]+h0){30,}" style="([^"]*)"', spectrum)
    assert any("var(--series-0)" in style for style in every), "the edge of hollow marks"
    assert any("var(--paper)" in style for style in every), "the inside of hollow marks"
    assert not any("var(--ink)" in style for style in every), "ticks are no dots"


def test_the_head_counts_what_is_trusted() -> None:
    estimator = model("plane")[0]
    trusted, count = estimator.trusted_, len(estimator.eigenvalues_)
    assert 0 < trusted < count
    assert f"{trusted} of {count}" in Page(report.render(estimator)).words.split("Spectrum")[0]


def test_each_panel_holds_its_own_function() -> None:
    estimator, x = model("line")
    (section,) = functions.eigenfunctions(estimator, x)
    for i, picture in enumerate(section.pictures, start=1):
        line = picture.axes.lines[-1]
        values = estimator.transform(np.asarray(line.get_xdata())[:, None])[:, i]
        np.testing.assert_allclose(line.get_ydata(), values)
        assert f"{estimator.eigenvalues_[i]:.3g}" in picture.caption


def test_level_lines_are_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator, X = model("plane")
    drawn: list[Any] = []
    monkeypatch.setattr(canvas, "level_lines", lambda axes, x, y, values, **options: drawn.append((x, y, values)))
    dsp.plot.eigenfunction(estimator, X, 2)
    x, y, values = drawn[0]
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(values.ravel(), estimator.transform(places)[:, 2])


def test_a_choice_at_an_edge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = model("moons")[0]
    assert "a better one may lie beyond" not in texts(report.render(estimator), "choice").split("How to read")[0]
    monkeypatch.setattr(estimator, "choice_", replace(estimator.choice_, edge="scale"))
    assert "The best scale is the last one that was tried: a better one may lie beyond" in report.render(estimator)


def test_the_cost_counts_rows_read_and_left_out() -> None:
    assert "rows read 1\u202f500" in " ".join(report.render(model("plane")[0]).replace("</dt><dd>", " ").split(" "))
    x = rng().standard_normal((400, 2))
    x[[3, 50, 51]] = np.nan
    skipping = spectral(Gaussian(1.0), n_components=3).fit(x, on_invalid="skip")
    assert "3 with NaN or infinity" in texts(report.render(skipping), "cost")


def test_a_penalty_at_an_end_is_told() -> None:
    curve = np.array([[1e-3, 1.0], [1e-2, 2.0], [1.0, 3.0]])
    (at_an_end,) = sections._penalties(curve, "loss", 1e-3)
    assert at_an_end.words == [
        "On rows left out the loss is 1 with the penalty 0.001, which was taken. It is the last one that was tried."
    ]
    (inside,) = sections._penalties(curve, "loss", 1e-2)
    assert inside.words == ["On rows left out the loss is 2 with the penalty 0.01, which was taken."]


def test_patterns_are_in_the_units_of_the_field() -> None:
    words = texts(report.render(model("field")[0]), "patterns")
    assert "sst (degC)" in words
    assert "lat (degrees_north)" in words


def test_an_embedding_of_one_coordinate_is_a_histogram_of_all_rows() -> None:
    x = rng().standard_normal((200, 2))
    page = report.render(dsp.DiffusionMap(1.0, n_components=1).fit(x), x)
    assert "A histogram of the one coordinate" in page
    assert "coordinate 0" in texts(page, "embedding")


def test_patterns_along_one_dimension_are_lines() -> None:
    import xarray as xr

    depth = np.linspace(0, 100, 12)
    time = np.sin(np.arange(150) / 4)[:, None]
    values = time * np.exp(-depth / 30) + 0.05 * rng().standard_normal((150, 12))
    coords: dict[str, Any] = {"depth": ("depth", depth, {"units": "m"})}
    data = xr.DataArray(values, coords, ("time", "depth"), name="temperature")
    estimator = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dsp.errors.TrustWarning)
        estimator.fit(data, sample_dims=("time",))
    (section,) = functions.patterns(estimator)
    for picture in section.pictures:
        assert picture.axes.get_xlabel() == "depth (m)"
        np.testing.assert_array_equal(picture.axes.lines[-1].get_xdata(), depth)
    first = np.asarray(section.pictures[0].axes.lines[-1].get_ydata())
    assert abs(np.corrcoef(first, np.exp(-depth / 30))[0, 1]) > 0.99


def test_an_embedding_that_is_not_kept_is_drawn_from_the_points() -> None:
    estimator, x = model("sdp")
    estimator = copy(estimator)
    drawn = texts(report.render(estimator), "embedding")
    del estimator.embedding_
    assert "It is not kept with the model" in texts(report.render(estimator), "embedding")
    assert texts(report.render(estimator, x), "embedding").split("rows")[0] == drawn.split("rows")[0]
