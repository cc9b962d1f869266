"""The pages: every public name has its place, every link leads somewhere, and nothing is taken for markup."""

import importlib
import subprocess
import sys
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


def test_what_a_user_calls_first_is_listed_first(pages, site) -> None:
    listed = [one for one in pages[site / "daskspectral.html"].ids if one in dsp.__all__]
    assert listed == list(dsp.__all__)
    warnings = [i for i, one in enumerate(listed) if one.endswith(("Warning", "Error"))]
    assert warnings == list(range(len(listed) - len(warnings), len(listed)))
    assert listed[:2] == ["SpectralDecomposition", "Rows"]
    assert not {"form", "at", "along", "inner"} & {*dir(dsp)}


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


def test_names_in_prose_and_signatures_are_links(site) -> None:
    operators = (site / "daskspectral/operators.html").read_text(encoding="utf-8")
    assert '<code><a href="#Laplacian">Laplacian</a>(manifold=None)</code>' in operators
    embeddings = (site / "daskspectral/embedding.html").read_text(encoding="utf-8")
    assert '<a href="kernels.html#Kernel">Kernel</a>' in embeddings  # of an annotation
    assert '"SpectralDecomposition"' in (site / "search.js").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_builds_into_a_folder_of_its_own(tmp_path) -> None:
    script, out = ROOT / "examples" / "pages" / "build.py", tmp_path / "pages"
    command = [sys.executable, script, "--out", out]
    assert b"pages; open" in subprocess.run(command, stdout=subprocess.PIPE, timeout=300, check=True).stdout
    (out / "index.html").unlink()
    refused = subprocess.run(command, stderr=subprocess.PIPE, timeout=300)
    assert refused.returncode == 2
    assert b"holds something else than pages" in refused.stderr


def test_the_command_names_the_extra_that_it_needs(tmp_path) -> None:
    script = ROOT / "examples" / "pages" / "build.py"
    code = f"import sys, runpy; sys.modules['pdoc'] = None; runpy.run_path({str(script)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1].endswith('pip install -e ".[test]"')


def test_docstrings_are_tables_definitions_and_code_with_formulas_as_they_are(builder) -> None:
    page = str(to_html(builder.prose.convert(DOCSTRING)))
    assert "&lt;f, L g> of f * g * h, and [0, 1](x)." in page.replace("&gt;", ">")
    assert "<em>" not in page
    assert "<thead><tr><th>kind</th><th>what it is</th><th>in a shell</th></tr></thead>" in page
    assert "<td><code>First(a, b)</code></td><td>|x - y|^2 &lt; 1 on below</td><td>first:1</td>" in page
    assert '<dt><code>scale</code> <span class="kind">float</span></dt>' in page
    assert "<dd>A length, see <code>First</code>.<br>Or more.</dd>\n<dt><code>other</code></dt>" in page
    assert '<span class="gp">&gt;&gt;&gt; </span>' in page
