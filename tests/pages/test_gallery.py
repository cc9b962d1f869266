"""The gallery: every script with its picture, numbers and source; and the count of the code by hand."""

import json
import re
from pathlib import Path

import pytest

from examples.pages.code_size import measure

LARGEST = 150_000  # bytes of a picture


@pytest.fixture(scope="module")
def entries(builder):
    return [entry for section in builder.gallery.read() for entry in section.entries]


def test_each_has_a_picture_that_is_small_and_numbers_that_were_measured(builder, entries):
    recorded = json.loads((builder.gallery.HERE / "numbers.json").read_text(encoding="utf-8"))
    assert set(recorded) == {entry.name for entry in entries}
    for entry in entries:
        assert (builder.gallery.PICTURES / entry.picture).stat().st_size <= LARGEST, entry.picture
        assert entry.numbers or entry.table, f"{entry.name}: python examples/pages/record.py {entry.name}"
        assert 0 < entry.seconds <= 120, f"{entry.name} takes two cores more than a minute"


def test_each_has_a_page_with_picture_numbers_and_source(site, entries):
    overview = (site / "gallery.html").read_text(encoding="utf-8")
    for entry in entries:
        page = (site / "gallery" / f"{entry.name}.html").read_text(encoding="utf-8")
        for text, where in ((page, f"../pictures/{entry.picture}"), (overview, f"pictures/{entry.picture}")):
            assert f'src="{where}"' in text
            assert entry.command in text
        assert all(f">{value}<" in page for value in entry.numbers.values())
        assert page.count("<thead>") == len(re.findall(r"^\|[-:| ]+\|$", entry.table, re.M)), "tables are tables"
        assert "&lt;table" not in page + overview


SOURCE = '''"""A module
of two lines."""

# a comment
class Ball:
    """Of radius one."""

    def area(self, d: int) -> float:
        """Of the sphere
        around it."""
        return (
            2 * d  # wrong
        )


def _hidden(): return """no
docstring"""
'''


def test_what_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "ball.py"
    path.write_text(SOURCE, encoding="utf-8")
    size = measure(path)
    lines = [line for line in SOURCE.splitlines() if line.strip()]
    assert size.widths == [len(lines[i]) for i in (3, 5, 8, 9, 10, 11, 12)]
    assert size.tokens == 3 + 12 + 2 + 3 + 1 + 7
    assert (size.files, size.classes, sorted(size.functions), size.words) == (1, 1, [2, 4], [3, 5])
