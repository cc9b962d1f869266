"""The figures and the table of the SDP embedding's paper, at small sizes and on stand-ins for the data."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from scipy import ndimage
from sklearn.datasets import load_digits, load_wine

FOLDER = Path(__file__).parents[2] / "examples" / "paper"
# of the wine data at bandwidths 1.5, 3 and 10, by an independent implementation of the projected power method
OBJECTIVES = {1.5: 71.214946148416, 3: 4.302145011646, 10: 0.021926511152}


@pytest.fixture(scope="module")
def load():
    """A function that gives an example by name, with its folder among those that are searched, as for a script."""
    pytest.importorskip("matplotlib")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)

        def module(name):
            spec = importlib.util.spec_from_file_location(f"{name}_of_the_paper", FOLDER / f"{name}.py")
            found = importlib.util.module_from_spec(spec)
            patch.setitem(importlib.sys.modules, spec.name, found)
            spec.loader.exec_module(found)
            return found

        yield module


@pytest.fixture(scope="module")
def figures(load):
    return load("sdp_figures")


@pytest.fixture(scope="module")
def clustering(load):
    return load("sdp_clustering")


@pytest.fixture(scope="module")
def classification(load):
    return load("sdp_classification")


@pytest.fixture(scope="module")
def pulsars(tmp_path_factory):
    """A stand-in for HTRU2: a tenth of 600 points are of a class that sticks out."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 10 == 0
    x = rng.standard_normal((600, 8)) + np.outer(y, [4, 4, 0, 0, 0, 0, 0, 0])
    path = tmp_path_factory.mktemp("pulsars") / "pulsars.npz"
    np.savez(path, X=3 * x + 7, y=y.astype(int))
    return path


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """scikit-learn's digits at three times their size."""
    small = load_digits()
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    images = np.round(ndimage.zoom(small.images, (1, 3, 3), order=1) / 16 * 255)
    np.savez(path, X=images.astype(np.uint8).reshape(len(images), -1), y=small.target)
    return path


def test_figures_at_their_quick_size(figures, tmp_path):
    arguments = ["--quick", "--figures", "1,3,5,7", "--out", str(tmp_path)]
    result = CliRunner().invoke(figures.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert {p.name for p in tmp_path.iterdir()} == {figures.PICTURES[number] for number in (1, 3, 5, 7)}
    said = dict(line.rsplit(": ", 1) for line in result.output.splitlines())
    for bandwidth, objective in OBJECTIVES.items():
        assert float(said[f"objective, wine {bandwidth:g}"]) == pytest.approx(objective, rel=1e-5)


def test_figure_8_at_its_quick_size(figures, tmp_path):
    arguments = ["--quick", "--figures", "8", "--table", str(tmp_path / "t.zarr"), "--out", str(tmp_path)]
    result = CliRunner().invoke(figures.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert {p.name for p in tmp_path.iterdir()} == {"sdp_figure8.png", "t.zarr"}
    assert "its lead was due to single starts" in result.output
    with xr.open_zarr(tmp_path / "t.zarr", consolidated=False) as table:
        assert (table.sdp_gap <= 1e-6).all()
        assert (table.sdp_nmi.sel(bandwidth=0.1) >= 0.9).all()
        np.testing.assert_allclose(table.sdp_spectrum.sum("eigenvalue"), 1, rtol=1e-6)
        # at a narrow bandwidth the best of k-means on the diffusion map is an outlier by itself
        assert (table.diffusion_nmi.sel(bandwidth=0.1, starts=20, projected=0) <= 0.1).all()
        assert (table.diffusion_nmi.sel(bandwidth=0.1, starts=20, projected=1) >= 0.9).all()


def test_the_verdict_is_of_the_table(clustering):
    dims = ("set", "bandwidth", "projected", "starts")
    values = {name: np.full((2, 3, 2, 2), 0.5) for name in clustering.EMBEDDINGS}
    values["sdp"][:, :2, 0, 0] += 0.3  # from one start ahead at two bandwidths
    values["sdp"][:, 0, 0, 1] += 0.3  # from 20 starts at the first of them
    values["diffusion"][:, 2, 0, 1] += 0.1
    values["diffusion"][:, :, 1] = 1.0  # projected ones do not count
    axes = {"bandwidth": [0.1, 0.2, 0.3], "projected": [0, 1], "starts": [1, 20]}
    table = xr.Dataset({f"{name}_nmi": (dims, array) for name, array in values.items()}, axes)
    said = clustering.verdict(table)
    assert "leads by 0.200 on average, at 2 (0.1 to 0.2) of 3 bandwidths" in said
    assert "from 20 starts by 0.067, and of these bandwidths it keeps 1 (0.1 to 0.1)" in said


def test_one_figure_alone(figures, tmp_path):
    result = CliRunner().invoke(figures.main, ["--quick", "--figures", "3", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.exception
    assert [p.name for p in tmp_path.iterdir()] == ["sdp_figure3.png"]
    refused = CliRunner().invoke(figures.main, ["--figures", "2", "--out", str(tmp_path)])
    assert "figures are [1, 3, 5, 7, 8]; not [2]" in refused.output


def test_the_moons_are_arcs(clustering):
    x, labels = clustering.moons(np.random.default_rng(0), 5000)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(axis=0, ddof=1), 1)
    assert np.bincount(labels).tolist() == [5000, 5000]
    # the upper moon's middle is its top, the lower one's its bottom; they are one another's mirror image
    top, bottom = (x[labels == k][2400:2600].mean(axis=0) for k in (0, 1))
    assert top[1] > 1
    np.testing.assert_allclose(top, -bottom, atol=0.05)


def test_carriers_are_counted(figures):
    assert figures.carriers(np.ones(7)) == pytest.approx(7)
    assert figures.carriers(np.array([0, -3.0, 0])) == pytest.approx(1)


def test_rows_go_on_the_circle(clustering):
    np.testing.assert_allclose(clustering.on_circle(np.array([[3.0, 4.0], [0, 0]])), [[0.6, 0.8], [0, 0]])


def test_neighbours_leave_the_point_itself_out(figures):
    x, classes = load_wine(return_X_y=True)
    x = figures.standardized(x)[:, :2]
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    np.fill_diagonal(distance, np.inf)
    votes = [np.bincount(classes[row.argsort()[:5]], minlength=3).argmax() for row in distance]
    assert figures.neighbours(x, classes) == np.mean(votes == classes)


def test_table_1(classification, pulsars, tmp_path):
    arguments = [
        "pulsars",
        "--data",
        str(pulsars),
        "--quick",
        "--repetitions",
        "2",
        "--landmarks",
        "400",
        "--methods",
        "exact,lowrank",
    ]
    result = CliRunner().invoke(classification.main, [*arguments, "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    assert {p.name for p in tmp_path.iterdir()} == {"sdp_figure6.png", "sdp_table1.zarr"}
    rows = [line for line in result.output.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 4
    assert result.output.count("certificate, bandwidth 10") == 2
    with xr.open_zarr(tmp_path / "sdp_table1.zarr", consolidated=False) as table:
        assert dict(table.sizes) == {"repetition": 2, "bandwidth": 1, "method": 2}
        assert (table.sdp_gap <= 1e-8).all()
        assert (table.sdp_precision >= 0.9).all()
        assert (table.sdp_recall >= 0.9).all()
        for score in ("precision", "recall"):
            values = table[f"sdp_{score}"]
            np.testing.assert_allclose(values[..., 0], values[..., 1], atol=0.02)
            cell = rows[1].split("|")[4 if score == "precision" else 5]
            assert float(cell.split("(")[0]) == pytest.approx(float(values[:, 0, 0].mean()), abs=5e-4)


def test_scores_below_those_of_the_paper_are_refused(classification):
    shape = ("repetition", "bandwidth", "method"), np.zeros((3, 2, 2))
    names = [f"{e}_{s}" for e in classification.EMBEDDINGS for s in classification.SCORES]
    table = xr.Dataset(dict.fromkeys([*names, "sdp_gap"], shape), {"bandwidth": [10.0, 5.0]})
    for name in names:
        table[name] = table[name] + (0.9 if name.endswith("precision") else 0.77)
    classification.check(table)
    table.sdp_recall[:, 1] = 0.7
    with pytest.raises(AssertionError, match="recall"):
        classification.check(table)
    table.sdp_recall[:, 1] = 0.77
    table.sdp_gap[0, 0, 0] = 1e-3
    with pytest.raises(AssertionError):
        classification.check(table)


def test_figure_4(classification, digits, tmp_path):
    numbers = classification.digits(digits, 8.0, 2, tmp_path)
    assert numbers["error of 5-NN, SDP, largest of 2 splits"] <= 0.04
    assert [p.name for p in tmp_path.iterdir()] == ["sdp_figure4.png"]


def test_a_split_is_of_all_points(classification):
    seen, unseen = classification.split(100, 0.7, 3)
    assert len(seen) == 70
    assert sorted([*seen, *unseen]) == list(range(100))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((4, 8))}, r"must hold the arrays X .*'y'.* missing"),
        ({"X": np.zeros((4, 8)), "y": np.zeros(3)}, r"X is \(4, 8\) and y \(3,\)"),
        ({"X": np.zeros((4, 8)), "y": np.array([1, 2, 1, 2])}, r"y must be 0 and 1, for pulsars; it has .*\[1, 2\]"),
    ],
)
def test_a_file_that_does_not_fit_is_said(classification, tmp_path, arrays, message):
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        classification.pulsars(tmp_path / "data.npz", out=tmp_path)


def test_images_that_do_not_fit_are_said(classification, tmp_path):
    np.savez(tmp_path / "data.npz", X=np.zeros((4, 9), np.uint8), y=np.arange(5, 9))
    with pytest.raises(ValueError, match=r"digits 1 and 4"):
        classification.digits(tmp_path / "data.npz", out=tmp_path)
    np.savez(tmp_path / "data.npz", X=np.zeros((4, 9)), y=np.arange(4))
    with pytest.raises(ValueError, match=r"it is float64"):
        classification.digits(tmp_path / "data.npz", out=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"missing"):
        classification.digits(tmp_path / "data.npz", out=tmp_path / "nowhere")
