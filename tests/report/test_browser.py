"""Reports in a real browser, at the widths of a phone and of a desk, in the light and in the dark.

Debian's chromium, driven by playwright; skipped where it is not installed (`.ci/chromium` installs it).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daskspectral import report
from tests.report.common import model

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `test`)")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: .ci/chromium installs it")
NAMES = ("moons", "sphere", "transfer", "field", "invariant")
WIDTHS = {"phone": 390, "desk": 1280}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # root has no sandbox of its own
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    for name in NAMES:
        estimator, X = model(name)
        report.save(estimator, folder / f"{name}.html", X, about=f"{name}.zarr")
    return {name: folder / f"{name}.html" for name in NAMES}


OVERFLOWING = """() => [...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  const inside = e.parentElement.closest('.dsk-scroll, pre, svg') || e.className === 'skip';
  return !inside && box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.tagName + '.' + e.className)"""
UNSEEN = """() => [...document.querySelectorAll('figure svg')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width < 80 || box.height < 20 || !e.querySelector('path');
}).length"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll('figure svg')].flatMap(svg =>
  [...svg.querySelectorAll('text')].map(e =>
    parseFloat(getComputedStyle(e).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)))"""
INK = "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"


CASES = [
    *((name, "phone", "dark") for name in NAMES),
    *((name, "desk", "light") for name in NAMES),
    ("moons", "phone", "light"),
    ("moons", "desk", "dark"),
]


@pytest.mark.parametrize(("name", "place", "theme"), CASES, ids="-".join)
def test_a_report_is_whole_in_a_browser(
    browser: Any, pages: dict[str, Path], name: str, place: str, theme: str
) -> None:
    width = WIDTHS[place]
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    address = pages[name].as_uri()
    page.goto(address)
    for summary in page.query_selector_all("summary"):
        summary.click()  # all that is folded away is looked at, too
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(UNSEEN) == 0
    assert page.locator("figure svg").count() >= 2
    assert page.locator("main section h2:visible").count() == page.locator("nav a").count()
    assert page.evaluate(SMALLEST) >= 8, "the text of a picture can be read"
    paper, ink = page.evaluate(INK)
    dark = [int(part.strip("rgb() ")) for part in paper.split(",")[:3]]
    assert (max(dark) < 60) == (theme == "dark"), paper
    assert paper != ink
    page.locator("nav a").last.click()
    assert page.url == f"{address}#provenance"
    assert said == []
    assert set(asked) == {address}
    page.close()
