"""The gallery: every script with its picture, numbers and source; and the count of the code by hand."""

import json
import re

import pytest

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
