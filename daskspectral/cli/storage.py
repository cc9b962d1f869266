"""`--storage-option`: how the URLs of a command are opened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click


def options_of(given: Sequence[str]) -> dict[str, Any]:
    """The options that are written key=value. Raises click's BadParameter, which repeats no value."""
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter("key=value is wanted, such as anon=true or endpoint_url=https://s3.example.org")
        if name in options:
            raise click.BadParameter("one of the keys is given twice")  # it may be a credential
        options[name] = _plain(value)
    return options


@contextmanager
def storing(given: Sequence[str]) -> Iterator[None]:
    """Open URLs inside with these options, as they are written. Raises as `options_of`."""
    options = options_of(given)
    if not options:
        yield
        return
    from daskspectral.data.remote import using

    with ExitStack() as stack:
        try:
            stack.enter_context(using(options))
        except (TypeError, ValueError) as error:
            raise click.BadParameter(str(error)) from None
        yield


def use_storage(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> None:
    """Open the URLs of a command with the options that are given."""
    context.with_resource(storing(given))


def _plain(text: str) -> Any:
    """A value as JSON has it, true and false in any case; other text as it is."""
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text
