"""Pictures: what is drawn is what was computed, into the axes that were given; files appear whole or not at all."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import daskspectral as dsp
from daskspectral import plot
from daskspectral.basis import CallableBasis, Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.plot.functions import maps_of
from tests.common import autoregression, unreliable

pytestmark = unreliable


def fitted(x: Any, operator: Any = None, count: int = 40, scale: float = 1.0, **options: Any) -> Any:
    given: dict[str, Any] = {"n_components": 5, "random_state": 0} | options
    return dsp.SpectralDecomposition(operator, Landmarks(Gaussian(scale), count), **given).fit(x)


def drawn(axes: Any, label: str) -> Any:
    return next(line for line in axes.lines if line.get_label() == label)


@pytest.fixture(scope="module")
def plane() -> tuple[Any, Any]:
    x = np.random.default_rng(0).standard_normal((1500, 2))
    return x, fitted(x)


def test_pictures_are_drawn_into_axes_of_the_caller(plane: Any) -> None:
    x, model = plane
    automatic = dsp.SpectralDecomposition(basis=Landmarks(n_landmarks=30), n_components=3, random_state=0).fit(x[:300])
    for call in (
        lambda ax: plot.spectrum(model, ax=ax),
        lambda ax: plot.choice(automatic, ax=ax),
        lambda ax: plot.eigenfunction(model, x, 1, ax=ax),
        lambda ax: plot.embedding(model.transform(x), ax=ax),
    ):
        axes: Any = Figure().add_subplot()
        assert call(axes) is axes
        assert axes.has_data()
        assert axes.get_xlabel()
        assert isinstance(plot.figure_of(call(None)), Figure)


def test_line_over_a_histogram_for_one_column() -> None:
    x = np.random.default_rng(0).standard_normal((2000, 1))
    estimator = fitted(x, count=20, n_components=4)
    figure = plot.eigenfunctions(estimator, x)
    grid, values = figure.axes[1].lines[-1].get_data()
    np.testing.assert_allclose(values, estimator.transform(grid[:, None])[:, 1])
    assert grid[[0, -1]] == pytest.approx(np.quantile(x, [0.001, 0.999]))
    assert any(type(patch).__name__ == "StepPatch" for patch in figure.axes[1].patches)


def test_points_on_the_sphere_are_drawn_by_longitude_and_latitude() -> None:
    x = dsp.datasets.sphere(500)
    axes = plot.eigenfunction(fitted(x, count=30), x, 1)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude", "latitude")
    longitude, latitude = np.deg2rad(np.asarray(axes.collections[0].get_offsets())).T
    radius = np.cos(latitude)
    rows = np.column_stack([radius * np.cos(longitude), radius * np.sin(longitude), np.sin(latitude)])
    np.testing.assert_allclose(np.sort(rows[:, 2]), np.sort(x[:, 2]), atol=1e-12)
    np.testing.assert_allclose(fitted(x, count=30).transform(rows)[:, 1], axes.collections[0].get_array(), atol=1e-6)


def test_an_embedding_is_colored_by_any_variable() -> None:
    rng = np.random.default_rng(0)
    values, number = rng.standard_normal((500, 3)), rng.random(500)
    axes = plot.embedding(values[:, [2, 0]], color=number, label="depth (m)")
    np.testing.assert_array_equal(axes.collections[0].get_offsets(), values[:, [2, 0]])
    np.testing.assert_array_equal(axes.collections[0].get_array(), number)
    assert plot.figure_of(axes).axes[1].get_ylabel() == "depth (m)"
    labels = np.array(["a", "b", "c"])[rng.integers(3, size=500)]
    axes = plot.embedding(values, color=labels)
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]
    np.testing.assert_array_equal(axes.collections[1].get_offsets(), values[labels == "b", :2])
    with pytest.raises(ValueError, match="coordinates"):
        plot.embedding(values[:, :1])
    with pytest.raises(ValueError, match="color"):
        plot.embedding(values, color=number[:5])


def test_clusters_are_drawn_in_the_columns_that_they_differ_in() -> None:
    """By markers, and colors whose lightness differs; names are those of the frame, and labels whole numbers."""
    rng, label = np.random.default_rng(0), np.arange(300) % 3
    frame = pd.DataFrame(rng.standard_normal((300, 4)), columns=["noise", "ash", "malt", "other"])
    frame["ash"] += 20 * (label == 1)
    frame["malt"] += 20 * (label == 2)
    model = dsp.SpectralClustering(3, random_state=0).fit(frame)
    axes = plot.embedding(model, frame)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("ash", "malt")
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    for one, found in enumerate(axes.collections):
        np.testing.assert_allclose(found.get_offsets(), frame.loc[model.labels_ == one, ["ash", "malt"]])
    light = np.sort([c.get_facecolor()[0, :3] @ [0.2126, 0.7152, 0.0722] for c in axes.collections])  # type: ignore[index]
    assert np.diff(light).min() > 0.1
    with pytest.raises(ValueError, match="rows of the data"):
        plot.embedding(model)
    colored = plot.embedding(model, frame, color=frame["other"].to_numpy(), label="other")
    np.testing.assert_allclose(colored.collections[0].get_array(), frame["other"])
    assert "All clusters" in dsp.report.render(model, frame)


def test_an_embedding_of_a_model_is_its_transform() -> None:
    x = np.random.default_rng(0).standard_normal((60, 2))
    model = dsp.DiffusionMap(2.0, method="exact").fit(x)
    for axes in (plot.embedding(model, x), plot.embedding(model)):
        np.testing.assert_allclose(axes.collections[0].get_offsets(), model.embedding_)
        assert axes.get_xlabel() == "coordinate 0"
    axes = plot.embedding(x, color=np.where(x[:, 0] > 0, 2.0, -1.0))
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["-1", "2"]


def test_spectrum_has_intervals_held_out_values_and_trust() -> None:
    estimator = fitted(np.random.default_rng(1).random((1500, 1)), scale=0.2, n_components=8)
    reliable = estimator.reliable_ = np.array([True, True, False, True, True, False, False, True])
    axes = plot.spectrum(estimator)
    np.testing.assert_array_equal(drawn(axes, "reliable").get_ydata(), estimator.eigenvalues_[1:][reliable[1:]])
    np.testing.assert_array_equal(drawn(axes, "not reliable").get_ydata(), estimator.eigenvalues_[~reliable])
    np.testing.assert_array_equal(drawn(axes, "validation").get_ydata(), estimator.validation_values_[1:])
    ends = np.concatenate([[s[:, 1] for s in c.get_segments()] for c in axes.collections])
    shown = np.concatenate([estimator.eigenvalue_errors_[1:][some[1:]] for some in (reliable, ~reliable)])
    np.testing.assert_allclose(ends, shown)
    low, high = axes.get_ylim()
    assert low < min(0, *ends.ravel())
    assert max(estimator.eigenvalues_[-1], *ends.ravel()) < high
    estimator.eigenvalue_errors_ = estimator.eigenvalue_errors_.copy()
    estimator.eigenvalue_errors_[2] = -1e9, 1e9
    estimator.eigenvalue_errors_[3] = -np.inf, np.nan
    assert plot.spectrum(estimator).get_ylim()[1] < 20 * estimator.eigenvalues_.max()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_free_energy_is_that_of_equilibrium() -> None:
    """Of two states, in the first of which all trajectories start: 3 to 1 in equilibrium, and not among their rows."""
    rng, paths = np.random.default_rng(0), []
    for _ in range(400):
        states = [0]
        for draw in rng.random(10):
            states.append(int(draw < 0.1) if states[-1] == 0 else int(draw < 0.7))
        paths.append(np.array(states, float)[:, None])
    basis = CallableBasis(lambda x: np.stack([x[:, 0] == 0, x[:, 0] == 1]).astype(float), d=1)
    cut = dsp.solvers.Truncated()
    model = dsp.Koopman(1, method="eigen", basis=basis, solver=cut, n_components=2, random_state=0).fit(paths)
    line = plot.free_energy(model, paths, bins=2).lines[0]
    rows = np.concatenate(paths)
    weights = model.equilibrium_weights(rows)
    shares = np.array([weights[rows[:, 0] == state].sum() for state in (0, 1)])
    np.testing.assert_allclose(line.get_ydata(), np.log(shares.max() / shares))
    assert line.get_ydata()[1] == pytest.approx(np.log(3), abs=0.15)
    assert np.log((rows == 0).sum() / (rows == 1).sum()) > np.log(3) + 0.15
    with pytest.raises(ValueError, match="0 to 0"):
        plot.free_energy(model, paths, [1])
    titles = [ax.get_title() for ax in plot.eigenfunctions(model, paths).axes]
    assert titles[1].endswith(f"{model.timescales_[0, 0]:.3g} rows")
    bars = plot.timescales(model).collections[0]
    np.testing.assert_allclose(bars.get_segments()[0][:, 1], model.timescale_errors_[0, 0])


def test_timescales_of_a_process_with_a_known_one() -> None:
    basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 20)
    model = dsp.Koopman((2, 4, 10), basis=basis, n_components=3, random_state=0)
    model.fit(autoregression(4000, np.exp(-1 / 20)))
    axes = plot.timescales(model, count=2, step=0.5, unit="ns")
    slow = drawn(axes, "process 1")
    np.testing.assert_allclose(slow.get_xdata(), [1.0, 2.0, 5.0])
    np.testing.assert_allclose(slow.get_ydata(), 10.0, rtol=0.25)  # 20 rows of half a nanosecond
    assert axes.get_xlabel() == "lag (ns)"
    np.testing.assert_array_equal(slow.get_ydata(), 0.5 * model.timescales_[:, 0])
    axes = Figure().add_subplot()
    assert plot.chapman_kolmogorov(model, ax=axes) is axes
    marks = drawn(axes, "process 1")
    np.testing.assert_array_equal(marks.get_ydata(), model.chapman_kolmogorov().measured[:, 0, 0])
    with pytest.raises(TypeError, match="Koopman"):
        plot.timescales(fitted(np.random.default_rng(0).standard_normal((200, 1))))


@pytest.mark.parametrize(("suffix", "magic"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")])
def test_saved_in_the_format_of_the_ending(suffix: str, magic: bytes, plane: Any, tmp_path: Path) -> None:
    figure, path = plot.figure_of(plot.spectrum(plane[1])), tmp_path / f"picture{suffix}"
    path.write_bytes(b"an older one")
    with pytest.raises(FileExistsError):
        plot.save_figure(figure, path)
    assert path.read_bytes() == b"an older one"
    plot.save_figure(figure, path, overwrite=True)
    assert path.read_bytes().startswith(magic)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_without_matplotlib_the_extra_is_named(plane: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, estimator = plane
    for name in [m for m in sys.modules if m.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    needing = (plot.eigenfunctions, estimator, x), (plot.spectrum, estimator), (plot.refuse_picture, "a.png", False)
    for call, *given in needing:
        with pytest.raises(ImportError, match=r"pip install matplotlib"):
            call(*given)


def test_fields_are_drawn_as_maps() -> None:
    rng = np.random.default_rng(0)
    coords: Any = {"lat": ("lat", [-40.0, 0.0, 40.0], {"units": "degrees_north"}), "lon": [0.0, 90.0, 180.0, 270.0]}
    wave = np.sin(np.arange(3)[:, None] + np.arange(4))
    values = 3 * rng.standard_normal((200, 1, 1)) * wave + rng.standard_normal((200, 3, 4))
    values[:, 0, 1] = np.nan  # land
    field = xr.DataArray(values, coords, ("time", "lat", "lon"), name="sst", attrs={"units": "K"})
    rows = dsp.Rows(field, sample_dims="time", on_invalid="skip")
    estimator = dsp.EOF(3, random_state=0).fit(rows)
    one = maps_of(estimator, field, [1])[0]
    axes = plot.eof(estimator, 2)
    np.testing.assert_array_equal(axes.collections[0].get_array().ravel(), np.ma.masked_invalid(one.values.ravel()))
    assert axes.get_title() == f"EOF 2 ({100 * estimator.explained_variance_ratio_[1]:.1f} %)"
    assert len(plot.eof(estimator, 3).collections) == 1  # no level lines of noise
    with pytest.raises(ValueError, match=r"mode must be 1 to 3, .*got 0"):
        plot.eof(estimator, 0)
    shares = plot.scree(estimator)
    assert shares.get_xlabel() == "mode"
    assert "red noise, 5 %" in {text.get_text() for text in shares.get_legend().get_texts()}
    series = np.asarray(estimator.transform(rows))[:, 1]
    flat = values.reshape(200, -1)
    slopes = [np.polyfit(series, column, 1)[0] if np.isfinite(column).all() else np.nan for column in flat.T]
    np.testing.assert_allclose(one.values.ravel(), slopes, atol=1e-9)
    figure = plot.eigenfunctions(estimator, field)
    maps = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_xlabel() for axes in maps] == ["lon"] * 3
    assert maps[0].get_ylabel() == "lat (degrees_north)"
    assert "sst (K)" in {axes.get_ylabel() for axes in figure.axes}  # of color bars
    with pytest.raises(ValueError, match="columns"):
        plot.eigenfunctions(estimator, field[:, :2])


@pytest.mark.parametrize("longitudes", [[160, 170, -180, -170], [-180, -170, 160, 170], [340, 350, 0, 10]])
@pytest.mark.parametrize("dims", [("lat", "lon"), ("lon", "lat")])
def test_maps_are_drawn_across_the_date_line(longitudes: list[int], dims: tuple[str, str]) -> None:
    """Regions that are selected in two parts, in either order of dimensions, are one map with latitudes upwards."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((60, 3, 4)) + rng.standard_normal((60, 1, 1)) * np.arange(4)
    coords = {"lat": [-10, 0, 10], "lon": longitudes}
    field = xr.DataArray(values, coords, ("time", "lat", "lon"), name="sst").transpose("time", *dims)
    model = dsp.EOF(1, random_state=0).fit(dsp.Rows(field, sample_dims="time"))
    axes = plot.eof(model, 1)
    west, east = axes.get_xlim()
    assert (axes.get_xlabel(), east - west) == ("lon", 40)
    drawn = axes.collections[0].get_array().reshape(3, 4)
    turned = (np.array(longitudes) - (west + 5)) % 360
    components = model.to_xarray().components[0].transpose("lat", "lon").values
    np.testing.assert_allclose(drawn, components[:, np.argsort(turned)])
    assert [axes.get_title() for axes in plot.eigenfunctions(model).axes if axes.get_title()] == [axes.get_title()]


def test_the_globe_keeps_its_longitudes() -> None:
    for longitudes in (np.arange(0.0, 361, 30), np.arange(-180.0, 180, 30), np.array([-30.0, 0, 50])):
        values = np.random.default_rng(0).standard_normal((40, 2, len(longitudes)))
        field = xr.DataArray(values, {"lat": [0, 10], "lon": longitudes}, ("time", "lat", "lon"))
        model = dsp.EOF(1, random_state=0).fit(dsp.Rows(field, sample_dims="time"))
        np.testing.assert_array_equal(maps_of(model, None, [0])[0].lon, longitudes)


def test_eigenfunctions_without_maps_need_rows(plane: Any) -> None:
    with pytest.raises(TypeError, match="X is required"):
        plot.eigenfunctions(plane[1])
