"""Common parts of commands: settings from a file, results as JSON, quiet mode, and examples in the help."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import click

from daskspectral.cli import settings
from daskspectral.errors import printable

KEY = "daskspectral.cli"


def echo(text: str, *, err: bool = False) -> None:
    """Print text without control characters or credentials in URLs, because names come from data."""
    click.echo(printable(text), err=err)


class Formatter(logging.Formatter):
    """Lines of a log without control characters or credentials in URLs."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@dataclass
class Invocation:
    """Output mode and printed facts of one call of a command; with `planning`, only a plan is made."""

    json: bool = False
    quiet: bool = False
    planning: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def session(context: click.Context | None = None) -> Invocation:
    """Return the invocation of a context, by default of the current one."""
    found: Invocation = (context or click.get_current_context()).meta.setdefault(KEY, Invocation())
    return found


def say(text: str, /, **facts: Any) -> None:
    """Print text, or with --json keep the facts for the object printed at the end."""
    now = session()
    now.facts |= facts
    if not (now.json or now.quiet):
        echo(text)


def written(what: str, path: str, text: str = "", **facts: Any) -> None:
    """Print the path of a result."""
    say(f"{what}: {path}{text}", **{what: path}, **facts)


def set_output(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Set an option of the invocation, such as --quiet."""
    if value is not None and not context.resilient_parsing:
        setattr(session(context), str(parameter.name), value)


def configure(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Use the settings in a file as defaults of a command."""
    if value is not None and not context.resilient_parsing:
        found = settings.read(value, context.command)
        _refuse_credentials(found.values())
        context.default_map = {**(context.default_map or {}), **found}


def help_all(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Print every option, hidden ones too."""
    if value and not context.resilient_parsing:
        for option in context.command.params:
            vars(option)["hidden"] = False
        click.echo(context.get_help(), color=context.color)
        context.exit()


class Command(click.Command):
    """Command that calls a function "module:function" of the package, imported when the command runs.

    The `text` of its docstring is the help, with lines for a shell under "Examples". Parameters are `made` when first
    needed.
    """

    def __init__(self, path: str, text: str, made: Callable[[], list[click.Parameter]], **options: Any):
        module, _, name = path.partition(":")
        super().__init__(name, callback=partial(_call, f"daskspectral.{module}", name), **options)
        del self.params  # an empty list of click
        self.made = made
        self.help, _, examples = text.partition("\n\nExamples\n--------\n")
        self.examples = examples.splitlines()
        if examples:
            self.epilog = "\n".join(["\b", "Examples:", *(f"  daskspectral {line}" for line in self.examples)])

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        return self.made()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        if not ctx.resilient_parsing:
            _refuse_credentials(given)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            session(ctx).settings = settings.resolved(self, ctx, given)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command, with only errors printed if quiet, and print facts as JSON if requested."""
        now = session(ctx)
        if now.quiet:
            logging.disable(logging.WARNING)
            ctx.call_on_close(partial(logging.disable, logging.NOTSET))
        with settings.keeping(now.settings):
            try:
                found = super().invoke(ctx)
            except click.exceptions.Exit:
                _finish(now)
                raise
        _finish(now)
        return found


def _call(module: str, name: str, /, **options: Any) -> Any:
    return getattr(importlib.import_module(module), name)(**options)


def _refuse_credentials(given: Iterable[Any]) -> None:
    """Raise ValueError for a URL with a credential, without repeating it."""
    for value in given:
        if isinstance(value, (list, tuple)):
            _refuse_credentials(value)
        if isinstance(value, str) and ":/" in value:
            from daskspectral.data.remote import refuse_secrets

            refuse_secrets(value)


def _finish(now: Invocation) -> None:
    if now.json and now.facts:
        click.echo(json.dumps(now.facts, allow_nan=False))
