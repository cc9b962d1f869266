"""Reports in a real browser (chromium, driven by playwright), at the widths of a phone and of a desk."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daskspectral import report
from tests.common import unreliable
from tests.report.common import model

pytestmark = [unreliable, pytest.mark.slow]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PHONE, DESK = 390, 1280  # widths, in pixels
UNSEEN = """() => [...document.querySelectorAll('figure img')]
    .filter(e => !e.naturalWidth || e.getBoundingClientRect().width < 80).length"""
PAPER = "() => getComputedStyle(document.body).backgroundColor"
WIDER = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of this file, since its event loop would stand in the way of others."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no browser is installed (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: extra `test`")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])  # as root there is none
        yield started
        started.close()


@pytest.mark.parametrize("name", ["moons", "field", "invariant"])
def test_a_report_is_whole_in_a_browser(name: str, browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report.save(model(name)[0], path, model(name)[1], about=f"{name}.zarr")
    for width, dark in ((PHONE, True), (DESK, False)):
        scheme, wrong = "dark" if dark else "light", []
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, is_mobile=width == PHONE)
        page.on("request", lambda sent, wrong=wrong: sent.url.startswith(("file:", "data:")) or wrong.append(sent.url))
        page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
        page.on("console", lambda said, wrong=wrong: wrong.append(said.text))
        page.goto(path.as_uri(), wait_until="load")
        for summary in page.query_selector_all("summary"):
            summary.click()  # all that is folded away is looked at, too
        assert page.locator("details:not([open])").count() == 0
        assert page.evaluate(UNSEEN) == 0
        assert page.locator("figure img").count() >= 2
        assert page.locator("main section h2:visible").count() == page.locator("nav a").count()
        paper = [int(part.strip("rgb() ")) for part in page.evaluate(PAPER).split(",")[:3]]
        assert (max(paper) < 60) == dark
        assert wrong == []
        assert not page.evaluate(WIDER)
        page.close()
