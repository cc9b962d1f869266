"""What is printed and logged: names may be anybody's, so no control character and no credential in a URL goes out."""

from __future__ import annotations

import logging

import click

from daskspectral.errors import printable


def echo(text: str, *, err: bool = False) -> None:
    """Print text as `printable`."""
    click.echo(printable(text), err=err)


class Formatter(logging.Formatter):
    """Lines of a log as `printable`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        return printable(super().format(record))
