"""What is timed is what was meant to be timed: counted on the real vocabulary."""

import pytest

from detokbench.bench.recording import STREAM_STEP, RecordingVocabulary
from detokbench.bench.subjects import (
    Admission,
    BareCalls,
    PathSteps,
    StreamCalls,
    bare_calls,
    count_calls,
)
from detokbench.paths import Flags, load_path_class
from detokbench.workload.scenario import load_scenario, override
from detokbench.workload.streams import build_workload

BATCH = 4


@pytest.fixture(scope="module")
def workload(llama3):
    scenario, folder = load_scenario("llama3-chat")
    return build_workload(llama3, override(scenario, batches=[BATCH]), folder, seed=0)


def counted(llama3, workload, name, flags=None):
    prompts = workload.prompts[:BATCH]
    steps = workload.steps(BATCH, 1)
    return count_calls(load_path_class(name), llama3, prompts, steps, flags or Flags())


@pytest.mark.parametrize(
    ("name", "call", "calls", "lookups"),
    [
        ("naive", "decode", 1, 0),
        ("slow", "convert_tokens_to_string", 2, 1),
        ("slow-uncached", "convert_tokens_to_string", 2, 1),
        ("fast", STREAM_STEP, 1, 0),
        ("batch-decode", "batch_decode", 2, 0),
        ("row-decode", "decode", 2, 0),
        ("rust-batch", "Tokenizer.decode_batch", 2, 0),
        ("byte-table", None, 0, 0),
    ],
)
def test_calls_a_token_are_those_of_the_engine(llama3, workload, name, call, calls, lookups):
    count = counted(llama3, workload, name)
    assert (count.name, count.calls_per_token, count.lookups_per_token) == (call, calls, lookups)


@pytest.mark.parametrize("name", ["slow", "fast", "batch-decode", "byte-table", "text-streamer"])
def test_recording_does_not_change_the_text(llama3, workload, name):
    path_class = load_path_class(name)
    texts = []
    for vocabulary in (llama3, RecordingVocabulary(llama3)):
        path = path_class(vocabulary)
        rows = path.open(workload.prompts[:BATCH])
        texts.append([path.step(rows, ids) for ids in workload.steps(BATCH, 1)])
    assert texts[0] == texts[1]


def test_steps_count_tokens_and_start_anew_when_a_stream_ends(llama3, workload):
    steps = workload.steps(BATCH, 1)
    path = load_path_class("byte-table")(llama3)
    subject = PathSteps(path, workload.prompts[:BATCH], steps, Flags())
    for _ in range(5):
        timing = subject.run(subject.limit)
        assert timing.units == subject.limit * BATCH
        assert timing.ns > 0


def test_several_ids_a_step_are_several_tokens(llama3, workload):
    steps = workload.steps(BATCH, 3)
    path = load_path_class("fast")(llama3)
    subject = PathSteps(path, workload.prompts[:BATCH], steps, Flags())
    assert subject.run(2).units == 2 * BATCH * 3


def test_bare_calls_decode_the_rows_that_the_path_decoded(llama3, workload):
    count = counted(llama3, workload, "batch-decode")
    subject = bare_calls(count, llama3, workload.prompts[:BATCH], workload.steps(BATCH, 1), Flags())
    assert isinstance(subject, BareCalls)
    assert subject.run(2).units == 2 * BATCH


def test_stream_steps_are_replayed_on_streams_of_their_own(llama3, workload):
    count = counted(llama3, workload, "fast")
    subject = bare_calls(count, llama3, workload.prompts[:BATCH], workload.steps(BATCH, 1), Flags())
    assert isinstance(subject, StreamCalls)
    assert subject.run(100).units == 100


def test_a_path_without_calls_has_none_to_time(llama3, workload):
    count = counted(llama3, workload, "byte-table")
    assert bare_calls(count, llama3, [], [], Flags()) is None


@pytest.mark.parametrize("first_token", [True, False])
def test_admission_ends_the_rows_it_opened(llama3, workload, first_token):
    path = load_path_class("fast")(llama3)
    prompts = workload.admit_prompts[1024]
    subject = Admission(path, prompts, workload.admit_first_ids, Flags(), first_token)
    assert subject.run(2).units == 2
    assert not path._rows
