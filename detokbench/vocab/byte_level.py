"""The byte alphabet of byte-level BPE (GPT-2): each byte has one printable character.

Printable bytes stand for themselves; the other 68 are moved up to U+0100 and after, in order.
"""

from functools import cache


@cache
def byte_to_char() -> dict[int, str]:
    """All 256 bytes with the character that stands for each in the vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in set(printable)]
    table = {byte: chr(byte) for byte in printable}
    table.update({byte: chr(0x100 + index) for index, byte in enumerate(moved)})
    return table


@cache
def char_to_byte() -> dict[str, int]:
    """The inverse of ``byte_to_char``."""
    return {char: byte for byte, char in byte_to_char().items()}


def bytes_to_piece(piece: bytes) -> str:
    """How a byte-level vocabulary spells ``piece``."""
    table = byte_to_char()
    return "".join(table[byte] for byte in piece)


def piece_to_bytes(piece: str) -> bytes:
    """The bytes behind a piece; a piece with a character outside the alphabet is plain text.

    That exception is what the ByteLevel decoder of the tokenizers crate does for added tokens.
    """
    table = char_to_byte()
    try:
        return bytes([table[char] for char in piece])
    except KeyError:
        return piece.encode()
