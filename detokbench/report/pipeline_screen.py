"""stub"""


def print_pipeline(record, console):
    from detokbench.records.pipeline import details_of

    d = details_of(record)
    if d.prediction:
        for p in d.prediction.parts:
            console.print(
                p.process,
                p.part,
                p.batch,
                f"{p.seconds * 1e6:.1f} us  {p.seconds / p.batch * 1e6:.2f} us/row",
            )
        console.print(
            d.prediction.batches, d.prediction.host_s, d.prediction.busiest, d.prediction.answer
        )
        console.print("live", d.live_low, d.live_high, d.live_batch)
    for r in d.runs:
        console.print(
            r.of,
            r.batch,
            "steps",
            r.steps,
            "late",
            r.late_steps,
            "drift",
            r.drift_s,
            "itl",
            r.itl.p50,
            r.itl.p99,
            "cpt",
            r.chunks_per_token,
            "lag",
            r.lag_s_per_s,
            "und",
            r.undelivered_ids,
            "broken:",
            r.broken,
            "checked",
            r.checked,
            r.wrong,
            r.first_difference,
            "aborted",
            r.aborted,
            "req",
            r.requests,
            r.finished,
        )
        for h in r.hops:
            console.print("   ", h.name, h.delay.count, h.delay.p50, h.delay.p99)
        for p in r.processes:
            console.print(
                "   ", p.name, "cpu", p.cpu_share, "block", p.longest_block_s, "left", p.states_left
            )
    if d.self_test:
        console.print(d.self_test)
