"""The facts of an audit as rows: a name, what was found, and what follows for serving."""

from __future__ import annotations

from typing import NamedTuple

from detokbench.bench.stop_sets import printable
from detokbench.vocab.audit import Audit
from detokbench.vocab.audit_ids import IdSet

_SHOWN = 3


class Fact(NamedTuple):
    """One row. ``so_what`` is empty where nothing follows."""

    name: str
    found: str
    so_what: str = ""


def structure_facts(audit: Audit) -> list[Fact]:
    """What it is made of, and what the engines make of it."""
    made = audit.structure
    kind = "Rust inside" if made.is_rust else "Python"
    table = (
        Fact("byte-table", f"applies: {made.family}", "every id has bytes of its own")
        if made.family
        else Fact("byte-table", f"does not apply: {made.why_no_byte_table}")
    )
    return [
        Fact("class", f"{made.class_name}, {kind}; model {made.model}; is_fast {made.is_fast}"),
        Fact("decoder", made.decoder or "none"),
        Fact(
            "encode's parts",
            f"normaliser {made.normaliser or 'none'}; pre-tokenizer "
            f"{made.pre_tokenizer or 'none'}; post-processor {made.post_processor or 'none'}",
        )
        if made.is_rust
        else Fact("encode's parts", "its own code's"),
        table,
        *(Fact(e.engine, f"{e.path} ({e.why})", e.what) for e in audit.engines),
        _slow_mode(audit),
        _leading_space(audit),
        _clean_up(audit),
    ]


def id_facts(audit: Audit) -> list[Fact]:
    """What the ids stand for."""
    return [_not_text(audit), _genuine(audit), _shared(audit), _gaps(audit), _padding(audit)]


def token_facts(audit: Audit) -> list[Fact]:
    """Special and added tokens, and what encode does with them."""
    return [_special(audit), _added(audit), _add_special_tokens(audit), _chat(audit)]


def _slow_mode(audit: Audit) -> Fact:
    mode = audit.slow_mode
    so_what = "there is no slow mode to choose" if mode.ignored else ""
    return Fact("use_fast=False", mode.note, so_what)


def _leading_space(audit: Audit) -> Fact:
    space = audit.leading_space
    if space.marker is None:
        found = "no marker"
    else:
        seen = "seen" if space.seen_by_vllm else "not seen"
        found = f"'{space.marker}' by {space.where} ({seen} by vLLM)"
    if space.stripped_by:
        found += f"; each decode drops one space ({space.stripped_by})"
    if space.lost is None:
        return Fact("leading space", found, "" if space.stripped_by else "decode keeps every space")
    return Fact(
        "leading space",
        found,
        f"id {', '.join(map(str, space.lost.ids))} alone is '{space.lost.alone}', in context "
        f"'{space.lost.in_context}'",
    )


def _clean_up(audit: Audit) -> Fact:
    clean = audit.clean_up
    flag = "no such flag" if clean.flag is None else f"flag {clean.flag}"
    if clean.error:
        return Fact("clean-up", f"{flag}; {clean.error}")
    applied = "applied" if clean.applied else "not applied"
    if not clean.applied and not clean.applied_if_asked:
        applied += ", nor where asked for"
    if clean.by_decoder:
        applied += "; the decoder cleans up by itself"
    rewrites = clean.applied or clean.by_decoder
    so_what = f"'{clean.sample}' decodes to '{clean.decoded}'" if rewrites else "text stays as sent"
    version = audit.packages["transformers"]
    return Fact("clean-up", f"{flag}, {applied} (transformers {version})", so_what)


def _not_text(audit: Audit) -> Fact:
    ids = audit.ids
    how = "" if ids.from_bytes else " (decoded alone; genuine U+FFFD counted too)"
    so_what = "text waits for the rest of a character" if ids.not_text.count else ""
    return Fact("not text alone", f"{_count(ids.not_text)}{how}", so_what)


def _genuine(audit: Audit) -> Fact:
    genuine = audit.ids.genuine
    if genuine is None:
        return Fact("U+FFFD of its own", "not known without a table of bytes")
    so_what = "held as if cut; fast and slow lose it at the end" if genuine.count else ""
    return Fact("U+FFFD of its own", _count(genuine, shown=8), so_what)


def _shared(audit: Audit) -> Fact:
    shared = audit.ids.shared
    if not shared.texts:
        return Fact("shared texts", "none", "a text tells its id")
    most = f"'{printable(shared.largest_text)}' by {shared.largest:,}"
    same = "" if shared.byte_strings is None else f"; as bytes too: {shared.byte_strings:,}"
    return Fact(
        "shared texts",
        f"{shared.texts:,} text{'' if shared.texts == 1 else 's'}, by {shared.ids:,} ids, "
        f"{most}{same}",
        "a text does not tell its id: key tables by id",
    )


def _gaps(audit: Audit) -> Fact:
    ids = audit.ids
    empty = f"; without text: {_count(ids.empty)}" if ids.empty.count else ""
    if not ids.gaps.count:
        return Fact("gaps", f"none up to the highest id, {ids.highest}{empty}")
    beyond = f"; len is {ids.length:,}, the highest id {ids.highest}"
    so_what = "len is no bound for ids" if ids.beyond_length.count else ""
    return Fact("gaps", f"{_count(ids.gaps)}{beyond}{empty}", so_what)


def _padding(audit: Audit) -> Fact:
    ids = audit.ids
    unknown = "the model's own is not known here"
    if not ids.padding_128:
        return Fact("padding", f"none at multiples of 64 or 128; {unknown}")
    found = f"{ids.padding_64} ids at a multiple of 64, {ids.padding_128} at one of 128; {unknown}"
    return Fact("padding", found, "such ids write nothing")


def _special(audit: Audit) -> Fact:
    added = audit.added
    if not added.unlisted.count:
        return Fact("special ids", f"{_count(added.special)}, all in all_special_ids")
    return Fact(
        "special ids",
        f"{_count(added.special)}; all_special_ids lacks {added.unlisted.count:,}",
        "filters by that list show those",
    )


def _added(audit: Audit) -> Fact:
    added = audit.added
    total = added.inside.count + added.below.count + added.above.count
    found = f"not special: {_count(added.not_special)}"
    if not total:
        return Fact("added tokens", found)
    return Fact(
        "added tokens",
        f"{found}; in the base vocabulary {added.inside.count:,}, below it "
        f"{added.below.count:,}, above it {added.above.count:,}",
    )


def _add_special_tokens(audit: Audit) -> Fact:
    added = audit.special_tokens_added
    if added.error:
        return Fact("add_special_tokens", f"could not be tried: {added.error}")
    if not added.makes_a_difference:
        bos = "" if added.bos_id is None else f", though BOS is id {added.bos_id}"
        so_what = "" if added.bos_id is None else f"a completion starts without it{_made(audit)}"
        return Fact("add_special_tokens", f"makes no difference{bos}", so_what)
    if not added.at_start and not added.at_end:
        return Fact("add_special_tokens", "changes the ids of the text itself")
    sides = [
        f"{list(ids)} {where}"
        for ids, where in ((added.at_start, "in front"), (added.at_end, "at the end"))
        if ids
    ]
    return Fact("add_special_tokens", f"honoured: {' and '.join(sides)}")


def _chat(audit: Audit) -> Fact:
    chat = audit.chat
    if chat is None:
        itself = "; mistral-common renders chats" if audit.renders_chats_itself else _made(audit)
        return Fact("chat template", f"none{itself}")
    if chat.error:
        return Fact("chat template", f"cannot be rendered here: {chat.error}")
    found = f"encoded {list(chat.first_ids)}…, with special tokens "
    found += f"{list(chat.first_ids_with_special)}…"
    if chat.doubled:
        return Fact("chat template", found, f"{list(chat.doubled)} twice: add them only once")
    return Fact("chat template", found, "no BOS is doubled")


def _made(audit: Audit) -> str:
    """The model's own files may differ from what is made of its ranks alone."""
    return " (made of ranks; the model's files may differ)" if audit.is_shipped else ""


def _count(ids: IdSet, shown: int = _SHOWN) -> str:
    if not ids.count:
        return "none"
    examples = ", ".join(map(str, ids.examples[:shown]))
    unit = "id" if ids.count == 1 else "ids"
    return f"{ids.count:,} {unit} ({examples}{', …' if ids.count > shown else ''})"
