"""Docstrings and messages: the sections of numpydoc on every public name, and standard words."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from numpydoc.validate import validate
from sklearn.base import BaseEstimator

import daskspectral as dsp

ROOT = Path(__file__).parents[1]
EXEMPT = {
    "ES01",  # a second paragraph: the first line may be enough
    "GL01",  # the text starts on the line of the quotes, as in PEP 257
    "GL02",
    "GL03",
}
EXEMPT_METHODS = {
    *EXEMPT,
    "EX01",  # the class has the example
    "SA01",  # and the cross-references
    "GL08",  # an overridden method has the docstring of its base class
}
EXEMPT_PARTS = {*EXEMPT_METHODS, "PR01", "RT01"}  # methods of kernels, bases and the like: one line with the shapes
EXEMPT_ERRORS = {*EXEMPT, "EX01", "SA01"}  # users meet errors and warnings in a traceback
DURATION = r"(?! (?:about |up to |some |less than )?(?:[.\d]|half|a second|minutes|hours|an hour|longer))"
WORDS = re.compile(
    r"\b(tells?|told|telling|nobody|whatever|alike|beside|unlike|(?<!your )own|lets? go|goes on|go on|"
    r"as (?:they are|it is)|is none|are none|nothing|what comes|comes? with|gives?|asks?|says?|bears?|stands?|"
    rf"takes?{DURATION})\b",
    re.IGNORECASE,
)
CODE = re.compile(r"`[^`]*`|(?m:^\s*(?:>>>|\.\.\.) .*$)|\"[^\"]*\"")
PAGES = ("README.md", "CHANGELOG.md", ".github/**/*.md", "deploy/**/*.md", "examples/**/*.md")
SOURCES = ("daskspectral/**/*.py", "deploy/**/*.py", "examples/**/*.py")


def public() -> Iterator[tuple[str, set[str]]]:
    """Yield every public name with the checks from which it is exempt."""
    modules = [dsp, *(importlib.import_module(f"daskspectral.{name}") for name in dsp._MODULES)]
    seen = set()
    for module in modules:
        for name in dsp._HOMES if module is dsp else getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not (inspect.isclass(thing) or inspect.isfunction(thing)) or thing in seen:
                continue
            seen.add(thing)
            home = f"{thing.__module__}.{thing.__qualname__}"
            is_error = inspect.isclass(thing) and issubclass(thing, Exception)
            yield home, EXEMPT_ERRORS if is_error else EXEMPT
            if inspect.isclass(thing) and not is_error:
                exempt = EXEMPT_METHODS if issubclass(thing, BaseEstimator) else EXEMPT_PARTS
                for attribute, value in vars(thing).items():
                    if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                        yield f"{home}.{attribute}", exempt


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and messages of a module, or the text of a page, with line numbers."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, re.sub(r"(?s)```.*?```", "", source)
        return
    for node in ast.walk(ast.parse(source)):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if " " in text.strip() and "\nimport " not in text:  # a program
            yield node.lineno, text


def private_words(paths: list[Path]) -> Iterator[str]:
    """Yield the places of words that are not used outside of code and quotations."""
    for path in paths:
        for line, text in texts(path):
            plain = CODE.sub("", text)
            for word in WORDS.finditer(plain):
                yield f"{path.relative_to(ROOT)}:{line}: {plain[max(0, word.start() - 30) : word.end() + 20]!r}"


def test_every_public_name_has_the_sections_of_numpydoc() -> None:
    names = dict(public())
    assert len(names) > 300
    faults = [
        f"{name}: {code} {text}"
        for name, exempt in names.items()
        for code, text in validate(name)["errors"]
        if code not in exempt
    ]
    assert faults == []


@pytest.mark.parametrize("pattern", [*SOURCES, *PAGES])
def test_texts_use_standard_words(pattern: str) -> None:
    paths = [path for path in sorted(ROOT.glob(pattern)) if "/texts/" not in path.as_posix()]
    assert paths
    assert list(private_words(paths)) == []


def test_a_word_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "a.py").write_text('"""A message that is `told` to users."""\n\nX = "the rows as they are"\n')
    assert [place[:6] for place in private_words([tmp_path / "a.py"])] == ["a.py:3"]
