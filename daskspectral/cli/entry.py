"""The command itself: its subcommands, its errors and its exit codes."""

from __future__ import annotations

import logging
import signal
import sys

import click

from daskspectral import __version__
from daskspectral.cli.data import convert_command, sample
from daskspectral.cli.embedding import embed
from daskspectral.cli.regression import invariant, regress
from daskspectral.cli.spectral import fit, merge, update
from daskspectral.cli.using import info, predict, transform
from daskspectral.errors import Stopped, raise_on_signals


def main(arguments: list[str] | None = None) -> None:
    """Run the command: errors of the input are one message and exit code 1, signals exit with 128 + number."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    logging.captureWarnings(True)
    try:
        with raise_on_signals(signal.SIGTERM, signal.SIGUSR1):
            code = command.main(arguments, prog_name="daskspectral", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as interrupt:
        cause = interrupt.__cause__ or interrupt  # click makes its own of Ctrl-C
        click.echo(_with_notes("stopped by Ctrl-C; nothing was half-written", cause), err=True)
        sys.exit(128 + signal.SIGINT)
    except Stopped as stopped:
        click.echo(_with_notes(f"{stopped}; nothing was half-written", stopped), err=True)
        sys.exit(128 + stopped.number)
    except (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError) as error:
        click.echo(_with_notes(f"Error: {error}", error), err=True)
        sys.exit(1)
    if isinstance(code, int) and code:
        sys.exit(code)


def _with_notes(text: str, error: BaseException) -> str:
    return "\n".join([text, *getattr(error, "__notes__", [])])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
@click.option("-v", "--verbose", is_flag=True, help="Say what is chosen along the way.")
def command(verbose: bool) -> None:
    """Spectral decompositions of operators, learned from arrays that do not fit in memory."""
    if verbose:
        logging.getLogger("daskspectral").setLevel(logging.INFO)


for subcommand in (fit, update, merge, embed, regress, invariant, transform, predict, info, sample, convert_command):
    command.add_command(subcommand)
