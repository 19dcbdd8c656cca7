"""How many streamed answers a second one core gets done, beside other tools in the same run, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from arms import CommandFailed, interleaved
from record import Bound, Promise, Result, figure, ratio

from assay.units import seconds
from load.quiet import Quiet
from load.server import Answers, serving
from load.tools import ASSAY_TOOL, Ran, Tool, Tools, label, peers, put_to

_WHAT = "Streamed answers of 16 tokens, 64 at a time, one core"


def _rate_promise(peer: str, least: float, of: str) -> Promise:
    return Promise(f"rate-{peer}", _WHAT, Bound.AT_LEAST, least, "times", of)


# 0.30 is 25,000 where wrk, which only counts bytes, does 84,000.
PROMISES = {
    "wrk": _rate_promise("wrk", 0.30, "wrk's rate"),
    "aiohttp": _rate_promise("aiohttp", 10, "that of aiohttp with uvloop"),
    "locust": _rate_promise("locust", 10, "locust's rate"),
    "vllm": _rate_promise("vllm", 8, "that of vLLM's request function"),
    "inference-perf": _rate_promise("inference-perf", 20, "inference-perf's rate"),
    "aiperf": _rate_promise("aiperf", 50, "aiperf's rate"),
    "guidellm": _rate_promise("guidellm", 90, "guidellm's rate"),
}
CPU = Promise("cpu", "Marginal CPU time of 1,000 such answers", Bound.AT_MOST, 0.07, "s")

Rounds = Mapping[str, Sequence[Ran]]


def measure(quick: bool, with_heavy: bool = True) -> list[Result]:
    there = peers(with_heavy=with_heavy and not quick)
    long, short = (4, 1) if quick else (10, 2)
    tools = [ASSAY_TOOL, *there.tools]
    # Whoever keeps both cores busy is interrupted all the time; to begin in a quiet moment is all that can be had.
    quiet = Quiet(tries=1)
    with serving(Answers()) as server:
        puts = {tool.name: partial(put_to, server, tool, long) for tool in tools}
        puts |= {_short(tool.name): partial(put_to, server, tool, short) for tool in tools if _has_cpu(tool)}
        arms = {name: partial(quiet.then, put) for name, put in puts.items()}
        found = interleaved(arms, 1 if quick else 3)
    # A tool that failed once is left out: what it does on other days is not known.
    whole = {name: [one for one in runs if one] for name, runs in found.items() if all(runs)}
    if ASSAY_TOOL.name not in whole or _short(ASSAY_TOOL.name) not in whole:
        raise CommandFailed("`assay load` itself failed: see above.")
    return [*_rates(whole, there), _cpu(whole)]


def _short(name: str) -> str:
    return f"{name}, short"


def _has_cpu(tool: Tool) -> bool:
    """Tools that take half a minute to begin are not run a second time for their margin."""
    return not tool.is_heavy and tool.name != "wrk"


def _rates(found: Rounds, there: Tools) -> list[Result]:
    ours = _rate_of(found["assay"])
    results: list[Result] = []
    for name, promise in PROMISES.items():
        if name not in found:
            continue
        theirs = _rate_of(found[name])
        values = {"assay": ours, name: theirs}
        detail = "" if results else _detail(found, there)
        judged = ratio(ours, theirs)
        results.append(
            Result(promise, "1/s", figure(ours), judged, {label(name): figure(theirs)}, detail, values)
        )
    return results


def _rate_of(runs: Sequence[Ran]) -> list[float]:
    return [one.truth.rate for one in runs]


def _detail(found: Rounds, there: Tools) -> str:
    begun = ", ".join(
        f"{label(name)} {seconds(figure([one.first for one in runs]).value)}"
        for name, runs in found.items()
        if name == "assay" or name in PROMISES
    )
    missing = sorted({*PROMISES} - {*found})
    why = "; ".join(f"{label(name)}: {there.left_out.get(name, 'its command failed')}" for name in missing)
    return f"From the shell to the first request: {begun}." + (f" Left out: {why}." if why else "")


def _cpu(found: Rounds) -> Result:
    costs = {
        name: _at_the_margin(found[name], found[_short(name)])
        for name in found
        if _short(name) in found and name in found
    }
    ours = costs.pop("assay")
    detail = (
        "Of the command and all its processes: what a longer run takes more than a shorter one, by the requests "
        "that it makes more."
    )
    peers_ = {label(name): figure(values) for name, values in costs.items()}
    return Result(CPU, "s", figure(ours), figure(ours), peers_, detail, {"assay": ours, **costs})


def _at_the_margin(long: Sequence[Ran], short: Sequence[Ran]) -> list[float]:
    return [
        1000 * (more.end.cpu - less.end.cpu) / max(1, more.truth.requests - less.truth.requests)
        for more, less in zip(long, short, strict=True)
    ]
