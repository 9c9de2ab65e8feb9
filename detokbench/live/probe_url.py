"""The address of a server: what is asked of it, and what of it may be stored."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from detokbench.errors import usage_error

Api = Literal["completions", "chat"]
API_PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}
_MOST_HOST = 253
_HOST = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
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
    if not _is_host(parts.hostname) or not _is_text(given):
        raise usage_error("URL: the host is no name or number of one, such as localhost")
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


def _is_host(host: str) -> bool:
    """Whether a name can be looked up: no empty label, none over 63 letters, 253 in all."""
    if ":" in host:
        return _is_ipv6(host)
    try:
        name = host.removesuffix(".").encode("idna").decode()
    except UnicodeError:
        return False
    return len(name) <= _MOST_HOST and _HOST.fullmatch(name) is not None


def _is_ipv6(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_text(url: str) -> bool:
    """Whether the shell's bytes were UTF-8; others reach us as lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in url)


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
