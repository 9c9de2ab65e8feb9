"""Where the CPU of vLLM's Python front end goes: its parts, measured, beside the whole of it.

The parts are vLLM's own classes, run up to a chosen depth in a process of its interpreter; the
whole is its server under our engine at the same streams and pace, in turns with them; a profile of
the server says what the parts leave out. Exit code 1 where they come to less than 70 % of it, 3
where the machine was so busy that tokens came together in some run: that decides nothing.

    python benchmarks/vllm_parts.py --engine-python PATH --model DIR [--out RECORD.json]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from detokbench.bench.machine import machine_facts
from detokbench.errors import DetokbenchError, ExitCode
from detokbench.grammar import parse_count_list, parse_duration_s
from detokbench.live.engines.frontend_plan import engine_pythons
from detokbench.live.engines.frontend_workload import eos_of, frontend_workload
from detokbench.live.engines.parts_record import parts_record
from detokbench.live.engines.parts_run import PartsAsked, run_parts
from detokbench.records.frontend import CHUNKS_AT_LEAST
from detokbench.records.frontend_parts import ENOUGH, PartsDetails
from detokbench.records.provenance import command_line, file_name, utc_now
from detokbench.records.store import place_for
from detokbench.report.output import keep_record
from detokbench.vocab.registry import load_vocabulary
from detokbench.workload.scenario import load_scenario

SHORT, LONG, PROMPT = 256, 1024, 16


def main() -> int:
    """Measure, show, store; the exit code says whether the parts explain enough."""
    given = arguments()
    created, machine = utc_now(), machine_facts()
    place = place_for("frontend-parts", file_name(given.model), created, given.out)
    vocabulary = load_vocabulary(given.model, False)
    scenario, folder = load_scenario("llama3-chat")
    asked = PartsAsked(
        python=engine_pythons(["vllm"], given.engine_python, Path(sys.executable))["vllm"],
        model=Path(given.model),
        workload=frontend_workload(vocabulary, scenario, folder, 0, PROMPT, LONG),
        eos=eos_of(vocabulary),
        streams=parse_count_list(given.streams, "--streams"),
        t_step_s=parse_duration_s(given.t_step, "--t-step"),
        rounds=given.rounds,
        warm_up_s=1.0,
        window_s=parse_duration_s(given.window, "--window"),
        max_tokens=SHORT,
        long_tokens=LONG,
        profile_s=20.0,
    )
    details = run_parts(asked, lambda what: print(what, file=sys.stderr))
    record = parts_record(details, scenario, vocabulary, machine, created, command_line(sys.argv))
    keep_record(record, place, as_json=False, chart=True)
    return verdict(details)


def verdict(details: PartsDetails) -> ExitCode:
    """OK where the parts come to ENOUGH of the whole at each number of streams."""
    if details.chunks_per_token < CHUNKS_AT_LEAST:
        return ExitCode.INCONCLUSIVE
    enough = all(at.share >= ENOUGH for at in details.at)
    return ExitCode.OK if enough else ExitCode.FAILED_CHECK


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--engine-python", help="environment or interpreter that has vLLM")
    parser.add_argument("--model", required=True, help="folder of tokenizer and config")
    parser.add_argument("--streams", default="32,128")
    parser.add_argument("--t-step", default="10ms")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--window", default="2s")
    parser.add_argument("--out")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DetokbenchError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
