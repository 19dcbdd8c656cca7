"""Whether a rate is kept up without a loss, and whether the capacity of a server with known slots is found."""

from __future__ import annotations

import json
import statistics

from record import Bound, Promise, Result, figure

from assay.units import count, percent, seconds
from load.exactness import ANSWERS
from load.server import Answers, serving
from load.tools import assay

RATE = 1000
LOST = Promise("lost", "Requests without an answer at 1,000 a second for a minute", Bound.AT_MOST, 0, "")
KEPT = Promise(
    "kept-rate", "Requests that reached the server in that minute", Bound.WITHIN, 0.005, "share", "of 1,000 a second"
)  # fmt: skip
CAPACITY = Promise(
    "capacity", "Highest rate found for a server with known slots", Bound.WITHIN, 0.05, "share", "of the true one"
)  # fmt: skip
SLOTS = (
    Answers(ttft=0.020, itl=0.002, tokens=10, slots=8),
    Answers(ttft=0.050, itl=0.005, tokens=11, slots=16),
    Answers(ttft=0.010, itl=0.001, tokens=11, slots=4),
)


def sustained(quick: bool) -> list[Result]:
    length = 6 if quick else 60
    with serving(ANSWERS) as server:
        done = assay(server, "--rate", str(RATE), "--duration", f"{length}s", "--warmup", "0s")
    told, truth = json.loads(done.end.stdout), done.truth
    lost = figure([float(RATE * length - told["requests_completed"])])
    rate = (truth.requests - 1) / (truth.arrivals[-1] - truth.arrivals[0])
    off = figure([rate / RATE - 1])
    errors = ", ".join(f"{kind} {count(number)}" for kind, number in told["errors"].items())
    p50, p99 = (told["ttft_ms"][at] / 1e3 - truth.ttft[at] for at in ("p50", "p99"))
    detail = (
        f"{length} s; {count(truth.requests)} requests reached the server, {count(told['requests_completed'])} answers were counted"
        f"{f', errors: {errors}' if errors else ''}. The first token is reported within {seconds(abs(p50))} "
        f"at P50 and {seconds(abs(p99))} at P99 of the truth."
    )
    return [
        Result(LOST, "", lost, lost, detail=detail),
        Result(KEPT, "1/s", figure([rate]), off),
    ]


def capacity(quick: bool) -> list[Result]:
    off, told = [], []
    for answers in SLOTS[:1] if quick else SLOTS:
        with serving(answers) as server:
            done = assay(server, "--find-capacity", "--duration", "2s" if quick else "3s")
        true = answers.slots / answers.seconds
        found = json.loads(done.end.stdout)
        off.append(found["sustained_rate"] / true - 1)
        told.append(
            f"{answers.slots} slots of {seconds(answers.seconds)}: true {true:.1f}/s, found "
            f"{found['sustained_rate']:.1f} to {found['breaking_rate']:.1f}/s in {seconds(done.end.seconds)}"
        )
    worst = max(off, key=abs)
    judged = figure(off)
    detail = f"{'; '.join(told)}. Off by {percent(worst)} at worst, {percent(statistics.mean(map(abs, off)))} on average."
    return [Result(CAPACITY, "share", judged, judged, detail=detail, values={"off": off})]
