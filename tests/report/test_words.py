"""What a report says in words: of both views, of values held out, of what is drawn and of what is not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from daskspectral import report
from daskspectral.kernels import Gaussian
from daskspectral.report import functions, sections
from tests.report.common import field, model, rng, spectral, texts


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


def test_variances_that_shrink_on_rows_held_out_are_overfitted() -> None:
    estimator = field()[0]
    assert estimator.held_out_[0] < estimator.eigenvalues_[0]
    words = texts(report.render(estimator), "held-out")
    assert "fitted values are 16 % larger than the held-out ones: the functions follow accidents of the rows" in words
    assert "0 of 4 differ by less than a tenth" in words
    assert ": the functions hold up on new rows" in texts(report.render(model("lattice")[0]), "held-out")
    patterns = texts(report.render(estimator), "patterns")
    assert "sst (degC)" in patterns
    assert "lat (degrees_north)" in patterns


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


def test_each_panel_holds_its_own_function() -> None:
    estimator, x = model("line")
    (section,) = functions.eigenfunctions(estimator, x)
    for i, picture in enumerate(section.pictures, start=1):
        line = picture.axes.lines[-1]
        values = estimator.transform(np.asarray(line.get_xdata())[:, None])[:, i]
        np.testing.assert_allclose(line.get_ydata(), values)
        assert f"{estimator.eigenvalues_[i]:.3g}" in picture.caption
