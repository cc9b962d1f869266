"""The pages: every public name has its place, every link leads somewhere, and nothing is taken for markup."""

import importlib
from pathlib import Path

import pytest
from pdoc.render_helpers import to_html

import daskspectral as dsp
from tests.report.common import Page

ROOT = Path(__file__).parents[2]
TAGS = """html head meta title link style script body a header footer svg path div nav input label h1 h2 h3 h4 h5 h6
ul ol li span main section article p code pre table thead tbody tr th td dl dt dd br hr em strong img figure details
summary wbr blockquote"""


DOCSTRING = """A form <f, L g> of f * g * h, and [0, 1](x).

    kind               what it is            in a shell
    First(a, b)        |x - y|^2 < 1
                       on below              first:1

Parameters
----------
scale : float
    A length, see `First`.

    Or more.
other

Examples
--------
>>> 1 + 1
2
"""


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_public_name_has_its_place(pages, builder, site) -> None:
    assert set(dsp._MODULES) <= {name.rpartition(".")[2] for name in builder.MODULES}
    for name in builder.MODULES:
        module = importlib.import_module(name)
        missing = set(getattr(module, "__all__", ())) - set(pages[site / f"{name.replace('.', '/')}.html"].ids)
        assert missing == set(), f"{name} lacks {missing}"
    anchors = [name for room in ("spectral", "regression") for name in pages[site / f"daskspectral/{room}.html"].ids]
    assert {"SpectralDecomposition.fit", "HermiteRegressor.predict"} <= set(anchors)  # of private bases
    assert not [name for name in anchors if name.endswith("_request") or "._" in name]


def test_every_link_leads_somewhere_and_every_picture_is_there(pages, site) -> None:
    wrong = []
    for path, page in pages.items():
        for link in (str(a["href"]) for a in page.every("a")):
            target, _, anchor = link.partition("#")
            if "://" in target:
                continue
            place = (path.parent / target).resolve() if target else path
            if not place.is_file() or (anchor and anchor not in pages[place].ids):
                wrong.append(f"{path.relative_to(site)}: {link}")
        files = [str(given["src"]) for _, given in page.tags if given.get("src")]
        wrong += [f"{path}: {file}" for file in files if not (path.parent / file).resolve().is_file()]
    assert wrong == []


def test_anchors_are_unique_and_no_formula_became_markup(pages) -> None:
    for path, page in pages.items():
        twice = {name for name in page.ids if page.ids.count(name) > 1}
        assert twice == set(), f"{path}: {twice}"
        others = {tag for tag, _ in page.tags} - set(TAGS.split())
        assert others == set(), f"{path}: {others}"


def test_docstrings_are_tables_definitions_and_code_with_formulas_as_they_are(builder) -> None:
    page = str(to_html(builder.prose.convert(DOCSTRING)))
    assert "&lt;f, L g> of f * g * h, and [0, 1](x)." in page.replace("&gt;", ">")
    assert "<em>" not in page
    assert "<thead><tr><th>kind</th><th>what it is</th><th>in a shell</th></tr></thead>" in page
    assert "<td><code>First(a, b)</code></td><td>|x - y|^2 &lt; 1 on below</td><td>first:1</td>" in page
    assert '<dt><code>scale</code> <span class="kind">float</span></dt>' in page
    assert "<dd>A length, see <code>First</code>.<br>Or more.</dd>\n<dt><code>other</code></dt>" in page
    assert '<span class="gp">&gt;&gt;&gt; </span>' in page
