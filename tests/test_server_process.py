"""Servers of others: started, awaited, ended; what their logs have to say."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.live.engines.server_process import (
    ServerProcess,
    check_port_free,
    free_port,
    tail_of,
)

SERVE = """
import http.server as h
h.HTTPServer(("127.0.0.1", {port}), h.SimpleHTTPRequestHandler).serve_forever()
"""
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
children = [subprocess.Popen([sys.executable, "-c", code], start_new_session=own)
            for own in (False, True)]
print(*[child.pid for child in children], flush=True)
time.sleep(600)
"""


def python(code, tmp_path, name="server", **more):
    return ServerProcess(name, [sys.executable, "-c", code], tmp_path / "log", **more)


def test_it_is_ready_when_it_answers(tmp_path):
    port = free_port()
    with python(SERVE.format(port=port), tmp_path, folder=tmp_path) as server:
        server.wait_ready(f"http://127.0.0.1:{port}/", 60)
        server.check()
        with pytest.raises(DetokbenchError, match=f"port {port} is taken"):
            check_port_free(port)
    check_port_free(port)


def test_one_that_dies_says_its_last_words(tmp_path):
    code = "print('begun'); raise RuntimeError('no such model')"
    with python(code, tmp_path) as server, pytest.raises(DetokbenchError) as caught:
        server.wait_ready("http://127.0.0.1:9/", 60)
    assert str(caught.value) == "server has ended (exit code 1): RuntimeError: no such model"
    assert caught.value.exit_code == ExitCode.BROKEN_SETUP


def test_one_that_is_killed_is_named_with_its_signal(tmp_path):
    with python("import os; os.kill(os.getpid(), 9)", tmp_path) as server:
        assert server.wait(60) == -9
        with pytest.raises(DetokbenchError, match=r"\(signal 9\): it wrote nothing"):
            server.check()


def test_one_that_never_gets_ready_is_given_up(tmp_path):
    with python("import time; print('loading', flush=True); time.sleep(600)", tmp_path) as server:
        while not (tmp_path / "log").read_text():
            time.sleep(0.01)
        with pytest.raises(DetokbenchError, match=r"not ready after 0\.3 s.*: loading"):
            server.wait_ready("http://127.0.0.1:9/", 0.3)


def test_another_that_it_needs_may_die_first(tmp_path):
    (tmp_path / "b").mkdir()
    with (
        python("import time; time.sleep(600)", tmp_path) as server,
        python("raise SystemExit('error: no socket')", tmp_path / "b", name="engine") as engine,
        pytest.raises(DetokbenchError, match=r"engine has ended \(exit code 1\): error: no socket"),
    ):
        server.wait_ready("http://127.0.0.1:9/", 60, engine)


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DetokbenchError, match="cannot start server"):
        ServerProcess("server", [tmp_path / "nothing"], tmp_path / "log")


def test_all_that_it_started_ends_with_it(tmp_path):
    with python(STUBBORN, tmp_path) as server:
        while len(words := (tmp_path / "log").read_text().split()) < 2:
            server.check()
            time.sleep(0.01)
        assert sorted(server.descendants()) == sorted(map(int, words))
        server.end(grace_s=0.2)
    for pid in map(int, words):
        status = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout.strip()
        assert status[:1] in ("", "Z")  # a zombie until its new parent looks


def test_its_environment_is_ours_and_more(tmp_path):
    os.environ["DETOKBENCH_TEST_A"] = "a"
    code = "import os; print(os.environ['DETOKBENCH_TEST_A'], os.environ['B'])"
    with python(code, tmp_path, environment={"B": "b"}) as server:
        assert server.wait(60) == 0
    del os.environ["DETOKBENCH_TEST_A"]
    assert server.log_tail() == "a b"


def test_free_ports_are_not_given_to_connections():
    system = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(system.read_text().split()[0]) if system.exists() else 32_768
    port = free_port()
    assert port < first
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("log", "tail"),
    [
        ("", "it wrote nothing"),
        ("one\ntwo\n\n", "two"),
        ("\x1b[31mINFO 12-01 03:12:27 [core.py:7] up\x1b[0m\n", "up"),
        ("(APIServer pid=7) ERROR 12-01 03:12:27 [a.py:1] OSError: taken\n", "OSError: taken"),
        ("ValueError: bad model\n(Main pid=7) INFO 12-01 03:12:27 [x.py:1] bye\n",
         "ValueError: bad model"),
        ("zmq.error.ZMQError: Address in use (addr='tcp://x')\n    ^^^^^\n",
         "zmq.error.ZMQError: Address in use (addr='tcp://x')"),
        ("ERROR 12-01 03:17:43 [m.rs:110] process failed with error: bad\n\nCaused by:\n"
         "  parser `x` is not registered\n\nRuntimeError: See root cause above. {'Rust': 1}\n",
         "parser `x` is not registered"),
        ("prog: error: unrecognized arguments: --x\n", "prog: error: unrecognized arguments: --x"),
    ],
)  # fmt: skip
def test_a_log_is_told_by_its_last_failure(tmp_path, log, tail):
    (tmp_path / "log").write_text(log)
    assert tail_of(tmp_path / "log") == tail
    assert tail_of(tmp_path / "none") == "no log"
