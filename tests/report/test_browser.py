"""Reports in a real browser, at the widths of a phone and of a desk, in the light and in the dark."""

from pathlib import Path

import pytest

from daskspectral import report
from tests.browser import DESK, PHONE, Browser
from tests.common import doubtful
from tests.report.common import model

UNSEEN = """() => [...document.querySelectorAll('figure img')]
    .filter(e => !e.naturalWidth || e.getBoundingClientRect().width < 80).length"""
PAPER = "() => getComputedStyle(document.body).backgroundColor"


@doubtful
@pytest.mark.parametrize("name", ["moons", "field", "invariant"])
def test_a_report_is_whole_in_a_browser(name: str, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    report.save(model(name)[0], path, model(name)[1], about=f"{name}.zarr")
    for width, dark in ((PHONE, True), (DESK, False)):
        view = browser.open(path, width, dark=dark)
        for summary in view.page.query_selector_all("summary"):
            summary.click()  # all that is folded away is looked at, too
        assert view.page.locator("details:not([open])").count() == 0
        assert view.page.evaluate(UNSEEN) == 0
        assert view.page.locator("figure img").count() >= 2
        assert view.page.locator("main section h2:visible").count() == view.page.locator("nav a").count()
        paper = [int(part.strip("rgb() ")) for part in view.page.evaluate(PAPER).split(",")[:3]]
        assert (max(paper) < 60) == dark
        view.page.locator("nav a").last.click()
        assert view.page.url.endswith("#provenance")
        assert (view.errors, view.foreign) == ([], [])
        assert [one for one in view.overflowing() if not one.startswith("a.skip")] == []  # shown where it has focus
