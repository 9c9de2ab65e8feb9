"""What must be in no record and on no screen, and how it is kept out of what a server says."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from detokbench.live.probe_url import Server
from detokbench.records.probe import ProbeDetails

HIDDEN = "***"
_KNOWN = re.compile(r"v\d+|api|openai|chat|completions", re.IGNORECASE)
"""Parts of a path that tell nothing."""
_FEW = 8
"""Characters; a secret with fewer is hidden as a word only: it may be a part of ordinary ones."""


def in_base64(text: str) -> str:
    """As basic authorisation sends it."""
    return b64encode(text.encode()).decode()


def secrets_of(server: Server, key: str | None) -> tuple[str, ...]:
    """The key, and all that the address has beside its origin, whole and in parts."""
    parts = urlsplit(server.completions)
    path = [part for part in parts.path.split("/") if not _KNOWN.fullmatch(part)]
    values = [value or name for name, value in parse_qsl(parts.query, keep_blank_values=True)]
    found = [key or "", *path, *map(unquote, path), parts.query, *values]
    if server.user is not None:
        user, _, password = server.user.partition(":")
        coded = in_base64(server.user)
        found += [server.user, user, password, coded, coded.rstrip("=")]
    return tuple(dict.fromkeys(filter(None, found)))


def blotted(text: str, secrets: Sequence[str]) -> str:
    """The text without the secrets, in any notation.

    To be called before a text is cut: a part of a key would not be found.
    """
    forms = {
        form
        for secret in secrets
        for form in (secret, quote(secret, safe=""), html.escape(secret), json.dumps(secret)[1:-1])
    }
    for form in sorted(forms, key=len, reverse=True):
        if form not in text:
            continue
        if len(form) >= _FEW:
            text = text.replace(form, HIDDEN)
        else:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])", HIDDEN, text)
    return text


def blot_details(details: ProbeDetails, secrets: Sequence[str]) -> None:
    """Blot what a server said out of all of a record's details.

    It has been done where texts were cut; this is for what was not thought of there.
    """
    for count in details.outcomes:
        count.note = blotted(count.note, secrets)
    for facts in details.requests:
        facts.note = blotted(facts.note, secrets)
        facts.finish_reason = facts.finish_reason and blotted(facts.finish_reason, secrets)
    for entry in details.comparisons:
        entry.note = blotted(entry.note, secrets)
        entry.streamed = blotted(entry.streamed, secrets)
        entry.whole = blotted(entry.whole, secrets)
    if details.hold_back is not None:
        details.hold_back.note = blotted(details.hold_back.note, secrets)
    if details.ids is not None:
        details.ids.expected = blotted(details.ids.expected, secrets)
        details.ids.got = blotted(details.ids.got, secrets)
