"""The commands for embeddings and regression, and what works on any saved model: info, transform, predict."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskspectral as dsp
from daskspectral.cli import describe, main
from tests.cli.common import done, everything

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
    return np.asarray(zarr.open_array(path, mode="r")[:])


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
        "embed arc.zarr --bandwidth 0.5 --map diffusion --components 3 --time 2 --alpha 1 --out m.zarr "
        "--embedding e.zarr --no-progress --threads 1"
    )
    again = dsp.DiffusionMap(0.5, n_components=3, time=2, alpha=1, random_state=0).fit(ARC)
    np.testing.assert_allclose(array("e.zarr"), again.embedding_, rtol=0, atol=1e-10)
    described = done("info m.zarr")
    assert "method      exact, all 120 points\nbandwidth   0.5" in described
    assert f"{again.spectrum_[0]:.6g}" in described


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


@pytest.mark.parametrize(
    ("manifold", "points", "expected"),
    [
        ("box:-2:2", "plane", dsp.manifolds.Box([-2, -2], [2, 2])),
        ("sphere", "sphere", dsp.manifolds.Sphere(3)),
    ],
)
@pytest.mark.parametrize(
    ("group", "order"), [(None, None), ("cyclic", "Cyclic"), ("signflips", "SignFlips"), ("rotations:2", "Rotations")]
)
def test_manifolds_and_groups(manifold: str, points: str, expected: Any, group: str | None, order: str | None) -> None:
    option = "" if group is None else f"--group {group}"
    table = done(f"invariant {points}.zarr values.zarr --manifold {manifold} {option} --functions 9 --out m.zarr")
    assert f"manifold    {expected}" in table
    assert f"group       {'none' if order is None else order}" in table
    assert dsp.load("m.zarr").manifold == expected


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
    ("merge d.zarr r.zarr --out o.zarr", "d.zarr holds DiffusionMap, which has no moments to add"),
    ("merge r.zarr d.zarr --out o.zarr", "d.zarr holds DiffusionMap, which has no moments to add"),
    ("embed arc.zarr --bandwidth -1 --out o.zarr", "bandwidth must be positive"),
    ("embed arc.zarr --bandwidth 1 --out arc.zarr --overwrite", "would replace the input"),
    ("embed arc.zarr --bandwidth 1 --out o.zarr --embedding arc.zarr --overwrite", "would replace the input"),
    ("embed arc.zarr --bandwidth 1 --out o.zarr --embedding d.zarr", "d.zarr exists"),
    ("embed arc.zarr --bandwidth 1e-9 --out o.zarr", "Give a larger bandwidth"),
    ("embed no.zarr --bandwidth 1 --out o.zarr", "there is no zarr array at no.zarr"),
    ("regress plane.zarr arc.zarr --out o.zarr", "y has 120 rows and X has 300"),
    ("regress plane.zarr values.zarr --out values.zarr --overwrite", "would replace the input"),
    ("regress plane.zarr values.zarr --gradients slopes.zarr --out slopes.zarr --overwrite", "would replace the input"),
    ("regress plane.zarr values.zarr --gradients sphere.zarr --out o.zarr", "gradients must have shape"),
    ("regress plane.zarr values.zarr --kernel rbf --out o.zarr", "there is no kernel 'rbf'"),
    ("invariant sphere.zarr quartic.zarr --manifold ball --out o.zarr", "no manifold 'ball'; the manifolds are sphere"),
    ("invariant sphere.zarr quartic.zarr --manifold torus --out o.zarr", "an even number of columns; got 3"),
    ("invariant sphere.zarr quartic.zarr --manifold box:a:b --out o.zarr", "the bounds of a box are numbers"),
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
    ("embed arc.zarr --bandwidth 1 --components 2 --out o.zarr", "--components is for --map diffusion"),
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
    ("embed arc.zarr --out o.zarr", "Missing option '--bandwidth'"),
    ("embed arc.zarr --bandwidth 1", "Missing option '--out'"),
    ("regress plane.zarr values.zarr --gradient-weight 2 --out o.zarr", "--gradient-weight is for --gradients"),
    ("invariant sphere.zarr quartic.zarr --out o.zarr", "Missing option '--manifold'"),
    ("invariant sphere.zarr quartic.zarr --manifold sphere --alpha 1 --out o.zarr", "for --solver least-squares"),
    ("predict i.zarr sphere.zarr --gradient --out o.zarr", "--gradient is for models of `daskspectral regress`"),
    ("transform d.zarr arc.zarr --right --out o.zarr", "d.zarr holds DiffusionMap"),
    ("update r.zarr plane.zarr --out o.zarr", "r.zarr is a regressor: --targets is missing"),
    ("update i.zarr sphere.zarr --targets quartic.zarr --gradients sphere.zarr --out o.zarr", "and i.zarr is none"),
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
