"""A real browser without a window: pages at a width, what they complain of, what they ask for, what sticks out.

Debian's chromium, driven by playwright. `tests/conftest.py` makes the fixture known; a test asks for `browser`:

    def test_the_page(browser, tmp_path):
        view = browser.open(tmp_path / "page.html", width=390)
        assert view.page.locator("svg").count() == 3
        assert (view.errors, view.foreign, view.overflowing()) == ([], [], [])
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHONE, DESK = 390, 1280  # widths, in pixels
HEIGHT = 900
PATIENCE = 20_000  # milliseconds, on a busy machine

# What ends left or right of the window, but for what can be scrolled to inside a box of its own, or is not shown.
OVERFLOWING = """() => {
    const width = document.documentElement.clientWidth;
    const hidden = (element) => !element.checkVisibility({checkVisibilityCSS: true, checkOpacity: true});
    const boxed = (element) => {
        for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
            if (getComputedStyle(box).overflowX !== "visible") return true;
        return false;
    };
    const found = [];
    for (const element of document.body.querySelectorAll("*")) {
        const {left, right, width: own} = element.getBoundingClientRect();
        if (own > 0 && (right > width + 1 || left < -1) && !hidden(element) && !boxed(element))
            found.push(`${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""}#${element.id}`
                + ` from ${Math.round(left)} to ${Math.round(right)} of ${width}: `
                + (element.textContent ?? "").trim().slice(0, 40));
    }
    if (document.documentElement.scrollWidth > width)
        found.push(`the page scrolls sideways, to ${document.documentElement.scrollWidth} of ${width}`);
    return found;
}"""


@dataclass
class View:
    """A page in the browser: errors and warnings of its console, and the addresses that it asked for."""

    page: Any  # playwright's Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def foreign(self) -> list[str]:
        """What the page asked the network for."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:", "about:"))]

    def overflowing(self) -> list[str]:
        """The visible elements that stick out of the window sideways, in words."""
        return list(self.page.evaluate(OVERFLOWING))

    def screenshot(self, path: str | Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        self.page.screenshot(path=path, full_page=whole)


class Browser:
    """A running browser."""

    def __init__(self, running: Any) -> None:
        self._running = running

    def open(self, page: str | Path, width: int = DESK, *, dark: bool = False, height: int = HEIGHT) -> View:
        """A file, or an address, in a window of its own; waits until all of it is loaded."""
        scheme = "dark" if dark else "light"
        context = self._running.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, is_mobile=width < 600
        )
        view = View(context.new_page())
        view.page.set_default_timeout(PATIENCE)
        view.page.on("request", lambda request: view.requests.append(request.url))
        view.page.on("requestfailed", lambda request: view.errors.append(f"not loaded: {request.url}"))
        view.page.on("pageerror", lambda error: view.errors.append(str(error)))
        view.page.on("console", lambda said: view.errors.append(said.text) if said.type in ("error", "warning") else 0)
        view.page.goto(str(page) if "://" in str(page) else Path(page).resolve().as_uri(), wait_until="load")
        return view

    def close_pages(self) -> None:
        """Close every window."""
        for context in list(self._running.contexts):
            context.close()


@pytest.fixture(scope="module")
def running_browser() -> Iterator[Browser]:
    """A browser for the tests of one file; it ends with them, since its event loop would stand in the way of others."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(PROGRAMS)} is installed (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: extra `test`")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])  # as root there is none
        try:
            yield Browser(started)
        finally:
            started.close()


@pytest.fixture
def browser(running_browser: Browser) -> Iterator[Browser]:
    """A browser whose windows are closed after the test."""
    yield running_browser
    running_browser.close_pages()
