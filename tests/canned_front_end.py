"""A front end of the tests' own: one process that is server, detokenizer and engine's clock.

It speaks the control channel and streams as OpenAI's interface does. ``mode`` says what is wrong
with it: nothing; ``merge`` (two ids a chunk), ``wrong`` (another text), ``refuse`` (no
log-probabilities), ``die`` (at its tenth request), ``flags`` (does not start with further flags).
"""

import asyncio
import json
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

import detokbench
from detokbench.errors import DetokbenchError
from detokbench.live.engines.control import ControlSocket, EngineControl, control_address
from detokbench.live.engines.engine_plan import (
    Agreed,
    AskSample,
    AskSteps,
    AskStreams,
    EngineSample,
    Pace,
    StartedStream,
    StartedStreams,
    StepTimes,
    Stop,
)
from detokbench.live.engines.front_end import Process
from detokbench.live.engines.server_process import ServerProcess, free_port

STARTED = []


@dataclass(frozen=True)
class CannedRunning:
    url: str
    engine: EngineControl
    server: ServerProcess
    model: str = "canned"
    version: str = "1.0"

    def roles(self):
        return {"http": [Process(self.server.pid)], "engine": []}

    def log_tail(self):
        return self.server.log_tail()

    def check(self):
        self.server.check()


class CannedFrontEnd:
    summary = "a stand-in"

    def __init__(self, name="canned", mode=""):
        self.name = name
        self.mode = mode

    def version(self, python):
        if self.mode == "absent":
            raise DetokbenchError("there is no canned engine in that environment")
        return "1.0"

    @contextmanager
    def start(self, launch):
        mode = "broken" if launch.extra_args and self.mode == "flags" else self.mode
        plan = {
            "port": free_port(),
            "model": str(launch.model),
            "workload": str(launch.workload_file),
            "control": control_address(launch.folder),
            "mode": mode,
        }
        command = [sys.executable, __file__, json.dumps(plan)]
        ours = {"PYTHONPATH": str(Path(detokbench.__file__).parents[1])}
        with ServerProcess("canned 1.0", command, launch.folder / "server.log", ours) as server:
            STARTED.append(server.pid)
            url = f"http://127.0.0.1:{plan['port']}"
            server.wait_ready(f"{url}/health", launch.ready_timeout_s)
            control = EngineControl(plan["control"], timeout_s=3.0)
            try:
                yield CannedRunning(url, control, server)
            finally:
                control.close()


class _Request:
    def __init__(self, ids, number):
        self.ids = ids
        self.number = number
        self.sent = 0
        self.chunks = asyncio.Queue()


class _Server:
    def __init__(self, plan):
        import zmq
        from tokenizers import Tokenizer

        self.mode = plan["mode"]
        self.port = plan["port"]
        work = msgspec.msgpack.decode(Path(plan["workload"]).read_bytes())
        self.outputs = work["outputs"]
        self.tokenizer = Tokenizer.from_file(f"{plan['model']}/tokenizer.json")
        self.control = ControlSocket(zmq.Context(), plan["control"])
        self.step_ns = 10_000_000
        self.due = time.perf_counter_ns()
        self.emitted = []
        self.waiting, self.running, self.started = [], [], []
        self.ids = self.requests = self.late = 0

    async def serve(self):
        from aiohttp import web

        application = web.Application()
        application.router.add_get("/health", self.health)
        application.router.add_post("/v1/completions", self.complete)
        application.router.add_post("/v1/chat/completions", self.complete)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        while True:
            self.control.answer(self.answer)
            now = time.perf_counter_ns()
            if now < self.due:
                await asyncio.sleep(min((self.due - now) * 1e-9, 0.005))
                continue
            self.step(now)
            await asyncio.sleep(0)

    async def health(self, _):
        from aiohttp import web

        return web.Response(text="ok")

    def step(self, now):
        self.due = max(self.due + self.step_ns, now - 10 * self.step_ns)
        for request in self.waiting:
            name = f"r{request.number}"
            first = len(self.emitted)
            self.started.append(StartedStream(request.number, first, len(request.ids), name))
        self.running += self.waiting
        self.waiting = []
        self.emitted.append(now)
        for request in self.running:
            request.chunks.put_nowait(request.ids[request.sent])
            request.sent += 1
            self.ids += 1
        self.running = [request for request in self.running if request.sent < len(request.ids)]

    def answer(self, asked):
        match asked:
            case Pace(step_ns, _):
                self.step_ns, self.due = step_ns, time.perf_counter_ns()
            case AskSample():
                return EngineSample(
                    time.perf_counter_ns(), len(self.emitted), 0, 0, self.ids, self.ids,
                    len(self.running), len(self.waiting), time.process_time_ns(),
                )  # fmt: skip
            case AskSteps(since):
                return StepTimes(since, self.emitted[since:])
            case AskStreams():
                started, self.started = self.started, []
                return StartedStreams(started)
            case Stop():
                os._exit(0)
        return Agreed()

    async def complete(self, http):
        from aiohttp import web
        from tokenizers.decoders import DecodeStream

        body = await http.json()
        self.requests += 1
        if self.mode == "die" and self.requests == 10:
            print("RuntimeError: the tenth request was too much", flush=True)
            os._exit(3)
        if self.mode == "refuse" and "logprobs" in body:
            return web.json_response({"error": {"message": "no logprobs here"}}, status=400)
        ids = self.outputs[body["seed"] % len(self.outputs)][: body["max_tokens"]]
        request = _Request(ids, body["seed"])
        self.waiting.append(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        stream, text, is_chat = DecodeStream(), "", "messages" in body
        for place in range(len(ids)):
            text += stream.step(self.tokenizer, await request.chunks.get()) or ""
            is_last = place == len(ids) - 1
            if self.mode == "merge" and place % 2 == 0 and not is_last:
                continue
            if self.mode == "wrong" and place == 3:
                text = "?"
            said = {"delta": {"content": text}} if is_chat else {"text": text}
            said["finish_reason"] = "length" if is_last else None
            event = json.dumps({"choices": [said]}).encode()
            try:
                await response.write(b"data: " + event + b"\n\n")
            except ConnectionError:
                self.running = [one for one in self.running if one is not request]
                return response
            text = ""
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


if __name__ == "__main__":
    plan = json.loads(sys.argv[1])
    if plan["mode"] == "broken":
        sys.exit("ValueError: no such parser")
    asyncio.run(_Server(plan).serve())
