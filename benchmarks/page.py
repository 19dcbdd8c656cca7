"""Writes docs/benchmarks.md from the stored results; with --check, says whether it is out of date and exits with 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import load.page
import packs.page
import rl.page
import scale.page
import server.page
import stats.page
from record import RESULTS, Result, in_unit, stored

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
ORDER = (
    "throughput",
    "memory",
    "cases",
    "cases-memory",
    "command",
    "http",
    "openai",
    "waiting",
    "recorded",
    "sim-llm-answers",
    "sim-llm-punctuality",
    "empty-function",
    "ten-microseconds-pyperf",
    "ten-microseconds-pytest-benchmark",
    "timing-overhead",
    "startup-help",
    "startup-list",
    "startup-run",
    "import",
    "report-seconds",
    "report-size",
    "cost-seconds",
    "sandbox-start",
    "profile-overhead",
)
OPENING = """\
<!-- Written by benchmarks/page.py from benchmarks/results (make bench). -->

# The overhead of Assay

A measuring tool must be cheap, and its figures must agree with those of other tools. Each row is a target, checked against a measurement
in which Assay and similar tools (the peers) took turns in one run on one machine. A figure is the median over the rounds, a ratio the Walsh
average of the ratios of the rounds. In brackets are 95 % intervals or, with fewer than six rounds, the extremes.
"""
REPRODUCE = """\
## Reproduce

    make bench                                     # everything, several minutes; exit code 1 if a target is missed
    python benchmarks/run.py --only startup        # one part: throughput, agents, timer, startup, reports, questions
    python benchmarks/run.py --quick               # a trial with fewer rounds and smaller runs; stores nothing

The observations of every round are in `benchmarks/results`, one file per promise, and this page is generated from those files alone. The
peers come with the extra `bench`. Absolute times belong to the machine above; compare the ratios with yours.
"""
READING = """\
## How it is measured

- Every observation comes from a new process in a new folder. Every round runs all arms in random order, so drift affects all of them.
- **Throughput**: the time of 200,000 executions minus that of 20,000, so that the start cancels out. The bare loop times a call, writes one
  SQLite row for it and commits every thousand rows: no program that stores executions one by one can be faster.
- **Memory**: peak resident memory of the runner or its worker, whichever is larger, as the kernel reports it.
- **Figures for functions**: each tool measures the same function with values of a millisecond; an observation is the median of the values of
  one process. The function of 10 µs allocates nothing. With an earlier one that did, pyperf and pytest-benchmark differed from each other by
  about 9 % (medians 11.5 and 10.6 µs over 15 rounds), so it could not judge a third tool.
- **Timing overhead**: our loop, including what the clock normally subtracts, against the figure of pytest-benchmark for the same function.
- **Costs**: the whole command as people type it, with ten agents and 100,000 executions each.
- **Sandbox**: the time from start to end of `/bin/true`, 50 times in a row, as the difference within each round.
- **Profile**: an agent that parses, sorts, computes and waits for 0.1 s; sampled and unsampled executions alternate in one process.
- **Start**: wall time of the command, started as a shell does it; `python -c pass` is the share of the interpreter. A run of one execution includes
  the noise probe, a new database and the worker process.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args(arguments)
    text = page(stored(asked.results))
    for part in (load.page, server.page, packs.page, rl.page, scale.page):
        if found := stored(asked.results / part.RESULTS.name):
            text = f"{text}\n{section(found, part)}"
    if statistics := stats.page.section(stored(asked.results / "stats")):
        text = f"{text}\n{statistics}"
    if not asked.check:
        asked.page.write_text(text, encoding="utf-8")
        return 0
    is_current = asked.page.is_file() and asked.page.read_text(encoding="utf-8") == text
    if not is_current:
        print(f"{asked.page.name} is out of date: python benchmarks/page.py")
    return 0 if is_current else 1


def page(results: Sequence[Result]) -> str:
    ordered = sorted(results, key=lambda one: _place(one.promise.name))
    sections = [
        OPENING,
        _verdict(ordered),
        _table(ordered),
        _remarks(ordered),
        READING,
        _machines(ordered),
        REPRODUCE,
    ]
    return "\n".join(sections)


def section(results: Sequence[Result], part: ModuleType) -> str:
    """The part of the page about the load engine, the server or the packs."""
    ordered = sorted(results, key=lambda one: _place(one.promise.name, part.ORDER))
    sections = [
        part.OPENING,
        _verdict(ordered),
        _table(ordered),
        _remarks(ordered),
        part.READING,
        _machines(ordered),
        part.REPRODUCE,
    ]
    return "\n".join(sections)


def _place(name: str, order: Sequence[str] = ORDER) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)


def _verdict(results: Sequence[Result]) -> str:
    missed = [one for one in results if not one.holds]
    if not missed:
        return f"**All {len(results)} targets are met.**\n"
    names = ", ".join(f"`{one.promise.name}`" for one in missed)
    return f"**{len(missed)} of {len(results)} targets {'is' if len(missed) == 1 else 'are'} missed: {names}.**\n"


def _table(results: Sequence[Result]) -> str:
    rows = ["| what | target | measured | peers | verdict |", "|---|---|---|---|---|", *map(_row, results)]
    return "\n".join(rows) + "\n"


def _row(result: Result) -> str:
    peers = "; ".join(f"{name} {peer.shown(result.unit)}" for name, peer in result.peers.items())
    verdict = "met" if result.holds else "**missed**"
    cells = (result.promise.claim, result.promise.shown(), measured(result), peers or "–", verdict)
    return f"| {' | '.join(cells)} |"


def measured(result: Result) -> str:
    """Our own figure and, where it is another, the one that was judged."""
    judged = result.judged.shown(result.promise.unit)
    if result.judged == result.ours:
        return judged
    return f"{judged}; Assay {result.ours.shown(result.unit)}"


def _remarks(results: Sequence[Result]) -> str:
    lines = [*_details(results), *_closest(results), *_unsettled(results), *_doubts(results)]
    return "\n".join(["## Remarks\n", *(f"- {line}" for line in lines)]) + "\n"


def _details(results: Sequence[Result]) -> Iterator[str]:
    return (f"`{one.promise.name}`: {one.detail}" for one in results if one.detail)


def _closest(results: Sequence[Result]) -> Iterator[str]:
    used = [(_used(one), one) for one in results if one.holds and one.promise.threshold]
    if used:
        share, one = max(used, key=lambda pair: pair[0])
        yield f"The target with the smallest margin is `{one.promise.name}`: it uses {in_unit(share, 'share')} of its bound."


def _used(result: Result) -> float:
    """The share of the bound that a kept promise takes up."""
    value, threshold = abs(result.judged.value), result.promise.threshold
    return threshold / value if result.promise.bound == "at least" else value / threshold


def _unsettled(results: Sequence[Result]) -> Iterator[str]:
    for one in results:
        if not one.is_settled:
            said = "is met" if one.holds else "is missed"
            yield (
                f"`{one.promise.name}` {said}, but the interval includes the bound: "
                "more rounds or a quieter machine may change that."
            )


def _doubts(results: Sequence[Result]) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for one in results:
        for doubt in one.machine["doubts"]:
            told.setdefault(doubt, []).append(f"`{one.promise.name}`")
    return (f"{', '.join(names)}: {doubt}" for doubt, names in told.items())


def _machines(results: Sequence[Result]) -> str:
    states: dict[tuple[str, str, str], list[Result]] = {}
    for one in results:
        key = (one.machine["class"], one.machine["python"], one.date)
        states.setdefault(key, []).append(one)
    lines = ["## Machine\n", "| machine | Python | date | load before | targets |", "|---|---|---|---|---|"]
    for key, group in states.items():
        loads = sorted(one.machine["load"] for one in group)
        names = "all" if len(states) == 1 else ", ".join(one.promise.name for one in group)
        lines.append(f"| {' | '.join(key)} | {loads[0]} to {loads[-1]} | {names} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
