"""What a notebook shows: the head of the report for a fitted estimator, scikit-learn's diagram for others."""

from __future__ import annotations

from typing import Any

import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import daskspectral as dsp
from tests.report.common import MODELS, Page, model


@pytest.mark.parametrize("name", [name for name in MODELS if name != "moments"])
def test_a_fitted_estimator_shows_its_head(name: str) -> None:
    estimator: Any = model(name)[0]
    text = estimator._repr_html_()
    page = Page(text)
    assert type(estimator).__name__ in page.words
    assert "sk-" not in text.replace("dsk-", "")
    assert not {"script", "svg", "h1"} & {tag for tag, _ in page.tags}
    assert estimator._repr_mimebundle_()["text/html"] == text


def test_others_show_the_diagram() -> None:
    fitted = model("plane")[0]
    for text in (clone(fitted)._repr_html_(), make_pipeline(StandardScaler(), fitted)._repr_html_()):
        assert "sk-" in text
    assert "dsk" not in dsp.SDPEmbedding()._repr_mimebundle_()["text/html"]
    inside = make_pipeline(StandardScaler(), model("lattice")[0])  # which has no patterns_
    assert "sk-" in inside._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert list(fitted._repr_mimebundle_()) == ["text/plain"]
