"""Links from names to their places on the pages: public names, however they are written."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from pdoc.doc import Class, Doc, Module
from pdoc.render_helpers import relative_link

# a dotted name, plain or with highlighted points; or a name alone in a code span or highlighted by itself
NAME = re.compile(
    r"""(?<![\w./\#"=&;@-])
    (?P<dotted>[^\W\d]\w*(?:(?:\.|</span><span[ ]class="o">\.</span><span[ ]class="n">)[^\W\d]\w*)+)
    (?!\w|/|</a>)
    |(?<=<code>)(?P<coded>[^\W\d]\w*)(?=\(|</code>|,)
    |(?<=<span\ class="n">)(?P<alone>[A-Z]\w+)(?=</span>)""",
    re.VERBOSE,
)


class Names:
    """Every public name of some modules, with the module and the anchor where it is documented."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.places: dict[str, tuple[str, str]] = {}
        self.short: dict[str, set[tuple[str, str]]] = {}
        for module in sorted(modules.values(), key=lambda one: -one.modulename.count(".")):
            self.places[module.modulename] = module.modulename, ""
            for name, member in module.members.items():
                if member.kind != "module":
                    self._add(module, name, member)

    def _add(self, module: Module, name: str, member: Doc) -> None:
        place = module.modulename, name
        self.places[f"{module.modulename}.{name}"] = place
        home = self.places.setdefault(".".join(member.taken_from), place)
        self.short.setdefault(name, set()).add(home)
        if isinstance(member, Class) and home == place:
            for own in shown_members(member, module):
                anchor = module.modulename, f"{name}.{own.name}"
                self.places[".".join(anchor)] = anchor
                self.places.setdefault(".".join(own.taken_from), anchor)

    def home(self, member: Doc) -> tuple[str, str] | None:
        """Where an object is documented in full."""
        return self.places.get(".".join(member.taken_from))

    def find(self, name: str, module: str, namespace: str = "") -> tuple[str, str] | None:
        """The place of a name as it is written in a module, or in a class of it; None where it is none of ours."""
        package = module.partition(".")[0]
        inside = [f"{module}.{namespace}.{name}"] if namespace else []
        for candidate in (name, *inside, f"{module}.{name}", f"{package}.{name}"):
            if candidate in self.places:
                return self.home_of(candidate)
        first, _, rest = name.partition(".")
        homes = self.short.get(first, set()) if first[0].isupper() else set()
        if len(homes) != 1:
            return None
        (home,) = homes
        return self.places.get(".".join((*home, rest))) if rest else home

    def home_of(self, candidate: str) -> tuple[str, str]:
        """A place, or where what is only listed there is documented in full."""
        module, anchor = self.places[candidate]
        homes = self.short.get(anchor, set()) if module.count(".") == 0 else set()
        return next(iter(homes)) if len(homes) == 1 else (module, anchor)


def shown_members(member: Class, module: Module) -> list[Doc]:
    """What a class says of its own: documented members, with those of bases that have no page themselves."""
    package = module.modulename.partition(".")[0]
    found = []
    for name, own in member.members.items():
        documented = own.docstring.strip() and not name.startswith("_") and own.kind != "class"
        generated = name.startswith("set_") and name.endswith("_request")  # by scikit-learn, for its metadata routing
        ours = own.taken_from[0].partition(".")[0] == package
        elsewhere = own.taken_from[0] != member.taken_from[0] and inherited_from_a_page(member, own, module)
        if documented and not generated and ours and not elsewhere:
            found.append(own)
    return found


def inherited_from_a_page(member: Class, own: Doc, module: Module) -> bool:
    """Whether a member comes from a base that the same module documents."""
    base = own.taken_from[1].rpartition(".")[0]
    shown = module.members.get(base)
    return base != member.qualname and shown is not None and shown.taken_from[0] == own.taken_from[0]


@pass_context
def linkify(context: Context, code: str, namespace: str = "", shorten: bool = True) -> Markup:
    """HTML with its public names as links."""
    names: Names = context["names"]
    here = context["module"].modulename if context.get("module") else "daskspectral"
    root = context.get("root", "")

    def linked(match: re.Match[str]) -> str:
        written = match[0]
        name = re.sub(r"<[^>]*>", "", written)
        place = names.find(name, here, namespace)
        if place is None or (match["coded"] and place[1] == "" and name != place[0]):
            return written
        module, anchor = place
        path = relative_link(here, module) if context.get("module") else f"{root}{module.replace('.', '/')}.html"
        text = anchor or module if shorten and "." in name else written
        return f'<a href="{html.escape(path)}{"#" + anchor if anchor or not path else ""}">{text}</a>'

    pieces = re.split(r"(<a\b.*?</a>)", code, flags=re.DOTALL)  # what is a link already stays one
    return Markup("".join(piece if k % 2 else NAME.sub(linked, piece) for k, piece in enumerate(pieces)))
