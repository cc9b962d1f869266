"""The browser of the tests tells what is wrong with a page, and the pages in it have nothing against them."""

from __future__ import annotations

import pytest

from tests.browser import DESK, PHONE

PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>page</title><style>body {{ margin: 0 }}</style></head><body>{body}</body></html>"""


@pytest.fixture
def show(browser, tmp_path):
    """A function that opens a page with a body at a width."""

    def show(body, width=PHONE):
        path = tmp_path / "page.html"
        path.write_text(PAGE.format(body=body), encoding="utf-8")
        return browser.open(path, width)

    return show


def test_what_sticks_out_is_named(show):
    sound = show("<p>words</p><div style='overflow-x: auto'><div style='width: 2000px'>wide</div></div>")
    assert (sound.errors, sound.foreign, sound.overflowing()) == ([], [], [])
    said = show("<p class='wide' style='width: 500px'>five hundred pixels</p>").overflowing()
    assert any(one.startswith("p.wide# from 0 to 500 of") and one.endswith("five hundred pixels") for one in said)


def test_errors_and_addresses_are_collected(show):
    view = show("<img src='missing.png'><script>console.error('wrong'); undefined.name</script>")
    view.page.wait_for_timeout(100)
    assert any(one.startswith("not loaded") and one.endswith("missing.png") for one in view.errors)
    assert "wrong" in view.errors
    assert any("undefined" in one for one in view.errors)
    assert view.foreign == []
    assert show("<img src='http://localhost:1/picture.png'>").foreign == ["http://localhost:1/picture.png"]


SHOWN = {  # a page, and what it must have: a selector, and how many at least
    "gallery.html": ("article.example img", 20),
    "daskspectral.html": ("dl dt", 40),
    "daskspectral/operators.html": (".docstring table tr", 25),
}


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_pages_are_whole(browser, site, width):
    view = browser.open(site / "index.html", width, dark=width == PHONE)
    for path in [site / name for name in SHOWN] if width == DESK else sorted(site.rglob("*.html")):
        view.page.goto(path.as_uri())
        selector, count = SHOWN.get(str(path.relative_to(site)), ("h1", 1))
        assert view.page.locator(selector).count() >= count
        assert view.overflowing() == [], path
    assert (view.errors, view.foreign) == ([], [])


def test_the_contents_open_on_a_phone_and_a_search_finds_a_name(browser, site):
    view = browser.open(site / "daskspectral" / "operators.html", PHONE)
    link = view.page.locator("nav .members a", has_text="Transfer")
    assert not link.is_visible()
    view.page.locator("nav label").click()
    link.click()
    assert view.page.url.endswith("#Transfer")
    view = browser.open(site / "daskspectral" / "kernels.html")
    view.page.locator("input[type=search]").click()
    view.page.locator("input[type=search]").fill("HermiteRegressor")
    view.page.locator(".search-result a.attr").first.click()
    assert "estimators.html#HermiteRegressor" in view.page.url
    assert (view.errors, view.foreign) == ([], [])
