"""Settings of a command, read from a file and saved in every store that it writes; options of URLs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import click

from daskspectral import __version__
from daskspectral.errors import nearest


def options_of(given: Sequence[str]) -> dict[str, Any]:
    """Return options of the form key=value; raise click's BadParameter, which repeats no value."""
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter("key=value is wanted, such as anon=true or endpoint_url=https://s3.example.org")
        if name in options:
            raise click.BadParameter("one of the keys is given twice")  # it may be a credential
        options[name] = _plain(value)
    return options


def use_storage(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> None:
    """Open the URLs of a command with these options; raise as `options_of`."""
    if given:
        from daskspectral.data.remote import using

        context.with_resource(using(options_of(given)))


def _plain(text: str) -> Any:
    """Return a JSON value, true and false in any case, or other text unchanged."""
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text


# -- files and results -------------------------------------------------------------------------------------------------


ATTRIBUTE = "daskspectral_settings"
ABOUT = ("command", "daskspectral")
"""Keys of saved settings that are not options: the command and the version."""


def key_of(parameter: click.Parameter) -> str:
    """Return the name of an option or argument in a file of settings."""
    if isinstance(parameter, click.Argument):
        return str(parameter.name)
    return max(parameter.opts, key=len).lstrip("-")


def resolved(command: click.Command, context: click.Context, arguments: list[str]) -> dict[str, Any]:
    """Return the settings of a call that affect its result, with defaults, without unset options."""
    raw, _, _ = command.make_parser(context).parse_args(args=list(arguments))
    found: dict[str, Any] = {}
    for parameter in command.params:
        name = str(parameter.name)
        if not getattr(parameter, "kept", True):
            continue
        value = context.params.get(name)
        pair = isinstance(parameter, click.Option) and bool(parameter.secondary_opts)
        source = context.get_parameter_source(name)
        left_out = value is None and source is click.core.ParameterSource.DEFAULT  # a word, such as none, may mean None
        if left_out or value == () or (value is False and not pair):
            continue
        if not isinstance(value, (bool, int, float)):
            typed = source is click.core.ParameterSource.COMMANDLINE
            value = raw[name] if typed else parameter.get_default(context)
        found[key_of(parameter)] = list(value) if isinstance(value, tuple) else value
    return {"command": command.name, "daskspectral": __version__, **found}


def read(path: str, command: click.Command) -> dict[str, Any]:
    """Return the settings in a YAML file as defaults of the command's parameters.

    Raises click's BadParameter for a file that is not YAML, for a key that is not an option of the command, and for
    trust, which is accepted only on the command line.
    """
    known = {key_of(p).replace("-", "_"): p for p in command.params if p.name != "config"}
    found: dict[str, Any] = {}
    for key, value in _loaded(path).items():
        name = key.replace("-", "_")
        if name in ABOUT:
            if name == "command" and value != command.name:
                raise click.BadParameter(f"{path} is for `daskspectral {value}`, not for `{command.name}`")
            continue
        if name not in known:
            hint = nearest(name, known).replace("_", "-")
            raise click.BadParameter(f"{path} has the key {key}, which is no option of `{command.name}`{hint}")
        if name == "trust":
            raise click.BadParameter(f"{path} has the key {key}: --{key} is given on the command line alone")
        if value is not None:
            found[str(known[name].name)] = _as_typed(value, known[name], f"{key} of {path}")
    return found


def keeping(settings: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Save the settings as an attribute of every zarr store that is written inside."""
    import yaml

    from daskspectral.data.remote import using

    return using(attributes={ATTRIBUTE: yaml.safe_dump(dict(settings), sort_keys=False)})


def parsed(text: str, path: str) -> dict[str, Any]:
    """Return the settings in YAML by their keys; raise ValueError, which names the path, for other text."""
    import yaml

    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ValueError("settings have no references")  # of which a few lines may make any number of values
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError also for a date that is none
        raise ValueError(f"{path} is no YAML of settings: {' '.join(str(error).split())}") from None
    if not isinstance(found, Mapping):
        raise ValueError(f"{path} holds no options: lines such as `landmarks: 500` are wanted")
    return {str(key): value for key, value in found.items()}


def _loaded(path: str) -> dict[str, Any]:
    from daskspectral.data.stores import refuse_irregular

    try:
        refuse_irregular(path)
        with open(path, encoding="utf-8") as file:
            return parsed(file.read(), path)
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise click.BadParameter(f"{path} is no text") from None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _as_typed(value: Any, parameter: click.Parameter, what: str) -> Any:
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if isinstance(value, bool):
            return value
        raise click.BadParameter(f"{what} is true or false; got {value!r}")
    many = parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs != 1
    if isinstance(value, Mapping):
        value = [f"{key}{'=' if many else ':'}{item}" for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        texts = [str(item) for item in value]
        return texts if many else ",".join(texts)
    if isinstance(value, bool):
        raise click.BadParameter(f"{what} is {value}, and no flag: quote it, if the word is meant")
    return [str(value)] if many else str(value)
