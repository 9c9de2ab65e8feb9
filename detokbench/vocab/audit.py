"""What can be known about a tokenizer without a model, gathered."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from detokbench.vocab.audit_added import AddedTokens, added_tokens
from detokbench.vocab.audit_encoding import (
    ChatEncoding,
    SpecialTokensAdded,
    chat_encoding,
    renders_chats_itself,
    special_tokens_added,
)
from detokbench.vocab.audit_ids import IdFacts, id_facts
from detokbench.vocab.audit_modes import CleanUp, SlowMode, clean_up, slow_mode
from detokbench.vocab.audit_properties import PropertyCost, property_costs
from detokbench.vocab.audit_space import LeadingSpace, leading_space
from detokbench.vocab.audit_stops import StopList, stop_list
from detokbench.vocab.audit_structure import (
    EngineChoice,
    Structure,
    engine_choices,
    structure,
)
from detokbench.vocab.registry import known_vocabularies
from detokbench.vocab.vocabulary import Vocabulary


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """All facts about one tokenizer. Only ``properties`` are timed; the rest is exact."""

    vocabulary: dict[str, str | int]
    packages: dict[str, str]
    structure: Structure
    engines: list[EngineChoice]
    leading_space: LeadingSpace
    ids: IdFacts
    added: AddedTokens
    special_tokens_added: SpecialTokensAdded
    chat: ChatEncoding | None
    """None where there is no chat template."""
    renders_chats_itself: bool
    """Whether the tokenizer turns chats into ids in code of its own."""
    is_shipped: bool
    """Made here from a package's ranks: no chat template and no rule for BOS come with those."""
    clean_up: CleanUp
    slow_mode: SlowMode
    properties: list[PropertyCost]
    stops: StopList | None
    """None where no stop string was given."""


def audit(
    vocabulary: Vocabulary,
    name: str,
    stops: Sequence[str] = (),
    trust_remote_code: bool = False,
) -> Audit:
    """Look at ``vocabulary``, which was loaded by ``name``. Takes seconds and stores nothing.

    ``stops`` are stop strings, none of them empty.
    """
    from importlib.metadata import version

    added = special_tokens_added(vocabulary)
    return Audit(
        vocabulary=vocabulary.facts,
        packages={package: version(package) for package in ("tokenizers", "transformers")},
        structure=structure(vocabulary),
        engines=engine_choices(vocabulary),
        leading_space=leading_space(vocabulary),
        ids=id_facts(vocabulary),
        added=added_tokens(vocabulary),
        special_tokens_added=added,
        chat=chat_encoding(vocabulary, added),
        renders_chats_itself=renders_chats_itself(vocabulary),
        is_shipped=name in {known.name for known in known_vocabularies()},
        clean_up=clean_up(vocabulary),
        slow_mode=slow_mode(vocabulary, name, trust_remote_code),
        properties=property_costs(vocabulary),
        stops=stop_list(vocabulary, list(dict.fromkeys(stops))) if stops else None,
    )
