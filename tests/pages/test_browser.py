"""The browser of the tests tells what is wrong with a page, and the pages in it have nothing against them."""

import pytest

from tests.browser import DESK, PHONE

PAGE = """<!DOCTYPE html><html><head><meta name="viewport" content="width=device-width"><title>page</title></head>
<body><p class='wide' style='width: 500px'>words</p><img src='missing.png'><script>undefined.name</script></body>"""


def test_what_is_wrong_with_a_page_is_named(browser, tmp_path):
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    view = browser.open(tmp_path / "page.html", PHONE)
    view.page.wait_for_timeout(100)
    assert any(one.startswith("p.wide# from ") for one in view.overflowing())
    assert any(one.startswith("not loaded") and one.endswith("missing.png") for one in view.errors)
    assert any("undefined" in one for one in view.errors)


SHOWN = {  # a page, and what it must have: a selector, and how many at least
    "gallery.html": ("article.example img", 20),
    "daskspectral.html": ("dl dt", 30),
    "daskspectral/operators.html": (".docstring table tr", 25),
}


CUT_OFF = """() => [...document.querySelectorAll("pre")].filter(e => e.scrollWidth > e.clientWidth + 1)
    .map(e => e.innerText.slice(0, 80))"""


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_pages_are_whole(browser, site, width):
    view = browser.open(site / "index.html", width, dark=width == PHONE)
    for path in sorted(site.rglob("*.html")):
        view.page.goto(path.as_uri())
        selector, count = SHOWN.get(str(path.relative_to(site)), ("h1", 1))
        assert view.page.locator(selector).count() >= count
        assert view.overflowing() == [], path
        assert view.page.evaluate(CUT_OFF) == [], path  # code is read without scrolling
    assert (view.errors, view.foreign) == ([], [])


def test_the_contents_open_on_a_phone_and_a_search_finds_a_name(browser, site):
    view = browser.open(site / "daskspectral" / "kernels.html", PHONE)
    assert not view.page.locator("input[type=search]").is_visible()
    view.page.locator("nav label").click()
    view.page.locator("input[type=search]").click()
    view.page.locator("input[type=search]").fill("HermiteRegressor")
    view.page.locator(".search-result a.attr").first.click()
    assert "regression.html#HermiteRegressor" in view.page.url
    assert (view.errors, view.foreign) == ([], [])
