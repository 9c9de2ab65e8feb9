"""Special and added tokens: how many, where they lie, and who takes which for special."""

from __future__ import annotations

import msgspec

from detokbench.vocab.audit_ids import IdSet, id_set
from detokbench.vocab.vocabulary import Vocabulary


class AddedTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a text is split at before anything else."""

    special: IdSet
    """Left out of the text where special tokens are skipped."""
    not_special: IdSet
    """Added tokens that are always shown."""
    inside: IdSet
    """Added tokens that the model's own vocabulary has too."""
    below: IdSet
    above: IdSet
    """Added tokens that only these are, below the model's lowest id and above its highest."""
    unlisted: IdSet
    """Special ids that ``all_special_ids`` lacks: code that filters by it shows them."""


def added_tokens(vocabulary: Vocabulary) -> AddedTokens:
    """What the tokenizer says of its added tokens; a Python one has no base to compare with."""
    listed = set(vocabulary.tokenizer.all_special_ids)
    rust = vocabulary.rust
    if rust is None:
        added = set(vocabulary.tokenizer.get_added_vocab().values())
        special, base = listed, set[int]()
    else:
        decoder = rust.get_added_tokens_decoder()
        added = set(decoder)
        special = {i for i, token in decoder.items() if token.special}
        base = set(rust.get_vocab(with_added_tokens=False).values())
    outside = sorted(added - base) if base else []
    lowest, highest = min(base, default=0), max(base, default=0)
    return AddedTokens(
        special=id_set(sorted(special)),
        not_special=id_set(sorted(added - special)),
        inside=id_set(sorted(added & base)),
        below=id_set(i for i in outside if i < lowest),
        above=id_set(i for i in outside if i > highest),
        unlisted=id_set(sorted(special - listed)),
    )
