"""What an audit means for whoever serves with the tokenizer: five sentences at most."""

from __future__ import annotations

from detokbench.bench.stop_sets import printable
from detokbench.report.units import microseconds
from detokbench.vocab.audit import Audit
from detokbench.vocab.audit_stops import StopFacts

_MOST = 5
# A property that costs this much for each token is worth a sentence.
_DEAR_S = 10e-6


def read_audit(audit: Audit) -> list[str]:
    """The most serious findings first: wrong input, wrong text, missed stops, cost."""
    sentences = [
        _chat(audit),
        _beyond_length(audit),
        _clean_up(audit),
        *_stops(audit),
        _python(audit),
        _byte_table(audit),
        _unlisted(audit),
        _genuine(audit),
        _lost_space(audit),
        _not_text(audit),
        _dear_property(audit),
    ]
    return [sentence for sentence in sentences if sentence][:_MOST]


def _chat(audit: Audit) -> str | None:
    chat = audit.chat
    if chat is None or not chat.doubled:
        return None
    return (
        f"A rendered chat already begins with {_ids(chat.doubled)}: encode it with "
        "add_special_tokens=False, or the model sees that twice."
    )


def _beyond_length(audit: Audit) -> str | None:
    beyond = audit.ids.beyond_length
    if not beyond.count:
        return None
    lies = "1 id lies" if beyond.count == 1 else f"{beyond.count:,} ids lie"
    slow = "" if audit.structure.is_rust else "vLLM's slow path writes nothing there, and "
    return (
        f"{lies} at or above len(tokenizer), such as {beyond.examples[0]}: {slow}"
        "SGLang reads id 0 in place of it."
    )


def _clean_up(audit: Audit) -> str | None:
    if not audit.clean_up.applied:
        return None
    return (
        "decode takes spaces out before punctuation, and no engine does while it streams (SGLang "
        "loads with the flag off): their text differs from decode's."
    )


def _stops(audit: Audit) -> list[str]:
    if audit.stops is None:
        return []
    never = [stop for stop in audit.stops.stops if stop.match == "no"]
    hidden = [stop for stop in audit.stops.stops if stop.match == "if spelt"]
    missed = [s for s in audit.stops.stops if s.longest_fits is False and not s.special]
    changed = [s for s in audit.stops.stops if s.match == "unknown" and not s.special]
    sentences = [f"{_name(stop)} cannot match: {stop.why}." for stop in never]
    if changed:
        sentences.append(f"{_names(changed)}: encode changes the text, so it may never match.")
    if hidden:
        sentences.append(
            f"{_names(hidden)}: vLLM never sees the special token itself while special tokens are "
            "skipped; give its id as a stop token."
        )
    if missed:
        one = missed[0]
        assert one.longest is not None
        sentences.append(
            f"{_names(missed)}: SGLang misses a spelling longer than its window, at one id a "
            f"step; {_name(one)} can take {one.longest.tokens} ids, "
            f"the window is {one.window_tokens}."
        )
    return sentences


def _python(audit: Audit) -> str | None:
    if audit.structure.is_rust:
        return None
    return (
        "It is a Python tokenizer: vLLM takes its slow path, and SGLang decodes row by row and "
        "filters special ids itself."
    )


def _byte_table(audit: Audit) -> str | None:
    if audit.structure.why_no_byte_table is None:
        return None
    return f"byte-table does not apply: {audit.structure.why_no_byte_table}."


def _unlisted(audit: Audit) -> str | None:
    unlisted, special = audit.added.unlisted, audit.added.special
    if not unlisted.count:
        return None
    return (
        f"{unlisted.count:,} of {special.count:,} special ids are not in all_special_ids: Rust's "
        "decode skips them, code that filters by that list shows them."
    )


def _genuine(audit: Audit) -> str | None:
    genuine = audit.ids.genuine
    if genuine is None or not genuine.count:
        return None
    ids = "1 id ends" if genuine.count == 1 else f"{genuine.count} ids end"
    return (
        f"{ids} in a U+FFFD of {'its' if genuine.count == 1 else 'their'} own: at the end of an "
        "output, fast and slow never send it."
    )


def _lost_space(audit: Audit) -> str | None:
    space = audit.leading_space
    if space.lost is None:
        return None
    restores = "vLLM restores it" if space.seen_by_vllm else "vLLM does not restore it"
    return (
        f"An id decoded alone loses its leading space, in log-probability tables too: {restores}."
    )


def _not_text(audit: Audit) -> str | None:
    ids = audit.ids
    if not ids.not_text.count:
        return None
    are = "1 id is" if ids.not_text.count == 1 else f"{ids.not_text.count:,} ids are"
    return f"{are} no text alone: never decode id by id, and key tables by id, not by text."


def _dear_property(audit: Audit) -> str | None:
    dear = max(audit.properties, key=lambda cost: cost.uncached_s)
    if dear.uncached_s < _DEAR_S:
        return None
    cached = "vLLM's proxy caches it" if dear.is_cached else "vLLM's proxy does not cache it"
    return (
        f"{dear.name} takes {microseconds(dear.uncached_s)} µs each time it is asked (measured); "
        f"{cached}."
    )


def _names(stops: list[StopFacts]) -> str:
    return ", ".join(map(_name, stops))


def _name(stop: StopFacts) -> str:
    return f"'{printable(stop.text)}'"


def _ids(ids: tuple[int, ...]) -> str:
    return f"id{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
