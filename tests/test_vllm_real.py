"""Real vLLM servers, in Python and in Rust, with our engine behind them.

Needs an interpreter that has vLLM; it is no dependency: DETOKBENCH_VLLM_PYTHON names it.
"""

import json
import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
import streaming
import vllm_peer

from detokbench.live.engines.front_end import Launch
from detokbench.live.engines.vllm_front_end import VllmFrontEnd, VllmRustFrontEnd

PYTHON = os.environ.get("DETOKBENCH_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="DETOKBENCH_VLLM_PYTHON names no interpreter with vLLM"),
    pytest.mark.timeout(600),
]
TEXTS = [f"Stream {n} tells of a quick brown fox, again and again. " * 3 for n in range(8)]
EMOJI = "A cook \U0001f9d1\u200d\U0001f373 and a café."
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def make_model(folder):
    """The Llama-3 vocabulary, and what vLLM's front end asks of a model besides."""
    tokenizer = streaming.vocabulary("llama-3").tokenizer
    tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16",
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048,
        "vocab_size": len(tokenizer), "bos_token_id": 128_000, "eos_token_id": 128_001,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture(scope="module", params=[VllmFrontEnd, VllmRustFrontEnd], ids=["vllm", "vllm-rs"])
def running(request):
    vocabulary = streaming.vocabulary("llama-3")
    outputs = [vocabulary.encode(text) for text in [*TEXTS, EMOJI]]
    with vllm_peer.short_folder() as folder:
        (folder / "model").mkdir()
        make_model(folder / "model")
        (folder / "w").write_bytes(msgspec.msgpack.encode({"outputs": outputs, "eos": 128_001}))
        launch = Launch(Path(PYTHON), folder / "model", folder, 16, folder / "w")
        with request.param().start(launch) as server:
            server.engine.pace(2_000_000)
            yield server


def answer(server, path, **body):
    """The text of a streamed answer, its finish reason, and how many events had text."""
    body = {"model": server.model, "stream": True, "temperature": 0, "max_tokens": 999, **body}
    asked = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    text, reason, chunks = "", None, 0
    with urllib.request.urlopen(asked, timeout=60) as events:
        for line in events:
            if not line.startswith(b"data: {"):
                continue
            (choice,) = json.loads(line[6:])["choices"]
            piece = choice["delta"].get("content") if "delta" in choice else choice["text"]
            text += piece or ""
            chunks += bool(piece)
            reason = choice.get("finish_reason") or reason
    return text, reason, chunks


def complete(server, seed, **body):
    return answer(server, "/v1/completions", prompt=[128_000, 9906], seed=seed, **body)


def test_many_streams_get_their_text(running):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: complete(running, n), range(9)))
    assert [text for text, _, _ in answers] == [*TEXTS, EMOJI]
    assert {reason for _, reason, _ in answers} == {"stop"}
    numbers = {stream.number for stream in running.engine.streams()}
    assert numbers == set(range(9))


def test_a_limit_ends_a_stream(running):
    text, reason, _ = complete(running, 2, max_tokens=6)
    assert TEXTS[2].startswith(text)
    assert reason == "length"


def test_a_stop_string_reaches_the_engine_as_an_abort(running):
    before = running.engine.sample().aborted
    text, reason, _ = complete(running, 3, stop=["again and"])
    assert (text, reason) == (TEXTS[3].partition("again and")[0], "stop")
    complete(running, 1)  # whose end the engine hears of after the abort
    assert running.engine.sample().aborted == before + 1


def test_chat_and_log_probabilities(running):
    messages = [{"role": "user", "content": "hello"}]
    text, _, _ = answer(running, "/v1/chat/completions", messages=messages, seed=4,
                        logprobs=True, top_logprobs=2)  # fmt: skip
    assert text == TEXTS[4]
    assert complete(running, 5, logprobs=2)[0] == TEXTS[5]


def test_its_processes_are_known(running):
    roles = running.roles()
    assert set(roles) >= {"engine"}
    assert set(roles) & {"http", "rust"}
    running.check()
