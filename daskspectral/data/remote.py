"""Object stores: the options in force, no credential in them or in a URL, and a sentence for each thing that fails."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from daskspectral.errors import nearest, redacted

Location = str | os.PathLike[str]
F = TypeVar("F", bound=Callable[..., Any])

_HARMLESS = frozenset(
    {
        *("endpoint_url", "verify", "region_name", "api_version", "profile", "project", "access", "account_name"),
        *("account_host", "container_name", "location", "location_mode", "default_location", "host", "port"),
        *("block_size", "blocksize", "default_block_size", "default_cache_type", "cache_type", "cache_options"),
        *("maxblocks", "cache_timeout", "cache_storage", "cache_check", "expiry_time", "listings_expiry_time"),
        *("max_paths", "batch_size", "max_concurrency", "max_pool_connections", "consistency", "timeout"),
        *("socket_timeout", "requests_timeout", "connect_timeout", "connection_timeout", "read_timeout", "retries"),
        *("max_attempts", "total_max_attempts", "mode", "defaults_mode", "signature_version", "addressing_style"),
        *("us_east_1_regional_endpoint", "request_checksum_calculation", "response_checksum_validation"),
        *("client_kwargs", "config_kwargs", "s3_additional_kwargs", "target_options", "target_protocol", "proxies"),
        *("http", "https", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "file"),
        *("ServerSideEncryption", "SSEKMSKeyId", "ACL", "StorageClass", "ChecksumAlgorithm", "ExpectedBucketOwner"),
        *("RequestPayer", "requester_pays", "ContentType", "CacheControl", "user_agent", "user_agent_extra"),
        *("tenant_id", "max_blocks", "nblocks"),
    }
)
"""Names of options, at any depth, whose texts and numbers are no credentials; true, false and null are none under other
plain names."""
_FINDERS = ("anon", "google_default", "cache", "cloud", "browser")
"""Values of `token` that are ways in which gs finds one."""
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")

PROTOCOLS = (
    *("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "http", "https", "memory"),
    *("hdfs", "webhdfs", "sftp", "ssh", "ftp", "oss", "oci"),
)
"""Protocols of URLs that are opened: each names one store. Others, such as reference:// and what is chained by ::, lead
to places that a file names, local files and devices among them."""

_ENVIRONMENT = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, the path of a key file",
    "abfs": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_ENVIRONMENT |= {"s3a": _ENVIRONMENT["s3"], "gcs": _ENVIRONMENT["gs"]}
_ENVIRONMENT |= dict.fromkeys(("abfss", "az", "adl"), _ENVIRONMENT["abfs"])

_UNKNOWN_CALLER = {
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "TokenRefreshRequired"),
    *("InvalidClientTokenId", "RequestTimeTooSkewed", "InvalidSecurity", "AuthenticationFailed", "401"),
}
_FORBIDDEN = {"AccessDenied", "AllAccessDisabled", "AuthorizationFailure", "AuthorizationPermissionMismatch", "403"}
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound"}
_NO_CREDENTIALS = {
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),
    *("DefaultCredentialsError", "NoAuthTokenError", "TokenRetrievalError", "SSOTokenLoadError", "RefreshError"),
}
_UNREACHABLE = {
    *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "ProxyConnectionError", "SSLError"),
    *("ConnectionClosedError", "ClientConnectorError", "ClientConnectorDNSError", "ClientConnectorCertificateError"),
    *("ServiceRequestError", "FSTimeoutError", "gaierror", "ConnectionTimeoutError", "ServerTimeoutError"),
}

_in_force: ContextVar[tuple[Mapping[str, Any], bool]] = ContextVar("daskspectral_reading", default=({}, False))
"""The options with which URLs are opened, and whether missing chunks read as fill values."""


def is_url(location: Any) -> bool:
    """Whether this is a URL of something that is no file of this machine."""
    if not isinstance(location, (str, os.PathLike)):
        return False
    text = os.fspath(location)
    return isinstance(text, str) and "://" in text and not text.startswith("file://")


def refuse_protocol(text: str) -> None:
    """Raise ValueError for a URL of a protocol that is not among PROTOCOLS, and for URLs chained by `::`."""
    scheme = text.partition("://")[0]
    if "::" in re.sub(r"\[[^][/]*\]", "", text):  # but for the address of a host
        raise ValueError(
            f"{text!a} chains URLs by '::', and one store is read, such as {scheme.rpartition('::')[2]}://...: copy "
            "what is archived or referred to into a store"
        )
    if scheme not in PROTOCOLS:
        raise ValueError(
            f"{scheme!a} is no protocol that is opened{nearest(scheme, PROTOCOLS)}; {', '.join(PROTOCOLS[:9])} and "
            "others are, which name one store. Copy what another one refers to into a store"
        )


def refuse_secrets(text: str, host_of: str | None = None) -> None:
    """Raise ValueError, which repeats nothing of it, for text with a URL that has a user part or a query.

    Text that is `host_of` something is a host, or the URL of one, and has no user part in its path either.
    """
    url = text if host_of is None or "://" in text else f"{host_of}://{text}"
    whole = re.sub(r"\s", "_", url)
    if redacted(whole) == whole and (host_of is None or not re.search("[@?#]", text)):
        return
    scheme = re.split(r"[^\w+.-]", url.partition(":/")[0])[-1]
    raise ValueError(
        f"the URL {scheme}://*** has a user part (before @) or a query (behind ?, # or ;), and would be shown, logged "
        "and saved with the credentials there: leave it out, and give them in the environment "
        f"alone{_variables(scheme)}"
    )


def checked_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of an object store, copied. Raises TypeError for other than plain data, ValueError for a credential."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(
            f"storage_options is a mapping such as {{'anon': True}}, as fsspec takes it; it is {type(options).__name__}"
        )
    return {name: _checked(name, value) for name, value in options.items()}


def _checked(name: Any, value: Any) -> Any:
    if not isinstance(name, str):
        raise TypeError(f"storage_options has names that are text; one of them is {type(name).__name__}")
    plain = name in _HARMLESS or _PLAIN_NAME.fullmatch(name)
    shown = name if plain else "a name that is not shown"  # it may be a credential
    if not (value is None or isinstance(value, (Mapping, list, tuple, str, int, float))):
        raise TypeError(f"storage_options holds plain data; {shown} is {type(value).__name__}")
    if name == "asynchronous" and value:
        raise ValueError("storage_options has asynchronous, which is set as each call needs it: leave it out")
    if (plain and (value is None or isinstance(value, bool))) or (name == "token" and value in _FINDERS):
        return value
    if name not in _HARMLESS:
        raise ValueError(
            f"storage_options has {shown}{nearest(name, _HARMLESS) if plain else ''}, which is not among the options "
            f"known to be harmless. Credentials are taken from the environment alone (for s3 {_ENVIRONMENT['s3']}; for "
            f"gs {_ENVIRONMENT['gs']}; for abfs {_ENVIRONMENT['abfs']}), so that no model, log or message can hold them"
        )
    if isinstance(value, Mapping):
        return {key: _checked(key, inside) for key, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [_checked(name, inside) for inside in value]
    if isinstance(value, str):
        if name == "endpoint_url" and "://" not in value:
            raise ValueError("storage_options has an endpoint_url that is no URL such as https://s3.example.org")
        refuse_secrets(value, host_of=name)  # a proxy may be a host alone
    return value


@contextmanager
def using(options: Mapping[str, Any] | None, allow_missing: bool | None = None) -> Iterator[None]:
    """URLs inside are opened with these options of fsspec, and arrays as `allow_missing` says; None: as before.

    Where that is true, whatever is opened meanwhile reads as fill values where chunks are missing. Raises TypeError or
    ValueError, as `checked_options` does, for options that cannot be used.
    """
    known, filled = _in_force.get()
    known = known if options is None else checked_options(options)
    before = _in_force.set((known, filled if allow_missing is None else bool(allow_missing)))
    try:
        yield
    finally:
        _in_force.reset(before)


def stored(function: F) -> F:
    """Make a function open what it reads with its keywords `storage_options` and `allow_missing` (see `using`)."""

    @wraps(function)
    def opened(*arguments: Any, **keywords: Any) -> Any:
        with using(keywords.get("storage_options"), keywords.get("allow_missing")):
            return function(*arguments, **keywords)

    return cast(F, opened)


def fill_is_meant() -> bool:
    """Whether arrays that are opened here read as fill values where chunks are missing; it is an error elsewhere."""
    return _in_force.get()[1]


def options_in_force() -> dict[str, Any]:
    """The options with which URLs are opened here."""
    return dict(_in_force.get()[0])


def connect(url: Location) -> tuple[Any, str]:
    """The file system of a URL, with the options in force, and the path there.

    Raises ValueError for a credential in the URL, as `refuse_protocol` does, and for options that nobody knows, and
    ImportError where its library is not installed.
    """
    text = os.fspath(url)
    refuse_secrets(text)
    with opening(text):
        files, root = importlib.import_module("fsspec.core").url_to_fs(text, **options_in_force())
        files.invalidate_cache()
    return files, str(root).rstrip("/")


def kind_at(files: Any, path: str) -> str | None:
    """Whether there is a "file" or a "directory", None for neither. Raises the other errors of the object store."""
    try:
        return str(files.info(path)["type"])
    except FileNotFoundError as error:
        if lacks_bucket(error):
            raise
        return None


def lacks_bucket(error: BaseException) -> bool:
    """Whether an error says that a bucket is missing."""
    return any(code in _NO_BUCKET for cause in _causes(error) for code in _codes(cause))


def refuse_nothing(url: Location, files: Any, root: str) -> None:
    """Raise FileNotFoundError where there is neither a file nor a folder at a URL, and as `reaching` does."""
    with reaching(url, files=files):
        if kind_at(files, root) is None:
            raise FileNotFoundError(f"there is no file at {os.fspath(url)}")


def opened_file(url: Location) -> Any:
    """A file at a URL, open for reading. Raises as `connect`, `refuse_nothing` and `reaching` do."""
    files, root = connect(url)
    refuse_nothing(url, files, root)
    with reaching(url, files=files):
        return files.open(root, "rb")


def synchronous(files: Any) -> Any:
    """The file system that a zarr store works on, as one that can be called from a thread."""
    inner = getattr(files, "sync_fs", None)
    if inner is not None:
        return inner
    if not getattr(files, "asynchronous", False):
        return files
    return type(files)(*files.storage_args, **{**files.storage_options, "asynchronous": False})


@contextmanager
def opening(text: str) -> Iterator[None]:
    """Errors of fsspec inside say which library is missing. Raises ValueError as `refuse_protocol` does."""
    refuse_protocol(text)
    scheme = text.partition("://")[0]
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{scheme}:// needs a library that is not installed: pip install 'daskspectral[cloud]' ({error})"
        ) from error


@contextmanager
def reaching(location: Location, *, writing: bool = False, files: Any = None) -> Iterator[None]:
    """Errors of an object store inside are raised again as one sentence that says what is missing, and how to give it.

    Raises PermissionError without credentials or rights, FileNotFoundError for a missing bucket, ConnectionError where
    nothing answers, and ValueError for options that the store does not take. `files` is the file system in use.
    """
    if not is_url(location):
        yield
        return
    try:
        yield
    except Exception as error:  # of any kind: each store's packages have their own
        told = _told(os.fspath(location), error, writing, files)
        if told is None:
            raise
        raise told from error


def _told(url: str, error: Exception, writing: bool, files: Any) -> Exception | None:
    """The error to be raised in place of another one, None where there is nothing to say."""
    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    codes = {code for cause in causes for code in _codes(cause)}
    scheme, _, rest = url.partition("://")
    place = f"{scheme}://{rest.partition('/')[0]}"
    lacking = any(isinstance(cause, ValueError) and "account_name" in str(cause) for cause in causes)  # of adlfs
    if names & _NO_CREDENTIALS or lacking:
        return PermissionError(
            f"there are no credentials for {place}: give them in the environment{_variables(scheme)}; a public bucket "
            "is read with storage_options={'anon': True} (--storage-option anon=true in the shell)"
        )
    if codes & _NO_BUCKET:
        return FileNotFoundError(f"there is no bucket {place}: make it, or mend the URL {url}")
    if codes & _UNKNOWN_CALLER or codes & _FORBIDDEN or any(isinstance(cause, PermissionError) for cause in causes):
        if not codes & (_UNKNOWN_CALLER | {"AccessDenied"}):  # the answer to a HEAD request has no reason in it
            codes |= set(_listing_codes(url, files))
        known = sorted(codes & _UNKNOWN_CALLER) or sorted(codes & _FORBIDDEN - {"403"})
        reason = f" ({known[0]})" if known else ""
        if codes & _UNKNOWN_CALLER:
            return PermissionError(
                f"{place} does not accept the credentials in the environment{reason}: mend them{_variables(scheme)}, "
                "or the endpoint_url for which they are"
            )
        return PermissionError(
            f"{url} may not be {'written' if writing else 'read'} with the credentials in the environment{reason}: ask "
            "the owner of the bucket for the right to "
            + ("list, write and delete there" if writing else "list and read there, or mend the URL")
        )
    if names & _UNREACHABLE:
        reasons = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
        innermost = reasons[-1] if reasons else type(error).__name__
        return ConnectionError(
            f"{place} cannot be reached{_endpoint(causes)}: {innermost}. Look at the network, and at the "
            "endpoint_url in storage_options (--storage-option endpoint_url=... in the shell) or in the environment"
        )
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error)) if isinstance(error, TypeError) else None
    if unknown and unknown[1] in options_in_force():
        return ValueError(f"storage_options has {unknown[1]}, which {scheme}:// does not take")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _codes(error: BaseException) -> Iterator[str]:
    """The codes by which an object store says what is wrong, as boto, gcsfs and azure hand them on."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        yield str(response.get("Error", {}).get("Code", ""))
    for name in ("code", "status", "status_code", "error_code"):
        code = getattr(error, name, None)
        if isinstance(code, (int, str)):
            yield str(getattr(code, "value", code))


def _listing_codes(url: str, files: Any) -> Iterator[str]:
    """What the store says to a listing, which it answers in words."""
    try:
        other, root = connect(url)
        (other if files is None else synchronous(files)).ls(root, detail=False)
    except Exception as error:  # of any kind: what it says is looked through
        for cause in _causes(error):
            yield from _codes(cause)


def _variables(scheme: str) -> str:
    names = _ENVIRONMENT.get(scheme)
    return "" if names is None else f" ({names})"


def _endpoint(causes: Sequence[BaseException]) -> str:
    """The host and port that were asked, where an error tells."""
    for cause in causes:
        given = getattr(cause, "kwargs", None)
        url = given.get("endpoint_url") if isinstance(given, Mapping) else None
        if isinstance(url, str) and "://" in url:
            return f" at {'/'.join(redacted(url).split('/')[:3])}"
    return ""


def local_path(path: Location) -> Path | None:
    """Return the absolute path with symbolic links followed, or None for a URL that is not file://.

    Raises ValueError for a URL with a credential in it.
    """
    text = os.fspath(path)
    refuse_secrets(text)
    if is_url(text):
        return None
    return Path(os.path.realpath(text.removeprefix("file://")))
