"""Reads what the instrument `profile` left behind: the sampled executions of a trial, with their spans.

A sample is a stretch of time in which one thread stood at one place in one state. The thread that runs the agent's function is the main
one. Other threads matter while the main one waits for threads: then what they do is what the execution takes its time for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.model import Execution, Phase, Status, TrialReport
from assay.stats.intervals import Interval, intersect, length, union

COMPUTING = "computing"
SLEEPING = "sleeping"
LOCKED = "waiting for a lock"
INTERPRETER = "waiting for Python's interpreter lock"
IO = "waiting for input or output"
CHILD = "waiting for a subprocess"
THREADS = "waiting for other threads"
IDLE = "waiting"

_STATES = {
    "[sleep]": SLEEPING,
    "[I/O]": IO,
    "[subprocess]": CHILD,
    "[wait]": IDLE,
    "[timed lock]": INTERPRETER,
}
_WAITING_MODULES = (
    "threading.py",
    "queue.py",
    "concurrent/",
    "asyncio/",
    "multiprocessing/",
    "selectors.py",
    "subprocess.py",
)
"""Frames of these modules wait for threads by design; a lock that is waited for elsewhere is contended."""
_BRIEF_SECONDS = 0.05
_SEMAPHORES = ("Semaphore.acquire", "BoundedSemaphore.acquire", "Semaphore.__enter__")


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A place in the code."""

    function: str
    file: str = ""
    line: int = 0
    is_library: bool = False

    def __str__(self) -> str:
        if not self.line:
            return f"{self.function} ({self.file})" if self.file else self.function
        return f"{self.file}:{self.line} {self.function}"


@dataclass(frozen=True, slots=True)
class StackSample:
    """One thread, for a while."""

    start: float
    end: float
    stack: tuple[StackFrame, ...]
    cause: str
    lock: str = ""

    @property
    def interval(self) -> Interval:
        return self.start, self.end

    @property
    def place(self) -> StackFrame:
        """The innermost frame of the subject's own code, or else of a library."""
        own = [frame for frame in self.stack if not frame.is_library]
        return (own or list(self.stack) or [StackFrame("(unknown)")])[-1]


@dataclass(frozen=True, slots=True)
class Call:
    """A span of a sampled execution."""

    place: int
    name: str
    kind: str
    start: float
    seconds: float
    parent: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> float:
        return self.start + self.seconds

    @property
    def interval(self) -> Interval:
        return self.start, self.end

    def count(self, name: str) -> int | None:
        """A number of tokens or characters among its attributes; None where there is none."""
        value = self.attributes.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(frozen=True, slots=True)
class SampledExecution:
    """One execution with all that is known about it; times begin with it."""

    repetition: int
    seconds: float
    calls: tuple[Call, ...] = ()
    threads: tuple[tuple[StackSample, ...], ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()
    """Seconds, CPU seconds, bytes of memory, I/O operations, bytes read and written."""
    parsing: tuple[Mapping[str, Any], ...] = ()
    """Callers of `json`, as the instrument `repeats` counted them in an execution of its own."""
    queries: tuple[Mapping[str, Any], ...] = ()
    """Callers of SQLite, likewise."""
    measurements: Mapping[str, float] = field(default_factory=dict)
    attempts: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""
    cores: int = 1

    @property
    def main(self) -> tuple[StackSample, ...]:
        return self.threads[0] if self.threads else ()

    @property
    def work(self) -> tuple[Call, ...]:
        """Spans without spans in them, of models and tools: what an agent calls and waits for."""
        parents = {call.parent for call in self.calls}
        return tuple(c for c in self.calls if c.place not in parents and c.kind in ("llm", "tool"))

    def during(self, causes: Iterable[str]) -> list[tuple[StackSample, list[Interval]]]:
        """Samples of these causes, each with the time in which it held up the execution."""
        wanted = frozenset(causes)
        awaited = union(sample.interval for sample in self.main if sample.cause == THREADS)
        found = [(sample, [sample.interval]) for sample in self.main if sample.cause in wanted]
        for thread in self.threads[1:]:
            for sample in thread:
                if sample.cause in wanted and (shared := intersect([sample.interval], awaited)):
                    found.append((sample, shared))
        return found


def read_sampled(trial: TrialReport) -> list[SampledExecution]:
    """The sampled executions of a trial that came to an end, in order."""
    records: dict[int, dict[str, Any]] = {}
    stacks: dict[int, dict[str, Any]] = {}
    parsing: list[Mapping[str, Any]] = []
    queries: list[Mapping[str, Any]] = []
    for artifact in trial.artifacts:
        if artifact.type not in ("profile", "speedscope", "repeats"):
            continue
        found = _parse(artifact.content)
        number = artifact.name.removeprefix("profile-")[:3]
        if artifact.type == "repeats" and isinstance(found, dict):
            parsing += found.get("json", ())
            queries += found.get("sql", ())
        elif isinstance(found, dict) and number.isdigit():
            (records if artifact.type == "profile" else stacks)[int(number)] = found
    executions = {
        e.repetition: e
        for e in trial.executions
        if e.phase is Phase.PROFILED and e.status is Status.OK and e.repetition in records
    }
    return [
        replace(
            _read_execution(executions[n], records[n], stacks.get(n)),
            parsing=tuple(parsing),
            queries=tuple(queries),
        )
        for n in sorted(executions)
    ]


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _read_execution(
    execution: Execution, record: Mapping[str, Any], stacks: Mapping[str, Any] | None
) -> SampledExecution:
    detail = execution.detail or {}
    seconds = float(record.get("seconds", 0.0))
    return SampledExecution(
        execution.repetition,
        seconds,
        read_calls(detail.get("spans")),  # type: ignore[arg-type]
        _read_threads(stacks) if stacks else (),
        tuple(tuple(row) for row in record.get("rows", ()) if len(row) >= 5),
        measurements=execution.measurements,
        attempts=tuple(detail.get("attempts", ())),  # type: ignore[arg-type]
        problem=str(record.get("problem", "")),
        cores=int(record.get("cores", 1)) or 1,
    )


def read_calls(spans: Sequence[Sequence[Any]] | None) -> tuple[Call, ...]:
    """The spans of an execution. Where none names its parent, the shortest span around another is its parent."""
    calls = []
    for place, span in enumerate(spans or ()):
        name, kind, start, seconds, *more = span
        attributes = dict(more[0]) if more and isinstance(more[0], Mapping) else {}
        parent = attributes.pop("parent", None)
        is_known = isinstance(parent, int) and parent < place
        calls.append(
            Call(place, str(name), str(kind), start, seconds, parent if is_known else None, attributes)
        )
    if any(call.parent is not None or call.attributes for call in calls):
        return tuple(calls)
    return tuple(_with_parent(call, calls) for call in calls)


def _with_parent(call: Call, calls: Sequence[Call]) -> Call:
    around = [
        other
        for other in calls
        if other.kind == "agent"
        and other.place != call.place
        and other.start <= call.start
        and other.end >= call.end
        and other.seconds > call.seconds
    ]
    nearest = min(around, key=lambda other: other.seconds, default=None)
    return call if nearest is None else Call(
        call.place, call.name, call.kind, call.start, call.seconds, nearest.place, call.attributes
    )  # fmt: skip


def _read_threads(stacks: Mapping[str, Any]) -> tuple[tuple[StackSample, ...], ...]:
    """The threads, the main one first: it is the one that py-spy calls so, or else the first that was seen."""
    frames = [
        StackFrame(f["name"], f.get("file", ""), f.get("line", 0), bool(f.get("library")))
        for f in stacks["shared"]["frames"]
    ]
    found: list[tuple[str, tuple[StackSample, ...]]] = []
    for thread in stacks["profiles"]:
        at, samples = float(thread["startValue"]), []
        for places, weight in zip(thread["samples"], thread["weights"], strict=False):
            samples.append(_build_sample(at, at + weight, [frames[place] for place in places]))
            at += weight
        found.append((thread["name"], tuple(s for s in samples if s.stack)))
    found.sort(key=lambda thread: thread[0] != "MainThread")
    main, *others = _drop_brief_locks([samples for _, samples in found] or [()])
    return (tuple(_await_others(main, others)), *others)


def _drop_brief_locks(threads: Sequence[tuple[StackSample, ...]]) -> list[tuple[StackSample, ...]]:
    """A lock that one thread alone waits for, and never for long, is how threads start and hand over, and no contention."""
    waits: dict[str, list[tuple[int, float]]] = {}
    for number, thread in enumerate(threads):
        for sample in thread:
            if sample.cause == LOCKED:
                waits.setdefault(sample.lock, []).append((number, sample.end - sample.start))
    brief = {
        lock
        for lock, found in waits.items()
        if len({number for number, _ in found}) == 1 and max(seconds for _, seconds in found) < _BRIEF_SECONDS
    }
    return [
        tuple(
            replace(sample, cause=THREADS) if sample.cause == LOCKED and sample.lock in brief else sample
            for sample in thread
        )
        for thread in threads
    ]


def _await_others(
    main: Sequence[StackSample], others: Sequence[Sequence[StackSample]]
) -> Iterator[StackSample]:
    """An event loop that waits for a timer while other threads work waits for them: Assay's own timers run in it, too."""
    busy = union(s.interval for thread in others for s in thread if s.cause not in (THREADS, IDLE))
    for sample in main:
        is_loop = bool(sample.stack) and sample.stack[-1].file.startswith(("asyncio", "selectors.py"))
        shared = length(intersect([sample.interval], busy))
        if sample.cause == SLEEPING and is_loop and shared > (sample.end - sample.start) / 2:
            yield replace(sample, cause=THREADS)
        else:
            yield sample


def _build_sample(start: float, end: float, frames: Sequence[StackFrame]) -> StackSample:
    stack = tuple(frame for frame in frames if frame.file)
    label = frames[-1].function if frames and not frames[-1].file else ""
    if label == "[harness]":
        return StackSample(start, end, (), IDLE)
    if label == "[wait]" and stack and stack[-1].file.startswith("selectors.py"):
        return StackSample(start, end, stack, THREADS)  # an event loop that only another thread can wake
    is_lock, is_timed = label.startswith("[lock"), label == "[timed lock]"
    if not (is_lock or is_timed):
        return StackSample(start, end, stack, _STATES.get(label, COMPUTING))
    waits_by_design = bool(stack) and stack[-1].file.startswith(_WAITING_MODULES)
    if waits_by_design:
        is_semaphore = any(frame.function in _SEMAPHORES for frame in stack)
        return StackSample(
            start, end, stack, LOCKED if is_semaphore else THREADS, label if is_semaphore else ""
        )
    return StackSample(start, end, stack, INTERPRETER if is_timed else LOCKED, "" if is_timed else label)
