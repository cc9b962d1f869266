"""The products of a form as plain lists and dictionaries, for saved models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from daskspectral.forms.expressions import Atom, Bilinear, Product, Term

DEFAULTS = {f.name: f.default for f in fields(Atom) if f.name != "kind"}


def terms_state(expression: Bilinear) -> list[Any]:
    """The terms of an expression as plain data, from which `terms_from_state` makes an equal one."""
    return [
        [factor, {"left": _atom_state(p.left), "right": _atom_state(p.right), "weight": p.weight}]
        for factor, p in expression.terms
    ]


def terms_from_state(state: Iterable[Any]) -> Bilinear:
    """The inverse of `terms_state`."""
    terms = []
    for factor, p in state:
        left, right = _atom_from_state(p["left"]), _atom_from_state(p["right"])
        terms.append((float(factor), Product(left, right, p["weight"])))
    return Bilinear(tuple(terms))


def _atom_state(atom: Atom) -> dict[str, Any]:
    plain = {
        "view": atom.view,
        "alpha": list(atom.alpha),
        "direction": atom.direction,
        "terms": [[t.factor, t.weight, _atom_state(t.atom)] for t in atom.terms],
    }
    return {"kind": atom.kind} | {k: v for k, v in plain.items() if getattr(atom, k) != DEFAULTS[k]}


def _atom_from_state(state: dict[str, Any]) -> Atom:
    terms = state.get("terms", [])
    return Atom(
        state["kind"],
        state.get("view", "x"),
        tuple(state.get("alpha", ())),
        state.get("direction"),
        tuple(Term(float(factor), w, _atom_from_state(a)) for factor, w, a in terms),
    )
