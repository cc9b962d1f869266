"""Pictures: what is in them, which panels, and that files appear whole or not at all."""

import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import daskspectral as dsp
from daskspectral import plot
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian
from daskspectral.plot.fields import maps_of
from tests.common import doubtful


def fitted(x, count=60, n_components=6, scale=1.0):
    basis = Landmarks(Gaussian(scale), count)
    return dsp.SpectralDecomposition(basis=basis, n_components=n_components, random_state=0).fit(x)


@pytest.fixture(scope="module")
def plane():
    x = np.random.default_rng(0).standard_normal((2000, 2))
    return x, fitted(x)


@doubtful
def test_plane_has_a_panel_for_each_function_titled_by_index_and_eigenvalue(plane):
    x, estimator = plane
    figure = plot.eigenfunctions(estimator, x)
    assert len(figure.axes) == 6
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[0] == "λ₀ = 0, constant"
    for i, title in enumerate(titles[1:], 1):
        assert title.startswith(f"λ{'₀₁₂₃₄₅'[i]} = ")
        assert float(title.split("=")[1]) == pytest.approx(estimator.eigenvalues_[i], rel=0.01)
    for axes in figure.axes:
        assert axes.get_aspect() == 1
        ranges = [c.get_clim() for c in axes.collections if type(c).__name__ == "QuadContourSet"]
        assert ranges
        assert all(low == -high for low, high in ranges)


@doubtful
def test_line_over_a_histogram_for_one_column():
    x = np.random.default_rng(0).standard_normal((2000, 1))
    estimator = fitted(x, 20, 4)
    figure = plot.eigenfunctions(estimator, x)
    assert len(figure.axes) == 4
    grid, values = figure.axes[1].lines[-1].get_data()
    np.testing.assert_allclose(values, estimator.transform(grid[:, None])[:, 1])
    assert grid[[0, -1]] == pytest.approx(np.quantile(x, [0.001, 0.999]))
    assert any(type(patch).__name__ == "StepPatch" for patch in figure.axes[1].patches)


@doubtful
def test_many_columns_are_drawn_in_the_first_two_functions_that_vary():
    x = np.random.default_rng(0).standard_normal((1000, 5))
    estimator = fitted(x, 40, 5, scale=3.0)
    figure = plot.eigenfunctions(estimator, x)
    assert [axes.get_title()[:2] for axes in figure.axes] == ["λ₃", "λ₄"]
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("eigenfunction 1", "eigenfunction 2")
    dots = np.concatenate([part.get_offsets() for part in figure.axes[0].collections])
    assert {*map(tuple, dots.round(9).tolist())} == {*map(tuple, estimator.transform(x)[:, 1:3].round(9).tolist())}


@doubtful
def test_a_series_has_the_times_of_its_rows():
    times = np.arange("2000-01", "2010-01", dtype="M8[M]").astype("M8[ns]")
    values = np.random.default_rng(0).standard_normal((120, 3)) * [3, 2, 1]
    data = xr.DataArray(values, {"time": times}, ("time", "place"))
    model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2, random_state=0).fit(data)
    axes = plot.series(model, data, 0, start=12, length=24)
    np.testing.assert_array_equal(axes.lines[-1].get_xdata(), times[12:36])
    np.testing.assert_allclose(axes.lines[-1].get_ydata(), model.transform(data)[12:36, 0])
    assert (axes.get_xlabel(), axes.get_title()[:5]) == ("time", "λ₀ = ")


def test_an_embedding_is_coloured_by_classes_or_by_a_scale():
    z = np.random.default_rng(0).standard_normal((300, 3))
    classes = plot.embedding(z, color=np.arange(300) % 3, name="column")
    assert [text.get_text() for text in classes.get_legend().get_texts()] == ["0", "1", "2"]
    assert (classes.get_xlabel(), classes.get_ylabel()) == ("column 0", "column 1")
    constant = plot.embedding(np.column_stack([1 + 1e-15 * z[:, 0], z]))
    assert (constant.get_xlabel(), constant.get_ylabel()) == ("component 1", "component 2")
    scale = plot.embedding(z, color=z[:, 2], label="third", components=(1, 2))
    assert [axes.get_ylabel() for axes in scale.figure.axes] == ["component 2", "third"]
    with pytest.raises(ValueError, match="color has a value for each of the 300 rows"):
        plot.embedding(z, color=z[:9, 0])


def test_mollweide_is_on_the_sphere_and_keeps_areas():
    points, x, y = plot.mollweide()
    np.testing.assert_allclose(np.linalg.norm(points, axis=-1), 1)
    # equal areas: the share of the ellipse below y is the share of the sphere below that latitude
    angle = np.arcsin(np.clip(y[:, 0], -1, 1))
    share = 0.5 + (angle + np.sin(angle) * np.cos(angle)) / np.pi
    np.testing.assert_allclose(share, (1 + points[:, 0, 2]) / 2, atol=1e-12)
    np.testing.assert_allclose(np.abs(x).max(), 2, rtol=1e-3)


@doubtful
def test_chosen_columns_and_standardised_ones_are_drawn_in_their_units():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2000, 4)) * [1, 1, 50, 1] + [0, 0, 1000, 0]
    estimator = fitted(dsp.Rows(x, columns=[2, 0], standardize=True))
    figure = plot.eigenfunctions(estimator, x, count=2)
    low, high = figure.axes[1].get_xlim()
    assert 800 < low < 950 < 1050 < high < 1200
    assert -5 < figure.axes[1].get_ylim()[0] < -1.5


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def drawn(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_spectrum_has_intervals_held_out_values_and_trust():
    x = np.random.default_rng(1).random((1500, 1))
    estimator = fitted(x, 40, 8, scale=0.2)
    trusted = estimator.trusted_ = np.array([True, True, False, True, True, False, False, True])
    axes = plot.spectrum(estimator)
    assert legend(axes) == ["95 % interval", "held out", "trusted", "not trusted", "constant"]
    np.testing.assert_array_equal(drawn(axes, "trusted").get_ydata(), estimator.eigenvalues_[1:][trusted[1:]])
    np.testing.assert_array_equal(drawn(axes, "not trusted").get_ydata(), estimator.eigenvalues_[~trusted])
    (shade,) = axes.patches
    np.testing.assert_array_equal(shade.get_data().values, trusted)
    np.testing.assert_array_equal(drawn(axes, "held out").get_ydata(), estimator.held_out_[1:])
    ends = np.concatenate([[s[:, 1] for s in c.get_segments()] for c in axes.collections])
    shown = np.concatenate([estimator.eigenvalue_errors_[1:][some[1:]] for some in (trusted, ~trusted)])
    np.testing.assert_allclose(ends, shown)
    low, high = axes.get_ylim()
    assert low < min(0, *ends.ravel())
    assert max(estimator.eigenvalues_[-1], *ends.ravel()) < high
    estimator.eigenvalue_errors_ = estimator.eigenvalue_errors_.copy()
    estimator.eigenvalue_errors_[2] = -1e9, 1e9
    estimator.eigenvalue_errors_[3] = -np.inf, np.nan
    axes = plot.spectrum(estimator)
    marks = {line.get_marker(): line.get_xdata().tolist() for line in axes.lines if line.get_marker() in ("v", "^")}
    assert marks == {"v": [2, 3], "^": [2]}
    assert axes.get_ylim()[1] < 20 * estimator.eigenvalues_.max()


@doubtful
def test_by_default_the_first_function_that_is_no_constant_is_drawn():
    x = np.random.default_rng(0).standard_normal((300, 2)) * [3, 1]
    components = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=2).fit(x)
    single = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=1).fit(x)
    functions = fitted(x, 40, 3, scale=1.0)
    for model, number in ((components, 0), (single, 0), (functions, 1)):
        for draw in (plot.series, plot.eigenfunction):
            assert draw(model, x).get_title() == draw(model, x, number).get_title()
        values = plot.series(model, x).lines[-1].get_ydata()
        np.testing.assert_allclose(values, model.transform(x)[:, number], atol=1e-12)


@doubtful
def test_choice_has_a_line_for_each_kernel():
    x = np.random.default_rng(0).random((400, 1))
    estimator = dsp.SpectralDecomposition(basis=Landmarks(count=40), n_components=3, random_state=0).fit(x)
    axes, candidates = plot.choice(estimator), estimator.choice_.candidates
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    best = estimator.choice_.chosen
    np.testing.assert_array_equal(lines.pop("taken"), [[best.factor, best.score]])
    wanted = {c.kernel.partition("scale")[0] for c in candidates}
    assert len(lines) == len(wanted) > 1
    assert {name.partition("(")[0].partition(",")[0] for name in lines} == {k.partition("(")[0] for k in wanted}
    for xy in lines.values():
        assert (np.diff(xy[:, 0]) > 0).all()
    assert sum(len(xy) for xy in lines.values()) == len({c.kernel for c in candidates})
    assert max(xy[:, 1].max() for xy in lines.values()) == max(c.score for c in candidates)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*lines, "taken"]


@doubtful
@pytest.mark.parametrize(("suffix", "magic"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")])
def test_saved_in_the_format_of_the_ending(suffix, magic, plane, tmp_path):
    x, estimator = plane
    path = tmp_path / f"picture{suffix}"
    path.write_bytes(b"an older one")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        plot.save_eigenfunctions(estimator, x, path, count=2)
    assert path.read_bytes() == b"an older one"
    plot.save_eigenfunctions(estimator, x, path, count=2, overwrite=True)
    assert path.read_bytes().startswith(magic)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@doubtful
def test_a_picture_that_fails_leaves_what_was_there(plane, tmp_path, monkeypatch):
    x, estimator = plane
    path = tmp_path / "picture.png"
    path.write_bytes(b"an older one")

    def half(self, data):
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="disk full"):
        plot.save_eigenfunctions(estimator, x, path, count=1, overwrite=True)
    assert path.read_bytes() == b"an older one"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_refusals_come_before_the_work(tmp_path):
    there = tmp_path / "there.png"
    there.write_bytes(b"")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(FileExistsError, match="--overwrite"):
        plot.refuse_picture(there, overwrite=False)
    plot.refuse_picture(there, overwrite=True)
    with pytest.raises(FileExistsError, match="another path"):
        plot.refuse_picture(tmp_path / "folder.png", overwrite=True)
    with pytest.raises(ValueError, match=r"\.png, \.pdf, \.svg"):
        plot.refuse_picture(tmp_path / "picture.jpeg", overwrite=False)
    with pytest.raises(FileNotFoundError, match="missing"):
        plot.refuse_picture(tmp_path / "nowhere" / "picture.png", overwrite=False)
    with pytest.raises(ValueError, match="must end in"):  # not fitted, which would be said next
        plot.save_eigenfunctions(dsp.SpectralDecomposition(), np.zeros((3, 2)), tmp_path / "x.gif")


@doubtful
def test_without_matplotlib_the_extra_is_named(plane, tmp_path, monkeypatch):
    x, estimator = plane
    for name in [m for m in sys.modules if m.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for call in (
        lambda: plot.eigenfunctions(estimator, x),
        lambda: plot.spectrum(estimator),
        lambda: plot.refuse_picture(tmp_path / "picture.png", overwrite=False),
        lambda: plot.save_eigenfunctions(estimator, x, tmp_path / "picture.png"),
    ):
        with pytest.raises(ImportError, match=r"pip install daskspectral\[plot\]"):
            call()


@doubtful
def test_fields_are_drawn_as_maps():
    rng = np.random.default_rng(0)
    coords = {"lat": ("lat", [-40.0, 0.0, 40.0], {"units": "degrees_north"}), "lon": [0.0, 90.0, 180.0, 270.0]}
    wave = np.sin(np.arange(3)[:, None] + np.arange(4))
    values = 3 * rng.standard_normal((200, 1, 1)) * wave + rng.standard_normal((200, 3, 4))
    values[:, 0, 1] = np.nan  # land
    field = xr.DataArray(values, coords, ("time", "lat", "lon"), name="sst", attrs={"units": "K"})
    operator = dsp.operators.Covariance()
    rows = dsp.Rows(field, sample_dims="time", on_invalid="skip")
    estimator = dsp.SpectralDecomposition(operator, n_components=3, random_state=0).fit(rows)
    one = maps_of(estimator, field, [1], 100)[0]
    series = np.asarray(estimator.transform(rows))[:, 1]
    flat = values.reshape(200, -1)
    slopes = [np.polyfit(series, column, 1)[0] if np.isfinite(column).all() else np.nan for column in flat.T]
    np.testing.assert_allclose(one.values.ravel(), slopes, atol=1e-9)
    figure = plot.eigenfunctions(estimator, field)
    maps = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_xlabel() for axes in maps] == ["lon"] * 3
    assert maps[0].get_ylabel() == "lat (degrees_north)"
    assert "sst (K)" in {axes.get_ylabel() for axes in figure.axes}  # of colour bars
    assert plot.eigenfunction(estimator, None, 1).get_ylabel() == "lat (degrees_north)"
    with pytest.raises(ValueError, match="the model was fitted on"):
        plot.eigenfunctions(estimator, field[:, :2])

    places = dsp.Rows(field[:5], sample_dims=("lat", "lon"), on_invalid="skip")
    landmarks = Landmarks(Gaussian(3.0), 5)
    estimator = dsp.SpectralDecomposition(basis=landmarks, n_components=3, random_state=0).fit(places)
    one = maps_of(estimator, places, [2], 100)[0]
    np.testing.assert_allclose(one, estimator.transform(places)[..., 2])
    assert maps_of(estimator, places, [2], 6)[0].shape == (2, 2)
    assert plot.eigenfunctions(estimator, places).axes[0].get_xlabel() == "lon"
