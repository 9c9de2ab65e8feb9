"""``probe`` against a server that nobody here wrote, with a model made on the spot.

Needs the extra ``serving``: torch, and what ``transformers serve`` runs on.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import msgspec
import pytest
import streaming

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.records.probe import probe_details
from detokbench.records.schema import Record

for name in ("torch", "uvicorn", "fastapi", "openai"):
    pytest.importorskip(name, reason="needs the extra 'serving'")

START_S = 120
pytestmark = pytest.mark.timeout(400)


def free_port():
    with socket.socket() as probing:
        probing.bind(("127.0.0.1", 0))
        return probing.getsockname()[1]


def make_llama(folder):
    """A Llama of two layers with random weights and the Llama-3 vocabulary."""
    import torch
    from transformers import AutoConfig, LlamaForCausalLM

    assert main(["vocab", "export", "llama-3", str(folder), "--tiny-config"]) == ExitCode.OK
    torch.manual_seed(0)
    LlamaForCausalLM(AutoConfig.from_pretrained(folder)).save_pretrained(folder)


@contextmanager
def serving(model, log):
    """``transformers serve`` on a free port, until the block ends."""
    port = free_port()
    command = "import sys; from transformers.cli.transformers import main; sys.exit(main())"
    arguments = ["serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", str(model)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", command, *arguments],
            stdout=output, stderr=subprocess.STDOUT, env=environment,
        )  # fmt: skip
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(url, process, log):
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"no server after {START_S} s: {log.read_text()}")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    make_llama(folder / "model")
    with serving(folder / "model", folder / "log.txt") as url:
        yield url


@pytest.fixture
def probe(server, tmp_path, monkeypatch):
    monkeypatch.setattr("detokbench.vocab.registry.load_vocabulary", streaming.vocabulary)

    def run(*options):
        out = tmp_path / "probe.json"
        code = main(["probe", server, "--out", str(out), "--no-chart", *options])
        return code, msgspec.json.decode(out.read_bytes(), type=Record)

    return run


def test_its_streams_are_measured_and_are_its_answers(probe):
    code, record = probe(
        "--requests", "6", "--concurrency", "2", "--max-tokens", "12", "--tokenizer", "llama-3",
        "--token-ids", "--timeout", "60s",
    )  # fmt: skip
    details = probe_details(record)
    assert code == ExitCode.OK
    assert [count.outcome for count in details.outcomes] == ["no-done"]  # it sends no [DONE]
    assert details.fields_refused == ["return_token_ids"]
    assert details.model == "model"
    for facts in details.requests:
        assert facts.totals["usage"] == facts.tokens == 12
        assert facts.counted_by == "tokenizer"
        assert 1 < facts.chunks <= 12
        assert facts.ttft_s > 0
    assert details.itl.samples == details.filled_gap.samples > 0
    assert {entry.verdict for entry in details.comparisons} == {"same"}
    assert details.hold_back.characters > 0
    assert details.server_load is None
    assert "pytest" not in msgspec.json.encode(record).decode()  # no folder


def test_a_model_that_it_does_not_have_is_its_own_message(probe):
    code, record = probe("--requests", "2", "--model", "no-such", "--no-compare")
    (count,) = probe_details(record).outcomes
    assert (count.outcome, count.requests) == ("http-error", 2)
    assert "no-such" in count.note
    assert code == ExitCode.FAILED_CHECK
