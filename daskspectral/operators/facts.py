"""What the forms of an operator need: derivatives, fields, units."""

from __future__ import annotations

from daskspectral.operators.base import Operator
from daskspectral.operators.diffusion import Generator


def derivatives(operator: Operator) -> tuple[int, int]:
    """The highest orders of derivatives that an operator's forms take of left and of right functions."""
    left, right = operator.form.orders
    own = operator.right_gram
    left = max(left, *operator.gram.orders)
    return left, right if own is None else max(right, *own.orders)


def fields_at_derivatives(operator: Operator) -> list[str]:
    """The user's fields that multiply derivatives, and are therefore in the units of the data, sorted."""
    found: set[str] = set()
    for form in operator.forms.values():
        for product in form.products:
            if max(product.left.order, product.right.order) > 0:
                found |= {s for name in product.fields for s in operator.derived.get(name, frozenset({name}))}
    return sorted(found & operator.data_fields)


def units_of(operator: Operator) -> str:
    """What ties an operator to the units of the data, besides such fields; "" where standardised columns suit it too.

    A gradient or a Laplacian may be taken in standardised columns; a derivative along one column, and a sum of
    derivatives of different orders, may not.
    """
    if isinstance(operator, Generator) and isinstance(operator.diffusion, float):
        return f"has diffusion={operator.diffusion:g} in them"
    if operator.periods is not None or operator.oblique:
        return "has periods in them"
    for form in operator.forms.values():
        parts = [part for product in form.products for _, part, _ in product.expanded]
        orders = sorted({part.left.order + part.right.order for part in parts})
        if len(orders) > 1:
            return f"adds products of {' and '.join(map(str, orders))} derivatives in all, which scale differently"
        if not orders[0]:
            continue
        made = {name for product in form.products for name in product.fields & operator.derived.keys()}
        if any(atom.kind == "partial" for part in parts for atom in (part.left, part.right)) or any(
            "x" in operator.derived[name] for name in made
        ):
            return "takes derivatives along directions in them"
    return ""
