"""Run the gallery's scripts at their default size; keep their pictures, numbers and times.

    python examples/pages/record.py [NAME ...] [--data mnist.npz=PATH]

Each command runs once in a fresh process, in an empty folder. Pictures go to `examples/pictures` with at most 256
colours; numbers, tables and the processor time, which other work on the machine changes least, to `numbers.json` beside
this file. Entries that are not named keep what they have.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gallery  # noqa: E402

LARGEST = 150_000  # bytes of a picture
WIDEST = 1600  # pixels
RULE = re.compile(r"^\|[-:| ]+\|$")  # below the head of a table
NUMBER = re.compile(r"^([^:|]+(?:: [^:|]+)??): (-?\d[-+.\de]*)$")


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--data", multiple=True, help="Where a file is that a command names, as NAME=PATH.")
def main(names: tuple[str, ...], data: tuple[str, ...]) -> None:
    entries = {entry.name: entry for section in gallery.read() for entry in section.entries}
    if unknown := set(names) - set(entries):
        raise click.BadParameter(f"no such entries: {', '.join(sorted(unknown))}; there are {', '.join(entries)}")
    files = dict(one.split("=", 1) for one in data)
    done: dict[str, dict[str, Any]] = {}
    for name in names or entries:
        entry = entries[name]
        with tempfile.TemporaryDirectory() as folder:
            if entry.command not in done:
                done[entry.command] = run(entry, files, Path(folder))
                for picture in Path(folder).glob("*.png"):
                    if picture.name in {
                        e.picture for e in entries.values() if e.command == entry.command and not e.whole
                    }:
                        compress(picture, gallery.PICTURES / picture.name)
        keep(name, done[entry.command])
        click.echo(f"{name}: {done[entry.command]['seconds']:.0f} s")


def run(entry: gallery.Entry, files: dict[str, str], folder: Path) -> dict[str, Any]:
    """What a command prints as `name: value` and in tables, and the processor time that it takes, in seconds."""
    arguments = [files.get(word, word) for word in shlex.split(entry.arguments)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, str(gallery.ROOT / entry.script), *arguments, "--out", str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(gallery.ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    lines = done.stdout.splitlines()
    found = (NUMBER.match(line) for line in lines)
    table = [line if line.startswith("|") else "" for line in lines if line.startswith("|") or not line]
    heads = [i for i in range(2, len(table)) if RULE.match(table[i]) and table[i - 2]]
    for i in reversed(heads):  # a table ends where another begins
        table.insert(i - 1, "")
    return {
        "numbers": {match[1]: match[2] for match in found if match and not match[1].startswith("seconds")},
        "table": "\n".join(table).strip(),
        "seconds": round(seconds, 1),
    }


def keep(name: str, result: dict[str, Any]) -> None:
    """Write what an entry gave beside what the others gave."""
    path = HERE / "numbers.json"
    recorded = json.loads(path.read_text(encoding="utf-8"))
    recorded[name] = {what: value for what, value in result.items() if value}
    path.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n", encoding="utf-8")


def compress(picture: Path, place: Path) -> None:
    """The picture with as many colours as fit into `LARGEST` bytes, from 256 down."""
    with Image.open(picture) as drawn:
        image = drawn.convert("RGB")
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)), Image.Resampling.LANCZOS)
    for colours in (256, 128, 64, 32):
        image.quantize(colours, dither=Image.Dither.NONE).save(place, optimize=True)
        if place.stat().st_size <= LARGEST:
            return
    raise ValueError(f"{place} takes {place.stat().st_size} bytes with {colours} colours: draw fewer points")


if __name__ == "__main__":
    main()
