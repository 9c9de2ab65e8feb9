"""The address of a server: what is asked of it, and what of it may be stored."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from detokbench.errors import usage_error

Api = Literal["completions", "chat"]
API_PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class Server(NamedTuple):
    """Where to ask; only ``origin`` is ever stored or printed."""

    origin: str
    """Scheme, host and port."""
    completions: str
    models: str
    metrics: str
    user: str | None
    """``user:password`` of the address, if it had one."""


def parse_server(url: str, api: Api) -> Server:
    """``http://host:port``, with or without ``/v1`` or the rest of the path behind it.

    Raises DetokbenchError, exit code 2, without the address in its message: a password may be in
    it.
    """
    given = url if _SCHEME.match(url) else f"http://{url}"
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError as error:
        raise usage_error("URL: not an address such as http://localhost:8000") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise usage_error("URL: give http:// or https://, a host and a port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    origin = f"{parts.scheme}://{host}" + ("" if port is None else f":{port}")
    path = parts.path.rstrip("/")
    for ending in ("/chat/completions", "/completions"):
        path = path.removesuffix(ending)
    base = path if re.search(r"/v\d+$", path) else f"{path}/v1"
    root = re.sub(r"/v\d+$", "", path)
    return Server(
        origin=origin,
        completions=_joined(parts, base + API_PATHS[api]),
        models=_joined(parts, f"{base}/models"),
        metrics=_joined(parts, f"{root}/metrics"),
        user=None
        if parts.username is None
        else f"{unquote(parts.username)}:{unquote(parts.password or '')}",
    )


def interface_path(url: str) -> str:
    """``/v1/completions`` of the address asked; what stands in front of it may be a secret: …"""
    path = urlsplit(url).path
    found = re.search(r"/v\d+(/chat)?/completions$", path)
    if found is None:
        return ""
    return found[0] if found.start() == 0 else f"…{found[0]}"


def _joined(parts: SplitResult, path: str) -> str:
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, path, parts.query, ""))


def command_without_url(arguments: list[str], url: str, server: Server) -> list[str]:
    """A command line with the address cut to its origin: its path may be a secret too."""
    return [server.origin if argument == url else argument for argument in arguments]
