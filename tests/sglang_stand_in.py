"""Small stand-ins for what our engine uses of SGLang: its messages, its request class, its wires.

Not a copy: as few fields as the tests need, and made so that ``pickle`` finds them.
"""

import pickle
from array import array
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import msgspec


@dataclass
class Sampling:
    max_new_tokens: int | None = 128
    sampling_seed: int | None = None
    stop_strs: list[str] = field(default_factory=list)
    stop_regex_strs: list[str] = field(default_factory=list)
    stream_interval: int | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    no_stop_trim: bool = False


@dataclass
class TokenizedGenerateReqInput:
    rid: str
    sampling_params: Sampling
    input_ids: array = field(default_factory=lambda: array("q", range(1, 8)))
    input_text: str = ""
    stream: bool = True
    return_logprob: bool = False
    top_logprobs_num: int = 0
    http_worker_ipc: str | None = None
    time_stats: object = None


@dataclass
class AbortReq:
    rid: str = ""
    abort_all: bool = False


@dataclass
class FlushCacheReqInput:
    http_worker_ipc: str | None = None


@dataclass
class FlushCacheReqOutput:
    success: bool
    message: str = ""
    http_worker_ipc: str | None = None


@dataclass
class FreezeGCReq:
    pass


@dataclass
class BatchTokenIDOutput:
    rids: list
    finished_reasons: list
    decoded_texts: list
    decode_ids: list
    read_offsets: list
    output_ids: list
    skip_special_tokens: list
    completion_tokens: list
    input_token_logprobs_val: list | None
    output_token_logprobs_val: list | None
    output_token_logprobs_idx: list | None
    output_top_logprobs_val: list | None
    output_top_logprobs_idx: list | None
    spec_verify_ct: list
    output_hidden_states: list | None
    time_stats: list | None = None
    http_worker_ipcs: list | None = None
    of_a_later_version: str = "kept"


class LaterBatch(msgspec.Struct, kw_only=True, array_like=True):
    """The same as a structure of msgspec's, with less in it."""

    rids: list
    finished_reasons: list
    output_ids: list
    completion_tokens: list
    weight_versions: list | None = None


class Reason:
    def __init__(self, matched):
        self.matched = matched

    def to_json(self):
        return {"type": "stop", "matched": self.matched}


class Letters:
    """A tokenizer whose ids are code points."""

    def decode(self, ids):
        return "".join(map(chr, ids))


class Req:
    """Stops by text alone, one id at a time, as far as the tests look."""

    def __init__(self, rid, origin_input_ids, sampling_params, vocab_size=None):
        self.rid = rid
        self.sampling_params = sampling_params
        self.output_ids = array("q")
        self.finished_reason = None
        self.tokenizer = None

    @property
    def output_ids_through_stop(self):
        return self.output_ids

    def finished(self):
        return self.finished_reason is not None

    def update_finish_state(self):
        text = self.tokenizer.decode(self.output_ids)
        for stop in self.sampling_params.stop_strs:
            if stop in text:
                self.finished_reason = Reason(stop)

    def check_match_stop_str_prefix(self):
        text = self.tokenizer.decode(self.output_ids)
        return any(
            text.endswith(stop[:n])
            for stop in self.sampling_params.stop_strs
            for n in range(1, len(stop))
        )


def request(rid, number=0, max_tokens=None, **more):
    """A request for output ``number``; what ``Sampling`` knows goes there."""
    sampling = {name: more.pop(name) for name in list(more) if name in Sampling.__annotations__}
    return TokenizedGenerateReqInput(
        rid, Sampling(max_new_tokens=max_tokens, sampling_seed=number, **sampling), **more
    )


def modules():
    """Modules by the names under which our engine imports them."""
    held = {
        "configs.model_config": {"ModelConfig": _ModelConfig},
        "managers.io_struct": {
            kind.__name__: kind
            for kind in (
                TokenizedGenerateReqInput, AbortReq, BatchTokenIDOutput, FlushCacheReqInput,
                FlushCacheReqOutput, FreezeGCReq,
            )
        },
        "managers.schedule_batch": {"Req": Req},
        "utils.hf_transformers_utils": {"get_tokenizer": lambda path, **how: Letters()},
    }  # fmt: skip
    made = {"sglang": ModuleType("sglang"), "sglang.srt": ModuleType("sglang.srt")}
    for name, members in held.items():
        module = ModuleType(f"sglang.srt.{name}")
        vars(module).update(members)
        made[f"sglang.srt.{name}"] = module
    return made


class _ModelConfig:
    context_len = 4096
    vocab_size = 1000

    @classmethod
    def from_server_args(cls, args):
        return cls()


def server_args():
    return SimpleNamespace(
        stream_interval=1, skip_tokenizer_init=False, tokenizer_path="nowhere",
        tokenizer_mode="auto", trust_remote_code=False,
    )  # fmt: skip


class Peer:
    """The other ends of the scheduler's sockets."""

    def __init__(self, context, folder):
        import zmq

        self.port_args = SimpleNamespace(
            scheduler_input_ipc_name=f"ipc://{folder / 'in'}",
            detokenizer_ipc_name=f"ipc://{folder / 'ids'}",
            tokenizer_ipc_name=f"ipc://{folder / 'answers'}",
        )
        self.requests = context.socket(zmq.PUSH)
        self.requests.bind(self.port_args.scheduler_input_ipc_name)
        self.ids = context.socket(zmq.PULL)
        self.ids.bind(self.port_args.detokenizer_ipc_name)
        self.answers = context.socket(zmq.PULL)
        self.answers.bind(self.port_args.tokenizer_ipc_name)

    def ask(self, message):
        self.requests.send(pickle.dumps(message))

    def next_of(self, socket, timeout_ms=20_000):
        assert socket.poll(timeout_ms), "nothing came"
        return pickle.loads(socket.recv())

    def until_finished(self, count):
        """Ids by request, and how each ended, until ``count`` have."""
        ids, ends = {}, {}
        while len(ends) < count:
            batch = self.next_of(self.ids)
            for rid, new, reason in zip(
                batch.rids, batch.output_ids, batch.finished_reasons, strict=True
            ):
                ids.setdefault(rid, []).extend(new)
                if reason is not None:
                    ends[rid] = reason
        return ids, ends
