"""Pictures that fill one pair of axes: what is drawn is what was computed, into the axes that were given."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.operators import Transfer
from daskspectral.plot.style import SEQUENTIAL, SERIES
from tests.common import doubtful

plot = dsp.plot


def axes_in(projection: str | None = None) -> Any:
    return Figure().add_subplot(projection=projection)


def fitted(x: Any, operator: Any = None, **options: Any) -> dsp.SpectralDecomposition:
    given: dict[str, Any] = {"n_components": 5, "random_state": 0} | options
    return dsp.SpectralDecomposition(operator, Landmarks(Gaussian(1.0), 40), **given).fit(x)


@pytest.fixture(scope="module")
def plane() -> tuple[Any, dsp.SpectralDecomposition]:
    x = np.random.default_rng(0).standard_normal((1500, 2))
    return x, fitted(x)


@pytest.fixture(scope="module")
def rotation() -> Any:
    """Rows of a process with the exact eigenvalue exp(-1/20) a row, two wells of a chain of two states."""
    rng = np.random.default_rng(0)
    x = np.zeros((4000, 1))
    for i in range(1, len(x)):
        x[i] = np.exp(-1 / 20) * x[i - 1] + np.sqrt(1 - np.exp(-1 / 10)) * rng.standard_normal()
    return x


@doubtful
def test_pictures_are_drawn_into_the_axes_that_are_given(plane: Any, rotation: Any) -> None:
    x, model = plane
    automatic = dsp.SpectralDecomposition(basis=Landmarks(count=30), n_components=3, random_state=0).fit(x)
    calls = {
        "spectrum": lambda ax: plot.spectrum(model, ax=ax),
        "held_out": lambda ax: plot.held_out(model, ax=ax),
        "choice": lambda ax: plot.choice(automatic, ax=ax),
        "eigenfunction": lambda ax: plot.eigenfunction(model, x, 1, ax=ax),
        "series": lambda ax: plot.series(model, x, 1, ax=ax),
        "embedding": lambda ax: plot.embedding(model.transform(x), ax=ax),
        "landmarks": lambda ax: plot.landmarks(model, x, ax=ax),
        "gram": lambda ax: plot.gram(model, ax=ax),
        "timescales": lambda ax: plot.timescales([fitted(rotation, Transfer(5))], ax=ax),
        "test": lambda ax: plot.chapman_kolmogorov(fitted(rotation, Transfer(5, further=(2,))), ax=ax),
    }
    for name, call in calls.items():
        axes = axes_in()
        assert call(axes) is axes, name
        assert axes.has_data(), name
        assert axes.get_xlabel(), name
        assert plot.figure_of(axes) is axes.figure
        alone = call(None)
        assert alone is not axes
        assert isinstance(plot.figure_of(alone), Figure)


@doubtful
def test_held_out_values_lie_against_those_of_the_fit(plane: Any) -> None:
    _, model = plane
    axes = plot.held_out(model)
    drawn = np.concatenate([line.get_xydata() for line in axes.lines if line.get_marker() == "o"])
    assert sorted(map(tuple, drawn)) == sorted(zip(model.eigenvalues_, model.held_out_, strict=True))
    with pytest.raises(ValueError, match=r"no values on rows held out: .*no error bars"):
        plot.held_out(fitted(np.random.default_rng(0).standard_normal((300, 1)), folds=None))


def test_an_embedding_is_coloured_by_any_variable() -> None:
    rng = np.random.default_rng(0)
    values, number = rng.standard_normal((500, 3)), rng.random(500)
    axes = plot.embedding(values, color=number, label="depth (m)", components=(2, 0))
    rim, cloud = axes.collections[:2]
    for drawn in (rim, cloud):
        np.testing.assert_array_equal(drawn.get_offsets(), values[:, [2, 0]])
    colours = [to_hex(c) for c in cloud.get_facecolors()]
    assert colours[int(number.argmin())] == SEQUENTIAL[0]
    assert colours[int(number.argmax())] == SEQUENTIAL[-1]
    assert plot.figure_of(axes).axes[1].get_ylabel() == "depth (m)"
    labels = np.array(["a", "b", "c"])[rng.integers(3, size=500)]
    axes = plot.embedding(values, color=labels)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b", "c"]
    assert [to_hex(c.get_facecolors()[0]) for c in axes.collections] == list(SERIES[:3])
    np.testing.assert_array_equal(axes.collections[1].get_offsets(), values[labels == "b", :2])
    with pytest.raises(ValueError, match=r"coordinates are \(n, k\)"):
        plot.embedding(values, components=(0, 3))
    with pytest.raises(ValueError, match="a value for each of the 500 rows"):
        plot.embedding(values, color=number[:5])


@doubtful
def test_timescales_of_a_process_whose_one_is_known(rotation: Any) -> None:
    models = [fitted(rotation, Transfer(lag), n_components=3) for lag in (2, 5, 10)]
    axes = plot.timescales(models, count=2, step=0.5, unit="ns")
    slow = next(line for line in axes.lines if line.get_label() == "process 1")
    np.testing.assert_allclose(slow.get_xdata(), [1.0, 2.5, 5.0])
    np.testing.assert_allclose(slow.get_ydata(), 10.0, rtol=0.25)  # 20 rows of half a nanosecond
    assert axes.get_xlabel() == "lag (ns)"
    several = fitted(rotation, Transfer(2, further=(2, 5)), n_components=3)
    axes = plot.timescales(several)
    slow = next(line for line in axes.lines if line.get_label() == "process 1")
    np.testing.assert_array_equal(slow.get_xydata(), np.column_stack([[2, 4, 10], several.timescales_[:, 0]]))
    marks = next(line for line in plot.chapman_kolmogorov(several).lines if line.get_label() == "process 1")
    np.testing.assert_array_equal(marks.get_ydata(), several.chapman_kolmogorov().measured[:, 0, 0])
    with pytest.raises(ValueError, match="at one lag or more; there is none"):
        plot.timescales([])
    with pytest.raises(ValueError, match=r"are of Transfer\(lag\); the operator is"):
        plot.timescales([fitted(np.random.default_rng(0).standard_normal((200, 1)))])
