"""The settings of a command: read from a file or from a result, and kept beside every result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import click

from daskspectral import __version__
from daskspectral.errors import nearest

ATTRIBUTE = "daskspectral_settings"
PICTURE_ENDINGS = (".png", ".pdf", ".svg", ".html", ".htm")
ABOUT = ("command", "daskspectral")
"""Keys of kept settings that are no options: the command, and the version that resolved them."""
OF_THE_CALL = frozenset(
    {
        *("config", "json", "quiet", "log_file", "help", "progress", "overwrite", "picture", "only_plan"),
        *("scheduler", "connect_timeout", "threads", "checkpoint", "checkpoint_every", "checkpoint_device"),
    }
)
"""Parameters that change where a command runs, and what it shows, and not what comes out; they are not kept."""


def key_of(parameter: click.Parameter) -> str:
    """The name of an option or argument in a file of settings."""
    if isinstance(parameter, click.Argument):
        return str(parameter.name)
    return max(parameter.opts, key=len).lstrip("-")


def resolved(command: click.Command, context: click.Context, arguments: list[str]) -> dict[str, Any]:
    """All settings of a call, defaults too, as plain data that `read` takes; what is not given is left out."""
    raw, _, _ = command.make_parser(context).parse_args(args=list(arguments))
    found: dict[str, Any] = {}
    for parameter in command.params:
        name = str(parameter.name)
        if name in OF_THE_CALL or not parameter.expose_value:
            continue
        value = context.params.get(name)
        pair = isinstance(parameter, click.Option) and bool(parameter.secondary_opts)
        source = context.get_parameter_source(name)
        left_out = value is None and source is click.core.ParameterSource.DEFAULT  # a word, such as none, may mean None
        if left_out or value == () or (value is False and not pair):
            continue
        if not isinstance(value, (bool, int, float, str)) or isinstance(value, str):
            if source is click.core.ParameterSource.COMMANDLINE:
                value = raw.get(name, value)
            elif source is click.core.ParameterSource.DEFAULT_MAP:
                value = (context.default_map or {}).get(name)
            elif source is click.core.ParameterSource.DEFAULT:
                value = parameter.get_default(context)
        found[key_of(parameter)] = list(value) if isinstance(value, tuple) else value
    return {"command": command.name, "daskspectral": __version__, **found}


def read(path: str, command: click.Command) -> dict[str, Any]:
    """The settings in a YAML file, or of the result at a path, as defaults of the command's parameters.

    Raises click's BadParameter for a file that is none, and for a key that is no option of the command.
    """
    given = _loaded(path)
    if not isinstance(given, Mapping):
        raise click.BadParameter(f"{path} holds no options: lines such as `landmarks: 500` are wanted")
    known = {key_of(parameter).replace("-", "_"): parameter for parameter in command.params}
    known = {key: parameter for key, parameter in known.items() if parameter.name not in ("config", "help")}
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = str(key).replace("-", "_")
        if name in ABOUT:
            if name == "command" and value != command.name:
                raise click.BadParameter(f"{path} is for `daskspectral {value}`, not for `{command.name}`")
            continue
        if name not in known:
            hint = nearest(name, known).replace("_", "-")
            raise click.BadParameter(f"{path} has the key {key}, which is no option of `{command.name}`{hint}")
        if value is not None:
            parameter = known[name]
            found[str(parameter.name)] = _as_typed(value, parameter, f"{key} of {path}")
    return found


def keep(path: str, settings: Mapping[str, Any]) -> None:
    """Keep settings with the result at a path or URL: an attribute of a zarr store, a file beside a picture."""
    import yaml

    text = yaml.safe_dump(dict(settings), sort_keys=False)
    if path.lower().endswith(PICTURE_ENDINGS):
        from daskspectral.data.remote import connect, reaching

        files, root = connect(path)
        with reaching(path, writing=True, files=files):
            files.pipe_file(f"{root}.yaml", text.encode())
        return
    _opened(path, "r+").attrs[ATTRIBUTE] = text


def kept(path: str) -> str | None:
    """The settings with which the zarr store at a path or URL was made, as YAML; None where it has none.

    Raises FileNotFoundError where there is no zarr store, and as `daskspectral.data.remote.reaching`.
    """
    from daskspectral.data.remote import lacks_bucket

    try:
        found = _opened(path, "r").attrs.get(ATTRIBUTE)
    except (FileNotFoundError, KeyError, ValueError) as error:
        if lacks_bucket(error):
            raise
        raise FileNotFoundError(f"there is neither a YAML file nor a zarr store at {path}") from None
    return None if found is None else str(found)


def _opened(path: str, mode: Literal["r", "r+"]) -> Any:
    import zarr

    from daskspectral.data.remote import reaching, store_at
    from daskspectral.data.writer import local_path

    local = local_path(path)
    with reaching(path, writing=mode == "r+"):
        return zarr.open(store_at(path, read_only=mode == "r") if local is None else str(local), mode=mode)


def parsed(text: str) -> dict[str, Any]:
    """Kept settings as a mapping."""
    import yaml

    found: dict[str, Any] = yaml.safe_load(text)
    return found


def _loaded(path: str) -> Any:
    import yaml

    if path.lower().endswith((".yaml", ".yml")) or os.path.isfile(path):
        try:
            text = _text(path)
        except UnicodeDecodeError:
            raise click.BadParameter(f"{path} is no YAML: it is no text") from None
        except OSError as error:
            reason = f"{path} cannot be read: {error.strerror}" if error.strerror else str(error)
            raise click.BadParameter(reason) from None
    else:
        try:
            found = kept(path)
        except FileNotFoundError as error:
            raise click.BadParameter(str(error)) from None
        if found is None:
            raise click.BadParameter(f"{path} does not say with which options it was made")
        text = found
    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise click.BadParameter(f"{path} is no YAML: {' '.join(str(error).split())}") from None


def _text(path: str) -> str:
    if "://" in path:
        from daskspectral.data.remote import opened_file

        with opened_file(path) as remote:
            return str(remote.read(), "utf-8")
    with open(path, encoding="utf-8") as file:
        return file.read()


def _as_typed(value: Any, parameter: click.Parameter, what: str) -> Any:
    """A value as it would be typed in a shell."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if isinstance(value, bool):
            return value
        raise click.BadParameter(f"{what} is true or false; got {value!r}")
    many = parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs != 1
    if isinstance(value, Mapping):
        sign = "=" if many else ":"
        value = [f"{key}{sign}{item}" for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        texts = [str(item) for item in value]
        return texts if many else ",".join(texts)
    if isinstance(value, bool):
        raise click.BadParameter(f"{what} is {value}, and no flag: quote it, if the word is meant")
    return [str(value)] if many else str(value)
