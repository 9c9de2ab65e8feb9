"""Records of ``detokbench verify`` made up for tests: what is in them need not be true."""

import msgspec

from detokbench import __version__
from detokbench.records.schema import Record
from detokbench.records.verify import (
    CaseResult,
    Cell,
    Difference,
    Growth,
    LawFacts,
    Seen,
    StreamFacts,
    VerifyDetails,
)
from detokbench.verify.laws import SAYS, Law

VOCABULARIES = ("llama-3", "tekken", "mistral-spm-fast")
PATHS = (
    "naive",
    "text-streamer",
    "slow-uncached",
    "slow",
    "fast",
    "batch-decode",
    "row-decode",
    "rust-batch",
    "byte-table",
)
SPM, LLAMA = VOCABULARIES[2], VOCABULARIES[0]
_PYTHON_ONLY = "tekken"
_CORRUPTION = (Law.APPEND_ONLY, Law.BYTES, Law.REPLACEMENT)
# Laws broken, by path: everywhere, and with byte fallback only.
_BROKEN = {
    "naive": ((Law.BYTES, Law.REPLACEMENT, Law.ONE_SHOT), ()),
    "text-streamer": ((Law.APPEND_ONLY, Law.HOLD, Law.WORK), ()),
    "slow-uncached": ((Law.COMPLETE,), _CORRUPTION),
    "slow": ((Law.COMPLETE,), _CORRUPTION),
    "fast": ((Law.NO_ERROR, Law.COMPLETE, Law.WORK), (Law.PROMPT,)),
    "batch-decode": ((Law.WORK, Law.ROWS), _CORRUPTION),
    "row-decode": ((Law.WORK,), _CORRUPTION),
    "rust-batch": ((Law.WORK,), _CORRUPTION),
}
_FIGURES = {Law.HOLD: "7 ids", Law.WORK: "linear"}


def stream(vocab, prompt, output, **facts):
    return StreamFacts(
        vocab=vocab, prompt=prompt, output=output, **{"ids_per_step": 1, "ended": True} | facts
    )


def seen(paths, laws, step, expected, got, **more):
    """The same outcome for several paths, with the whole text like what came unless given."""
    return [
        Seen(
            path=path,
            laws=list(laws),
            step=step,
            expected=expected,
            got=got,
            **{"text": got} | more,
        )
        for path in paths
    ]


def difference(given, right, outcomes, **more):
    """A difference whose pieces are made up: each id of no more than 258 as a byte, else a word."""
    return Difference(
        input=given,
        pieces=[piece(token_id) for token_id in given.output],
        prompt_pieces=[piece(token_id) for token_id in given.prompt],
        right=right,
        seen=outcomes,
        **{"origin": "random stream 12"} | more,
    )


def piece(token_id):
    if not isinstance(token_id, int) or not 0 <= token_id < 1 << 17:
        return "no id"
    return repr(bytes([token_id - 3]) if 3 <= token_id <= 258 else b" w%d" % token_id)


def look_back():
    """The windows of two paths begin inside a character."""
    given = stream(
        SPM, [12014, 28705, 243, 162, 167, 154, 243, 162, 167, 154], [243, 162, 167, 154, 3614]
    )
    paths = ["slow-uncached", "slow", "batch-decode", "row-decode"]
    return difference(
        given,
        "🤗 ok",
        seen(paths, _CORRUPTION, 5, "🤗 ok", "���� ok"),
        origin="case B2",
        report="ai-dynamo/dynamo#12630",
        command="detokbench trace slow --vocab mistral-spm-fast --prompt-ids "
        "12014,28705,243,162,167,154,243,162,167,154 --ids 243,162,167,154,3614",
    )


def lost_end():
    given = stream(LLAMA, [], [9906, 5809])
    return difference(
        given,
        "Hello \ufffd",
        seen(["slow", "slow-uncached", "fast"], [Law.COMPLETE], 3, "Hello \ufffd", "Hello"),
        like="D2",
        command="detokbench trace fast --vocab llama-3 --ids 9906,5809",
    )


def from_the_prompt():
    given = stream(LLAMA, [9906, 9468, 97], [245])
    return difference(
        given, "🤗", seen(["fast"], [Law.PROMPT], 1, "🤗", "Hello🤗"), origin="text emoji, cut"
    )


def raising():
    given = stream(SPM, [], [22557, 13, 243, 28708], ids_per_step=None)
    error = "Exception: Invalid prefix encountered: a b c d e f"
    return difference(
        given,
        "Hello\n\ufffda",
        seen(
            ["fast"], [Law.NO_ERROR], 1, "Hello\n\ufffda", "", error=error,
            counted={"rebuilt_streams": 1},
        ),
        origin="case A1",
        report="vllm-project/vllm#17448",
    )  # fmt: skip


def too_many_rows():
    given = stream(LLAMA, [], [9906, 1917], rows=65600)
    return difference(
        given, "Hello world", seen(["batch-decode"], [Law.ROWS], 2, "Hello world", " world")
    )


def stopped():
    given = stream(
        LLAMA, [], [9906, 1917, 128256, None, "x", 2**63], stop=["\nSTOP", "it's"], min_tokens=4,
        keep_stop=True, skip_special_tokens=False, ids_per_step=3, stop_ids=[7], ended=False,
    )  # fmt: skip
    return difference(
        given,
        "Hello\nSTOP",
        seen(["naive"], [Law.STOPS], 1, "Hello\nSTOP", "Hel\x1b\u200dlo\u0301"),
    )


def differences():
    return [too_many_rows(), from_the_prompt(), lost_end(), raising(), look_back(), stopped()]


def cells(paths=PATHS, vocabs=VOCABULARIES, broken=_BROKEN):
    return [_cell(path, law, vocab, broken) for vocab in vocabs for path in paths for law in Law]


def _cell(path, law, vocab, broken):
    everywhere, fallback = broken.get(path, ((), ()))
    if vocab == _PYTHON_ONLY and path in {"fast", "rust-batch"}:
        why = "DecodeStream and decode_batch need a Rust tokenizer"
        return Cell(path=path, law=law, vocab=vocab, verdict="n/a", streams=0, broken=0, why=why)
    if law == Law.ROWS and path in {"slow", "slow-uncached", "fast", "naive"}:
        why = "decodes one request at a time"
        return Cell(path=path, law=law, vocab=vocab, verdict="n/a", streams=0, broken=0, why=why)
    is_broken = law in everywhere or (law in fallback and vocab == SPM)
    verdict = "pass" if not is_broken else "error" if law == Law.NO_ERROR else "differs"
    return Cell(
        path=path, law=law, vocab=vocab, verdict=verdict, streams=400, broken=3 * is_broken,
        figure=_FIGURES.get(law, "") if is_broken else "",
    )  # fmt: skip


def growth(path, kind, ids, us, **more):
    facts = {"vocab": LLAMA, "stream": "unknown ids", "lengths": [64, 512, 4096]}
    return Growth(
        path=path, growth=kind, ids_a_step=ids, first_us=us[0], last_us=us[1], **facts | more
    )


def growths():
    return [
        growth("text-streamer", "linear", [60, 500, 4000], (5.1, 300)),
        growth("text-streamer", "worse", [60, 900, 90000], (5.1, 3000), stream="one long word"),
        growth("slow", "flat", [6, 6, 6], (8, 8.2)),
        growth("fast", "linear", [64, 512, 4096], (7, 120), source="modelled"),
        growth("fast", "flat", [4, 4, 4], (0.6, 0.6), stream="words", source="modelled"),
        growth("batch-decode", "linear", [78, 530, 4110], (11, 310), lengths=[64, 512, 4096]),
        growth("byte-table", "flat", [0, 0, 0], (0.4, 0.4)),
    ]


def case(name, path, verdict, expected_to_differ, **more):
    facts = {"title": f"the case {name}", "report": "", "vocab": LLAMA}
    return CaseResult(
        case=name, path=path, verdict=verdict, expected_to_differ=expected_to_differ, **facts | more
    )


def cases():
    dynamo = {"report": "ai-dynamo/dynamo#12630", "vocab": SPM}
    return [
        case("B2", "slow", "differs", True, **dynamo),
        case("B2", "fast", "pass", False, **dynamo),
        case("B2", "byte-table", "pass", False, **dynamo),
        case("D2", "fast", "differs", True, report="ai-dynamo/dynamo#12688"),
        case("D2", "slow", "pass", True, report="ai-dynamo/dynamo#12688"),
        case("D2", "naive", "differs", False, got="price: 5\x00"),
        case("D2", "byte-table", "pass", False),
        case("D2", "rust-batch", "n/a", True),
    ]


def verify_record(partial=False, **changes):
    """A record of a run; ``changes`` replace fields of its details."""
    fields = {
        "laws": [LawFacts(name=law, says=SAYS[law]) for law in Law],
        "paths": list(PATHS),
        "required": ["byte-table"],
        "cells": cells(),
        "differences": differences(),
        "more_differences": 0,
        "growth": growths(),
        "cases": cases(),
        "streams": 1234,
        "steps": 345678,
        "seconds": 41.3,
        "seed": 0,
        "fuzz": 200,
    }
    details = VerifyDetails(**fields | changes)
    return Record(
        kind="verify",
        created="2026-10-01T12:00:00Z",
        command=["detokbench", "verify", "--fuzz", "200"],
        detokbench=__version__,
        partial=partial,
        scenario={},
        vocabulary={},
        settings={},
        machine={"cpu": "AMD EPYC", "cpus_usable": 2, "python": "CPython 3.11.7"},
        packages={"tokenizers": "0.23.3", "transformers": "5.24.0"},
        details=msgspec.to_builtins(details),
    )
