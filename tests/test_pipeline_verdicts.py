"""What runs say together, and what a record's sentences make of it. No process, no clock."""

from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from detokbench.records.pipeline import details_of
from detokbench.records.store import read_record
from detokbench.report.pipeline_chart import queue_ticks
from detokbench.report.pipeline_model import needed_by_cpu, needed_by_parts
from detokbench.report.pipeline_ramp_chart import overload_panel
from detokbench.report.pipeline_screen import print_pipeline
from detokbench.report.pipeline_verdicts import (
    Disorder,
    at_batch,
    busiest_process,
    disorder,
    is_doubtful,
    short_verdict,
    steps_share,
    verdict,
    without_verdict,
)

REFERENCE = Path(__file__).parent.parent / "results" / "reference"


def details(name="pipeline-fast-http"):
    return details_of(read_record(REFERENCE / f"{name}.json"))


def runs_of(*verdicts):
    """Runs of (batch, "keeps" | "breaks" | "unclear", of)."""
    model = details().runs[0]
    return [
        msgspec.structs.replace(
            model,
            batch=batch,
            of=of,
            broken="chunks merge: 0.50 a token" if what == "breaks" else "",
            not_judged="ITL is 1.72 T_step" if what == "unclear" else "",
        )
        for batch, what, of in verdicts
    ]


def test_verdicts_in_order_give_no_range():
    in_order = runs_of((32, "keeps", "walk"), (64, "breaks", "walk"), (64, "breaks", "walk"))
    assert disorder(in_order) is None
    assert disorder(in_order[:1]) is disorder(in_order[1:]) is None
    once = runs_of((64, "breaks", "walk"), (64, "keeps", "walk"), (96, "breaks", "bisect"))
    assert disorder(once) is None


def test_a_batch_that_breaks_below_one_that_holds_gives_a_range():
    runs = runs_of(
        (64, "keeps", "walk"), (78, "breaks", "depth"), (96, "keeps", "bisect"),
        (98, "breaks", "bisect"), (98, "breaks", "bisect"),
    )  # fmt: skip
    assert disorder(runs) == Disorder(broke=78, held=96, low=64, high=98)
    assert disorder(runs[:3]) == Disorder(broke=78, held=96, low=64, high=None)
    again = runs_of((42, "breaks", "bisect"), (42, "breaks", "bisect"), (42, "keeps", "depth"))
    assert disorder(again) == Disorder(broke=42, held=42, low=0, high=None)
    both = runs_of((40, "keeps", "walk"), (44, "keeps", "bisect"), (44, "breaks", "depth"))
    assert disorder(both) == Disorder(broke=44, held=44, low=40, high=None)


def test_the_reference_over_http_is_out_of_order():
    assert disorder(details().runs) == Disorder(broke=78, held=96, low=64, high=97)


def test_what_could_not_be_judged_matters_around_the_live_batch():
    found = details()
    found.live_low, found.live_high, found.live_batch = 96, 98, 97.0
    found.runs = runs_of((64, "keeps", "walk"), (96, "unclear", "bisect"), (98, "breaks", "bisect"))
    assert without_verdict(found.runs) == [96]
    assert is_doubtful(found)
    found.runs += runs_of((96, "keeps", "bisect"))
    assert without_verdict(found.runs) == []
    assert not is_doubtful(found)
    found.runs += runs_of((16, "unclear", "walk"), (97, "unclear", "depth"))
    assert without_verdict(found.runs) == [16]
    assert not is_doubtful(found)
    found.live_batch = None
    assert not is_doubtful(found)
    found.runs += runs_of((512, "unclear", "walk"))
    assert is_doubtful(found)


def test_reasons_are_short_where_there_is_little_room():
    broken, unclear = runs_of((8, "breaks", "walk"), (8, "unclear", "walk"))
    assert (verdict(broken), short_verdict(broken)) == (
        "chunks merge: 0.50 a token", "merges: 0.50"
    )  # fmt: skip
    assert short_verdict(unclear) == "not judged"
    assert verdict(unclear) == "not judged: CPU taken by others (ITL is 1.72 T_step)"
    unclear.is_client_bound = True
    assert "clients at their limit" in verdict(unclear)
    broken.broken = "falls behind by 301 ms a second"
    assert short_verdict(broken) == "behind 301 ms/s"
    broken.broken = "the scheduler is late: 80 % of the steps due"
    assert short_verdict(broken) == "steps: 80 %"


def test_rows_that_ran_are_told_where_the_batch_was_not_full():
    (run,) = runs_of((64, "keeps", "single"))
    run.ids, run.steps, run.rows_per_step = 64_000, 1_000, None
    assert at_batch(run) == "at B = 64"
    run.ids = 11_200
    assert at_batch(run) == "at about 11 rows a step (B = 64 at most)"
    run.rows_per_step = 20.0
    assert "about 20 rows" in at_batch(run)


def test_clients_are_not_the_host():
    found = details()
    run = found.runs[0]
    for process in run.processes:
        process.cpu_share = {"clients": 0.9, "engine": 0.8, "front-end": 0.1}[process.name]
    assert busiest_process(run, found).name == "front-end"
    run.processes = []
    assert busiest_process(run, found) is None


def test_the_scheduler_of_sglang_is_the_hosts_where_it_looks_for_stops():
    found = details("pipeline-batch-decode-stop")
    assert busiest_process(found.runs[2], found).name == "engine"
    assert steps_share(found.runs[2], found.t_step_s) == pytest.approx(0.80, abs=0.01)


def screen(record, width=118):
    """What is printed, in one line: a sentence may wrap anywhere."""
    out = StringIO()
    print_pipeline(record, Console(file=out, width=width))
    return " ".join(out.getvalue().split())


def record_of(name, change):
    """A reference record whose details were changed."""
    record = read_record(REFERENCE / f"{name}.json")
    found = details_of(record)
    change(found)
    return msgspec.structs.replace(record, details=msgspec.to_builtins(found))


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("pipeline-*.json")), ids=lambda p: p.stem)
@pytest.mark.parametrize("width", [80, 118])
def test_older_records_are_still_shown(path, width):
    shown = screen(read_record(path), width)
    assert "Rule: a run does not keep up when" in shown
    for gone in ("by -", "beside the predicted", "['", "-0 "):
        assert gone not in shown
    is_ramp = details_of(read_record(path)).prediction is not None
    assert ("more columns at 118" in shown) == (is_ramp and width == 80)


def test_a_live_batch_out_of_order_is_a_range_and_compared_with_nothing():
    shown = screen(read_record(REFERENCE / "pipeline-fast-http.json"))
    assert "Live B* = 64 to 97: verdicts are not in order of the batch, 78 broke" in shown
    assert "the predicted" not in shown
    in_order = screen(read_record(REFERENCE / "pipeline-slow.json"))
    assert "Live B* = 89.0 (kept up at 88, not at 90), 5 % above the predicted 85." in in_order


def test_a_live_batch_that_rests_on_runs_without_a_verdict_is_marked():
    def at(batch):
        def change(found):
            for run in found.runs:
                if run.batch == batch:
                    run.broken, run.not_judged = "", "ITL is 1.72 T_step"

        return change

    marked = screen(record_of("pipeline-slow", at(88)))
    assert "1 run could not be judged: the machine was busy; make it again on an idle" in marked
    assert "the predicted" not in marked
    far = screen(record_of("pipeline-slow", at(16)))
    assert "1 run could not be judged" in far
    assert "5 % above the predicted 85" in far


def test_a_run_without_a_verdict_does_not_keep_up_in_any_words():
    def change(found):
        (run,) = found.runs
        run.not_judged, run.busiest_cpu_share = "ITL is 1.72 T_step", 0.67

    shown = screen(record_of("pipeline-4-a-chunk", change))
    assert "the run is not judged: CPU taken by others (ITL is 1.72 T_step)" in shown
    assert "for more than 67 % of the time: make it again on an idle machine" in shown
    assert "keeps up" not in shown

    def late_engine(found):
        (run,) = found.runs
        run.not_judged = "the scheduler is late: 90 % of the steps due"
        run.busiest_cpu_share, run.engine_cpu_share = 0.95, 0.4

    shown = screen(record_of("pipeline-4-a-chunk", late_engine))
    assert "The engine's CPU was busy with this run for only 40 % of the time" in shown


def test_a_run_that_breaks_says_how_many_processes_it_takes():
    def change(found):
        (run,) = found.runs
        run.batch, run.steps, run.broken = 256, 1_000, "falls behind by 500 ms a second"
        for process in run.processes:
            process.cpu_s = {"engine": 0.1, "front-end": 12.5, "clients": 99.0}[process.name]

    shown = screen(record_of("pipeline-4-a-chunk", change))
    assert "At B = 256 this takes about 3 front ends (modelled: CPU a step / T_step)" in shown
    found = details_of(record_of("pipeline-4-a-chunk", change))
    assert needed_by_cpu(found.runs[0], found.t_step_s) == {"front end": 3}


def test_parts_say_how_many_processes_a_ramp_takes():
    assert needed_by_parts(details(), 64) == {"front end": 1}
    assert needed_by_parts(details(), 128) == {"front end": 2}
    assert needed_by_parts(details("pipeline-batch-decode"), 256)["detokenizer"] > 1


def test_what_the_clients_read_is_not_the_hosts():
    shown = screen(read_record(REFERENCE / "pipeline-batch-decode-http.json"))
    assert "40 % is reading by the clients, which a server does not pay" in shown
    assert "the engine shares its CPU with front-end and clients" in shown


def test_a_late_engine_is_compared_by_its_steps():
    record = read_record(REFERENCE / "pipeline-batch-decode-stop.json")
    shown = screen(record)
    assert "the engine did 80 % of the steps due; the measured parts predict 80 %" in shown
    found = details_of(record)
    panel = overload_panel(found.runs, found)
    assert panel.y == "% of the steps due"
    assert panel.predicted[0] == 100
    assert panel.predicted[-1] == pytest.approx(80, abs=1)


def test_a_detokenizer_without_work_is_named():
    def change(found):
        process = next(p for p in found.runs[-1].processes if p.name == "detokenizer")
        process.name, process.ids = "detokenizer-1", 0
        found.front_ends = 2

    shown = screen(record_of("pipeline-batch-decode", change))
    assert "detokenizer-1 got no work: SGLang assigns by front end (hash)." in shown


def test_processes_that_are_not_pinned_are_said_to_be_too_many():
    record = record_of("pipeline-4-a-chunk", lambda found: found.cpus.update(engine=None))
    record.settings["pinned"] = False
    assert "(not pinned: more processes than CPUs)" in screen(record)


def test_times_and_stops_are_shown_as_given():
    shown = screen(read_record(REFERENCE / "pipeline-soak.json"))
    assert "T_step 4.48 ms (given)" in shown
    stops = screen(read_record(REFERENCE / "pipeline-batch-decode-stop.json"))
    assert "stops '</answer>'" in stops


@pytest.mark.parametrize("highest", [0, 3, 90, 150, 900, 5_000, 2e5, 3e7])
def test_the_queues_axis_has_a_few_ticks_in_order(highest):
    ticks = queue_ticks(highest)
    assert 3 <= len(ticks) <= 10
    assert ticks == sorted(set(ticks))
    assert highest <= 100 or ticks[-1] >= highest / 10
