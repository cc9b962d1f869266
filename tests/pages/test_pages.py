"""The pages: every public name has its place, every link leads somewhere."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import daskspectral as dsp
from tests.report.common import Page

pytestmark = pytest.mark.slow  # all pages are built
PAGES = Path(__file__).parents[2] / "examples" / "pages"


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    """The module that builds the pages; its neighbours are `builder.prose` and the like."""
    pytest.importorskip("pdoc", reason="pdoc makes the pages: extra `test`")
    pytest.importorskip("matplotlib", reason="a page is about pictures: extra `plot`")
    sys.path.insert(0, str(PAGES))
    import build

    return build


@pytest.fixture(scope="module")
def site(builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    folder = tmp_path_factory.mktemp("site")
    builder.build(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_public_name_has_its_place(pages, builder, site) -> None:
    assert {*dsp.__all__} - {*dsp._HOMES} <= {name.rpartition(".")[2] for name in builder.MODULES}
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
