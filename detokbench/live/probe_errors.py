"""What may be said of an answer that is an error: one short line, printable, without a secret."""

from __future__ import annotations

import re

from detokbench.live.json_text import NotJsonError, read_json
from detokbench.live.openai_stream import error_message
from detokbench.live.probe_fetch import Raw
from detokbench.live.probe_secrets import HIDDEN, blotted

MOST_BODY = 120
"""Characters of a body that is no JSON."""
MOST_NOTE = 200
_TAG = re.compile(r"<[^<>]*>")
_HEADER = re.compile(r"(authorization|bearer).*", re.IGNORECASE | re.DOTALL)


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """The text without the secrets, in any notation, and without what follows a header's name.

    To be called before the text is cut: a part of a key would not be found.
    """
    return _HEADER.sub(HIDDEN, blotted(text, secrets))


def one_line(text: str, most: int) -> str:
    """One line of at most so many characters; those that cannot be seen are escaped."""
    joined = " ".join(text.split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined[: most + 1])
    return line if len(line) <= most else f"{line[: most - 1]}…"


def http_error(raw: Raw, secrets: tuple[str, ...]) -> str:
    """The status and what the body says; a 404 names what was asked for."""
    where = f" at {raw.path}" if raw.status == 404 and raw.path else ""
    is_chat = raw.path.endswith("/chat/completions")
    hint = "; has the model a chat template?" if raw.status == 500 and is_chat else ""
    body = raw.reads[0][1] if raw.reads else b""
    return f"{raw.status}{where}: {_said(body, raw.content_type, secrets)}{hint}"


def _said(body: bytes, content_type: str, secrets: tuple[str, ...]) -> str:
    try:
        return one_line(masked(error_message(read_json(body)), secrets), MOST_NOTE)
    except NotJsonError:
        text = body.decode("utf-8", "replace")
    if content_type == "text/html":
        text = _TAG.sub("\n", text)
    what = one_line(f"{content_type or 'no content type'}, {len(body):,} bytes", MOST_BODY)
    first = next((line for line in text.splitlines() if line.strip()), "")
    line = one_line(masked(first, secrets), MOST_BODY)
    return f"{line} ({what})" if line else what
