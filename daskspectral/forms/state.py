"""Forms as plain lists and dictionaries, for saved models."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from daskspectral.forms.expressions import Atom, Bilinear, Field, Product, Term
from daskspectral.forms.tracing import Form

DEFAULTS = {f.name: f.default for f in fields(Atom) if f.name != "kind"}


def form_state(bilinear: Form) -> dict[str, Any]:
    """A form as plain data, from which `form_from_state` makes an equal one."""
    terms = [
        [factor, {"left": _atom_state(p.left), "right": _atom_state(p.right), "weight": field_state(p.weight)}]
        for factor, p in bilinear.expression.terms
    ]
    return {"form": bilinear.name, "terms": terms}


def form_from_state(state: dict[str, Any]) -> Form:
    """The inverse of `form_state`."""
    terms = []
    for factor, p in state["terms"]:
        left, right = _atom_from_state(p["left"]), _atom_from_state(p["right"])
        terms.append((float(factor), Product(left, right, field_from_state(p["weight"]))))
    return Form(state["form"], Bilinear(tuple(terms)))


def field_state(field: Field | None) -> dict[str, Any] | None:
    """A field as plain data."""
    if field is None:
        return None
    index = list(field.index) if isinstance(field.index, tuple) else field.index
    return {"field": field.name, "index": index}


def field_from_state(state: dict[str, Any] | None) -> Field | None:
    """The inverse of `field_state`."""
    if state is None:
        return None
    index = state["index"]
    return Field(state["field"], tuple(index) if isinstance(index, list) else index)


def _atom_state(atom: Atom) -> dict[str, Any]:
    plain = {
        "view": atom.view,
        "alpha": list(atom.alpha),
        "direction": field_state(atom.direction),
        "terms": [[t.factor, field_state(t.weight), _atom_state(t.atom)] for t in atom.terms],
    }
    return {"kind": atom.kind} | {k: v for k, v in plain.items() if getattr(atom, k) != DEFAULTS[k]}


def _atom_from_state(state: dict[str, Any]) -> Atom:
    terms = state.get("terms", [])
    return Atom(
        state["kind"],
        state.get("view", "x"),
        tuple(state.get("alpha", ())),
        field_from_state(state.get("direction")),
        tuple(Term(float(factor), field_from_state(w), _atom_from_state(a)) for factor, w, a in terms),
    )
