"""Ctrl-C at any moment: the first ends the work, what must be done whole is done whole."""

import signal
import subprocess
import sys
import threading

import pytest

from detokbench import interrupts
from detokbench.interrupts import SIGNALS, take_first_interrupt, uninterrupted
from detokbench.report.output import keep


@pytest.fixture
def handlers():
    """The test's own; those of the test run come back."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_only_the_first_interrupt_counts(handlers):
    take_first_interrupt()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    for number in SIGNALS:
        signal.raise_signal(number)


def test_what_hangs_can_be_interrupted_again_after_a_while(handlers, monkeypatch):
    now = 100.0
    monkeypatch.setattr(interrupts, "monotonic", lambda: now)
    take_first_interrupt()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    now = 109.9
    signal.raise_signal(signal.SIGINT)
    now = 110.1
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_signal_that_was_ignored_stays_so(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    take_first_interrupt()
    with uninterrupted():
        signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGHUP)


def test_an_interrupt_acts_at_the_end_of_what_must_not_be_left_half_done(handlers):
    done = []

    def work():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append(1)
        done.append(2)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_is_not_replaced_by_an_interrupt(handlers):
    with pytest.raises(ValueError, match="full"), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("full")


def test_in_another_thread_nothing_is_held_back():
    done = []

    def work():
        with uninterrupted():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_record_is_kept_whatever_comes_while_it_is_shown(handlers, tmp_path, capsys, is_first):
    """After an earlier Ctrl-C it is as if nothing had come; else the exit code is that of one."""
    take_first_interrupt()
    if not is_first:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    stored = []

    def keep_it():
        keep(
            None,
            show=lambda: signal.raise_signal(signal.SIGINT),
            store=lambda record: stored.append(record) or tmp_path,
            draw=None,
        )

    if is_first:
        with pytest.raises(KeyboardInterrupt):
            keep_it()
    else:
        keep_it()
    assert stored == [None]
    assert "record: " in capsys.readouterr().err


def test_many_interrupts_end_a_command_with_130():
    """Until Python has wound up: an exit function stands for what it does then."""
    code = (
        "import atexit, os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def interrupt(*_):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "atexit.register(interrupt)\n"
        "import detokbench.cli, detokbench.__main__ as start\n"
        "detokbench.cli.main = interrupt\n"
        "start.entry_point()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == ""
