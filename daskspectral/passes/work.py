"""The work of a fit in the numbers of the cost model (`engine.costs`): counted from forms, kernels and the plan."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from daskspectral.basis import FourierLattice
from daskspectral.data.readers import ZarrReader
from daskspectral.data.source import Source
from daskspectral.engine.costs import Costs, Unpredictable, Work, default_path
from daskspectral.engine.memory import cluster_workers, local_threads
from daskspectral.forms import Atom, Form, Product
from daskspectral.kernels import DotKernel, Kernel, Matern, Periodic, RadialKernel
from daskspectral.moments.modes import weights_of
from daskspectral.operators import Operator
from daskspectral.passes.automatic import families_of
from daskspectral.passes.landmarks import default_sample
from daskspectral.passes.lattice import with_method
from daskspectral.passes.parameters import check_whole
from daskspectral.passes.side import Side
from daskspectral.passes.sides import Choice
from daskspectral.passes.sums import PassPlan, features_of

SLOPE = " slope"
"""What follows the family of a kernel whose first derivatives are evaluated, too."""


def costs_at(calibration: str | os.PathLike[str] | None) -> Costs | str:
    """The costs of a file, by default of the user's own; where this one is missing or of no use, why there are none.

    Raises FileNotFoundError where there is no such `calibration`, ValueError for a file that is none.
    """
    if calibration is not None:
        return Costs.load(calibration)
    try:
        return Costs.load(default_path())
    except FileNotFoundError:
        return "the costs of this machine are not measured yet (daskspectral plan --calibrate)"
    except (ValueError, OSError) as error:  # of another version, say: no reason to refuse a plan
        return str(error)


def timed(
    plan: PassPlan,
    source: Source,
    choice: Choice,
    costs: Costs | str,
    *,
    apart: bool,
    workers: int | None,
    threads: int | None,
) -> PassPlan:
    """The plan with the work of the fit, and where costs are known its time on so many workers of so many threads.

    By default these are the workers of the active cluster, or the threads of this process. On an accelerator the time
    of reading is known alone. Raises ValueError for numbers that are none.
    """
    for name, value in (("workers", workers), ("threads", threads)):
        if value is not None:
            check_whole(name, value)
    try:
        plan = replace(plan, work=work_of(source, choice, plan, apart=apart))
        if isinstance(costs, str):
            return replace(plan, untimed=costs)
        assert plan.work is not None
        if plan.memory.device != "cpu":
            reading = costs.reading_of(plan.work, **_machines(workers, threads))
            why = f"nothing was measured on the device {plan.memory.device}"
            return replace(plan, reading=reading or None, untimed=why)
        return replace(plan, time=costs.predict(plan.work, **_machines(workers, threads)))
    except Unpredictable as reason:
        return replace(plan, untimed=str(reason))


def _machines(workers: int | None, threads: int | None) -> dict[str, int]:
    """The workers and their threads: those that are given, else those on which a fit would run now."""
    found = cluster_workers() if workers is None and threads is None else None
    if found:
        most = sum(int(worker["nthreads"]) for worker in found)
        return {"workers": len(found), "threads": max(1, most // len(found))}
    return {"workers": workers or 1, "threads": threads or local_threads()}


def work_of(source: Source, choice: Choice, plan: PassPlan, *, apart: bool) -> Work:
    """The work of a fit of these functions by a plan; `apart` says that landmarks' rows are summed apart.

    Raises Unpredictable for functions, and derivatives of them, of which the model knows no cost.
    """
    operator, ranges = choice.operator, plan.ranges.ranges
    groups = 1 if plan.dealing is None else plan.dealing.most(*ranges[0]) + apart
    reading = [reader for reader in source.readers.values() if isinstance(reader, ZarrReader)]
    left, right = choice.sizes
    p = left if right is None else max(left, right)
    known = Work(
        source.n,
        source.dimension,
        p,
        len(ranges),
        groups,
        len(operator.forms),
        operator.solver.name,
        row_bytes=float(sum(reader.dtype.itemsize * math.prod(reader.shape[1:]) for reader in reading)),
        single=choice.dtype == "float32",
    )
    if choice.lattice is not None:
        return _on_lattice(known, choice.lattice, operator)
    sides = [choice.left] if choice.right is None else [choice.left, choice.right]
    for side in sides:
        if side.basis is not None or side.vanishing is not None:
            raise Unpredictable("the model knows kernels at landmarks and the Fourier lattice, no other basis")
    drawn = [side for side in sides if side.drawn and not side.spanning and side.landmarks != "uniform"]
    sampled = 0 if choice.automatic else sum(min(source.n, side.sample or default_sample(side.count)) for side in drawn)
    shares = [_products(source, choice, [_kernels(side, operator)[i] for side in sides]) for i in (0, -1)]
    mean = {name: sum(share.get(name, 0.0) for share in shares) / 2 for name in dict.fromkeys([*shares[0], *shares[1]])}
    counts: dict[str, Any] = {name: mean.pop(name, 0.0) for name in ("along", "syrk", "gemm")}
    return replace(known, kernels=mean, sampled=sampled, automatic=choice.automatic, **counts)


def family(kernel: Kernel, *, slope: bool) -> list[str]:
    """The names in the model of a kernel, or of the kernels that it combines."""
    if isinstance(kernel, Periodic):
        return family(kernel.kernel, slope=slope)
    inner = [value for value in kernel.get_params(deep=False).values() if isinstance(value, Kernel)]
    if inner:
        return [name for part in inner for name in family(part, slope=slope)]
    name = f"Matern {kernel.nu:g}" if isinstance(kernel, Matern) else type(kernel).__name__
    return [name + SLOPE * slope]


def _on_lattice(known: Work, lattice: FourierLattice, operator: Operator) -> Work:
    """The work on a lattice: two real weights share a transform."""
    lattice, weights = with_method(lattice, operator), len(weights_of(operator, known.d))
    method = str(lattice.method)
    transforms = weights if method == "matmul" else (weights + 1) // 2
    modes, solver = math.prod(4 * order + 1 for order in lattice.orders), f"lattice {known.d}"
    return replace(known, p=lattice.size, modes=modes, method=method, transforms=transforms, solver=solver)


def _kernels(side: Side, operator: Operator) -> tuple[Kernel, ...]:
    """The kernels of a side: those that are compared, where the data decide."""
    found = families_of(side.kernel if isinstance(side.kernel, Kernel) else "auto", operator, None)
    return tuple(kernel.resolve(1.0).resolve(1.0, "auto") for kernel in found)


def _products(source: Source, choice: Choice, kernels: list[Kernel]) -> dict[str, float]:
    """How often kernels are evaluated for a row, by family, with the "along", "syrk" and "gemm" of a row."""
    operator, sizes = choice.operator, [size for size in choice.sizes if size is not None]
    shares = [size / max(sizes) for size in sizes]
    atoms: list[set[Atom]] = [set() for _ in kernels]
    products: dict[tuple[int, int], dict[Product, None]] = {}
    for name, form in _forms(operator, two=len(kernels) > 1).items():
        a, b = {"gram": (0, 0), "right_gram": (1, 1)}.get(name, (0, 1)) if len(kernels) > 1 else (0, 0)
        products.setdefault((a, b), {}).update(dict.fromkeys(form.products))
        atoms[a].update(product.left for product in form.products)
        atoms[b].update(product.right for product in form.products)
    found: dict[str, float] = defaultdict(float)
    for kernel, share, wanted in zip(kernels, shares, atoms, strict=True):
        leaves = {leaf for atom in wanted for leaf in atom.leaves}
        if any(leaf.kind in ("partial", "second") for leaf in leaves):
            raise Unpredictable(f"{operator.name} takes partial derivatives, whose cost the model does not know")
        for view in {leaf.view for leaf in leaves}:
            slope = any(leaf.view == view and leaf.kind in ("gradient", "along") for leaf in leaves)
            for name in family(kernel, slope=slope):
                found[name] += share
        found["along"] += sum(share * features_of(leaf, source, operator) for leaf in leaves if leaf.kind == "along")
    for (a, b), pairs in products.items():
        area, grams = shares[a] * shares[b], set()
        for product in pairs:
            left, same = product.left, product.weight is None and product.left == product.right and a == b
            if left.kind == "gradient" and same and isinstance(kernels[a], (RadialKernel, DotKernel)):
                grams.add(Product(Atom("value", left.view), Atom("value", left.view)))
                found["syrk"] += area * _slope_products(kernels[a])["syrk"]
                found["gemm"] += area * _slope_products(kernels[a])["gemm"]
            elif left.kind == "gradient":
                raise Unpredictable(f"{operator.name} takes partial derivatives, whose cost the model does not know")
            elif left.vector:
                count = max(features_of(leaf, source, operator) for leaf in left.leaves)
                found["syrk" if same else "gemm"] += area * count
            elif same:
                grams.add(product)
            else:
                found["gemm"] += area
        found["syrk"] += area * len(grams)
    return found


def _forms(operator: Operator, *, two: bool) -> Mapping[str, Form]:
    """The forms that are measured, with the Gram matrix of right functions where these differ."""
    own = {"right_gram": operator.forms["gram"]} if two else {}
    return {**own, **operator.forms}


def _slope_products(kernel: Kernel) -> dict[str, int]:
    """The products of the Dirichlet form's short cut (`basis.landmark`), without the Gram matrix."""
    if isinstance(kernel, RadialKernel):
        return {"gemm": 1, "syrk": 0 if kernel.proportional is not None else 1}
    return {"gemm": 0, "syrk": 1}
