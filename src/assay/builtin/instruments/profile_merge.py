"""Joins what py-spy saw (the stack of each thread) with what the kernel knows (why a thread waits), by time.

py-spy writes events: at this time this thread entered or left this frame. The sampler writes rows: at this time these threads were in
these states. A sample is one thread in one row, with the stack that the thread had then. Its state becomes a last frame in brackets, so
that every program that shows speedscope files shows it as well.
"""

from __future__ import annotations

import re
import sysconfig
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from assay.builtin.instruments.source_names import short_path

Frame = tuple[str, str, int]
"""Function, file, line; a frame without a file is the state of the thread."""
Stack = tuple[Frame, ...]

STATES = {
    "C": "",
    "S": "[sleep]",
    "G": "[timed lock]",
    "I": "[I/O]",
    "P": "[subprocess]",
    "W": "[wait]",
}
_ANCHOR = "await_sampler"
_THREAD = re.compile(r"thread \((\d+)\)(?:: (.*))?")
_HARNESS = (
    "assay/execute/",
    "assay/plugin/interruption",
    "assay/builtin/agents/python",
    "assay/plugin/case_limit",
)
_ROOTS = (
    "asyncio/",
    "threading.py",
    "concurrent/futures/thread.py",
    "contextvars",
    "runpy.py",
    "<frozen runpy>",
)
_MOST_ROWS = 600
_MAIN_THREAD = "MainThread"
"""What py-spy calls the thread that runs the agent's function."""
_STDLIB = sysconfig.get_paths()["stdlib"]
_LOOP = "/assay/plugin/interruption"
"""Where the event loop of async agents waits."""
EVENT_LOOP: Frame = ("event loop", "asyncio", 0)
_OUTSIDE: Stack = (("[harness]", "", 0),)


@dataclass(slots=True)
class ThreadSamples:
    """One thread: when it was first seen, and its stacks with their seconds, in order."""

    name: str
    start: float
    stacks: list[Stack] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, stack: Stack, seconds: float) -> None:
        if self.stacks and self.stacks[-1] == stack:
            self.weights[-1] += seconds
        else:
            self.stacks.append(stack)
            self.weights.append(seconds)


@dataclass(frozen=True, slots=True)
class MergedSamples:
    """The threads of one execution, and what the process used over its time."""

    threads: Mapping[str, ThreadSamples]
    samples: int
    rows: list[list[float]]
    """Seconds since the beginning, CPU seconds, bytes of memory, I/O operations, bytes read and written."""

    def speedscope(self, name: str) -> dict[str, Any]:
        """The file format of speedscope.app, version 0.0.1: frames that all threads share, and sampled stacks of each."""
        frames: dict[Frame, int] = {}
        profiles = []
        for thread in self.threads.values():
            samples = [[frames.setdefault(frame, len(frames)) for frame in stack] for stack in thread.stacks]
            profiles.append(
                {
                    "type": "sampled",
                    "name": thread.name,
                    "unit": "seconds",
                    "startValue": round(thread.start, 6),
                    "endValue": round(thread.start + sum(thread.weights), 6),
                    "samples": samples,
                    "weights": [round(weight, 6) for weight in thread.weights],
                }
            )
        return {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "name": name,
            "exporter": "assay",
            "shared": {
                "frames": [
                    {"name": f, "file": short_path(file), "line": line, "library": is_library(file)}
                    if file
                    else {"name": f}
                    for f, file, line in frames
                ]
            },
            "profiles": profiles,
        }


def merge_samples(
    events: Sequence[Mapping[str, Any]], seen: Mapping[str, Any], began: float, ended: float
) -> MergedSamples:
    """Samples between `began` and `ended`, which are times of the same clock as those of the rows."""
    histories = _histories(events)
    offset = _find_offset(histories, seen["began"], began)
    rows = seen["rows"]
    locks: dict[str, int] = {}

    def number_lock(state: str) -> str:
        """A lock's address as a small number: the same lock has the same one throughout."""
        return f"L{locks.setdefault(state, len(locks) + 1)}" if state[:1] == "L" else state

    threads: dict[str, ThreadSamples] = {}
    samples = 0
    stretches = list(_stretches(rows, began, ended))
    known_at = _date_stacks([row for row, _, _ in stretches])
    for row, start, end in stretches:
        for tid, state in row["threads"].items():
            history = histories.get(int(tid))
            if history is None:
                continue
            at = known_at.get((tid, row["at"]), row["at"])
            if at is None and history.name != _MAIN_THREAD:
                state = "W"
            seen_stack = history.stack_at((row["at"] if at is None else at) - offset)
            stack = trim_stack(seen_stack, number_lock(state))
            if tid not in threads:
                threads[tid] = ThreadSamples(history.name, start - began)
            threads[tid].add(stack or _OUTSIDE, end - start)
            samples += stack is not None
    used = [_used(row, rows[0], began) for row in rows if began - 0.05 <= row["at"] <= ended + 0.05]
    step = max(1, -(-len(used) // _MOST_ROWS))
    return MergedSamples(threads, samples, [*used[:-1:step], *used[-1:]])


def _stretches(
    rows: Sequence[Mapping[str, Any]], began: float, ended: float
) -> Iterator[tuple[Mapping[str, Any], float, float]]:
    """Rows within the execution, each with the time that it stands for: up to half way to its neighbours."""
    within = [row for row in rows if began <= row["at"] <= ended]
    times = [row["at"] for row in within]
    middles = [began, *((earlier + later) / 2 for earlier, later in pairwise(times)), ended]
    yield from zip(within, middles, middles[1:], strict=False)


def _date_stacks(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, float], float | None]:
    """When the stack of a thread that waits for a lock is known best: by thread and time of the row; None where it is never known.

    A blocked thread keeps its stack, and on a busy machine py-spy comes late, so the last row of a wait has the truest one. A wait that
    outlasts the execution has no end to look at, and did not hold the execution up: an idle thread of a pool waits so for its queue.
    """
    dated: dict[tuple[str, float], float | None] = {}
    later: Mapping[str, str] = {}
    for row, following in zip(reversed(rows), [None, *reversed(rows)], strict=False):
        for tid, state in row["threads"].items():
            if state[:1] != "L":
                continue
            if following is None:
                dated[tid, row["at"]] = None
            elif later.get(tid) == state:
                dated[tid, row["at"]] = dated[tid, following["at"]]
            else:
                dated[tid, row["at"]] = row["at"]
        later = row["threads"]
    return dated


def _used(row: Mapping[str, Any], first: Mapping[str, Any], began: float) -> list[float]:
    counters = [row[name] - first[name] for name in ("io", "io_bytes")]
    return [round(row["at"] - began, 4), round(row["cpu"] - first["cpu"], 6), row["rss"], *counters]


@dataclass(slots=True)
class _History:
    """The stacks that a thread had, and from when on."""

    name: str
    times: list[float] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)

    def stack_at(self, time: float) -> Stack:
        place = bisect_right(self.times, time) - 1
        return self.stacks[max(0, place)] if self.stacks else ()


def _histories(events: Iterable[Mapping[str, Any]]) -> dict[int, _History]:
    """What py-spy's events say of each thread, by the number that the kernel has for it."""
    found: dict[int, _History] = {}
    stacks: dict[tuple[int, int], list[Frame]] = {}
    owners: dict[tuple[int, int], int] = {}
    for event in events:
        key = (event["pid"], event["tid"])
        stack = stacks.setdefault(key, [])
        if event["ph"] == "E":
            if stack:
                stack.pop()
        else:
            named = _THREAD.fullmatch(event["name"])
            if named and not event["args"].get("filename"):
                owners[key] = int(named[1])
                found.setdefault(int(named[1]), _History(named[2] or f"thread {named[1]}"))
            stack.append((event["name"], event["args"].get("filename", ""), event["args"].get("line", 0)))
        if key not in owners:
            continue
        history, at = found[owners[key]], event["ts"] / 1e6
        now = tuple(frame for frame in stack if frame[1])
        if history.times and history.times[-1] == at:
            history.stacks[-1] = now
        else:
            history.times.append(at)
            history.stacks.append(now)
    return found


def _find_offset(histories: Mapping[int, _History], sampled_from: float, began: float) -> float:
    """What to add to py-spy's times: its last sample in which the worker still awaited the sampler lies just before `began`.

    The program of a command agent does not wait; then py-spy's first sample was taken when it said that it samples.
    """
    for history in histories.values():
        last = None
        for place, stack in enumerate(history.stacks):
            if any(frame[0] == _ANCHOR for frame in stack):
                last = place
        if last is not None and last + 1 < len(history.times):
            return began - history.times[last + 1] + 0.002
    first = min((history.times[0] for history in histories.values() if history.times), default=0.0)
    return sampled_from - first


def trim_stack(stack: Stack, state: str) -> Stack | None:
    """The frames of the subject with its state as the last frame; None for a thread that stands in Assay's own code."""
    if any("/assay/builtin/instruments/profile.py" in file for _, file, _ in stack):
        return None
    own = [place for place, (_, file, _) in enumerate(stack) if _is_harness(file)]
    inner = stack[own[-1] + 1 :] if own else stack
    while inner and short_path(inner[0][1]).startswith(_ROOTS) and (len(inner) > 1 or own):
        inner = inner[1:]
    inner = tuple(frame for frame in inner if "/assay/builtin/instruments/" not in frame[1])
    if not inner and own:
        if _LOOP not in stack[-1][1]:
            return None
        inner = (EVENT_LOOP,)
    label = f"[lock {state[1:]}]" if state[:1] == "L" else STATES.get(state, "[wait]")
    return (*inner, (label, "", 0)) if label else inner or None


def _is_harness(file: str) -> bool:
    path = PurePath(file).as_posix()
    return any(f"/{place}" in path for place in _HARNESS)


@lru_cache(maxsize=4096)
def is_library(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package, and not to the subject."""
    return "site-packages" in file or file.startswith((_STDLIB, "<frozen", EVENT_LOOP[1]))
