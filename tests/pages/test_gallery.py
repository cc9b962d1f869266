"""The gallery: every script of a paper's figure and of a task, with its picture, numbers and source."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LARGEST = 150_000  # bytes of a picture
TASKS = (
    "pulsar_clusters",
    "mnist_features",
    "molecule",
    "crystal_forces",
    "torsions",
    "climate_field",
    "positions",
)


@pytest.fixture(scope="module")
def sections(builder):
    return builder.gallery.read()


@pytest.fixture(scope="module")
def entries(sections):
    return [entry for section in sections for entry in section.entries]


def test_every_task_and_every_figure_is_shown(sections, entries):
    assert {f"examples/{task}.py" for task in TASKS} <= {entry.script for entry in sections[0].entries}
    titles = [entry.title for entry in entries]
    numbers = [
        [int(n) for n in re.findall(r"Figure (\d+)", " ".join(e.title for e in section.entries))]
        for section in sections
    ]
    assert numbers == [[], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 3, 4, 5, 6, 7, 8], []]  # those that show data
    assert len(set(titles)) == len(titles)


def test_each_has_a_picture_that_is_small_and_numbers_that_were_measured(builder, entries):
    for entry in entries:
        assert (builder.gallery.PICTURES / entry.picture).stat().st_size <= LARGEST, entry.picture
        assert entry.numbers or entry.table, f"{entry.name}: python examples/pages/record.py {entry.name}"
        assert 0 < entry.seconds <= 120, f"{entry.name} takes two cores more than a minute"


def test_what_was_recorded_is_of_entries(builder, entries):
    recorded = json.loads((builder.gallery.HERE / "numbers.json").read_text(encoding="utf-8"))
    assert set(recorded) == {entry.name for entry in entries}


def test_each_has_a_page_with_picture_numbers_and_source(site, entries):
    overview = (site / "gallery.html").read_text(encoding="utf-8")
    for entry in entries:
        page = (site / "gallery" / f"{entry.name}.html").read_text(encoding="utf-8")
        for text, where in ((page, f"../pictures/{entry.picture}"), (overview, f"pictures/{entry.picture}")):
            assert f'src="{where}"' in text
            assert entry.command in text
        plain = re.sub(r"<[^>]*>", "", page)
        assert "from daskspectral" in plain or "import daskspectral" in plain or "from sdp_common import" in plain
        assert all(f">{value}<" in page for value in entry.numbers.values())
        assert page.count("<thead>") == len(re.findall(r"^\|[-:| ]+\|$", entry.table, re.M)), "tables are tables"
        assert "&lt;table" not in page + overview
        assert (site / "pictures" / entry.picture).is_file()


def test_a_docstring_is_read_without_running_the_script(builder, tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(
        '"""Title: more.\n\nWhat it does.\n"""\nraise SystemExit\ndef f():\n    """Own."""\n'
    )
    monkeypatch.setattr(builder.gallery, "ROOT", tmp_path)
    entry = builder.gallery.Entry("name", "script.py", "p.png")
    assert (entry.title, entry.about, entry.command) == ("Title", "Title: more. What it does.", "python script.py")
    own = builder.gallery.Entry("name", "script.py", "p.png", "--n 1", function="f")
    assert (own.title, own.about, own.command) == ("Own", "Own.", "python script.py --n 1")


def test_numbers_tables_and_pictures_of_a_run_are_kept(builder, tmp_path, monkeypatch):
    import record
    from PIL import Image

    (tmp_path / "script.py").write_text(
        "import sys\nprint('words, not a number: none')\nprint('error, 3: of 4: 1.5e-3')\nprint('| a | b |')\n"
        "print('|---|---|'); print('| 1 | 2 |'); print('| c |'); print('|---|'); print('| 3 |')\n"
        "from PIL import Image\nImage.effect_noise((250, 200), 60).save(sys.argv[-1] + '/p.png')\n"
    )
    monkeypatch.setattr(builder.gallery, "ROOT", tmp_path)
    result = record.run(builder.gallery.Entry("name", "script.py", "p.png"), {}, tmp_path)
    assert result["numbers"] == {"error, 3: of 4": "1.5e-3"}
    assert result["table"] == "| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |", "two tables"
    assert 0 <= result["seconds"] < 60
    record.compress(tmp_path / "p.png", tmp_path / "small.png")
    assert (tmp_path / "small.png").stat().st_size <= LARGEST
    with Image.open(tmp_path / "small.png") as image:
        assert image.size == (250, 200)
    Image.effect_noise((1600, 1600), 90).save(tmp_path / "p.png")
    with pytest.raises(ValueError, match="draw fewer points"):
        record.compress(tmp_path / "p.png", tmp_path / "small.png")


def test_links_of_a_readme_lead_to_pages(builder, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text(
        "[a](examples/README.md#x), [b](LICENSE), [c](daskspectral/kernels/__init__.py), [d](https://a.org), "
        "[e](deploy/), [f](examples/pictures/p.png) ![g](examples/pictures/q.png)"
    )
    (tmp_path / "deploy").mkdir()
    monkeypatch.setattr(builder.gallery, "ROOT", tmp_path)
    text = builder.gallery.readme_html(tmp_path / "README.md")
    for link in ("gallery.html#x", "daskspectral/kernels.html", "https://a.org", "clusters.html", "pictures/p.png"):
        assert f'<a href="{link}">' in text
    assert text.count("<a ") == 5
    assert '<img src="pictures/q.png"' in text
