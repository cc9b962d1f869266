"""The pages: every public name has its place, every link leads somewhere, and nothing is taken for markup."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import daskspectral as dsp

ROOT = Path(__file__).parents[2]
TAGS = """html head meta title link style script body a header footer svg path div nav input label h1 h2 h3 h4 h5 h6
ul ol li span main section article p code pre table thead tbody tr th td dl dt dd br hr em strong img figure details
summary wbr blockquote"""


class Page(HTMLParser):
    """What a page has: tags, anchors, links, pictures, and its text without styles and scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.tags: set[str] = set()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.files: list[str] = []
        self.text = ""
        self._silent = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        self._silent = tag in ("style", "script")
        if given.get("id"):
            self.anchors.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given.get("href")))
        if given.get("src"):
            self.files.append(str(given["src"]))

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._silent else data


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_public_name_has_its_place(pages, builder, site) -> None:
    assert set(dsp._MODULES) <= {name.rpartition(".")[2] for name in builder.MODULES}
    for name in builder.MODULES:
        module = importlib.import_module(name)
        missing = set(module.__all__) - set(pages[site / f"{name.replace('.', '/')}.html"].anchors)
        assert missing == set(), f"{name} lacks {missing}"


def test_methods_of_private_bases_are_shown(pages, site) -> None:
    anchors = pages[site / "daskspectral/estimators.html"].anchors
    assert {"SpectralDecomposition.fit", "SpectralDecomposition.transform", "HermiteRegressor.predict"} <= set(anchors)
    assert not [name for name in anchors if name.endswith("_request") or "._" in name]


def test_every_link_leads_somewhere(pages, site) -> None:
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if "://" in target:
                continue
            place = (path.parent / target).resolve() if target else path
            if not place.is_file() or (anchor and anchor not in pages[place].anchors):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert wrong == []


def test_every_picture_is_there_and_none_comes_from_elsewhere(pages) -> None:
    for path, page in pages.items():
        for file in page.files:
            assert (path.parent / file).resolve().is_file(), f"{path}: {file}"


def test_anchors_are_unique_and_no_formula_became_markup(pages) -> None:
    for path, page in pages.items():
        twice = {name for name in page.anchors if page.anchors.count(name) > 1}
        assert twice == set(), f"{path}: {twice}"
        assert page.tags <= set(TAGS.split()), f"{path}: {page.tags - set(TAGS.split())}"


def test_names_in_prose_and_signatures_are_links(pages, site) -> None:
    operators = (site / "daskspectral/operators.html").read_text(encoding="utf-8")
    assert '<code><a href="#Laplacian">Laplacian</a>(manifold=None)</code>' in operators
    assert '<code><a href="forms.html">daskspectral.forms</a></code>' in operators
    estimators = (site / "daskspectral/estimators.html").read_text(encoding="utf-8")
    assert '<a href="kernels.html#Kernel">Kernel</a>' in estimators  # of an annotation


def test_what_is_searched_is_there(site) -> None:
    index = (site / "search.js").read_text(encoding="utf-8")
    assert '"SpectralDecomposition"' in index
    assert len(index) < 4e6


def test_a_warning_is_an_error(builder, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(dsp.kernels, "__all__", [*dsp.kernels.__all__, "Missing"])
    with pytest.raises(UserWarning, match="'Missing'"):
        builder.build(tmp_path / "pages")


def test_the_command_builds_into_a_folder_of_its_own(tmp_path) -> None:
    script, out = ROOT / "examples" / "pages" / "build.py", tmp_path / "pages"
    command = [sys.executable, script, "--out", out]
    options = {"capture_output": True, "text": True, "timeout": 300, "cwd": tmp_path}
    done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.fullmatch(r"\d+ pages; open .*index\.html\n", done.stdout)
    (out / "index.html").unlink()
    refused = subprocess.run(command, **options)
    assert refused.returncode == 2
    assert "holds something else than pages" in refused.stderr
    assert (out / "gallery.html").exists()
