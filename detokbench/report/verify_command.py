"""A command line on a screen, so that it can be copied from there."""

from __future__ import annotations

import shlex
import string

_SAFE_ASCII = frozenset(string.printable) - frozenset(string.whitespace) | {" "}


def command_lines(command: str, width: int, indent: int) -> str:
    """A command line broken as shells take it where it is too long.

    An argument wider than the screen goes on in the first column of the next line.
    """
    from rich.cells import cell_len, chop_cells

    room = width - len(" \\")
    lines = [" " * indent + "$"]
    for argument in _arguments(command):
        if cell_len(lines[-1]) + 1 + cell_len(argument) <= room:
            lines[-1] += f" {argument}"
            continue
        lines[-1] += " \\"
        start = " " * (indent + 2)
        if len(start) + cell_len(argument) > room:
            *broken, rest = chop_cells(argument, room)
            lines += [*(f"{part}\\" for part in broken), rest]
        else:
            lines.append(start + argument)
    return "\n".join(lines)


def _arguments(command: str) -> list[str]:
    try:
        return [shell_word(argument) for argument in shlex.split(command)]
    except ValueError:  # no command line that this module knows
        return [shell_word(command)]


def shell_word(argument: str) -> str:
    """An argument quoted for bash and zsh, with nothing in it that cannot be seen."""
    if all(character.isprintable() for character in argument):
        return shlex.quote(argument)
    return f"$'{''.join(map(_escaped, argument))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character in _SAFE_ASCII or (character.isprintable() and not character.isascii()):
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
