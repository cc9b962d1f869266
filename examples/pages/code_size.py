"""How large the code is, room by room: lines that are not blank, no comment and no docstring, tokens, and docstrings.

    python examples/pages/code_size.py daskspectral tests

A room is a folder directly inside the given one, or the files next to these folders. `tokens` are those of
Python without comments, docstrings and line ends; `width` is the mean length of a line, `function` the median number of
lines of a function with its signature, and `words` the mean number of words in the docstring of a public name.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Size:
    """What was counted in one file, or in several that were added."""

    files: int = 0
    tokens: int = 0
    classes: int = 0
    widths: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)

    def __iadd__(self, other: Size) -> Size:
        self.files += other.files
        self.tokens += other.tokens
        self.classes += other.classes
        self.widths += other.widths
        self.functions += other.functions
        self.words += other.words
        return self

    def row(self, name: str) -> str:
        """A line of the table."""
        numbers = (self.files, len(self.widths), self.tokens, self.classes, len(self.functions))
        means = (_mean(self.widths), statistics.median(self.functions or [0]), _mean(self.words))
        return f"{name:24}" + "".join(f"{n:10d}" for n in numbers) + "".join(f"{m:10.1f}" for m in means)


def measure(path: Path) -> Size:
    """The size of one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    documented = list(_docstrings(tree))
    prose = {line for node in documented for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in SILENT]
    tokens = [t for t in tokens if t.start[0] not in prose]
    code = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    lines = text.splitlines()
    nodes = list(ast.walk(tree))
    return Size(
        files=1,
        tokens=len(tokens),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        widths=[len(lines[i - 1]) for i in sorted(code) if lines[i - 1].strip()],
        functions=[_lines(node, code) for node in nodes if isinstance(node, FUNCTIONS)],
        words=[len((ast.get_docstring(node) or "").split()) for node in _public(tree)],
    )


def _lines(node: ast.AST, code: set[int]) -> int:
    """The lines of a function that are code, its signature too."""
    return sum(line in code for line in range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]


def _docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
            yield from node.body[: ast.get_docstring(node) is not None]


def _public(node: ast.Module | ast.ClassDef) -> Iterator[ast.AST]:
    """Functions, classes and methods whose names have no leading underscore."""
    for child in node.body:
        if isinstance(child, (ast.ClassDef, *FUNCTIONS)) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from _public(child)


def _mean(numbers: list[int]) -> float:
    return sum(numbers) / max(len(numbers), 1)


def main(folders: list[str]) -> None:
    """Print a table of the rooms of each folder."""
    heads = ("files", "lines", "tokens", "classes", "functions", "width", "function", "words")
    print(f"{'':24}" + "".join(f"{head:>10}" for head in heads))
    for folder in folders:
        rooms: dict[str, Size] = defaultdict(Size)
        for path in sorted(Path(folder).rglob("*.py")):
            inside = path.relative_to(folder).parts
            rooms[inside[0] if len(inside) > 1 else "."] += measure(path)
        whole = Size()
        for name, size in sorted(rooms.items()):
            print(size.row(f"{folder}/{name}"))
            whole += size
        print(whole.row(folder))


if __name__ == "__main__":
    main(sys.argv[1:] or ["daskspectral", "tests"])
