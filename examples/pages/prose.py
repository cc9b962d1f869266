"""Docstrings as Markdown: what reads well in `help` reads well on a page, with tables as tables.

A docstring is plain text: paragraphs, lists, blocks indented by four spaces, tables between lines of ===, and sections
of numpydoc. An indented block is a table where its columns begin below one another with two spaces or more before them,
a session where it begins with >>>, and otherwise code. Whatever Markdown or HTML would take for markup in a formula is
kept as it is written.
"""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

FIELDS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
WIDTH = 116  # of the lines of an indented block: a line that ends before goes on below only in a new sense
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
CALL = re.compile(r"[A-Z]\w+\([^()]*\)")
MARKUP = re.compile(r"(\*\*\w(?:[^*\n]*\S)?\*\*)|([*<\[])")
BORDER = re.compile(r"={3,}(?: +={3,})+")
LETTERED = re.compile(r"^( +)[a-z]\. ")  # items a., b., which Markdown does not know


def convert(docstring: str, docformat: str = "", source_file: Path | None = None) -> str:
    """Markdown of a docstring; pdoc calls it with a format and a path, which change nothing here."""
    return "\n".join(_blocks(inspect.cleandoc(docstring).split("\n"))) + "\n"


def first_paragraph(docstring: str) -> str:
    """The first paragraph on one line."""
    return " ".join(inspect.cleandoc(docstring).partition("\n\n")[0].split())


def inline(text: str) -> str:
    """HTML of a piece of prose: code spans, and all else as it is."""
    parts = CODE_SPAN.split(" ".join(text.split()))
    return "".join(
        html.escape(piece, quote=False) if kind == 0 else f"<code>{html.escape(piece, quote=False)}</code>"
        for kind, piece in zip((0, 1, 2) * len(parts), parts, strict=False)
        if kind != 1
    )


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if _is_heading(lines, at):
            end = next((k for k in range(at + 2, len(lines)) if _is_heading(lines, k)), len(lines))
            body = lines[at + 2 : end]
            yield from (
                "",
                f'<p class="part">{line}</p>' if line in (*FIELDS, "Examples", "Notes") else f"## {line}",
                "",
            )
            yield from [_fields(body, joined=line == "Attributes"), ""] if line in FIELDS else _blocks(body)
            at = end
        elif BORDER.fullmatch(line):
            end = next((k for k in range(at, len(lines)) if not lines[k].strip()), len(lines))
            rows = [one for one in lines[at:end] if not BORDER.fullmatch(one)]
            starts = [m.start() for m in re.finditer(r"=+", line)]
            yield from ("", _table(rows, starts, headed=len(rows) < end - at - 2), "")
            at = end
        elif line.startswith(">>>") or (line.startswith("    ") and (at == 0 or not lines[at - 1].strip())):
            end = _end_of_block(lines, at)
            yield from ("", _indented([one.removeprefix("    ") for one in lines[at:end]]), "")
            at = end
        elif not line.strip():
            yield ""
            at += 1
        else:
            end = at + 1
            while end < len(lines) and lines[end].strip() and not _is_heading(lines, end):
                end += 1
            yield _prose(LETTERED.sub(r"\1- ", one) for one in lines[at:end])
            at = end


def _is_heading(lines: Sequence[str], at: int) -> bool:
    return at + 1 < len(lines) and bool(re.fullmatch(r"\S.*", lines[at]) and re.fullmatch(r"-{3,}", lines[at + 1]))


def _end_of_block(lines: Sequence[str], at: int) -> int:
    """Where a session or an indented block ends: at a line that is not indented, or at a blank one before such."""
    if lines[at].startswith(">>>"):
        return next((k for k in range(at, len(lines)) if not lines[k].strip()), len(lines))
    end = next((k for k in range(at, len(lines)) if lines[k].strip() and not lines[k].startswith("    ")), len(lines))
    while not lines[end - 1].strip():
        end -= 1
    return end


def _prose(lines: Iterator[str]) -> str:
    """Lines in which only code spans, bold words and the beginnings of list items are markup."""
    parts = CODE_SPAN.split("\n".join(lines))
    text = [MARKUP.sub(lambda m: m[1] or {"<": "&lt;"}.get(m[2], "\\" + m[2]), piece) for piece in parts[::3]]
    spans = [f"`{piece}`" for piece in parts[2::3]]
    return "".join(one + span for one, span in zip(text, [*spans, ""], strict=True))


def _indented(lines: Sequence[str]) -> str:
    """A block of code, a session, or a table."""
    if lines[0].startswith(">>>"):
        return "\n".join(["```pycon", *lines, "```"])
    if starts := _columns(lines):
        return _table(lines, starts, headed=not re.search(r'[("]', lines[0][: starts[1]]))
    language = "python" if re.match(r"@|import |from |def |class |\w+ = ", lines[0]) else "text"
    return "\n".join([f"```{language}", *lines, "```"])


def _columns(lines: Sequence[str]) -> list[int]:
    """Where the columns of a table begin, from its first line; none where the block is no table."""
    gaps = [m.end() for m in re.finditer(r"(?<=\S) {2,}(?=\S)", lines[0])]
    rows = [line for line in lines if line and not line.startswith(" ")]
    fitting = [line for line in rows if gaps and re.match(r".*\S {2}", line[: gaps[0]].ljust(gaps[0]) + " ")]
    if not gaps or len(lines) < 2 or len(fitting) < 0.6 * len(rows):
        return []
    return [0, *gaps]


def _table(lines: Sequence[str], starts: Sequence[int], *, headed: bool) -> str:
    """An HTML table, whose first row may be its head; a line with an empty first cell goes on with the row above."""
    rows: list[list[list[str]]] = []
    before = ""
    for line in filter(str.strip, lines):
        cells = _cells(line, starts)
        if not line.startswith(" "):
            rows.append([[] for _ in starts])
        for column, cell in enumerate(cells):
            if not cell.strip():
                continue
            wrapped = len(before) + 1 + len(cell.split()[0]) > WIDTH
            if rows[-1][column] and (wrapped or column == 0 or not cell.startswith("  ")):
                rows[-1][column][-1] += " " + cell.strip()
            else:  # indented by more than its column: a line of its own
                rows[-1][column].append(cell.strip())
        before = line
    head = [rows.pop(0)] if headed else []
    shown = ['<div class="scroll">', "<table>"]
    if head:
        titles = "".join("<th>" + "<br>".join(map(inline, cell)) + "</th>" for cell in head[0])
        shown += [f"<thead><tr>{titles}</tr></thead>"]
    shown += ["<tbody>"]
    named = any(re.search(r'[(":=]', " ".join(first)) for first, *_ in rows)  # calls and words, not prose
    for first, *others in rows:
        title = " ".join(first)
        cells = [inline(f"`{title}`" if named and "`" not in title else title)]
        cells += ["<br>".join(map(coded, cell)) for cell in others]
        shown += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"]
    return "\n".join([*shown, "</tbody>", "</table>", "</div>"])


def coded(text: str) -> str:
    """HTML of a piece of prose; a call alone is code."""
    return inline(f"`{text}`" if CALL.fullmatch(text) else text)


def _cells(line: str, starts: Sequence[int]) -> list[str]:
    """A line cut at the columns, but for those into which a cell before them reaches."""
    free = [0, *(c for c in starts[1:] if len(line) <= c or not line[c - 2 : c].strip())]
    cut = {start: line[start:end] for start, end in pairwise([*free, len(line)]) if start < len(line)}
    return [cut.get(start, "") for start in starts]


def _fields(lines: Sequence[str], *, joined: bool) -> str:
    """A definition list of numpydoc's fields; `joined` ones have a sentence beside the name, and it goes on below."""
    text = dedent("\n".join(lines)).strip()
    entries = re.split(r"\n(?=\S)", text)
    if not any(" : " in entry.partition("\n")[0] or "\n " in entry for entry in entries):
        return _prose(iter(text.split("\n")))
    shown = ['<dl class="fields">']
    for entry in entries:
        first, _, below = entry.partition("\n")
        name, _, kind = first.partition(" : ")
        if joined:
            below, kind = f"{kind}\n{inspect.cleandoc(below)}", ""
        title = f"<code>{html.escape(name, quote=False)}</code>"
        title += f' <span class="kind">{inline(kind)}</span>' if kind else ""
        paragraphs = [inline(one) for one in inspect.cleandoc(below).split("\n\n") if one.strip()]
        shown += [f"<dt>{title}</dt>", *([f"<dd>{'<br>'.join(paragraphs)}</dd>"] if paragraphs else [])]
    return "\n".join([*shown, "</dl>"])
