"""What is refused of a request's stops, and what is warned about: pure functions over strings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from detokbench.errors import usage_error


def refuse_empty_stop(stop: str, where: str = "stop") -> None:
    """Raise a usage error for an empty string; ``where`` names the option or key it came from."""
    if not stop:
        raise usage_error(f"{where}: an empty stop string stops at once; give it some text")


def refuse_stops_without_text(
    strings: Sequence[str], regexes: Sequence[str], detokenize: bool
) -> None:
    """Raise a usage error for stops over text where there is none.

    vLLM refuses stop strings with ``detokenize=False`` (``SamplingParams._verify_args``), SGLang
    with ``skip_tokenizer_init`` (``raise_if_tokenizer_required``).
    """
    if not detokenize and (strings or regexes):
        raise usage_error(
            f"stop {_quoted((*strings, *regexes)[0])} needs text, and this request is not "
            "detokenised; stop on token ids"
        )


def stop_warnings(
    strings: Sequence[str], special_texts: Collection[str], skip_special_tokens: bool
) -> list[str]:
    """One line for each stop string that text as it comes will not contain.

    ``special_texts`` are the texts of the vocabulary's special tokens. A stop with one of them in
    it can match only where ordinary tokens happen to spell it out; SGLang's scheduler, which does
    not skip special tokens, finds it all the same, and then cannot trim it.
    """
    warnings = []
    for stop in strings:
        special = _special_in(stop, special_texts) if skip_special_tokens else None
        if special is not None:
            warnings.append(
                f"stop {_quoted(stop)} {'is' if stop == special else 'contains'} the special token "
                f"{_quoted(special)}: it cannot match where that token is skipped; stop on its id"
            )
        if "\ufffd" in stop:
            warnings.append(
                f"stop {_quoted(stop)} contains U+FFFD: text has it only where bytes are broken, "
                "and windowed paths hold it back"
            )
    return warnings


def _special_in(stop: str, special_texts: Collection[str]) -> str | None:
    """The longest special text inside ``stop``."""
    inside = [special for special in special_texts if special and special in stop]
    return max(inside, key=lambda special: (len(special), special), default=None)


def _quoted(text: str) -> str:
    """A stop on one line, whatever is in it."""
    return repr(text)
