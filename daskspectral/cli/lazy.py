"""A group of commands that are imported when they are called."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import cast

import click
from click.shell_completion import CompletionItem


class LazyCommands(Mapping[str, click.Command]):
    """Commands by name, of places written "module:attribute"; one is imported when it is looked up."""

    def __init__(self, places: Mapping[str, str]):
        self._places = dict(places)

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = self._places[name].partition(":")
        found: click.Command = getattr(importlib.import_module(module), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class LazyGroup(click.Group):
    """A group of lazy commands; `summaries` has the line of each that lists and completions show without an import."""

    def __init__(self, *, places: Mapping[str, str], summaries: Mapping[str, str], **options: object):
        commands = cast("MutableMapping[str, click.Command]", LazyCommands(places))
        super().__init__(commands=commands, **options)  # type: ignore[arg-type]
        self._summaries = summaries

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The names, with a line each."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summaries[name]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands and options that begin like this."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=self._summaries[name]) for name in names] + options
