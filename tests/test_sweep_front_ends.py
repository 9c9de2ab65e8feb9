"""``sweep --host-cost-from``: whole front ends beside the bare paths. Costs worked out by hand."""

import io

import msgspec
import pytest
from rich.console import Console
from test_sweep import SMALL, US, options, sweep_record

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.model.crossover import Answer
from detokbench.records.front_end_costs import front_end_costs
from detokbench.records.frontend import FrontendDetails, FrontendEngine, FrontendRun, RoleCpu
from detokbench.records.pipeline import Quantiles
from detokbench.records.store import read_record, write_record
from detokbench.records.sweep import Sweep
from detokbench.report.kinds import draw_chart
from detokbench.report.sweep_front_ends import measured_front_ends, whole_front_ends
from detokbench.report.sweep_reading import read_sweep, recommend
from detokbench.report.sweep_screen import print_sweep

NOTHING = Quantiles(count=0, mean=None, p50=None, p90=None, p99=None, longest=None)


def run(engine, streams, t_ms, roles, **changes):
    """A run that held; ``roles`` are µs a token."""
    fields = {
        "engine": engine, "of": "grid", "variant": "completions", "streams": streams,
        "t_step_s": t_ms * 1e-3, "window_s": 2.0, "steps": 200, "late_steps": 0,
        "worst_late_s": 0.0, "steps_share": 1.0, "ids": 1000, "requests": 10,
        "roles": [
            RoleCpu(role=role, s_per_token=us * US, share=0.1) for role, us in roles.items()
        ],
        "chunks_per_token": 1.0, "events_per_token": 1.0, "events_per_read": 1.0,
        "stretch": 1.0, "stretch_streams": 5,
        "itl": NOTHING, "lag": NOTHING, "ttft": NOTHING, "holds": True, "why_not": "",
        "bound_by": "", "kept_share": 1.0, "checked": 5, "wrong": 0, "first_difference": "",
    }  # fmt: skip
    return FrontendRun(**{**fields, **changes})


def frontend_record(runs, front_ends=1, cpu="a CPU"):
    names = dict.fromkeys(run.engine for run in runs)
    details = FrontendDetails(
        engines=[
            FrontendEngine(name=name, summary="", version="1.2", ready_s=1.0) for name in names
        ],
        front_ends=front_ends, streams=[1, 128], t_steps_s=[0.01], max_tokens=256, prompt_len=16,
        is_ascii=True, stop=[], rule="", gpu="", shape="", curves=[], runs=runs, limits=[],
        answers=[], open_ends=[],
    )  # fmt: skip
    record = sweep_record()
    record.kind = "frontend"
    record.machine["cpu"] = cpu
    record.details = msgspec.to_builtins(details, str_keys=True)
    return record


def line(engine="vllm", fixed_us=0.0, us=30.0, streams=(1, 64, 128), role="http"):
    """Runs of a front end whose step costs ``fixed_us`` and ``us`` more a stream."""
    return [run(engine, n, 10, {role: us + fixed_us / n, "client": 500.0}) for n in streams]


def swept(*records, **changes):
    """A sweep with the front ends of these records, as one read from a file."""
    costs = [cost for record in records for cost in front_end_costs(record)]
    written = sweep_record(asked=options(front_ends=costs, **changes))
    encoded = msgspec.json.encode(written)
    return Sweep(msgspec.json.decode(encoded, type=type(written)))


def screen(sweep, width=120):
    out = io.StringIO()
    print_sweep(sweep.record, Console(file=out, width=width))
    return " ".join(out.getvalue().split())


# From the record to a cost


def cost_of(runs, **changes):
    (cost,) = front_end_costs(frontend_record(runs, **changes))
    return cost


def test_the_busiest_process_counts_and_our_own_do_not():
    runs = [
        run("sglang", n, 10, {"http": 30, "detokenizer": 5, "engine": 90, "client": 70})
        for n in (1, 128)
    ]
    at = cost_of(runs).at_streams
    assert [(n, one.role, one.s_per_token) for n, one in at.items()] == [
        (1, "http", pytest.approx(30 * US)),
        (128, "http", pytest.approx(30 * US)),
    ]


def test_the_busiest_process_may_be_another_at_other_streams():
    runs = [
        run("sglang", 1, 10, {"http": 9, "detokenizer": 10}),
        run("sglang", 64, 10, {"http": 30, "detokenizer": 5}),
    ]
    assert [one.role for one in cost_of(runs).at_streams.values()] == ["detokenizer", "http"]


def test_front_ends_share_http_and_nothing_else():
    runs = [run("sglang", n, 10, {"http": 40, "router": 15}) for n in (1, 64)]
    assert cost_of(runs, front_ends=4).at_streams[64].role == "router"
    assert cost_of(runs, front_ends=2).at_streams[64].s_per_token == pytest.approx(20 * US)


def test_the_shortest_t_step_asked_for_that_held_is_taken():
    runs = [
        *line(streams=(1, 64)),
        run("vllm", 64, 20, {"http": 50}),
        run("vllm", 64, 5, {"http": 22}),
        run("vllm", 64, 4, {"http": 9}, holds=False),
        run("vllm", 64, 1, {"http": 5}, of="search"),  # its limit, where writes merge
        run("vllm", 64, 1, {"http": 99}, variant="chat", of="variant"),
    ]
    at = cost_of(runs).at_streams[64]
    assert (at.t_step_s, at.held_s) == (5e-3, 1e-3)
    assert at.s_per_token == pytest.approx(22 * US)


def test_what_held_is_proof_against_cpu_at_an_easy_pace():
    easy = line("vllm-rs", us=60.0, role="rust")
    held = run("vllm-rs", 128, 0.8, {"rust": 6}, of="search")
    cost = cost_of([*easy, held])
    assert cost.host_s(1, 1)(128) == pytest.approx(0.8e-3)
    assert cost.host_s(1, 1)(64) == pytest.approx(64 * 60 * US)
    said = screen(swept(frontend_record([*easy, held])))
    assert "60 at 128 (10.0 ms, held 0.800 ms) streams" in said


def test_where_none_asked_for_held_it_is_what_the_search_found():
    runs = [
        *line(streams=(1,)),
        run("vllm", 64, 5, {"http": 9}, holds=False),
        run("vllm", 64, 12, {"http": 20}, of="search"),
        run("vllm", 64, 9, {"http": 21}, of="search"),
        run("vllm", 64, 9, {"http": 23}, of="search"),
    ]
    at = cost_of(runs).at_streams[64]
    assert at.t_step_s == at.held_s == pytest.approx(9e-3)
    assert at.s_per_token == pytest.approx(22 * US)


def test_where_none_held_the_longest_t_step_is_a_lower_bound():
    runs = [
        *line(streams=(1, 64)),
        run("vllm", 128, 4, {"http": 5}, holds=False),
        run("vllm", 128, 8, {"http": 9}, holds=False),
    ]
    at = cost_of(runs).at_streams[128]
    assert (at.s_per_token, at.held_s) == (pytest.approx(9 * US), None)
    assert "30 at 1 (10.0 ms), ≥ 9.0 at 128 (8.00 ms) streams" in screen(
        swept(frontend_record(runs[-2:] + runs[:1]))
    )


def test_a_run_without_ids_says_nothing():
    runs = [*line(streams=(1, 64)), run("vllm", 128, 10, {"http": 0}, ids=0)]
    assert list(cost_of(runs).at_streams) == [1, 64]


# From the cost to B*


def b_star(sweep, context):
    (whole,) = measured_front_ends(sweep)
    curve = next(curve for curve in sweep.curves if curve.context == context)
    return whole.crossover(curve)


def test_b_star_lies_between_the_measured_streams():
    sweep = swept(frontend_record(line(us=60.0)))
    found = b_star(sweep, 128)
    assert (found.answer, found.text) == (Answer.CROSSES, "81")  # the design's figure for 60 µs
    assert sweep.curves[0](found.batch) == pytest.approx(found.batch * 60 * US)


def test_the_fixed_part_of_a_step_is_in_it():
    bare, fixed = (b_star(swept(frontend_record(line(fixed_us=us, us=60))), 128) for us in (0, 900))
    assert fixed.batch < bare.batch - 10


def test_beyond_the_measured_streams_it_is_extrapolated_and_said_so():
    sweep = swept(frontend_record(line(us=20.0)))
    assert (b_star(sweep, 128).answer, round(b_star(sweep, 128).batch)) == (
        Answer.EXTRAPOLATED,
        299,
    )
    said = screen(sweep)
    assert "vllm front end (measured) ~20 ~299 never" in said
    assert "by extrapolation it needs" in said


def test_below_the_fewest_measured_streams_as_well():
    sweep = swept(frontend_record(line(us=200.0, streams=(64, 128))))
    found = b_star(sweep, 128)
    assert found.answer is Answer.EXTRAPOLATED
    assert found.batch < 64


def test_a_cheap_one_never_crosses():
    assert b_star(swept(frontend_record(line(us=8.0))), 1024).answer is Answer.NEVER


def test_engines_and_ids_a_step_add_up():
    plain = b_star(swept(frontend_record(line(us=20.0))), 128)
    engines = b_star(swept(frontend_record(line(us=10.0)), engines_per_frontend=2), 128)
    ids = b_star(swept(frontend_record(line(us=10.0)), ids_per_step=2), 128)
    assert engines.batch == pytest.approx(plain.batch)
    assert ids.batch == pytest.approx(plain.batch)


# What is shown


def test_a_measured_front_end_takes_the_place_of_the_published_figure():
    names = [whole.label for whole in whole_front_ends(swept(frontend_record(line("vllm-rs"))))]
    assert names == [
        "vllm-rs front end (measured)",
        "vLLM, Python, given",
        "SGLang, Python, given",
        "SGLang, Rust, given",
    ]
    assert [whole.origin for whole in whole_front_ends(Sweep(sweep_record()))] == ["given"] * 4


def test_a_front_end_of_a_third_party_is_shown_beside_them():
    said = screen(swept(frontend_record(line("mine", us=60))))
    assert "mine front end (measured) ~60 81" in said
    assert "mine 1.2, http: µs a token 60 at 1 (10.0 ms), 60 at 64 (10.0 ms)" in said


def test_how_many_front_ends_a_batch_needs():
    said = screen(swept(frontend_record(line(us=60))))
    assert "vllm front end (measured) – / 3 – / 2" in said  # 5.76 and 14.7 ms a step


def test_a_front_end_that_is_late_is_told_with_the_processes_it_needs():
    sweep = swept(frontend_record(line(us=60)))
    assert "The whole front end vllm is late at B = 256, L = 128" in " ".join(read_sweep(sweep))
    assert "vllm (~60 µs a token, measured) needs 3 processes" in recommend(sweep)


def test_another_machine_is_named():
    assert "vllm 1.2 on a larger CPU, http:" in screen(
        swept(frontend_record(line(), cpu="a larger CPU"))
    )
    assert "vllm 1.2, http: µs a token 30" in screen(swept(frontend_record(line())))


def test_several_front_ends_are_in_the_name():
    said = screen(swept(frontend_record(line(), front_ends=4)))
    assert "vllm x 4 front end (measured)" in said


def test_its_line_is_in_the_chart(tmp_path):
    sweep = swept(frontend_record(line(us=60)), frontend_record(line("sglang", us=20)))
    _, svg = draw_chart(sweep.record, tmp_path / "c.json")
    drawn = svg.read_text()
    assert "vllm front end (measured)" in drawn
    assert "thick: whole front ends, dotted where prolonged" in drawn
    _, svg = draw_chart(sweep_record(), tmp_path / "without.json")
    assert "front end" not in svg.read_text()


# The option


def test_a_sweep_keeps_what_it_was_given(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_record(frontend_record(line(us=60)), tmp_path / "f.json")
    arguments = [*SMALL, "--paths", "byte-table", "--host-cost-from", "f.json", "--out", "r.json"]
    assert main(["sweep", *arguments]) == ExitCode.OK
    assert "vllm front end" in capsys.readouterr().out
    (tmp_path / "f.json").unlink()
    (whole,) = measured_front_ends(Sweep(read_record(tmp_path / "r.json")))
    assert whole.host_s(64) == pytest.approx(64 * 60 * US)
    assert main(["show", "r.json"]) == ExitCode.OK


def damaged(record):
    record.details["runs"] = "none"
    return record


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.json": sweep_record()}, "a.json is a record of sweep, not frontend"),
        ({"a.json": frontend_record(line(streams=(64,)))}, "measured at 2 numbers of streams"),
        ({"a.json": damaged(frontend_record(line()))}, "a.json is damaged"),
        (
            {"a.json": frontend_record(line()), "b.json": frontend_record(line())},
            "b.json has 'vllm', which an earlier one had",
        ),
    ],
)
def test_a_record_that_does_not_serve_is_one_line(tmp_path, monkeypatch, capsys, files, message):
    monkeypatch.chdir(tmp_path)
    for name, record in files.items():
        write_record(record, tmp_path / name)
    asked = [word for name in files for word in ("--host-cost-from", name)]
    assert main(["sweep", *asked]) == ExitCode.USAGE
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host-cost-from", "none.json"], "cannot read the record none.json"),
        (["--host-cost-from", "none.json", "--assume-c", "10us"], "measures and stores nothing"),
    ],
)
def test_so_is_one_that_is_not_there(capsys, arguments, message):
    assert main(["sweep", *arguments]) == ExitCode.USAGE
    assert message in capsys.readouterr().err
