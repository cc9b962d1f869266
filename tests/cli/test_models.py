"""The commands for embeddings and regression, and what works on any saved model: info, transform, predict."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.cli import main
from daskspectral.cli.describing import describe
from tests.cli.common import call, done, everything

RNG = np.random.default_rng(0)
PLANE = RNG.uniform(-2, 2, (300, 2))
SPHERE = RNG.standard_normal((300, 3))
SPHERE /= np.linalg.norm(SPHERE, axis=1, keepdims=True)
ARC = np.column_stack([np.cos(3 * np.linspace(0, 1, 120)), np.sin(3 * np.linspace(0, 1, 120)), np.zeros(120)])
ARRAYS = {
    "arc": ARC,
    "plane": PLANE,
    "values": np.sin(PLANE[:, 0]) * PLANE[:, 1],
    "column": np.sin(PLANE[:, :1]) * PLANE[:, 1:],
    "slopes": np.column_stack([np.cos(PLANE[:, 0]) * PLANE[:, 1], np.sin(PLANE[:, 0])]),
    "sphere": SPHERE,
    "quartic": (SPHERE**4).sum(axis=1),
    "ones": np.ones(300),
}


@pytest.fixture(autouse=True)
def arrays(folder: Path) -> None:
    for name, data in ARRAYS.items():
        zarr.create_array(f"{name}.zarr", data=data, chunks=(100, *data.shape[1:]))


def array(path: str) -> np.ndarray:
    """An array, or the main array of a group of results."""
    node = zarr.open(path, mode="r")
    if isinstance(node, zarr.Group):
        node = node[node.attrs["main_array"]]
        return np.asarray(node[:]).reshape(node.shape[0], -1)
    return np.asarray(node[:])


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_the_semidefinite_embedding(method: str) -> None:
    table = done(
        f"embed arc.zarr --bandwidth 0.5 --method {method} --landmarks 60 --out m.zarr --embedding e.zarr "
        "--columns 0:2 --seed 3 --tolerance 1e-6 --landmark-method kmeans++ --landmark-sample 80"
    )
    model = dsp.load("m.zarr")
    again = dsp.SDPEmbedding(
        0.5, method=method, n_landmarks=60, landmarks="kmeans++", landmark_sample=80, columns=[0, 1], tolerance=1e-6,
        random_state=3,
    ).fit("arc.zarr")  # fmt: skip
    np.testing.assert_array_equal(model.spectrum_, again.spectrum_)
    np.testing.assert_allclose(array("e.zarr"), np.asarray(again.embedding_), rtol=0, atol=1e-8)
    described = done("info m.zarr")
    assert table == f"{described}model: m.zarr\nembedding: e.zarr, 120 rows, {model.rank_} components\n"
    for line in (
        f"method      {method}, " + ("all 120 points" if method == "exact" else f"{len(model.extension_.points)} land"),
        "variables   columns 0, 1 of 3",
        f"rank        {model.rank_}",
        "of the objective, proved optimal to 1e-06",
        f"passes      {model.n_passes_} products",
    ):
        assert line in described
    values = [float(line.split()[1]) for line in described.splitlines()[-model.rank_ :]]
    np.testing.assert_allclose(values, model.spectrum_, rtol=1e-5)
    done("transform m.zarr arc.zarr --out t.zarr")
    np.testing.assert_array_equal(array("t.zarr"), array("e.zarr"))


def test_kernel_values_are_kept_at_the_cache_path_alone() -> None:
    line = "embed arc.zarr --bandwidth 0.5 --method lowrank --landmarks 60 --overwrite --no-progress --out m.zarr"
    for option, left in (("--cache always", []), ("--cache always --cache-path s.zarr", ["s.zarr"])):
        before = set(Path().iterdir())
        done(f"{line} {option}")
        assert {p.name for p in set(Path().iterdir()) - before} - {"m.zarr"} == {*left}
    assert zarr.open_array("s.zarr").shape[0] == 120


def test_an_embedding_that_is_not_proved_says_so() -> None:
    line = "embed arc.zarr --bandwidth 0.5 --max-passes 3 --out m.zarr"
    with pytest.warns(match="not proved optimal"):
        assert "of the objective, not proved optimal to 1e-10" in done(line)


def test_a_diffusion_map() -> None:
    done(
        "embed arc.zarr --bandwidth 0.5 --map diffusion --components 3 --time 2 --density 1 --out m.zarr "
        "--embedding e.zarr --no-progress --threads 1"
    )
    again = dsp.DiffusionMap(0.5, n_components=3, time=2, alpha=1, random_state=0).fit(ARC)
    np.testing.assert_allclose(array("e.zarr"), again.embedding_, rtol=0, atol=1e-10)
    described = done("info m.zarr")
    assert "method      exact, all 120 points\nbandwidth   0.5" in described
    assert f"{again.spectrum_[0]:.6g}" in described


@pytest.mark.parametrize(("words", "bandwidth"), [("", "auto"), ("--bandwidth local", "local")])
def test_a_bandwidth_that_is_chosen(words: str, bandwidth: str) -> None:
    text = done(f"embed arc.zarr {words} --map diffusion --out m.zarr --no-progress")
    again = dsp.DiffusionMap(bandwidth, random_state=0).fit(ARC)
    assert dsp.load("m.zarr").bandwidth_ == again.bandwidth_
    assert f"bandwidth   {again.bandwidth_:g}, {bandwidth}\n" in text


def test_a_stopped_embedding_goes_on_from_its_checkpoint() -> None:
    line = "embed arc.zarr --bandwidth 0.5 --method lowrank --landmarks 20 --checkpoint c"
    done(f"{line} --out m.zarr")
    done(f"{line} --out again.zarr")
    np.testing.assert_array_equal(dsp.load("m.zarr").spectrum_, dsp.load("again.zarr").spectrum_)


@pytest.mark.parametrize(("targets", "shape"), [("values", (300, 1)), ("column", (300, 1))])
def test_regression_on_values_and_gradients(targets: str, shape: tuple[int, ...]) -> None:
    fit = f"regress plane.zarr {targets}.zarr --kernel gaussian:2 --landmarks 60 --seed 1"
    done(f"{fit} --weights ones.zarr --out values.model")
    table = done(f"{fit} --gradients slopes.zarr --gradient-weight 0.5 --standardize --out m.zarr")
    model = dsp.load("m.zarr")
    again = dsp.HermiteRegressor(
        dsp.kernels.Gaussian(2.0), 60, gradient_weight=0.5, standardize=True, random_state=1
    ).fit(PLANE, ARRAYS["values"], ARRAYS["slopes"])
    np.testing.assert_allclose(model.coef_.ravel(), again.coef_, rtol=1e-6)
    assert done("info m.zarr") in table
    assert "gradients   weight 0.5\n" in table
    held = f"{model.cv_score_:.4g} of values and gradients explained, squared error {model.cv_:.4g}, 10 folds"
    assert f"held out    {held}\nmodel: m.zarr" in table
    assert f"held out    {dsp.load('values.model').cv_score_:.4g} R^2, squared error" in done("info values.model")
    assert "gradients   none" in done("info values.model")
    assert done("predict m.zarr plane.zarr --out p.zarr") == "prediction: p.zarr, 300 rows, 1 column\n"
    assert done("predict m.zarr plane.zarr --gradient --out g.zarr") == "gradient: g.zarr, 300 rows, 2 columns\n"
    assert array("p.zarr").shape == shape
    np.testing.assert_allclose(array("p.zarr")[:, 0], model.predict(PLANE).ravel(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(array("p.zarr"), ARRAYS["column"], rtol=0, atol=0.01)  # of 60 landmarks: 0.003
    np.testing.assert_allclose(array("g.zarr"), ARRAYS["slopes"], rtol=0, atol=0.05)


def test_a_regressor_is_updated_and_merged() -> None:
    zarr.create_array("half.zarr", data=PLANE[:200], chunks=(100, 2))
    zarr.create_array("half_values.zarr", data=ARRAYS["values"][:200], chunks=(100,))
    done("regress half.zarr half_values.zarr --kernel gaussian:2 --landmarks 30 --alpha 1e-6 --out half.model")
    assert "rows        300" in done("update half.model plane.zarr --targets values.zarr --out m.zarr")
    again = dsp.load("half.model").update(PLANE, ARRAYS["values"])
    np.testing.assert_allclose(dsp.load("m.zarr").predict(PLANE), again.predict(PLANE), rtol=0, atol=1e-9)
    assert again.alpha_ == 1e-6
    assert "rows        500" in done("merge half.model m.zarr --out both.zarr")


def test_invariant_regression() -> None:
    table = done(
        "invariant sphere.zarr quartic.zarr --manifold sphere --group permutations+signflips --solver least-squares "
        "--functions 49 --alpha 0 --out m.zarr"
    )
    assert "group       permutations+signflips\n" in table
    assert "functions   3 invariant ones of 49\n" in table  # Molien: 1 / ((1 - t^4) (1 - t^6))
    described = done("info m.zarr")
    assert f"{described}model: m.zarr\n" == table
    done("predict m.zarr sphere.zarr --out p.zarr")
    np.testing.assert_allclose(array("p.zarr")[:, 0], ARRAYS["quartic"], rtol=0, atol=1e-10)  # in their span
    degrees = np.array([line.split() for line in described.splitlines()[-7:]], dtype=float)
    np.testing.assert_array_equal(degrees[:, 1], [k * (k + 1) for k in range(7)])
    np.testing.assert_array_equal(degrees[:, 2], [2 * k + 1 for k in range(7)])


def test_invariant_regression_on_gradients() -> None:
    """Its default solver, the held-out score with its error, gradients in and out, rows appended."""
    x = ARRAYS["sphere"]
    zarr.save_array("cubic.zarr", 4 * x**3)
    options = "--manifold sphere --group permutations+signflips --gradients cubic.zarr --gradient-weight 0.5"
    table = done(f"invariant sphere.zarr quartic.zarr {options} --sampling estimated --out m.zarr")
    assert "solver      least squares\n" in table
    assert re.search(r"held out    1 \+- \S+ of values and gradients explained, squared error ", table)
    model = dsp.load("m.zarr")
    assert (model.gradient_weight, model.density, model.smoothness_) == (0.5, "estimated", 2.0)
    done("predict m.zarr sphere.zarr --gradient --out g.zarr")
    np.testing.assert_allclose(array("g.zarr"), model.predict_gradient(x), atol=1e-12)
    normal = x * np.sum(4 * x**4, axis=1, keepdims=True)
    np.testing.assert_allclose(array("g.zarr"), 4 * x**3 - normal, atol=1e-4)
    for name in ("sphere", "quartic", "cubic"):
        zarr.save_array(f"more-{name}.zarr", np.concatenate([array(f"{name}.zarr"), array(f"{name}.zarr")[:50]]))
    found = done("update m.zarr more-sphere.zarr --targets more-quartic.zarr --gradients more-cubic.zarr --out n.zarr")
    assert f"rows        {len(x) + 50}\n" in found


def test_classes() -> None:
    """Labels of text; probabilities, the score, and what they are refused for."""
    names = np.where(np.abs(SPHERE).max(axis=1) > 0.9, "axis", "other")
    zarr.save_array("names.zarr", names, zarr_format=2)
    line = "classify sphere.zarr names.zarr --manifold sphere --group permutations+signflips"
    table = done(f"{line} --functions 100 --smoothness 1.5 --alpha 1e-5 --out m.zarr")
    model = dsp.load("m.zarr")
    assert (model.smoothness, model.alpha, model.n_eigenfunctions_) == (1.5, 1e-5, 100)
    assert "classes     2, shares axis" in table
    assert f"{done('info m.zarr')}model: m.zarr\n" == table
    echoed = done("predict m.zarr sphere.zarr --out p.zarr")
    assert echoed == "probabilities: p.zarr, 300 rows, of the classes axis, other\n"
    np.testing.assert_allclose(array("p.zarr"), model.predict_proba(SPHERE), rtol=0, atol=1e-12)
    found = np.mean(model.classes_[array("p.zarr").argmax(axis=1)] == names)
    assert done("score m.zarr sphere.zarr --targets names.zarr") == f"score       {found:.6g}\n"
    assert found > 0.95
    for line, message in (
        ("predict m.zarr sphere.zarr --gradient --out o.zarr", "--gradient is for regressors, and m.zarr is none"),
        ("score m.zarr sphere.zarr", "m.zarr is a classifier: --targets is missing"),
        ("classify sphere.zarr ones.zarr --out o.zarr", "y has one class, 1"),
    ):
        refused = call(*line.split())
        assert message in refused.output + str(refused.exception)


@pytest.mark.parametrize(
    ("manifold", "points", "expected"),
    [
        ("box:-2:2", "plane", dsp.manifolds.PeriodicBox([-2, -2], [2, 2])),
        ("interval:-9:9", "plane", dsp.manifolds.Interval([-9, -9], [9, 9])),
        ("sphere", "sphere", dsp.manifolds.Sphere(3)),
    ],
)
@pytest.mark.parametrize(
    ("group", "order"), [(None, None), ("cyclic", "Cyclic"), ("signflips", "SignFlips"), ("rotations:2", "Rotations")]
)
def test_manifolds_and_groups(manifold: str, points: str, expected: Any, group: str | None, order: str | None) -> None:
    option = "" if group is None else f"--group {group}"
    solver = "--solver least-squares --functions 9"
    table = done(f"invariant {points}.zarr values.zarr --manifold {manifold} {option} {solver} --out m.zarr")
    assert f"manifold    {expected}" in table
    assert f"group       {'none' if order is None else order}" in table
    assert dsp.load("m.zarr").manifold == expected


def test_columns_without_a_manifold_are_intervals() -> None:
    table = done("invariant plane.zarr values.zarr --group permutations --solver least-squares --out m.zarr")
    lower, upper = ARRAYS["plane"].min(), ARRAYS["plane"].max()
    model = dsp.load("m.zarr")
    assert model.manifold is None
    np.testing.assert_array_equal(model.manifold_.ends, [[lower] * 2, [upper] * 2])
    assert f"manifold    {model.manifold_}" in table
    assert "smoothness  2\n" in table


def test_every_kind_of_model_is_described() -> None:
    """Those without a command of their own."""
    graph = dsp.GraphLaplacian(n_landmarks=20, n_components=3, random_state=0).fit(PLANE)
    kernelised = dsp.KernelEmbedding(dsp.kernels.Matern(1.5, 1.0), random_state=0).fit(PLANE[:50])
    for model, lines in {
        graph: ["weights     Gaussian", "neighbours  all pairs", f"{graph.eigenvalues_[1]:.6g}"],
        kernelised: ["kernel      Matern", "points      50 of 2", f"{kernelised.spectrum_[0]:.6g}"],
    }.items():
        dsp.save(model, "m.zarr", overwrite=True)
        described = done("info m.zarr")
        assert described == f"{describe(model)}\n"
        for line in (f"model       {type(model).__name__}", f"rank        {model.rank_}", *lines):
            assert line in described
        done("transform m.zarr plane.zarr --out t.zarr --overwrite")
        np.testing.assert_allclose(array("t.zarr"), model.transform(PLANE), rtol=1e-9, atol=1e-11)
    with pytest.raises(TypeError, match="a fitted model or moments are wanted, not int"):
        describe(3)


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")  # of a projection on few rows
def test_chunks_that_are_not_stored() -> None:
    done("embed plane.zarr --bandwidth 2 --method lowrank --landmarks 40 --out e.model")
    done("regress plane.zarr values.zarr --landmarks 30 --kernel gaussian:2 --out r.model")
    done("invariant sphere.zarr quartic.zarr --manifold sphere --out i.model")
    zarr.create_array("gaps.zarr", shape=(50, 2), chunks=(10, 2), dtype=float, fill_value=0.5)
    zarr.create_array("pole.zarr", shape=(50, 3), chunks=(10, 3), dtype=float, fill_value=3**-0.5)
    for line in ("transform e.model gaps.zarr", "predict r.model gaps.zarr", "predict i.model pole.zarr"):
        with pytest.raises(OSError, match="missing"):
            done(f"{line} --out t.zarr")
        assert not Path("t.zarr").exists()
        done(f"{line} --out t.zarr --allow-missing --overwrite")
        found = array("t.zarr")
        np.testing.assert_allclose(found, np.broadcast_to(found[:1], found.shape), rtol=1e-9)
        shutil.rmtree("t.zarr")


def models() -> None:
    done("embed arc.zarr --bandwidth 0.5 --map diffusion --out d.zarr")
    done("regress plane.zarr values.zarr --landmarks 20 --out r.zarr")
    done("invariant sphere.zarr quartic.zarr --manifold sphere --out i.zarr")
    dsp.save(dsp.load("r.zarr").moments_, "moments.zarr")


ERRORS = [
    ("transform r.zarr plane.zarr --out o.zarr", r"HermiteRegressor, which predicts: `daskspectral predict r.zarr pl"),
    ("transform i.zarr plane.zarr --out o.zarr", "InvariantRegressor, which predicts"),
    ("predict d.zarr arc.zarr --out o.zarr", "DiffusionMap, which is no regressor: `daskspectral transform d.zarr arc"),
    ("transform moments.zarr arc.zarr --out o.zarr", "holds moments, not a model"),
    ("predict r.zarr plane.zarr --out plane.zarr --overwrite", "would replace the input"),
    ("update d.zarr arc.zarr --out o.zarr", "DiffusionMap, which cannot be updated"),
    (
        "update i.zarr sphere.zarr --targets quartic.zarr --gradients sphere.zarr --out o.zarr",
        r"the data are for Regression\(gradients=True",
    ),
    ("merge d.zarr r.zarr --out o.zarr", "d.zarr holds DiffusionMap, which has no moments to add"),
    ("merge r.zarr d.zarr --out o.zarr", "d.zarr holds DiffusionMap, which has no moments to add"),
    ("embed arc.zarr --bandwidth -1 --out o.zarr", "bandwidth must be positive"),
    ("embed arc.zarr --bandwidth 1 --out arc.zarr --overwrite", "would replace the input"),
    ("embed arc.zarr --bandwidth 1 --out o.zarr --embedding arc.zarr --overwrite", "would replace the input"),
    ("embed arc.zarr --bandwidth 1 --out o.zarr --embedding d.zarr", "d.zarr exists"),
    ("embed arc.zarr --bandwidth 1e-9 --out o.zarr", "widen the bandwidth"),
    ("embed no.zarr --bandwidth 1 --out o.zarr", "there is no zarr array at no.zarr"),
    ("regress plane.zarr arc.zarr --out o.zarr", "y has 120 rows and X has 300"),
    ("regress plane.zarr values.zarr --out values.zarr --overwrite", "would replace the input"),
    ("regress plane.zarr values.zarr --gradients slopes.zarr --out slopes.zarr --overwrite", "would replace the input"),
    ("regress plane.zarr values.zarr --gradients sphere.zarr --out o.zarr", "gradients must have shape"),
    ("regress plane.zarr values.zarr --kernel rbf --out o.zarr", "there is no kernel 'rbf'"),
    ("invariant sphere.zarr quartic.zarr --manifold ball --out o.zarr", "no manifold 'ball'; the manifolds are sphere"),
    ("invariant sphere.zarr quartic.zarr --manifold torus --out o.zarr", "an even number of columns; got 3"),
    (
        "invariant sphere.zarr quartic.zarr --manifold box:a:b --out o.zarr",
        "the bounds of a box or an interval are num",
    ),
    (
        "invariant sphere.zarr quartic.zarr --manifold sphere --group all --out o.zarr",
        "no group 'all'; the groups are p",
    ),
    ("invariant plane.zarr values.zarr --manifold circle --out o.zarr", r"expected points on Circle\(\)"),
]


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")  # of a projection on few rows
def test_errors(capsys: pytest.CaptureFixture[str]) -> None:
    models()
    before = everything()
    for line, message in ERRORS:
        with pytest.raises(SystemExit) as caught:
            main(line.split())
        out, err = capsys.readouterr()
        assert (caught.value.code, out, err.count("\n")) == (1, "", 1), line
        assert re.match(f"Error: .*{message}", err), (line, err)
        assert everything() == before, line


USAGE = [
    ("embed arc.zarr --bandwidth 1 --time 2 --out o.zarr", "--time is for --map diffusion"),
    ("embed arc.zarr --map diffusion --method sparse --out o.zarr", "--method sparse and --landmarks auto are for"),
    ("transform d.zarr arc.zarr --out o.zarr --on-uncovered nan", "--on-uncovered is for models of"),
    ("embed arc.zarr --bandwidth 1 --map diffusion --standardize --out o.zarr", "--standardize is for --map sdp"),
    ("embed arc.zarr --bandwidth 1 --map diffusion --checkpoint c --out o.zarr", "--checkpoint is for --map sdp"),
    ("embed arc.zarr --bandwidth 1 --out o.zarr --embedding o.zarr/e", "--embedding o.zarr/e need places"),
    ("embed arc.zarr --bandwidth 1 --out o.zarr --embedding o.zarr", "need places of their own"),
    ("embed arc.zarr --bandwidth 1 --out o.zarr --cache-path o.zarr", "--cache-path o.zarr need places of their own"),
    (
        "embed arc.zarr --bandwidth 1 --out o.zarr --cache features.zarr",
        "'features.zarr' is not one of 'auto'",
    ),
    ("embed arc.zarr --bandwidth 1 --map diffusion --cache never --out o.zarr", "--cache is for --map sdp"),
    ("embed arc.zarr --bandwidth wide --out o.zarr", "'wide' is not a number, nor one of auto, median, local"),
    ("embed arc.zarr --bandwidth 1", "Missing option '--out'"),
    ("regress plane.zarr values.zarr --gradient-weight 2 --out o.zarr", "--gradient-weight is for --gradients"),
    (
        "invariant sphere.zarr quartic.zarr --manifold sphere --alpha 1 --solver projection --out o.zarr",
        "for --solver least-squares",
    ),
    ("transform d.zarr arc.zarr --right --out o.zarr", "d.zarr holds DiffusionMap"),
    ("update r.zarr plane.zarr --out o.zarr", "r.zarr is a regressor: --targets is missing"),
]


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")  # of a projection on few rows
def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    models()
    before = everything()
    for line, message in USAGE:
        with pytest.raises(SystemExit) as caught:
            main(line.split())
        assert caught.value.code == 2, line
        assert message in " ".join(capsys.readouterr().err.split())
        assert everything() == before, line


def test_the_package_runs_as_a_module() -> None:
    run = [sys.executable, "-m", "daskspectral.cli", "--help"]
    shown = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout
    for name in ("embed", "regress", "invariant", "predict", "transform", "update"):
        assert re.search(rf"^  {name} ", shown, re.MULTILINE)


def test_a_labelled_field_from_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NetCDF file and a zarr group give the model of the Python interface; land stays empty in what comes out."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    coords = {"lat": [-60.0, -20.0, 20.0, 60.0], "lon": [0.0, 90.0, 180.0]}
    field = xr.DataArray(rng.standard_normal((150, 4, 3)), coords, ("time", "lat", "lon"), name="t")
    field[:, 3, 0] = np.nan
    field.to_netcdf("t.nc", engine="h5netcdf")
    field.to_dataset().to_zarr("t.zarr", zarr_format=2)
    options = {"sample_dims": ("time",), "latitude": "lat"}
    model = dsp.SpectralDecomposition(dsp.operators.Covariance(), n_components=3, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = model.fit(field, on_invalid="skip")
        for source in ("t.nc", "t.zarr"):
            line = f"fit {source} --operator covariance --sample-dims time --latitude lat --on-invalid skip"
            done = call(f"{line} --components 3 --out m.zarr --overwrite")
            assert done.exit_code == 0, done.output
            found = dsp.load("m.zarr")
            np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_)
            assert found.layout_.sample_dims == ("time",)
            assert call(f"transform m.zarr {source} --out f.zarr --overwrite").exit_code == 0
            functions = xr.open_zarr("f.zarr")["eigenfunction"]
            assert functions.dims == ("time", "component")
            np.testing.assert_allclose(functions, wanted.transform(field), rtol=1e-12)
    assert "'latitude'" in str(call("fit t.nc --latitude latitude --on-invalid skip --out n.zarr").exception)
