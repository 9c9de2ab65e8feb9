"""What runs say together, and what a record's sentences make of it. No process, no clock."""

from pathlib import Path

import pytest

from detokbench.records.pipeline import details_of
from detokbench.records.store import read_record
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
    import msgspec

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
