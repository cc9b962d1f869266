"""A dipole that rotates with its molecule
=======================================

The dipole of a bent triatomic molecule, such as water, as an output that turns with the molecule.

The positions of the two hydrogens relative to the oxygen, brought to a common size, are a point x of the sphere S^5.
The dipole is a vector that rotates and reflects with the molecule, mu(R x) = R mu(x), and is unchanged when the
hydrogens change places: a function S^5 -> R³ that is equivariant under O(3) x S_2. `InvariantRegressor(output=...)`
fits it among the functions that have this symmetry exactly for any rows: of 3 x 1254 products of eigenfunctions and
directions, 10. The representation describes how a dipole changes with each generator of the group: with the mirror it
is mirrored, with the exchange it stays, and with rotations about an axis it turns.

The reference is a model of charges that depend on both bonds and on the angle. For comparison: the same regression
without the group, and kernel ridge regression on as many rows.

Usage::

    python examples/dipole.py [--rows 400]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

import daskspectral as dsp
from daskspectral.groups import FullOrthogonal, Generated, Isometry, MatrixRepresentation

ANGLE, SPREAD = np.deg2rad(104.5), 0.25  # of the bonds, in radians
STRETCH = 0.12  # standard deviation of a bond's length, relative
SPHERE = dsp.manifolds.Sphere(6)
EXCHANGE = Isometry(np.kron([[0, 1], [1, 0]], np.eye(3)))
GROUP = Generated([FullOrthogonal(3, copies=2), EXCHANGE])
TEST = 5000


def molecules(n, rng):
    """Molecules (n, 6) of size 1 with random bonds, angles and orientations."""
    lengths = 1 + STRETCH * rng.standard_normal((2, n))
    half = (ANGLE + SPREAD * rng.standard_normal(n)) / 2
    first, second = ([np.sin(sign * half), np.cos(half), np.zeros(n)] for sign in (-1, 1))
    bonds = np.stack([lengths[0] * np.array(first), lengths[1] * np.array(second)])  # (2, 3, n)
    turns = np.linalg.qr(rng.standard_normal((n, 3, 3)))[0]  # rotations, and reflections
    x = np.einsum("nij,bjn->nbi", turns, bonds).reshape(n, 6)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def dipole(x):
    """The dipole (n, 3): each hydrogen's charge depends on its bond, on the other one, and on the angle."""
    bonds = x.reshape(-1, 2, 3)
    lengths = np.linalg.norm(bonds, axis=2)
    cosine = np.einsum("ni,ni->n", bonds[:, 0], bonds[:, 1]) / lengths.prod(axis=1)
    charges = np.exp(-1.5 * (lengths - 0.7)) * (1 + 0.5 * (lengths[:, ::-1] - 0.7)) + 0.2 * cosine[:, None] ** 2
    return np.einsum("nb,nbi->ni", charges, bonds)


def representation():
    """How a dipole changes with the generators of the group and of its algebra, in their order."""
    mirror, turns = GROUP.generators[0], GROUP.algebra
    return MatrixRepresentation([mirror.matrix[:3, :3], np.eye(3)], [x.matrix[:3, :3] for x in turns])


def main(rows=400):
    rng = np.random.default_rng(0)
    x, new = molecules(rows, rng), molecules(TEST, rng)
    y, truth = dipole(x), dipole(new)
    equivariant = dsp.InvariantRegressor(SPHERE, GROUP, output=representation()).fit(x, y)
    plain = dsp.InvariantRegressor(SPHERE).fit(x, y)
    grid = {"gamma": [0.1, 0.3, 1.0], "alpha": [1e-9, 1e-6, 1e-3]}
    kernel = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(x, y)
    spread = np.sqrt(np.mean(np.sum((truth - truth.mean(axis=0)) ** 2, axis=1)))

    def error(model):
        return float(np.sqrt(np.mean(np.sum((model.predict(new) - truth) ** 2, axis=1))) / spread)

    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = equivariant.predict(new @ np.kron(np.eye(2), turn).T)
    return {
        "rows": rows,
        "equivariant functions": int(equivariant.basis_.size),
        "relative error, equivariant": error(equivariant),
        "relative error, without the group": error(plain),
        "relative error, kernel ridge": error(kernel),
        "R^2 on folds that were left out": equivariant.cv_score_,
        "largest |f(R x) - R f(x)|": float(np.abs(turned - equivariant.predict(new) @ turn.T).max()),
    }


def report(numbers):
    for name, value in numbers.items():
        print(f"{name:36s} {value:.3g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400, help="molecules to learn from")
    found = main(parser.parse_args().rows)
    report(found)
    assert found["relative error, equivariant"] < 0.003
