"""The documentation: Sphinx builds it without a warning, every public name has a page, every link has a target."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import daskspectral as dsp
from tests.report.common import Page

pytestmark = pytest.mark.slow  # all pages are built
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    for module in ("sphinx", "numpydoc", "myst_parser", "sphinx_gallery", "matplotlib"):
        pytest.importorskip(module, reason="the documentation needs the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(folder / "doctrees")]
    done = subprocess.run([*words, "examples/pages", str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }


def test_every_public_name_has_its_place(pages) -> None:
    anchors = {anchor for page in pages.values() for anchor in page.ids}
    modules = sorted(dsp._MODULES)
    wanted = {f"daskspectral.{name}" for name in dsp._HOMES}
    for name in modules:
        module = importlib.import_module(f"daskspectral.{name}")
        wanted |= {f"daskspectral.{name}.{one}" for one in getattr(module, "__all__", ())}
    homes = {anchor.rpartition(".")[2] for anchor in anchors}  # a name that two modules have is on one page
    assert {name for name in wanted - anchors if name.rpartition(".")[2] not in homes} == set()
    assert {"daskspectral.EOF.fit", "daskspectral.HermiteRegressor.predict"} <= anchors  # of private bases
    assert not [name for name in anchors if name.endswith("_request")]


def test_every_link_leads_somewhere_and_every_picture_is_there(pages, site) -> None:
    wrong = []
    for path, page in pages.items():
        for link in (str(a["href"]) for a in page.every("a")):
            target, _, anchor = link.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            place = (path.parent / target).resolve() if target else path
            if not place.is_file() or (anchor and place.suffix == ".html" and anchor not in pages[place].ids):
                wrong.append(f"{path.relative_to(site)}: {link}")
        files = [str(given["src"]).partition("?")[0] for _, given in page.tags if given.get("src")]
        wrong += [f"{path}: {f}" for f in files if "://" not in f and not (path.parent / f).resolve().is_file()]
    assert wrong == []
