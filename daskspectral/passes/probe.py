"""How far the embedding at landmarks is from that of all points, at probe rows and with the exact kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from daskspectral.devices import ACCELERATOR_ROWS, device_of
from daskspectral.passes.embedding import Array, Passes
from daskspectral.passes.extension import Extension
from daskspectral.solve.sdp import alpha

PROBES = 1000  # rows
ROWS = 1024  # of a block of kernel values


@dataclass(frozen=True, eq=False)
class ProbeTask:
    """Sums over rows x_i with the exact kernel to probe rows (s, d): the masses (s,), and k(probe, x_i) w_i (s, r).

    With w_i = E_i / sqrt(m_i), of the first stage.
    """

    extension: Extension
    probes: Array

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Array | None = None) -> dict[str, Array]:
        extension = self.extension
        r, device = extension.stages[0], device_of(extension.device)
        points, masses, probes = device.moved((extension.points, extension.masses, self.probes))
        step = ACCELERATOR_ROWS if device.accelerated else ROWS
        sums: dict[str, Array] = {"mass": np.zeros(len(self.probes)), "pull": np.zeros((len(self.probes), r))}
        for batch in batches:
            for start in range(0, len(batch["x"]), step):
                x = np.asarray(batch["x"][start : start + step], dtype=float)
                e = extension.of_prepared(x)[0][:, :r]
                if "diagonal" in batch:
                    e = e * np.sqrt(np.asarray(batch["diagonal"][start : start + step], dtype=float))[:, None]
                there = device.put(x)
                m = device.get(masses @ extension.kernel.values(there, points))
                k = extension.kernel.values(there, probes)
                sums["mass"] += device.get(k.sum(axis=1))
                sums["pull"] += device.get(k @ device.put(e / np.sqrt(m)[:, None]))
        return sums


@dataclass(frozen=True, eq=False)
class Probe:
    """What the exact kernel says of an embedding at probe rows.

    `residual` is how far one step of the full problem's power method moves the Gram matrix of the probe rows, relative
    to it; `least_eigenvalue` is the least one of diag(y) - Abar among these rows, with the full kernel and the y of the
    low-rank problem: where it is negative, this y proves nothing of the full problem, and where it is not, it may.
    `embedding` (s, r) is E at these rows.
    """

    residual: float
    least_eigenvalue: float
    embedding: Array

    @classmethod
    def of(cls, passes: Passes, extension: Extension, overlap: Array, probes: Array, bound: Array | None) -> Probe:
        """From one pass, with the sum `overlap` (r,) of sqrt(m_i) E_i over all rows.

        `bound` (s,) are the bounds on the diagonal at the probe rows, where they are given.
        """
        sums = passes(ProbeTask(extension, probes))
        m, total = np.asarray(sums["mass"]), extension.total
        d = alpha(m, total) if bound is None else bound
        pulled = sums["pull"] - np.outer(m, overlap) / total
        pulled /= np.sqrt(m)[:, None]
        length = np.linalg.norm(pulled, axis=1, keepdims=True)
        moved = np.sqrt(np.maximum(d, 0))[:, None] * pulled / np.where(length > 0, length, 1.0)
        e = extension.of_prepared(probes)[0][:, : extension.stages[0]]
        e = e if bound is None else e * np.sqrt(bound)[:, None]
        k = extension.kernel.values(probes, probes)
        abar = k / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / total
        y = _dual(extension, probes, bound)
        return cls(gram_distance(e, moved), float(np.linalg.eigvalsh(np.diag(y) - abar)[0]), e)


def _dual(extension: Extension, x: Array, bound: Array | None) -> Array:
    """y_i = |u_i| / sqrt(d_i) of the low-rank problem at points x (s, d), (s,), with u_i = (Abar E)_i."""
    k = extension.kernel.values(x, extension.points)
    m = extension.masses @ k
    d = alpha(m, extension.total) if bound is None else bound
    return np.asarray(np.linalg.norm(k.T @ extension.coefficients[:, : extension.stages[0]], axis=1) / np.sqrt(m * d))


def gram_distance(e: Array, other: Array) -> float:
    """|E E^T - F F^T| / |F F^T|, Frobenius norms, for E (s, q) and F (s, r)."""
    own, last = np.linalg.norm(e.T @ e) ** 2, np.linalg.norm(other.T @ other) ** 2
    cross = np.linalg.norm(e.T @ other) ** 2
    return float(np.sqrt(np.maximum(0.0, own + last - 2 * cross) / last))
