"""The command `daskspectral`: its subcommands, its errors and its exit codes."""

from __future__ import annotations

import io
import logging
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from functools import partial

import click

from daskspectral import __version__
from daskspectral.cli.commands import Formatter, echo
from daskspectral.cli.verbs import COMMANDS
from daskspectral.errors import Stopped, raise_on_signals

EXPECTED = (ValueError, TypeError, OSError, ImportError, RuntimeError, MemoryError)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; an error prints one message and exits with 1, a signal with 128 + its number.

    A traceback is shown with --debug or DASKSPECTRAL_DEBUG=1.
    """
    console = logging.StreamHandler()
    console.setFormatter(Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[console])
    logging.captureWarnings(True)
    warnings.formatwarning = _formatted
    settings: dict[str, bool] = {}
    try:
        with raise_on_signals(signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            code = command.main(arguments, prog_name="daskspectral", standalone_mode=False, obj=settings)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        echo(shown.getvalue().rstrip("\n"), err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as interrupt:
        cause = interrupt.__cause__ or interrupt  # click converts Ctrl-C
        _say("stopped by Ctrl-C; no partial output remains", cause)
        sys.exit(128 + signal.SIGINT)
    except Stopped as stopped:
        _say(f"{stopped}; no partial output remains", stopped)
        sys.exit(128 + stopped.number)
    except Exception as error:  # one line in a shell for any error
        if settings.get("debug"):
            echo("".join(traceback.format_exception(error)).rstrip(), err=True)
        _say(f"Error: {_message(error)}", error)
        sys.exit(1)
    if isinstance(code, int) and code:
        sys.exit(code)


def _formatted(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as text: the message, and file and line if not from daskspectral."""
    own = category.__module__.startswith("daskspectral")
    return str(message) if own else f"{filename}:{lineno}: {category.__name__}: {message}"


def _message(error: Exception) -> str:
    """Return the message of an error, with the type of one that is not about the input."""
    if isinstance(error, EXPECTED) and not isinstance(error, (RecursionError, NotImplementedError)):
        return str(error) or ("not enough memory" if isinstance(error, MemoryError) else type(error).__name__)
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def _say(text: str, error: BaseException) -> None:
    """Print text and the notes of an error, if the terminal still exists."""
    with suppress(OSError):
        echo("\n".join([text, *getattr(error, "__notes__", [])]), err=True)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__)
@click.option("-v", "--verbose", is_flag=True, help="Report choices during the fit.")
@click.option(
    "--debug", is_flag=True, envvar="DASKSPECTRAL_DEBUG", show_envvar=True, help="Show the traceback of an error."
)
@click.pass_context
def command(context: click.Context, verbose: bool, debug: bool) -> None:
    """Spectral decompositions of operators, learned from arrays that do not fit in memory."""
    context.ensure_object(dict)["debug"] = debug
    if verbose:
        own = logging.getLogger("daskspectral")
        context.call_on_close(partial(own.setLevel, own.level))
        own.setLevel(logging.INFO)


for found in COMMANDS:
    command.add_command(found)
