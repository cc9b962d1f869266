"""The report of a fit: its own checks, at fewer points."""

import importlib.util
from pathlib import Path

import pytest

from tests.common import written

PATH = Path(__file__).parents[2] / "examples" / "performance_report.py"


@pytest.mark.filterwarnings("ignore::daskspectral.errors.TrustWarning")
def test_the_report_names_the_stages(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    seconds = example.main(20_000, tmp_path)
    assert list(seconds) == example.STAGES
    assert all(second >= 0 for second in seconds.values())
    assert (tmp_path / example.REPORT).stat().st_size > 10_000
    assert written(tmp_path / "functions.zarr").shape == (20_000, 8)
    assert "20000 of 20000 rows" in capsys.readouterr().out
