"""The gate: before a path is timed it must give the right text.

Every path streams a text in each of twenty scripts, without a prompt, one id a step, and must
give what one decode of all ids gives. ``byte-table`` does it with three ids a step too; whether
the engines' paths survive several ids a step is for ``verify`` to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from detokbench.paths.protocol import DetokPath, PathClass
from detokbench.records.schema import GateResult, GateVerdict
from detokbench.vocab.vocabulary import Vocabulary
from detokbench.workload.texts import load_text, paragraphs, script_names

_SEVERAL_IDS = 3
_OURS = "byte-table"
_HEAD_CHARACTERS = 50
_AROUND_CHARACTERS = 10
_BMP_END = 0xFFFF


def gate_corpus(vocabulary: Vocabulary) -> dict[str, list[int]]:
    """Ids of each text of the gate that the vocabulary can express: one decode gives text back."""
    corpus = {name: vocabulary.encode(_excerpt(load_text(name))) for name in script_names()}
    return {name: ids for name, ids in corpus.items() if vocabulary.decode(ids).strip()}


def _excerpt(text: str) -> str:
    """The head of each paragraph, and what surrounds its first character outside the BMP.

    Text once passed says nothing more at a second sight, and the gate must not take longer than
    the timing.
    """
    parts = []
    for paragraph in paragraphs(text):
        parts.append(paragraph[:_HEAD_CHARACTERS])
        rare = next((i for i, char in enumerate(paragraph) if ord(char) > _BMP_END), None)
        if rare is not None:
            parts.append(paragraph[max(0, rare - _AROUND_CHARACTERS) : rare + _AROUND_CHARACTERS])
    return "\n".join(parts)


def check_path(
    path_class: PathClass, vocabulary: Vocabulary, corpus: dict[str, list[int]]
) -> GateResult:
    """Stream the corpus through one path and compare each text with its one-shot decode.

    A path that raises has failed. Known wrong text, named by the path itself, is 'expected'.
    """
    step_sizes = (1, _SEVERAL_IDS) if path_class.name == _OURS else (1,)
    differing: list[str] = []
    note = ""
    for ids_per_step in step_sizes:
        try:
            streamed = stream_all(path_class(vocabulary), list(corpus.values()), ids_per_step)
        except Exception as error:
            note = f"raised {type(error).__name__}: {' '.join(str(error).split())}"
            return GateResult(
                path=path_class.name,
                verdict="fail",
                texts=len(corpus),
                differing=list(corpus),
                note=note,
            )
        for name, text in zip(corpus, streamed, strict=True):
            expected = vocabulary.raw_decode(corpus[name])
            if text != expected and name not in differing:
                differing.append(name)
                note = note or f"{name}: {_first_difference(text, expected)}"
    return _result(path_class, corpus, differing, note)


def stream_all(path: DetokPath, sequences: Sequence[list[int]], ids_per_step: int) -> list[str]:
    """The joined deltas of each sequence, streamed as one batch whose rows end when they end."""
    rows = path.open([[] for _ in sequences])
    texts = ["" for _ in sequences]
    position = 0
    while True:
        live = [i for i, ids in enumerate(sequences) if position < len(ids)]
        if not live:
            break
        new_ids = [sequences[i][position : position + ids_per_step] for i in live]
        for i, delta in zip(live, path.step([rows[i] for i in live], new_ids), strict=True):
            texts[i] += delta
        position += ids_per_step
    return [text + path.end(row) for text, row in zip(texts, rows, strict=True)]


def _result(
    path_class: PathClass, corpus: dict[str, list[int]], differing: list[str], note: str
) -> GateResult:
    verdict: GateVerdict = "pass"
    if differing:
        verdict = "expected" if path_class.expected_to_fail else "fail"
        note = path_class.expected_to_fail or note
    return GateResult(
        path=path_class.name, verdict=verdict, texts=len(corpus), differing=differing, note=note
    )


def _first_difference(got: str, expected: str) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b),
        min(len(got), len(expected)),
    )
    start = max(0, at - 5)
    return f"{got[start : at + 10]!r} where one decode gives {expected[start : at + 10]!r}"
