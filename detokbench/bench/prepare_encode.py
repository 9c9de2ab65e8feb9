"""What ``encode`` needs before it measures: prompts as text and streams to run beside them."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import msgspec

from detokbench.bench.encode_subjects import calls_of_many, calls_of_one
from detokbench.bench.plan import PreparedEncode, PrepareEncodeRequest
from detokbench.paths.protocol import PathClass
from detokbench.records.encode import PromptFacts
from detokbench.records.schema import NotApplicable
from detokbench.vocab import Vocabulary
from detokbench.workload.prompt_texts import prompt_texts, write_prompt_texts
from detokbench.workload.streams import build_workload


def prepare_encode(
    request: PrepareEncodeRequest, vocabulary: Vocabulary, classes: dict[str, PathClass]
) -> PreparedEncode:
    """Make both and keep them in files; say which calls and paths the vocabulary has."""
    folder = Path(request.text_folder)
    workload = build_workload(
        vocabulary, request.scenario, folder, request.seed, request.output_len
    )
    Path(request.workload_file).write_bytes(msgspec.msgpack.encode(workload))
    texts = prompt_texts(vocabulary, request.scenario, folder, request.lengths, request.seed)
    write_prompt_texts(texts, request.workload_file)
    reasons = {name: path_class.why_not(vocabulary) for name, path_class in classes.items()}
    return PreparedEncode(
        vocabulary=vocabulary.facts,
        not_applicable=[
            NotApplicable(path=name, why=why) for name, why in reasons.items() if why is not None
        ],
        prompts=[
            PromptFacts(
                length=length,
                texts=len(of_length),
                mean_ids=fmean(text.ids for text in of_length),
                mean_chars=fmean(len(text.text) for text in of_length),
            )
            for length, of_length in texts.items()
        ],
        single_calls=list(calls_of_one(vocabulary)),
        list_calls=list(calls_of_many(vocabulary)),
    )
