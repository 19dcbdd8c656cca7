"""How near the reported times come to the server's own record, at three loads, and how punctual requests are."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from arms import interleaved
from record import Bound, Figure, Promise, Result, figure

from assay.units import seconds
from load.quiet import Quiet
from load.server import Answers, Server, Truth, serving
from load.tools import Put, Tool, assay, label, peers, put_to

ANSWERS = Answers(ttft=0.05, itl=0.005, tokens=20)
RATE = 200
LOADS: Mapping[str, Put] = {
    "1 at a time": Put(1, answer_seconds=ANSWERS.seconds),
    "32 at a time": Put(32, answer_seconds=ANSWERS.seconds),
    "200 a second": Put(None, RATE),
}
_HAS_STAMPS = sys.platform == "linux"
_TRUTH = "of the server's record"


def _promise(name: str, claim: str, limit: float) -> Promise:
    """Without the kernel's receive stamps, only 1.5 ms is promised."""
    return Promise(name, claim, Bound.WITHIN, limit if _HAS_STAMPS else 1.5e-3, "s", _TRUTH)


PROMISES = {
    "ttft_p50": _promise("ttft-p50", "Reported P50 of the first token, TTFT 50 ms and ITL 5 ms", 0.3e-3),
    "ttft_p99": _promise("ttft-p99", "Reported P99 of the first token", 0.25e-3),
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


Ask = Callable[[Server, str], Held | None]
"""Puts a server under one of the loads."""


def measure(quick: bool, with_heavy: bool = True) -> list[Result]:
    short = 4 if quick else 10
    quiet = Quiet()
    there = peers(with_heavy=with_heavy and not quick)
    tools = [tool for tool in there.tools if tool.told is not None]
    asking: dict[str, Ask] = {"assay": partial(_ours, short)}
    asking |= {tool.name: partial(_theirs, tool, short) for tool in tools}
    # Tools that take half a minute to begin are asked once.
    heavy = {tool.name for tool in tools if tool.is_heavy}
    with serving(ANSWERS) as server:
        found = interleaved(_arms(asking, server, quiet, without=heavy), 1 if quick else 3)
        quiet.tries = 1
        found |= interleaved(_arms(asking, server, quiet, without=set(asking) - heavy), 1)
    by_tool = {
        name: {load: [one for one in found[f"{name}, {load}"] if one is not None] for load in LOADS}
        for name in asking
    }
    results = [*(_result(which, by_tool, there.left_out) for which in PROMISES), _punctual(by_tool)]
    return [replace(one, detail=f"{one.detail} {quiet}.".lstrip()) for one in results]


def _arms(
    asking: Mapping[str, Ask], server: Server, quiet: Quiet, without: Collection[str]
) -> dict[str, Callable[[], Held | None]]:
    return {
        f"{name}, {load}": partial(quiet.then, partial(ask, server, load))
        for name, ask in asking.items()
        for load in LOADS
        if name not in without
    }


def _length(short: int, load: str) -> int:
    """Of one at a time, a P99 takes longer to have."""
    return short * 3 if LOADS[load].at_once == 1 else short


def _ours(short: int, server: Server, load: str) -> Held:
    # Everything counts: the server's record knows no warm-up either.
    done = assay(server, *LOADS[load].options(), "--duration", f"{_length(short, load)}s", "--warmup", "0s")
    told = json.loads(done.end.stdout)
    reported = {
        "ttft_p50": told["ttft_ms"]["p50"] / 1e3,
        "ttft_p99": told["ttft_ms"]["p99"] / 1e3,
        "itl_p99": told["itl_ms"]["p99"] / 1e3,
    }
    sent = {f"ttft_{at}": told["ttft_from_send_ms"][at] / 1e3 - done.truth.ttft[at] for at in ("p50", "p99")}
    return replace(_held(reported, done.truth, load), from_send=sent)


def _theirs(tool: Tool, short: int, server: Server, load: str) -> Held | None:
    """None when the tool failed, which is told."""
    done = put_to(server, tool, _length(short, load), LOADS[load], reads=True)
    return None if done is None else _held(done.told, done.truth, load)


def _held(reported: Mapping[str, float], truth: Truth, load: str) -> Held:
    true = {"ttft_p50": truth.ttft["p50"], "ttft_p99": truth.ttft["p99"], "itl_p99": truth.itl["p99"]}
    errors = {name: reported[name] - value for name, value in true.items() if name in reported}
    return Held(errors, lateness(truth.arrivals, RATE) if LOADS[load].rate else None)


def lateness(arrivals: Sequence[float], rate: float) -> float:
    """P99 of how far requests are behind an even timetable through the most punctual of them.

    >>> round(lateness([0.0, 0.1, 0.25, 0.3], 10), 3)
    0.05
    """
    offsets = sorted(at - number / rate for number, at in enumerate(arrivals))
    return offsets[int(len(offsets) * 0.99)] - offsets[0]


def _result(
    which: str, found: Mapping[str, Mapping[str, Sequence[Held]]], left_out: Mapping[str, str]
) -> Result:
    """Judged by the load at which it is worst; so are the peers."""
    told = {
        tool: {
            load: [one.errors[which] for one in rounds if which in one.errors]
            for load, rounds in loads.items()
        }
        for tool, loads in found.items()
    }
    # A tool that failed at one of the loads, or does not tell, is left out.
    errors = {tool: loads for tool, loads in told.items() if all(loads.values())}
    worst = {label(tool): _worst(loads) for tool, loads in errors.items()}
    ours = worst.pop("assay")
    detail = f"The worst of three loads. {_by_load(errors['assay'])}"
    if sent := _median_of(found["assay"], which):
        detail += f". Counted from the send instead of when it was due: {sent}"
    detail += "".join(
        f". {label(tool)}: {_by_load(loads)}" for tool, loads in errors.items() if tool != "assay"
    )
    if missing := _missing(found, which, left_out):
        detail += f". Left out: {missing}"
    values = {f"{tool}, {load}": found_ for tool, loads in errors.items() for load, found_ in loads.items()}
    return Result(PROMISES[which], "s", ours, ours, worst, f"{detail}.", values)


def _missing(
    found: Mapping[str, Mapping[str, Sequence[Held]]], which: str, left_out: Mapping[str, str]
) -> str:
    """Which peers are not beside it, and why; wrk looks at no tokens."""
    why = {name: text for name, text in left_out.items() if name != "wrk"}
    for tool, loads in found.items():
        if not all(loads.values()):
            why[tool] = "its command failed"
        elif any(which not in one.errors for rounds in loads.values() for one in rounds):
            why[tool] = "it reports none"
    return "; ".join(f"{label(name)}: {text}" for name, text in why.items())


def _by_load(loads: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{load}: {seconds(statistics.median(values))}" for load, values in loads.items())


def _median_of(loads: Mapping[str, Sequence[Held]], which: str) -> str:
    told = {
        load: [one.from_send[which] for one in held if which in one.from_send] for load, held in loads.items()
    }
    return _by_load({load: values for load, values in told.items() if values})


def _worst(loads: Mapping[str, Sequence[float]]) -> Figure:
    return max((figure(values) for values in loads.values()), key=lambda one: abs(one.value))


def _punctual(found: Mapping[str, Mapping[str, Sequence[Held]]]) -> Result:
    late = {
        tool: [one.late for rounds in loads.values() for one in rounds if one.late is not None]
        for tool, loads in found.items()
    }
    ours = figure(late["assay"])
    worst = {label(tool): figure(values) for tool, values in late.items() if tool != "assay" and values}
    return Result(PUNCTUAL, "s", ours, ours, worst, values=late)
