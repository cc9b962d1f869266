"""The count of the code: lines, tokens and words by hand."""

from __future__ import annotations

from pathlib import Path

from examples.pages.code_size import measure

SOURCE = '''"""A module
of two lines."""

# a comment
class Ball:
    """Of radius one."""

    def area(self, d: int) -> float:
        """Of the sphere
        around it."""
        return (
            2 * d  # wrong
        )


def _hidden(): return """no
docstring"""
'''


def test_what_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "ball.py"
    path.write_text(SOURCE, encoding="utf-8")
    size = measure(path)
    lines = [line for line in SOURCE.splitlines() if line.strip()]
    assert size.widths == [len(lines[i]) for i in (3, 5, 8, 9, 10, 11, 12)]
    assert size.tokens == 3 + 12 + 2 + 3 + 1 + 7
    assert (size.files, size.classes, sorted(size.functions), size.words) == (1, 1, [2, 4], [3, 5])
