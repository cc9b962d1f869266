"""Docstrings as Markdown and HTML."""

from __future__ import annotations

import importlib

import pytest
from pdoc.render_helpers import to_html

DOCSTRING = """A form <f, L g> of f * g * h, and [0, 1](x).

    kind               what it is            in a shell
    First(a, b)        |x - y|^2 < 1         first:1
    Second(name)       long text that goes
                       on below              second
    Third("x")         one sense that fills the line up to its very end, so that the next line has to go on with the
                       same sense
                         another sense

Parameters
----------
scale : float
    A length, see `First`.

    Or more.
other

Attributes
----------
values_ : (k,), of a
    sentence

Examples
--------
Some text:

>>> 1 + 1
2
"""


@pytest.fixture(scope="module")
def page(builder) -> str:
    return str(to_html(builder.prose.convert(DOCSTRING)))


def test_formulas_stay_as_they_are(page) -> None:
    assert "A form &lt;f, L g&gt; of f * g * h, and [0, 1](x)." in page.replace(">,", "&gt;,").replace(
        "g> of", "g&gt; of"
    )
    assert "<em>" not in page


def test_tables_are_tables(page) -> None:
    assert "<thead><tr><th>kind</th><th>what it is</th><th>in a shell</th></tr></thead>" in page
    assert "<td><code>First(a, b)</code></td><td>|x - y|^2 &lt; 1</td><td>first:1</td>" in page
    assert "<td>long text that goes on below</td><td>second</td>" in page
    assert "has to go on with the same sense<br>another sense</td>" in page


def test_tables_between_lines_are_tables(builder):
    table = "=====  ====\nname   what\n=====  ====\n`f()`  **bold** a\n       b\n=====  ====\n"
    page = str(to_html(builder.prose.convert(f"{table}\n1. **Bold**: 2 * 3 ** 4.")))
    assert "<th>name</th><th>what</th>" in page
    assert "<td><code>f()</code></td><td>**bold** a b</td>" in page
    assert "<strong>Bold</strong>: 2 * 3 ** 4." in page


def test_fields_are_definitions(page) -> None:
    assert '<dt><code>scale</code> <span class="kind">float</span></dt>' in page
    assert "<dd>A length, see <code>First</code>.<br>Or more.</dd>\n<dt><code>other</code></dt>" in page
    assert "<dt><code>values_</code></dt>\n<dd>(k,), of a sentence</dd>" in page


def test_sessions_are_code(page) -> None:
    assert 'class="pdoc-code' in page
    assert '<span class="gp">&gt;&gt;&gt; </span>' in page


def test_a_block_that_is_no_table_is_code(builder) -> None:
    converted = builder.prose.convert("Write:\n\n    @form\n    def f(x):\n        return  x\n\nand go on.")
    assert converted == "Write:\n\n\n```python\n@form\ndef f(x):\n    return  x\n```\n\n\nand go on.\n"


def test_every_formula_of_the_package_stays(builder) -> None:
    """Angle brackets and stars of every module's docstring are still in the text of its page."""
    for name in builder.MODULES:
        text = importlib.import_module(name).__doc__ or ""
        html = str(to_html(builder.prose.convert(text)))
        assert html.count("&lt;") + html.count("<code>") >= text.count("<"), name
