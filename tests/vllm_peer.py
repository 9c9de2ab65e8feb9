"""The front end's half of vLLM's protocol, as small as it can be, and its messages by name."""

import json
import tempfile
from base64 import b64decode
from contextlib import contextmanager
from pathlib import Path

import msgspec
import zmq

DATA = Path(__file__).parent / "data" / "vllm-0.33.0-messages.json"
WAIT_MS = 20_000


def recorded(name):
    """Frames that a real server sent, by what they are."""
    return [b64decode(frame) for frame in json.loads(DATA.read_bytes())["messages"][name]]


class Output(msgspec.Struct, array_like=True):
    """EngineCoreOutput, as far as our engine fills it."""

    request_id: str
    new_token_ids: list[int]
    new_logprobs: list | None = None
    new_prompt_logprobs_tensors: list | None = None
    pooling_output: list | None = None
    finish_reason: int | None = None
    stop_reason: int | str | None = None
    events: list[dict] | None = None


class Outputs(msgspec.Struct, array_like=True):
    """EngineCoreOutputs."""

    engine_index: int = 0
    outputs: list[Output] = []
    scheduler_stats: dict | None = None
    timestamp: float = 0.0
    utility_output: list | None = None


decode = msgspec.msgpack.Decoder(Outputs).decode


def add(request_id, client=0, **sampling):
    """An ADD request as vLLM 0.21 and later lays it out."""
    content = [request_id, [1], None, sampling, None, 0.0, None, None, None, None, None, client,
               0, 0, None, False, f"outside-{request_id}"]  # fmt: skip
    return [b"\x00", msgspec.msgpack.encode(content)]


def abort(*request_ids):
    return [b"\x01", msgspec.msgpack.encode(list(request_ids))]


def utility(client, call_id, method):
    return [b"\x03", msgspec.msgpack.encode([client, call_id, method, []])]


class Peer:
    """Sockets of a front end with some API servers."""

    def __init__(self, context, clients):
        self.handshake = context.socket(zmq.ROUTER)
        self.inputs = [context.socket(zmq.ROUTER) for _ in range(clients)]
        self.outputs = [context.socket(zmq.PULL) for _ in range(clients)]
        self.sockets = [self.handshake, *self.inputs, *self.outputs]
        for socket in self.sockets:
            socket.setsockopt(zmq.LINGER, 0)
            socket.bind("tcp://127.0.0.1:*")
        self.identity = b""

    def shake_hands(self):
        """What the engine says in its three messages: HELLO, READY and a ready response each."""
        self.identity, hello = self.receive(self.handshake)
        addresses = {
            "inputs": [address(socket) for socket in self.inputs],
            "outputs": [address(socket) for socket in self.outputs],
        }
        answer = msgspec.msgpack.encode({"addresses": addresses, "parallel_config": {}})
        self.handshake.send_multipart([self.identity, answer])
        said = [hello, self.receive(self.handshake)[1]]
        said += [self.receive(socket)[1] for socket in self.inputs]
        return [msgspec.msgpack.decode(message) for message in said]

    def send(self, frames, client=0):
        self.inputs[client].send_multipart([self.identity, *frames])

    def take(self, client=0):
        (message,) = self.receive(self.outputs[client])
        return decode(message)

    def rows(self, request_id, client=0):
        """The rows of a request up to its last one."""
        rows = []
        while not rows or rows[-1].finish_reason is None:
            rows += [row for row in self.take(client).outputs if row.request_id == request_id]
        return rows

    def receive(self, socket):
        assert socket.poll(WAIT_MS), "nothing came"
        return socket.recv_multipart()


def address(socket):
    return socket.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0")


@contextmanager
def peer(clients=1):
    context = zmq.Context()
    one = Peer(context, clients)
    try:
        yield one
    finally:
        for socket in one.sockets:
            socket.close()
        context.term()


@contextmanager
def short_folder():
    """A folder with a path short enough for a Unix socket, whatever TMPDIR is."""
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as folder:
        yield Path(folder)
