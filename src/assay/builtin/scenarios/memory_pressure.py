"""The scenario in which memory runs short.

There are two forms. A program that we start is given less and less memory: a first load without a limit measures its
working set, the most that its processes hold, and each step allows a multiple of that. Pressure is the inverse of that
multiple, so that more pressure is a larger number. Anything else is asked with longer and longer contexts, because a server
keeps what it has read of a conversation in memory. In both forms the breaking point is then found by halving the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.builtin.scenarios.memory_limit import bound_options, data_bytes, is_enforced
from assay.builtin.scenarios.steps import ScenarioStep, build_steps_finding, climb, judge_step, probe_gap
from assay.load.stress.resources import find_agent_processes
from assay.model.bottleneck import MOST_ERRORS
from assay.model.load import Arrivals, Load, Objective
from assay.model.stress import Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import (
    Bench,
    HandledLoad,
    find_calm_breach,
    find_frequent_error,
    make_text,
)
from assay.units import count, percent, significant, size

_CRASHES = ("refused", "reset", "disconnected", "incomplete")
_BYTES_PER_TOKEN = 4
_MOST_LOADS = 3
"""In which the program has to be seen at work: its working set has to be known before it can be limited."""
PRESSURE = "× memory pressure"
"""Working set ÷ memory that is left."""


@dataclass(frozen=True, slots=True)
class MemoryPressure:
    """A program of ours gets less and less memory; anything else gets longer and longer contexts. Between the last step that
    worked and the first that did not, the gap is halved."""

    name: ClassVar[str] = "memory_pressure"
    order: ClassVar[int] = 4

    steps: tuple[float, ...] = (4.0, 3.0, 2.0, 1.5, 1.25, 1.0)
    """The memory that is left, in multiples of the working set."""
    seconds: float = 20.0
    contexts: tuple[int, ...] = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
    """In tokens."""
    each: int = 20
    at_once: int = 4
    recovery_seconds: float = 10.0
    halvings: int = 4

    @classmethod
    def quick(cls) -> MemoryPressure:
        return cls(
            steps=(4.0, 2.0, 1.0),
            seconds=1.0,
            contexts=(1_000, 8_000, 32_000),
            each=4,
            recovery_seconds=1.0,
            halvings=3,
        )

    def not_for(self, bench: Bench) -> str:
        if bench.subject.is_command:
            return "" if is_enforced() else "this system does not enforce a limit on a program's memory"
        return (
            ""
            if bench.subject.takes_input
            else "the page is only fetched: there is no context to make longer (--prompt)"
        )

    def run(self, bench: Bench) -> ScenarioFinding:
        return self._with_less(bench) if bench.subject.is_command else self._with_more(bench)

    def _with_less(self, bench: Bench) -> ScenarioFinding:
        """Restart a program with less memory at each step, also below one that failed by chance, then halve the last gap."""
        load = Load(Arrivals.CLOSED, concurrency=1, seconds=self.seconds)
        objectives = () if bench.is_derived else bench.objectives
        free = _measure_unlimited(bench, load, objectives)
        if not free.most:
            return ScenarioFinding(
                self.name, skipped="no process of the program lived long enough to measure its memory"
            )

        def try_memory(pressure: float) -> _Step:
            """One load with this part of the working set; the program is restarted, so the limit holds from its start."""
            use = bench.subject.use
            assert use is not None  # of a command
            use = replace(use, options=bound_options(use.options, int(free.most / pressure)))
            prepared, program = bench.subject.through_its_own_code(use=use), _Program()
            stretch = bench.put(load, asked=prepared, during=program.look, objectives=objectives)
            return _Step(pressure, (stretch,), *judge_step(bench, [stretch], objectives), program=program)

        # All steps are tried, also after one that failed: a program that crashes once may work with less by chance.
        tried = [try_memory(1 / left) for left in self.steps]
        steps = probe_gap(tried, try_memory, self.halvings, is_whole=False)
        broken = steps.broken
        return build_steps_finding(
            self,
            bench,
            steps,
            HandledLoad(1 / self.steps[-1], float(steps.held), PRESSURE),
            self._too_little(broken, tried, free.most) if broken else find_calm_breach(steps.stretches),
            label=lambda pressure: size(free.most / pressure),
            scale=lambda pressure: free.most / pressure,
            lasted=self.seconds * len(tried),
            recovery_seconds=self.recovery_seconds,
            judgements=[_judge_smallest(steps.held, free.most), *_judge_crashes(broken)],
        )

    def _too_little(self, broken: _Step, steps: Sequence[_Step], working_set: int) -> Breach:
        """The breach, at the time when the regular steps came to that little memory: probes have no place on the time axis."""
        cause, why = _broken_by(broken.first, f"{percent(broken.first.error_rate)} of the requests failed")
        before = sum(step.load < broken.load for step in steps)
        why = f"with {size(working_set / broken.load)} of memory {why}"
        return Breach(before * self.seconds, broken.load, PRESSURE, cause, why)

    def _with_more(self, bench: Bench) -> ScenarioFinding:
        """The form for all others: longer contexts at each step, until nothing is answered any more; a server that is out of
        memory takes long to fail."""
        objectives = () if bench.is_derived else bench.objectives
        # A server on this machine can be looked at; elsewhere there is only what it answers.
        before = _memory(bench)

        def try_context(tokens: float) -> _Step:
            """A few requests at a time with contexts of this length, about four bytes for a token of English."""
            at_once = min(self.at_once, self.each)
            load = Load(Arrivals.CLOSED, concurrency=at_once, seconds=3600.0, count=self.each)
            prompt = make_text(int(tokens) * _BYTES_PER_TOKEN)
            stretch = bench.put(load, prompts=[prompt], objectives=objectives)
            held = judge_step(bench, [stretch], objectives)
            return _Step(tokens, (stretch,), *held, memory=_memory(bench))

        steps = probe_gap(climb(self.contexts, try_context), try_context, self.halvings)
        broken = steps.broken
        return build_steps_finding(
            self,
            bench,
            steps,
            HandledLoad(float(self.contexts[-1]), float(steps.held), "tokens"),
            _describe_long_context(broken, steps.regular) if broken else find_calm_breach(steps.stretches),
            label=lambda tokens: f"{count(int(tokens))} tokens",
            recovery_seconds=self.recovery_seconds,
            judgements=[
                *_per_context(before, [step.memory for step in steps.regular]),
                *_judge_refusals(broken),
            ],
            unasked=self.each * (len(self.contexts) - len(steps.regular)),
        )


@dataclass(frozen=True, slots=True)
class _Step(ScenarioStep):
    """One ceiling of memory, as the pressure that it makes, or one length of contexts."""

    program: _Program | None = None
    memory: int | None = None
    """Held after it, where its process is on this machine."""


def _measure_unlimited(bench: Bench, load: Load, objectives: Sequence[Objective]) -> _Program:
    """The program without a limit: its working set is what every step is a multiple of. It is 0 if no load showed a process."""
    free = _Program()
    for _ in range(_MOST_LOADS):
        bench.put(load, asked=bench.subject.through_its_own_code(), during=free.look, objectives=objectives)
        if free.most:
            break
    return free


def _describe_long_context(broken: _Step, steps: Sequence[_Step]) -> Breach:
    """The breach of a context that is too long, at the time when its step would have begun."""
    failed = f"{percent(broken.first.error_rate)} of the requests failed (mostly {find_frequent_error(broken.first)})"
    cause, why = _broken_by(broken.first, failed)
    at = sum(step.first.result.duration for step in steps if step.load < broken.load)
    return Breach(at, float(broken.load), "tokens", cause, why)


class _Program:
    """The processes of the agent while a load runs: which there were, and how much they held.

    More than one process in a load of one request at a time means that the one before has died: see `_judge_crashes`.
    """

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.most = 0

    def look(self, seconds: float) -> None:
        for process in find_agent_processes():
            held = data_bytes(process.pid)
            if held is not None:
                self.pids.add(process.pid)
                self.most = max(self.most, held)


def _broken_by(stretch: Stretch, failed: str) -> tuple[str, str]:
    """Cause and words: the failures, or where there were none to speak of, the objective."""
    if stretch.error_rate <= MOST_ERRORS and stretch.breach is not None:
        return stretch.breach.cause, stretch.breach.why
    return "errors", failed


def _judge_smallest(pressure: float, working_set: int) -> ScenarioJudgement:
    if not pressure:
        return ScenarioJudgement(
            "smallest_memory", "The agent failed under every memory limit", is_fine=False
        )
    left = working_set / pressure
    text = f"The agent works with {size(left)}, {significant(1 / pressure)} × its working set of {size(working_set)}"
    return ScenarioJudgement("smallest_memory", text, left, unit="bytes")


def _judge_crashes(broken: _Step | None) -> list[ScenarioJudgement]:
    """A program that is started again and again has crashed; one that stays has refused."""
    if broken is None or broken.program is None or broken.is_accepted:
        return []
    # A step that was answered, if late, is no question of crashing; and one process is the least that there is.
    restarts = max(0, len(broken.program.pids) - 1)
    is_graceful = restarts == 0 and broken.first.completed > 0
    if is_graceful:
        text = "The agent refused requests and kept running when memory ran short"
    else:
        text = f"The agent crashed when memory ran short (processes seen: {count(restarts + 1)})"
    return [ScenarioJudgement("graceful", text, is_fine=is_graceful, is_criterion=True)]


def _memory(bench: Bench) -> int | None:
    """What its processes hold now; None for a server elsewhere, or one of another user."""
    samples = bench.samples()
    return samples[-1].memory_bytes if samples else None


def _per_context(before: int | None, held: Sequence[int | None]) -> list[ScenarioJudgement]:
    """Judge how much memory the longest context added; only possible if the agent runs on this machine."""
    if before is None or not held or held[-1] is None:
        return []
    grown = held[-1] - before
    text = f"The agent's memory grew from {size(before)} to {size(held[-1])} with the longest context"
    return [ScenarioJudgement("memory_grown", text, float(grown), unit="bytes")]


def _judge_refusals(broken: _Step | None) -> list[ScenarioJudgement]:
    """A context that is too long should be answered with an error, not with a broken connection."""
    if broken is None or not broken.first.errors:
        return []
    kind = find_frequent_error(broken.first)
    is_graceful = kind not in _CRASHES
    how = "refused" if is_graceful else "not refused: the connection breaks off"
    text = f"{count(int(broken.load))} tokens are {how} ({kind})"
    return [ScenarioJudgement("graceful", text, is_fine=is_graceful, is_criterion=True)]
