"""The text of single tokens, as tables of log-probabilities show it.

A token is shown as what it adds to the text it stands in. The id that completes a character has
the whole of it, the ids before it have ""; broken bytes are shown as U+FFFD with the id that shows
that they are broken. So the texts of sampled ids, joined, are the text of the stream, up to a
character that is still open. Alternatives at a position are rendered after the ids that were
sampled before it, each for itself: never after one another.

vLLM 0.33 (``LogprobsProcessor``, v1/engine/logprobs.py, and ``convert_ids_list_to_tokens``,
tokenizers/detokenizer_utils.py) decodes each id alone, puts leading spaces back by its raw piece,
and renders again what then ends in U+FFFD, after up to four sampled ids. Where this differs:

- broken bytes have no text there: an id that ends in U+FFFD is given "", so that joined texts lose
  them, and lose a genuine U+FFFD at a token's end too;
- an id that brings the rest of a character and then whole ones keeps the U+FFFD that its bytes
  have alone, since only an end in U+FFFD is looked at;
- an id that completes a character and opens the next has "", and the first of the two is lost;
- leading spaces come back only where the tokenizer names a Metaspace pre-tokenizer; conversions of
  SentencePiece that have a normalizer in its place lose them;
- negative ids and those beyond 32 bits raise OverflowError, and beside a Metaspace pre-tokenizer
  those beyond the vocabulary raise TypeError.

Both keep the first space of a text: here where no context is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from detokbench.vocab.reference import ReferenceStream, piece_of
from detokbench.vocab.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class TokenText:
    """One id: its bytes, None for what is no id, and what it adds to the text.

    ``list(data)`` is what OpenAI's API calls ``bytes``; those of all ids, joined, are the text's.
    """

    token_id: object
    data: bytes | None
    text: str


class TokenTextStream:
    """The ids of one text, as they are sampled, and what might have been in their place."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        context: Sequence[object] | None = None,
        skip_special_tokens: bool = False,
    ) -> None:
        """``context`` are the ids before the first: the prompt, none at all at a true start.

        With None the place is somewhere inside a text, on a whole character, so that a leading
        space stays. A skipped special token has the text "". Raises UnsupportedFamilyError where
        the vocabulary has no bytes to its ids.
        """
        table = vocabulary.id_bytes
        if context is None:
            table = replace(table, strips_leading_space=False)
        self._table = table
        self._text = ReferenceStream(table, context or (), skip_special_tokens)

    def step(self, token_id: object) -> TokenText:
        """The id that was sampled next."""
        return TokenText(token_id, piece_of(self._table, token_id), self._text.step([token_id]))

    def alternatives(self, ids: Sequence[object]) -> list[TokenText]:
        """Ids that might be sampled next, each rendered after those that were sampled so far."""
        return [TokenText(i, piece_of(self._table, i), self._text.peek([i])) for i in ids]


def token_texts(
    vocabulary: Vocabulary,
    ids: Sequence[object],
    context: Sequence[object] | None = None,
    skip_special_tokens: bool = False,
) -> list[TokenText]:
    """Each of ``ids``, in order, with its bytes and its text; what is no id has neither.

    ``context`` is as in ``TokenTextStream``.
    """
    stream = TokenTextStream(vocabulary, context, skip_special_tokens)
    return [stream.step(token_id) for token_id in ids]


def alternative_texts(
    vocabulary: Vocabulary,
    sampled_ids: Sequence[object],
    position: int,
    alternatives: Sequence[object],
    context: Sequence[object] | None = None,
    skip_special_tokens: bool = False,
) -> list[TokenText]:
    """The alternatives at ``position`` (from 0) of a sampled text, in their order.

    The sampled id itself may be among them, and has the text that ``token_texts`` gives it. Raises
    IndexError for a position beyond the one after the last.
    """
    if not 0 <= position <= len(sampled_ids):
        raise IndexError(f"position {position} of {len(sampled_ids)} sampled ids")
    stream = TokenTextStream(vocabulary, context, skip_special_tokens)
    for token_id in sampled_ids[:position]:
        stream.step(token_id)
    return stream.alternatives(alternatives)
