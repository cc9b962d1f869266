"""The torus example, small: its tables, its picture, and its floors by quadrature."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

PATH = Path(__file__).parents[2] / "examples" / "paper" / "invariances_torus.py"


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_variance_of_the_target_and_what_cosines_leave_of_it(example):
    x = (np.arange(20_000) + 0.5) / 10_000 - 1
    columns = np.cos(np.pi * np.outer(np.arange(4), x))
    columns /= np.linalg.norm(columns, axis=1, keepdims=True)
    coefficients = columns @ x**2
    for frequencies in (1, 2, 3):
        left = np.mean((x**2 - coefficients[: frequencies + 1] @ columns[: frequencies + 1]) ** 2)
        assert left / np.var(x**2) == pytest.approx(example.floor(frequencies), rel=1e-3)
    sample = example.target(example.TORUS.sample(200_000, np.random.default_rng(0)))
    assert np.var(sample) == pytest.approx(example.VARIANCE, rel=0.02)


@pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")  # of a projection on few rows
def test_quick(example, tmp_path, monkeypatch):
    monkeypatch.setitem(example.RANGES, "averaged kernel ridge", (0, 50, 50))  # 1024 elements, once a seed
    result = CliRunner().invoke(example.main, ["--quick", "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    rows = [line.strip("| ").split(" | ") for line in result.output.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows if row[0] in ("50", "1000")] == ["50", "1000"]
    assert sum("exp(sum x)" in row[0] for row in rows) == 2
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]
