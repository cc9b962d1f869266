"""The pages in a real browser: on a phone and at a desk, light and dark, nothing sticks out and nothing is missing."""

from __future__ import annotations

import pytest

from tests.browser import DESK, PHONE

SHOWN = {  # a page, and what it must have: a selector, and how many at least
    "index.html": ("main img", 1),
    "gallery.html": ("article.example img", 20),
    "gallery/torsions.html": (".numbers tr", 4),
    "daskspectral.html": ("dl dt", 40),
    "daskspectral/estimators.html": (".member > .attr", 10),
    "daskspectral/operators.html": (".docstring table tr", 25),
    "daskspectral/kernels.html": (".pdoc-code", 5),
    "clusters.html": ("pre", 1),
}


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", SHOWN)
def test_a_page_is_whole(browser, site, name, width):
    view = browser.open(site / name, width, dark=width == PHONE)
    selector, count = SHOWN[name]
    assert view.page.locator(selector).count() >= count
    assert view.page.locator("h1").count() == 1
    assert (view.errors, view.foreign, view.overflowing()) == ([], [], [])


def test_every_other_page_fits_a_phone(browser, site):
    view = browser.open(site / "index.html", PHONE)
    for path in sorted(site.rglob("*.html")):
        view.page.goto(path.as_uri())
        assert view.overflowing() == [], path
    assert (view.errors, view.foreign) == ([], [])


def test_pictures_are_loaded_in_their_shape(browser, site):
    view = browser.open(site / "gallery.html")
    for picture in view.page.locator("article.example img").all():
        picture.scroll_into_view_if_needed()
        picture.evaluate("image => image.decode()")  # they are loaded as they come into view
        natural, shown = (
            picture.evaluate(f"image => [image.{width}, image.{height}]")
            for width, height in (("naturalWidth", "naturalHeight"), ("clientWidth", "clientHeight"))
        )
        assert natural[0] > 0
        assert shown[0] / shown[1] == pytest.approx(natural[0] / natural[1], rel=0.02)
    assert view.errors == []


def test_the_contents_open_on_a_phone(browser, site):
    view = browser.open(site / "daskspectral" / "operators.html", PHONE)
    link = view.page.locator("nav .members a", has_text="Transfer")
    assert not link.is_visible()
    view.page.locator("nav label").click()
    assert link.is_visible()
    link.click()
    assert view.page.url.endswith("#Transfer")


def test_dark_is_dark(browser, site):
    def brightness(dark):
        view = browser.open(site / "index.html", dark=dark)
        colour = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(","))

    assert brightness(dark=False) > 700
    assert brightness(dark=True) < 150


def test_a_search_finds_a_name(browser, site):
    view = browser.open(site / "daskspectral" / "kernels.html")
    box = view.page.locator("input[type=search]")
    box.click()
    box.fill("HermiteRegressor")
    first = view.page.locator(".search-result a.attr").first
    first.wait_for()
    assert "HermiteRegressor" in first.inner_text()
    assert (view.errors, view.foreign) == ([], [])
    first.click()
    assert "estimators.html#HermiteRegressor" in view.page.url
