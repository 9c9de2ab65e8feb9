"""What the tokenizers crate's DecodeStream does, in Python, with its state in the open.

After tokenizers 0.23 (tokenizers/src/tokenizer/mod.rs, ``step_decode_stream``). Its texts come
from the real ``Tokenizer.decode``; its state is what the real one hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

INVALID_PREFIX = "Invalid prefix encountered"


class DecodeStreamWindow:
    """A stream's ids, the text of those already emitted, and where the next cut will be.

    ``ids`` are those that the next step decodes, before its own. ``prefix`` is the text of the
    first ``prefix_index`` of them, which is taken off what a step decodes.
    """

    def __init__(
        self, rust: Tokenizer, ids: Sequence[int] | None, skip_special_tokens: bool
    ) -> None:
        self.ids = list(ids or [])
        self.prefix = ""
        self.prefix_index = 0
        self.ids_handed = 0
        """Ids in all decodes of the last step, those that it decoded more than once included."""
        self._rust = rust
        self._skip = skip_special_tokens

    def step(self, token_id: int) -> str | None:
        """The text that this id completes, or None.

        Raises what DecodeStream raises: TypeError for what is no id of 32 bits, and Exception
        ('Invalid prefix encountered …') where a decode takes back text of the one before it.
        """
        self._refuse(token_id)
        self.ids_handed = 0
        if not self.prefix and self.ids:
            prefix = self._decode()
            if not prefix.endswith("\ufffd"):
                self.prefix, self.prefix_index = prefix, len(self.ids)
        self.ids.append(token_id)
        text = self._decode()
        if _size(text) <= _size(self.prefix) or text.endswith("\ufffd"):
            return None
        if not text.startswith(self.prefix):
            raise Exception(
                f"{INVALID_PREFIX} while decoding stream. Token ID: {int(token_id)}, "
                f"Expected prefix: '{self.prefix}', Actual string: '{text}'"
            )
        delta = text[len(self.prefix) :]
        kept = len(self.ids) - self.prefix_index
        self.ids = self.ids[self.prefix_index :]
        self.prefix, self.prefix_index = self._decode(), kept
        return delta

    @property
    def held(self) -> str:
        """The text of the ids that has not been emitted; it costs one decode.

        Until the first step the ids are a prompt whose text is nobody's yet.
        """
        if self.ids_handed == 0:
            return ""
        return self._rust.decode(self.ids, self._skip).removeprefix(self.prefix)

    def follow(self, token_id: int) -> DecodeStreamWindow:
        """Step as vLLM does; the stream that goes on, which is a new one after 'Invalid prefix'.

        Ids that are refused change nothing.
        """
        try:
            self.step(token_id)
        except (OverflowError, TypeError):
            return self
        except Exception as error:
            if not str(error).startswith(INVALID_PREFIX):
                raise
            fresh = DecodeStreamWindow(self._rust, None, self._skip)
            fresh.step(token_id)
            return fresh
        return self

    def _decode(self) -> str:
        self.ids_handed += len(self.ids)
        return self._rust.decode(self.ids, skip_special_tokens=self._skip)

    def _refuse(self, token_id: int) -> None:
        """What is no id is refused by the binding, before the stream sees it: ask the real one."""
        if type(token_id) is int and 0 <= token_id < 1 << 32:
            return
        from tokenizers.decoders import DecodeStream

        DecodeStream(skip_special_tokens=self._skip).step(self._rust, token_id)


def _size(text: str) -> int:
    """DecodeStream compares lengths in bytes of UTF-8, not in characters."""
    return len(text.encode())
