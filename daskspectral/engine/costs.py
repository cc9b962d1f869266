"""The cost model: constants of a machine, kept in a small file, and the seconds that they give for the work of a fit.

One row of a pass with p functions of d variables takes, in seconds,

    rows + columns d + p (values_k + distances d) + p^2 (syrk S(p) + gemm G(p)) + reading b,

values_k for the kernel family k, S and G for a product of p x p matrices of one row, b the decoded bytes of a row that
is read from zarr. A task takes this for its rows, `task`, and `entries` for each entry of the p x p sums of each group
of rows that it returns; threads take the tasks in turn. The choice before the pass and the solution after it are of
the driving process alone. The constants are measured by `daskspectral plan --calibrate` (`estimators.calibration`);
S, G and the solution are tables in p, with powers of p in between.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import click
import numpy as np

from daskspectral.data.writing import write_file

FORMAT = "daskspectral costs 1"
TABLES = ("values", "syrk", "gemm", "modes", "solve")


@dataclass(frozen=True)
class Work:
    """What a fit has to do, in numbers that no machine knows.

    `kernels` counts, by family, the kernels at p landmarks that are evaluated for each row, `along` the further
    features (derivatives along a field); `syrk` and `gemm` count the p x p products of a row that are symmetric and
    those that are not, `single` says that they are of float32. `groups` are the groups of rows (folds) that a task
    returns sums for, `forms` the p x p sums of each, `row_bytes` the decoded bytes of a row of what is read, `sampled`
    the rows among which landmarks are chosen, `automatic` says that everything is chosen from the data. On a lattice
    there are so many `modes`, summed by `method` in `transforms`; p is then of the solution alone.
    """

    n: int
    d: int
    p: int
    tasks: int
    groups: int
    forms: int
    solver: str
    kernels: Mapping[str, float] = field(default_factory=dict)
    along: float = 0.0
    syrk: float = 0.0
    gemm: float = 0.0
    single: bool = False
    row_bytes: float = 0.0
    sampled: int = 0
    automatic: bool = False
    modes: int = 0
    method: str = ""
    transforms: int = 1


@dataclass(frozen=True)
class Prediction:
    """The seconds of a fit with its parts: `choosing`, the pass over the rows (`summing`), `solving`.

    `task` are the seconds of one task of the pass, `workers` and `threads` the processes and the threads of each.
    """

    choosing: float
    summing: float
    solving: float
    task: float
    workers: int
    threads: int

    @property
    def seconds(self) -> float:
        """The seconds of the whole fit."""
        return self.choosing + self.summing + self.solving

    def __str__(self) -> str:
        what = f"{self.threads} thread{'s' * (self.threads != 1)}"
        if self.workers > 1:
            what = f"{self.workers} workers of {what}"
        return (
            f"about {shown(self.seconds)} on {what}: {shown(self.choosing)} for the choice, {shown(self.summing)} for "
            f"the pass in tasks of {shown(self.task)}, {shown(self.solving)} for the solution"
        )


@dataclass(frozen=True)
class Costs:
    """The constants of one machine, in seconds of one thread; see the module.

    Tables are by name: `values` by kernel family and for "along"; `modes` by method, dimension and number of modes;
    `syrk`, `gemm` by p; `solve` by solver and p. `single` is the share of float64's time that float32 takes. `choice`
    is the automatic choice on one thread, of which the share `apart` is spread over the threads; `slowdown` is how much
    longer a task takes while all `threads` are at work; `scheduler` is what a task costs the scheduler of a cluster,
    `sending` a byte that travels between processes, `sampling` a row and a landmark chosen among such rows, and `start`
    what any fit costs.
    """

    start: float
    rows: float
    columns: float
    distances: float
    values: Mapping[str, float]
    syrk: Mapping[str, float]
    gemm: Mapping[str, float]
    modes: Mapping[str, float]
    single: float
    entries: float
    task: float
    scheduler: float
    sending: float
    reading: float
    sampling: float
    choice: float
    apart: float
    slowdown: float
    solve: Mapping[str, float]
    threads: int = 1
    machine: Mapping[str, Any] = field(default_factory=dict)

    def row(self, work: Work) -> float:
        """The seconds of one row of the pass on one thread."""
        read = self.reading * work.row_bytes
        if work.method:
            return read + work.transforms * _line(self._of(self.modes, f"{work.method} {work.d}"), work.modes)
        plain = self.rows + self.columns * work.d + read
        p, unknown = work.p, sorted(set(work.kernels) - set(self.values))
        if unknown:
            raise Unpredictable(f"nothing was measured for the kernel {unknown[0]}, only for {', '.join(self.values)}")
        evaluated = sum(count * (self.values[name] + self.distances * work.d) for name, count in work.kernels.items())
        evaluated += work.along * (self.values["along"] + self.distances * work.d)
        products = work.syrk * _at(self.syrk, p) + work.gemm * _at(self.gemm, p)
        return plain + (p * evaluated + p * p * products) * (self.single if work.single else 1.0)

    def task_of(self, work: Work, threads: int = 1) -> float:
        """The seconds of one task of the pass while so many threads of its process are at work."""
        square = 0 if work.method else work.p * work.p
        own = work.n * self.row(work) / work.tasks + self.task + work.groups * work.forms * square * self.entries
        return own * (1 + (self.slowdown - 1) * _share(threads, self.threads))

    def sent(self, work: Work) -> float:
        """The seconds in which a task's sums travel to another process."""
        entries = 2 * work.modes * work.transforms if work.method else work.forms * work.p * work.p
        return self.sending * 8 * work.groups * entries

    def summing(self, work: Work, *, workers: int = 1, threads: int = 1) -> float:
        """The seconds of the pass over the rows.

        Several workers are taken to keep their hosts busy; each result travels once, and a scheduler handles each task
        and its addition.
        """
        turns = math.ceil(work.tasks / (workers * threads))
        if workers == 1:
            return self.task_of(work, threads) * turns
        return max((self.task_of(work, self.threads) + self.sent(work)) * turns, 2 * work.tasks * self.scheduler)

    def reading_of(self, work: Work, *, workers: int = 1, threads: int = 1) -> float:
        """The seconds in which so many threads read and decode all rows; 0 of rows in memory."""
        return self.reading * work.row_bytes * work.n / (workers * threads)

    def choosing(self, work: Work, threads: int = 1) -> float:
        """The seconds before the pass, of the driving process: the data opened, landmarks or everything chosen."""
        found = self.start + self.sampling * work.sampled * work.p
        return found + (self.choice * (1 - self.apart + self.apart / threads) if work.automatic else 0.0)

    def solving(self, work: Work) -> float:
        """The seconds of the solution, of the driving process."""
        return _at(self._of(self.solve, work.solver), work.p)

    def predict(self, work: Work, *, workers: int = 1, threads: int = 1) -> Prediction:
        """The seconds of a fit on so many workers of so many threads each; the driver has as many threads.

        Raises Unpredictable for a kernel, a solver or a lattice of a kind that was not measured.
        """
        summing = self.summing(work, workers=workers, threads=threads)
        task = self.task_of(work, threads if workers == 1 else self.threads)
        return Prediction(self.choosing(work, threads), summing, self.solving(work), task, workers, threads)

    def _of(self, table: Mapping[str, float], name: str) -> dict[str, float]:
        """The part of a table whose names begin with `name`, by what follows."""
        found = {key.removeprefix(f"{name} "): value for key, value in table.items() if key.startswith(f"{name} ")}
        if not found:
            known = sorted({key.rpartition(" ")[0] for key in table})
            raise Unpredictable(f"nothing was measured for {name!r}, only for {', '.join(known)}")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the constants as JSON, whole or not at all."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_file(path, (json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Costs:
        """The constants of a file. Raises FileNotFoundError, and ValueError for anything but what `save` writes."""
        again = "measure the constants again: daskspectral plan --calibrate"
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no calibration {os.fspath(path)}; {again}") from None
        try:
            found = json.loads(text)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)} is no calibration, for it is no JSON ({error}); {again}") from None
        if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
            raise ValueError(f"{os.fspath(path)} is no calibration of this version ({FORMAT!r}); {again}")
        wanted = {f.name for f in fields(cls)}
        if set(found) != wanted:
            wrong = ", ".join(sorted(set(found) ^ wanted))
            raise ValueError(f"{os.fspath(path)} lacks, or has beside what is wanted, {wrong}; {again}")
        for name in wanted - {"machine"}:
            _check(found[name], name, table=name in TABLES, path=os.fspath(path), again=again)
        for name in TABLES[1:]:
            strange = [key for key in found[name] if not key.rpartition(" ")[2].isdecimal()]
            if strange:
                raise ValueError(f"{os.fspath(path)} has {strange[0]!r} in {name}, where a size is wanted; {again}")
        if not isinstance(found["machine"], dict) or not isinstance(found["threads"], int) or found["threads"] < 1:
            raise ValueError(f"{os.fspath(path)} has wrong facts of the machine; {again}")
        return cls(**found)


class Unpredictable(ValueError):
    """A fit of which the model knows no cost."""


def default_path() -> Path:
    """The file in the user's own folder of application data where a calibration is kept."""
    return Path(click.get_app_dir("daskspectral")) / "costs.json"


def check_writable(path: Path) -> None:
    """Raise OSError where a calibration cannot be written to a path, before it is measured."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the path of a file for the calibration")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise PermissionError(f"the calibration cannot be written to {path}: {above} is no folder you may write in")


def shown(seconds: float) -> str:
    """A time as people write it."""
    if seconds < 1:
        return f"{1000 * seconds:.{0 if seconds > 0.01 else 1}f} ms"
    if seconds < 120:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def _at(table: Mapping[str, float], p: int) -> float:
    """A table's value at p, by powers of p between its places and beyond them."""
    places = np.array(sorted(int(key) for key in table), dtype=float)
    values = np.array([table[str(int(place))] for place in places])
    if len(places) == 1:
        return float(values[0])
    i = int(np.clip(np.searchsorted(places, p), 1, len(places) - 1))
    (low, high), (a, b) = places[i - 1 : i + 1], values[i - 1 : i + 1]
    return float(a * (p / low) ** (math.log(b / a) / math.log(high / low)))


def _line(table: Mapping[str, float], size: int) -> float:
    """A table's value at a size, on the straight line through its first and last place."""
    places = sorted(int(key) for key in table)
    low, high = places[0], places[-1]
    if low == high:
        return table[str(low)]
    slope = (table[str(high)] - table[str(low)]) / (high - low)
    return max(table[str(low)] + slope * (size - low), 0.1 * table[str(low)])


def _share(threads: int, measured: int) -> float:
    """How far the slowdown measured with all threads at work applies to so many of them."""
    return 0.0 if measured < 2 else min(1.0, (threads - 1) / (measured - 1))


def _check(value: Any, name: str, *, table: bool, path: str, again: str) -> None:
    """Raise ValueError unless the value is a finite number of 0 or more, or a table of positive ones."""
    numbers = list(value.values()) if table and isinstance(value, dict) else [value]
    fine = (not table or isinstance(value, dict)) and bool(numbers)
    for number in numbers:
        real = isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number)
        fine = fine and real and number >= 0 and not (table and number == 0)
    if not fine:
        raise ValueError(f"{path} has {value!r} for {name}, where numbers of 0 or more are wanted; {again}")
