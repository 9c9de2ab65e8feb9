"""What may be printed of a text that can still change at its end."""

# CJK ideographs: the unified block, extensions A to E, and both compatibility blocks.
_CJK_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def is_cjk(character: str) -> bool:
    """Whether ``character`` is an ideograph that needs no space after it (kana and Hangul do)."""
    point = ord(character)
    return any(first <= point <= last for first, last in _CJK_RANGES)


def printable_prefix(text: str) -> str:
    """The part of ``text`` that SGLang sends while the end of it is incomplete.

    All of it after a newline or an ideograph; all but the last character when an ideograph is
    next to last; otherwise up to the last space (sglang/utils.py, ``find_printable_text``, which
    credits transformers' TextStreamer).
    """
    if text.endswith("\n"):
        return text
    if text and is_cjk(text[-1]):
        return text
    if len(text) > 1 and is_cjk(text[-2]):
        return text[:-1]
    return text[: text.rfind(" ") + 1]
