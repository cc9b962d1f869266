"""One summary of a model: its line, text, JSON and HTML say the same verdict, and name what is doubted."""

import json

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.estimators.summary import Summary, summary_of
from daskspectral.kernels import Gaussian
from tests.common import unreliable

pytestmark = unreliable

RNG = np.random.default_rng(0)


def fitted(x: np.ndarray, scale: float) -> dsp.SpectralDecomposition:
    return dsp.SpectralDecomposition(basis=Landmarks(Gaussian(scale), 60), n_components=6, random_state=0).fit(x)


def renderings(model: dsp.SpectralDecomposition) -> list[str]:
    found = summary_of(model)
    record = json.loads(json.dumps(found.json(), allow_nan=False, ensure_ascii=False))
    return [repr(model), found.text(), record["verdict"], model._repr_html_(), dsp.report.render(model)]


def test_a_value_that_is_doubted_is_named_in_every_rendering() -> None:
    with pytest.warns(dsp.ReliabilityWarning, match="half of the values"):
        model = fitted(RNG.standard_normal((2500, 2)), 1.0)
    assert model.reliable_.tolist() == [True, True, True, False, False, False]
    verdict = (
        "Of 5 eigenvalues beyond the constant, 2 are reliable; values 3 to 5 are not. The fit warns that results "
        "may be unreliable."
    )
    assert all(verdict in rendering for rendering in renderings(model))
    assert summary_of(model).json()["warnings"][0].startswith("Of 5 eigenvalues")
    assert "\n" not in repr(model)


def test_every_kind_of_model_has_one() -> None:
    reliable = fitted(RNG.random((3000, 1)), 0.3)
    said = "Of 5 eigenvalues beyond the constant, all are reliable."
    assert all(said in rendering and "warns" not in rendering for rendering in renderings(reliable))
    x = RNG.standard_normal((60, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    features = dsp.InvariantFeatures(dsp.manifolds.Sphere(3), n_eigenfunctions=9).fit(x)
    kernel = dsp.KernelEmbedding(random_state=0).fit(x[:20, :2])
    diffusion = dsp.DiffusionMap(0.5, random_state=0).fit(x)
    words_of = {features: "Fitted.", kernel: "An embedding of rank", diffusion: "2 diffusion coordinates"}
    for model, words in words_of.items():
        found = summary_of(model)
        assert isinstance(found, Summary)
        assert found.line.startswith(f"{type(model).__name__}: {words}")
        assert found.line in repr(model)
        json.dumps(found.json(), allow_nan=False)
