"""Which faults the tests of a room catch: mutants of the lines that decide numbers, each against the tests of its room.

    python examples/benchmarks/mutants.py --seed 7 --count 200 --json mutants.json

draws mutants of the files in ROOMS, evenly from every kind of change (the sign of a term, a factor, a comparison, an
index off by one, a dropped term, a transpose), writes each into a copy of the package, and runs the room's tests
until one fails. A mutant that survives names a line that no test of its room holds. It needs hours, and is not part of
the tests.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

import click

ROOT = Path(__file__).resolve().parents[2]
ALGEBRA = ("ascent", "certificate", "diffusion_functions", "kernel_problem", "problems", "stages")
CONTRACTS = "tests/test_contracts.py"  # over everything that registers itself
WHOLE = ["tests/test_origin_and_units.py", "tests/regression", "tests/operators"]
WHOLE += [f"tests/spectral/test_{name}.py" for name in ("components", "dynamics", "wide")]
ROOMS = {
    **{room: ([room], [f"tests/{room}", CONTRACTS]) for room in ("kernels", "forms", "modes", "groups")},
    "solve": (["solve"], ["tests/solve", CONTRACTS, "tests/regression", "tests/spectral/test_components.py"]),
    "moments": (["moments", "passes/folds.py"], ["tests/moments", "tests/passes/test_folds.py", *WHOLE]),
    "embedding": ([f"embedding/{name}.py" for name in ALGEBRA], ["tests/embedding"]),
    "invariance": (["invariance/levels.py"], ["tests/invariance"]),
}
"""Rooms whose numbers users see: their files in the package, and the tests that hold these, whole fits among them."""
SIGNS: dict[type, ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add()}
FACTORS: dict[type, ast.operator] = {ast.Mult: ast.Div(), ast.Div: ast.Mult()}
PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq))
COMPARISONS: dict[type, ast.cmpop] = {a: b() for pair in PAIRS for a, b in (pair, pair[::-1])}
TRANSPOSED = ("swapaxes", "transpose", "moveaxis")
MODULES = ("np", "xp", "jnp")  # whose functions have a method's object as first argument
SECONDS = 400  # of one mutant: an endless loop is caught, and no room needs longer
PYTEST = ["-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-m", "not nightly"]


@dataclass(frozen=True)
class Mutant:
    """One changed expression or augmented assignment: its position, and its text before and after."""

    room: str
    file: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str


def mutants_of(room: str, path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    source = path.read_text(encoding="utf-8").encode()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    file = str(path.relative_to(ROOT))
    for node in _numbers(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        for kind, changed in _changes(node):
            after = f"({ast.unparse(changed)})" if isinstance(changed, ast.expr) else ast.unparse(changed)
            yield Mutant(room, file, node.lineno, kind, start, end, source[start:end].decode(), after)


def _numbers(tree: ast.AST) -> Iterator[ast.expr | ast.AugAssign]:
    """Expressions outside of annotations, messages and what is raised, and augmented assignments."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list") or isinstance(tree, (ast.Raise, ast.JoinedStr)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, (ast.expr, ast.AugAssign)):
                yield child
            if isinstance(child, ast.AST):
                yield from _numbers(child)


def _changes(node: ast.expr | ast.AugAssign) -> Iterator[tuple[str, ast.AST]]:
    """The kinds of change of an expression or an augmented assignment, and what it becomes."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if not (_is_text(left) or _is_text(right)):
            if type(op) in SIGNS:
                yield "sign", ast.BinOp(left, SIGNS[type(op)], right)
                yield "dropped term", left
            if type(op) in FACTORS:
                yield "factor", ast.BinOp(left, FACTORS[type(op)], right)
        case ast.AugAssign(target=target, op=op, value=value) if not _is_text(value):
            if type(op) in SIGNS:
                yield "sign", ast.AugAssign(target, SIGNS[type(op)], value)
                yield "dropped term", ast.Pass()
            if type(op) in FACTORS:
                yield "factor", ast.AugAssign(target, FACTORS[type(op)], value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield "sign", operand
        case ast.Compare(left=left, ops=ops, comparators=others):
            for i, kind in enumerate(map(type, ops)):
                if kind in COMPARISONS:
                    yield "comparison", ast.Compare(left, [*ops[:i], COMPARISONS[kind], *ops[i + 1 :]], others)
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() as number):
            yield "off by one", ast.Constant(number + 1)
        case ast.Constant(value=float() as number):
            yield "factor", ast.Constant(2 * number if number else 1.0)
        case ast.Attribute(value=value, attr="T" | "mT"):
            yield "transpose", value
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args) if name in TRANSPOSED:
            yield "transpose", args[0] if isinstance(value, ast.Name) and value.id in MODULES else value


def _is_text(side: ast.expr) -> bool:
    """Whether a side of a sum or a product is a string or a list, which is joined or repeated: no arithmetic."""
    if isinstance(side, ast.Constant):
        return not isinstance(side.value, (int, float, complex))
    return isinstance(side, (ast.JoinedStr, ast.List, ast.Tuple))


def drawn(seed: int, count: int, rooms: list[str]) -> list[Mutant]:
    """Mutants of these rooms at random: as many of each kind as there are, in turn."""
    kinds: dict[str, list[Mutant]] = {}
    for room in rooms:
        for place in ROOMS[room][0]:
            path = ROOT / "daskspectral" / place
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                for mutant in mutants_of(room, file):
                    kinds.setdefault(mutant.kind, []).append(mutant)
    generator = random.Random(seed)
    for found in kinds.values():
        generator.shuffle(found)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(kinds.values()):
        chosen += [kinds[kind].pop() for kind in sorted(kinds) if kinds[kind]]
    return chosen[:count]


def answered(room: str, copy: Path) -> str:
    """Return the first test of a room that fails in a copy of the project, or "survived"."""
    shutil.rmtree(copy / ".hypothesis", ignore_errors=True)  # examples that failed for another mutant
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", "pytest", *PYTEST, *ROOMS[room][1]]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, timeout=SECONDS, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return f"caught: no end within {SECONDS} s"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "survived" if done.returncode == 0 else "".join(failed[:1]) or f"caught: pytest ended with {done.returncode}"


@click.command(help=__doc__)
@click.option("--seed", type=int, required=True)
@click.option("--count", default=200, show_default=True)
@click.option("--rooms", multiple=True, type=click.Choice(list(ROOMS)), help="by default all")
@click.option("--processes", default=2, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(seed: int, count: int, rooms: tuple[str, ...], processes: int, json_path: Path | None) -> None:
    """Draw, run, and print the mutants that survived, with a table by room and kind."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        copies: Queue[Path] = Queue()
        for number in range(processes):
            copy = Path(folder) / str(number)
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "build"))
            copies.put(copy)
        for room in rooms or ROOMS:  # failures without a mutant
            if (found := answered(room, Path(folder) / "0")) != "survived":
                raise click.ClickException(f"{room} without a mutant: {found}")

        def judged(mutant: Mutant) -> dict[str, object]:
            copy = copies.get()
            path = copy / mutant.file
            source = path.read_bytes()
            path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
            found = answered(mutant.room, copy)
            path.write_bytes(source)
            copies.put(copy)
            print(f"{found[:80]:80}  {mutant.file}:{mutant.line} {mutant.kind}", flush=True)
            return {**asdict(mutant), "verdict": found}

        rows = list(pool.map(judged, drawn(seed, count, list(rooms or ROOMS))))
    if json_path:
        json_path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    for row in rows:
        if row["verdict"] == "survived":
            print(f"\n{row['file']}:{row['line']} {row['kind']}\n  - {row['before']}\n  + {row['after']}")
    for key in ("room", "kind"):
        print()
        for name in dict.fromkeys(row[key] for row in rows):
            verdicts = [str(row["verdict"]) for row in rows if row[key] == name]
            print(f"{name!s:16} {len(verdicts) - verdicts.count('survived'):4d} of {len(verdicts):4d} caught")


if __name__ == "__main__":
    main()
