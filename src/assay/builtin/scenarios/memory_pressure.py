from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.builtin.scenarios.outcome import Borne, finding, late, recovery_after, text_of
from assay.execute.stress.bounded import bounded_options, data_bytes, is_enforced
from assay.execute.stress.resources import started_by_us
from assay.model.load import Arrivals, Load
from assay.model.stress import Breach, Judgement, ScenarioFinding, Stretch
from assay.plugin.scenario import Bench
from assay.units import count, percent, significant, size

_WORKS = 0.95
_CRASHES = ("refused", "reset", "disconnected", "incomplete")
_BYTES_PER_TOKEN = 4
PRESSURE = "× memory pressure"
"""Working set ÷ memory that is left."""


@dataclass(frozen=True, slots=True)
class MemoryPressure:
    """A program of ours gets less and less memory; anything else gets longer and longer contexts."""

    name: ClassVar[str] = "memory_pressure"

    steps: tuple[float, ...] = (4.0, 3.0, 2.0, 1.5, 1.25, 1.0)
    """Of the working set: the memory that is left."""
    seconds: float = 20.0
    contexts: tuple[int, ...] = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
    """In tokens."""
    each: int = 20
    at_once: int = 4
    recovery_seconds: float = 10.0

    @classmethod
    def quick(cls) -> MemoryPressure:
        return cls(
            steps=(4.0, 2.0, 1.0), seconds=1.0, contexts=(1_000, 8_000, 32_000), each=4, recovery_seconds=1.0
        )

    def not_for(self, bench: Bench) -> str:
        if bench.subject.is_command:
            return "" if is_enforced() else "this system does not enforce a ceiling on a program's memory"
        return (
            ""
            if bench.subject.takes_input
            else "the page is only fetched: there is no context to make longer (--prompt)"
        )

    def run(self, bench: Bench) -> ScenarioFinding:
        return self._with_less(bench) if bench.subject.is_command else self._with_more(bench)

    def _with_less(self, bench: Bench) -> ScenarioFinding:
        free = _Program()
        load = Load(Arrivals.CLOSED, concurrency=1, seconds=self.seconds)
        objectives = () if bench.is_derived else bench.objectives
        bench.put(load, asked=bench.subject.through_its_own_code(), during=free.look, objectives=objectives)
        done, programs = list[Stretch](), list[_Program]()
        for step in self.steps:
            limit = int(step * free.most)
            use = replace(bench.subject.use, options=bounded_options(bench.subject.use.options, limit))
            programs.append(_Program())
            asked = bench.subject.through_its_own_code(use=use)
            done.append(bench.put(load, asked=asked, during=programs[-1].look, objectives=objectives))
        slow = [place for place, one in enumerate(done) if late(one, objectives)]
        failing = [place for place, one in enumerate(done) if not is_working(one)]
        working = [step for place, step in enumerate(self.steps) if place not in (*failing, *slow)]
        broken = min((*failing, *slow), default=None)
        breach = None if broken is None else self._too_little(broken, done[broken], free.most)
        smallest = min(working, default=None)
        lowest = self.steps[-1]
        borne = 1 / smallest if smallest else 0.0
        return finding(
            self,
            bench,
            done,
            Borne(1 / lowest, borne, PRESSURE),
            breach,
            lasted=self.seconds * len(done),
            shown=next((one for one in reversed(done) if one.completed), done[-1]),
            recovery=recovery_after(bench, self.recovery_seconds),
            judgements=[_smallest(smallest, free.most), *_grace(failing, done, programs)],
        )

    def _too_little(self, place: int, stretch: Stretch, working_set: int) -> Breach:
        left = size(self.steps[place] * working_set)
        cause, why = _broken_by(stretch, f"{percent(stretch.error_rate)} of the requests failed")
        why = f"with {left} of memory {why}"
        return Breach(place * self.seconds, 1 / self.steps[place], PRESSURE, cause, why)

    def _with_more(self, bench: Bench) -> ScenarioFinding:
        objectives = () if bench.is_derived else bench.objectives
        before = _memory(bench)
        done, held = list[Stretch](), list[int | None]()
        for tokens in self.contexts:
            load = Load(
                Arrivals.CLOSED, concurrency=min(self.at_once, self.each), seconds=3600.0, count=self.each
            )
            prompt = text_of(tokens * _BYTES_PER_TOKEN)
            done.append(bench.put(load, prompts=[prompt], objectives=objectives))
            held.append(_memory(bench))
            if not done[-1].completed:
                break
        contexts = self.contexts[: len(done)]
        slow = [place for place, one in enumerate(done) if late(one, objectives)]
        failing = [place for place, one in enumerate(done) if not is_working(one)]
        working = [tokens for place, tokens in enumerate(contexts) if place not in (*failing, *slow)]
        broken = min((*failing, *slow), default=None)
        breach = None if broken is None else self._too_long(broken, done)
        return finding(
            self,
            bench,
            done,
            Borne(float(self.contexts[-1]), float(max(working, default=0)), "tokens"),
            breach,
            lasted=sum(one.result.duration for one in done),
            shown=next((one for one in reversed(done) if one.completed), done[-1]),
            recovery=recovery_after(bench, self.recovery_seconds),
            judgements=[*_per_context(before, held), *_refused(failing, contexts, done)],
            unasked=self.each * (len(self.contexts) - len(done)),
        )

    def _too_long(self, place: int, done: Sequence[Stretch]) -> Breach:
        first = done[place]
        failed = f"{percent(first.error_rate)} of the requests failed, most of them as {_kind(first)}"
        cause, why = _broken_by(first, failed)
        at = sum(one.result.duration for one in done[:place])
        return Breach(at, float(self.contexts[place]), "tokens", cause, why)


class _Program:
    """The processes of the agent while a load runs: which there were, and how much they held."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.most = 0

    def look(self, seconds: float) -> None:
        for process in started_by_us():
            held = data_bytes(process.pid)
            if held is not None:
                self.pids.add(process.pid)
                self.most = max(self.most, held)


def is_working(stretch: Stretch) -> bool:
    return stretch.completed > 0 and stretch.error_rate <= 1 - _WORKS


def _broken_by(stretch: Stretch, failed: str) -> tuple[str, str]:
    """Cause and words: the failures, or where there were none to speak of, the objective."""
    if is_working(stretch) and stretch.breach is not None:
        return stretch.breach.cause, stretch.breach.why
    return "errors", failed


def _kind(stretch: Stretch) -> str:
    return max(stretch.errors, key=lambda kind: stretch.errors[kind], default="nothing known")


def _smallest(step: float | None, working_set: int) -> Judgement:
    if step is None:
        return Judgement("smallest_memory", "It worked with none of the ceilings", is_fine=False)
    text = f"It works with {size(step * working_set)}, {significant(step)} × its working set of {size(working_set)}"
    return Judgement("smallest_memory", text, step * working_set, unit="bytes")


def _grace(failing: Sequence[int], done: Sequence[Stretch], programs: Sequence[_Program]) -> list[Judgement]:
    """A program that is started again and again has crashed; one that stays has refused."""
    if not failing:
        return []
    place = failing[0]
    restarts = max(0, len(programs[place].pids) - 1)
    is_graceful = restarts == 0 and done[place].completed > 0
    told = (
        "It refused requests and stayed up"
        if is_graceful
        else f"It crashed; {count(restarts + 1)} of its processes were seen"
    )
    return [Judgement("graceful", f"{told} when memory was too little", is_fine=is_graceful)]


def _memory(bench: Bench) -> int | None:
    samples = bench.samples()
    return samples[-1].memory_bytes if samples else None


def _per_context(before: int | None, held: Sequence[int | None]) -> list[Judgement]:
    """Only where its process is on this machine."""
    if before is None or not held or held[-1] is None:
        return []
    grown = held[-1] - before
    text = f"Its memory went from {size(before)} to {size(held[-1])} with the longest context"
    return [Judgement("memory_grown", text, float(grown), unit="bytes")]


def _refused(failing: Sequence[int], contexts: Sequence[int], done: Sequence[Stretch]) -> list[Judgement]:
    if not failing:
        return []
    kind = _kind(done[failing[0]])
    is_graceful = kind not in _CRASHES
    told = "refused" if is_graceful else "answered by breaking off"
    return [
        Judgement(
            "graceful", f"{count(contexts[failing[0]])} tokens are {told} ({kind})", is_fine=is_graceful
        )
    ]
