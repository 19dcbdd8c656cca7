"""How near the reported times come to the server's own record, at three loads, and how punctual requests are."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from arms import fresh_folder, interleaved
from record import Bound, Figure, Promise, Result, figure

from assay.units import seconds
from load.server import Answers, Server, Truth, serving
from load.tools import assay, client, label, peers, ran

ANSWERS = Answers(ttft=0.05, itl=0.005, tokens=20)
RATE = 200
LOADS: Mapping[str, Sequence[str]] = {
    "1 at a time": ("--concurrency", "1"),
    "32 at a time": ("--concurrency", "32"),
    "200 a second": ("--rate", str(RATE)),
}
_HAS_STAMPS = sys.platform == "linux"
_TRUTH = "of the server's record"


def _promise(name: str, claim: str, limit: float) -> Promise:
    """Without the kernel's receive stamps, only 1.5 ms is promised."""
    return Promise(name, claim, Bound.WITHIN, limit if _HAS_STAMPS else 1.5e-3, "s", _TRUTH)


PROMISES = {
    "ttft_p50": _promise("ttft-p50", "Reported P50 of the first token, TTFT 50 ms and ITL 5 ms", 0.3e-3),
    "ttft_p99": _promise("ttft-p99", "Reported P99 of the first token", 0.5e-3),
    "itl_p99": _promise("itl-p99", "Reported P99 of the time between tokens", 0.15e-3),
}
PUNCTUAL = Promise(
    "schedule", "Lateness of requests at 200 a second, P99, seen by the server", Bound.AT_MOST, 0.3e-3, "s"
)

Errors = Mapping[str, float]
"""Of each figure: reported less true."""


@dataclass(frozen=True, slots=True)
class Held:
    errors: Errors
    late: float | None
    """P99 of the lateness, at a rate; None in a closed loop."""
    from_send: Errors = field(default_factory=dict)
    """As `errors`, of times counted from when a request was really sent; only ours tells them apart."""


def measure(quick: bool) -> list[Result]:
    length = 4 if quick else 10
    names = {tool.name for tool in peers(with_heavy=False).tools}
    scripts = {"aiohttp": "plain_aiohttp.py", "vllm": "as_vllm.py"}
    asking: dict[str, Callable[[Server, str], Held]] = {"assay": partial(_ours, length)}
    asking |= {name: partial(_theirs, script, length) for name, script in scripts.items() if name in names}
    with serving(ANSWERS) as server:
        arms = {
            f"{name}, {load}": partial(ask, server, load) for name, ask in asking.items() for load in LOADS
        }
        found = interleaved(arms, 1 if quick else 3)
    by_tool = {name: {load: found[f"{name}, {load}"] for load in LOADS} for name in asking}
    return [*(_result(which, by_tool) for which in PROMISES), _punctual(by_tool)]


def _ours(length: int, server: Server, load: str) -> Held:
    # Everything counts: the server's record knows no warm-up either.
    done = assay(server, *LOADS[load], "--duration", f"{length}s", "--warmup", "0s")
    told = json.loads(done.end.stdout)
    reported = {
        "ttft_p50": told["ttft_ms"]["p50"] / 1e3,
        "ttft_p99": told["ttft_ms"]["p99"] / 1e3,
        "itl_p99": told["itl_ms"]["p99"] / 1e3,
    }
    sent = {f"ttft_{at}": told["ttft_from_send_ms"][at] / 1e3 - done.truth.ttft[at] for at in ("p50", "p99")}
    return replace(_held(reported, done.truth, load), from_send=sent)


def _theirs(script: str, length: int, server: Server, load: str) -> Held:
    with fresh_folder() as folder:
        done = ran(server, client(script, server.url, length, *LOADS[load]), folder)
    return _held(json.loads(done.end.stdout), done.truth, load)


def _held(reported: Mapping[str, float], truth: Truth, load: str) -> Held:
    true = {"ttft_p50": truth.ttft["p50"], "ttft_p99": truth.ttft["p99"], "itl_p99": truth.itl["p99"]}
    errors = {name: reported[name] - true[name] for name in true}
    return Held(errors, lateness(truth.arrivals, RATE) if "--rate" in LOADS[load] else None)


def lateness(arrivals: Sequence[float], rate: float) -> float:
    """P99 of how far requests are behind an even timetable through the most punctual of them.

    >>> round(lateness([0.0, 0.1, 0.25, 0.3], 10), 3)
    0.05
    """
    offsets = sorted(at - number / rate for number, at in enumerate(arrivals))
    return offsets[int(len(offsets) * 0.99)] - offsets[0]


def _result(which: str, found: Mapping[str, Mapping[str, Sequence[Held]]]) -> Result:
    """Judged by the load at which it is worst; so are the peers."""
    errors = {
        tool: {load: [one.errors[which] for one in rounds] for load, rounds in loads.items()}
        for tool, loads in found.items()
    }
    worst = {label(tool): _worst(loads) for tool, loads in errors.items()}
    ours = worst.pop("assay")
    detail = "The worst of three loads. " + ", ".join(
        f"{load}: {seconds(statistics.median(values))}" for load, values in errors["assay"].items()
    )
    if sent := _median_of(found["assay"], which):
        detail += f". Counted from the send instead of when it was due: {sent}"
    values = {f"{tool}, {load}": found_ for tool, loads in errors.items() for load, found_ in loads.items()}
    return Result(PROMISES[which], "s", ours, ours, worst, f"{detail}.", values)


def _median_of(loads: Mapping[str, Sequence[Held]], which: str) -> str:
    told = {
        load: [one.from_send[which] for one in held if which in one.from_send] for load, held in loads.items()
    }
    return ", ".join(
        f"{load}: {seconds(statistics.median(values))}" for load, values in told.items() if values
    )


def _worst(loads: Mapping[str, Sequence[float]]) -> Figure:
    return max((figure(values) for values in loads.values()), key=lambda one: abs(one.value))


def _punctual(found: Mapping[str, Mapping[str, Sequence[Held]]]) -> Result:
    late = {
        tool: [one.late for rounds in loads.values() for one in rounds if one.late is not None]
        for tool, loads in found.items()
    }
    ours = figure(late["assay"])
    worst = {label(tool): figure(values) for tool, values in late.items() if tool != "assay"}
    return Result(PUNCTUAL, "s", ours, ours, worst, values=late)
