"""Digits embedded: the example's bounds at fewer images."""

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "examples" / "digits_embedding.py"


def test_ten_columns_tell_new_digits_apart(tmp_path):
    spec = importlib.util.spec_from_file_location(PATH.stem, PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    numbers = example.main(900, tmp_path)
    assert numbers["accuracy of 10 columns"] >= 0.94
    assert numbers["accuracy of 10 columns"] >= numbers["accuracy of the optimum's columns"]
    assert [p.name for p in tmp_path.iterdir()] == [example.PICTURE]
