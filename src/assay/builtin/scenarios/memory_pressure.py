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

from assay.builtin.scenarios.bisection import probe_between
from assay.load.stress.memory_limit import bound_options, data_bytes, is_enforced
from assay.load.stress.resources import find_agent_processes
from assay.model.bottleneck import MOST_ERRORS
from assay.model.load import Arrivals, Load, Objective
from assay.model.stress import Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import (
    Bench,
    HandledLoad,
    build_finding,
    build_load_point,
    build_step_bands,
    compute_scenario_time,
    find_calm_breach,
    find_frequent_error,
    find_late_breach,
    is_answered,
    make_text,
    watch_recovery,
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

        def try_memory(left: float) -> _Step:
            """One load with this multiple of the working set; the program is restarted, so the limit holds from its start."""
            use = bench.subject.use
            assert use is not None  # of a command
            use = replace(use, options=bound_options(use.options, int(left * free.most)))
            prepared, program = bench.subject.through_its_own_code(use=use), _Program()
            stretch = bench.put(load, asked=prepared, during=program.look, objectives=objectives)
            return _Step(left, stretch, _is_held(bench, stretch, objectives), program)

        # All steps are tried, also after one that failed: a program that crashes once may work with less by chance.
        steps = [try_memory(left) for left in self.steps]
        worked = min((step.load for step in steps if step.is_held), default=None)
        probes: list[_Step] = []
        if worked is not None:
            below = max((step.load for step in steps if step.load < worked), default=worked)
            # Halved in pressure, the inverse of memory: the search goes from what holds to larger loads.
            _, probes = probe_between(
                1 / worked,
                1 / below,
                lambda pressure: try_memory(1 / pressure),
                lambda step: step.is_held,
                self.halvings,
                is_whole=False,
            )
        known = sorted((*steps, *probes), key=lambda step: -step.load)
        smallest = min((step.load for step in known if step.is_held), default=None)
        broken = _find_broken(known, smallest)
        stretches = [step.stretch for step in steps]
        return build_finding(
            self,
            bench,
            stretches,
            HandledLoad(1 / self.steps[-1], 1 / smallest if smallest else 0.0, PRESSURE),
            self._too_little(broken, steps, free.most) if broken else find_calm_breach(stretches),
            lasted=self.seconds * len(steps),
            shown=next((stretch for stretch in reversed(stretches) if stretch.completed), stretches[-1]),
            recovery=watch_recovery(bench, self.recovery_seconds),
            judgements=[_judge_smallest(smallest, free.most), *_judge_crashes(bench, broken)],
            probes=[step.stretch for step in probes],
            points=[
                build_load_point(
                    step.load * free.most, step.stretch, is_broken=not step.is_held, is_probe=step in probes
                )
                for step in known
            ],
            bands=build_step_bands([size(step.load * free.most) for step in steps], stretches),
        )

    def _too_little(self, broken: _Step, steps: Sequence[_Step], working_set: int) -> Breach:
        """The breach, at the time when the regular steps came to that little memory: probes have no place on the time axis."""
        left = size(broken.load * working_set)
        cause, why = _broken_by(
            broken.stretch, f"{percent(broken.stretch.error_rate)} of the requests failed"
        )
        before = sum(step.load > broken.load for step in steps)
        why = f"with {left} of memory {why}"
        return Breach(before * self.seconds, 1 / broken.load, PRESSURE, cause, why)

    def _with_more(self, bench: Bench) -> ScenarioFinding:
        """The form for all others: longer contexts at each step, until nothing is answered any more.

        Steps go upwards and end after one in which nothing was answered, since a server that is out of
        memory takes long to fail. The border is then narrowed by halving between the longest context that
        worked and the shortest that did not.
        """
        objectives = () if bench.is_derived else bench.objectives
        # A server on this machine can be looked at; elsewhere there is only what it answers.
        before = _memory(bench)

        def try_context(tokens: float) -> _Step:
            """A few requests at a time with contexts of this length, about four bytes for a token of English."""
            at_once = min(self.at_once, self.each)
            load = Load(Arrivals.CLOSED, concurrency=at_once, seconds=3600.0, count=self.each)
            prompt = make_text(int(tokens) * _BYTES_PER_TOKEN)
            stretch = bench.put(load, prompts=[prompt], objectives=objectives)
            return _Step(tokens, stretch, _is_held(bench, stretch, objectives), held=_memory(bench))

        steps: list[_Step] = []
        # Upwards, and not on after nothing was answered: a server that is out of memory takes long to fail.
        for tokens in self.contexts:
            steps.append(try_context(tokens))
            if not steps[-1].stretch.completed:
                break
        held = max((step.load for step in steps if step.is_held), default=0.0)
        above = [step.load for step in steps if step.load > held]
        probes: list[_Step] = []
        if above:
            found, probes = probe_between(
                held, min(above), try_context, lambda step: step.is_held, self.halvings
            )
            held = found.held
        known = sorted((*steps, *probes), key=lambda step: step.load)
        broken = next((step for step in known if step.load > held), None)
        stretches = [step.stretch for step in steps]
        return build_finding(
            self,
            bench,
            stretches,
            HandledLoad(float(self.contexts[-1]), float(held), "tokens"),
            find_calm_breach(stretches) if broken is None else _describe_long_context(broken, steps),
            lasted=compute_scenario_time(stretches, self.recovery_seconds),
            shown=next((stretch for stretch in reversed(stretches) if stretch.completed), stretches[-1]),
            recovery=watch_recovery(bench, self.recovery_seconds),
            judgements=[*_per_context(before, [step.held for step in steps]), *_judge_refusals(broken)],
            unasked=self.each * (len(self.contexts) - len(steps)),
            probes=[step.stretch for step in probes],
            points=[
                build_load_point(step.load, step.stretch, is_broken=not step.is_held, is_probe=step in probes)
                for step in known
            ],
            bands=build_step_bands([f"{count(int(step.load))} tokens" for step in steps], stretches),
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """One ceiling of memory, or one length of contexts."""

    load: float
    stretch: Stretch
    is_held: bool
    program: _Program | None = None
    held: int | None = None
    """Memory after it, where its process is on this machine."""


def _find_broken(known: Sequence[_Step], smallest: float | None) -> _Step | None:
    """Find where it broke: the first step, from much memory to little, that failed below all that worked."""
    return next(
        (step for step in known if not step.is_held and (smallest is None or step.load < smallest)), None
    )


def _measure_unlimited(bench: Bench, load: Load, objectives: Sequence[Objective]) -> _Program:
    """The program without a limit: its working set is what every step is a multiple of. It is 0 if no load showed a process."""
    free = _Program()
    for _ in range(_MOST_LOADS):
        bench.put(load, asked=bench.subject.through_its_own_code(), during=free.look, objectives=objectives)
        if free.most:
            break
    return free


def _is_held(bench: Bench, stretch: Stretch, objectives: Sequence[Objective]) -> bool:
    """Whether a step was answered, and within the objectives that the user gave."""
    breach = find_late_breach(stretch, objectives)
    return is_answered(bench, [stretch]) and (breach is None or breach.is_in_calm)


def _describe_long_context(broken: _Step, steps: Sequence[_Step]) -> Breach:
    """The breach of a context that is too long, at the time when its step would have begun."""
    failed = f"{percent(broken.stretch.error_rate)} of the requests failed (mostly {find_frequent_error(broken.stretch)})"
    cause, why = _broken_by(broken.stretch, failed)
    at = sum(step.stretch.result.duration for step in steps if step.load < broken.load)
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


def _judge_smallest(step: float | None, working_set: int) -> ScenarioJudgement:
    if step is None:
        return ScenarioJudgement(
            "smallest_memory", "The agent failed under every memory limit", is_fine=False
        )
    text = f"The agent works with {size(step * working_set)}, {significant(step)} × its working set of {size(working_set)}"
    return ScenarioJudgement("smallest_memory", text, step * working_set, unit="bytes")


def _judge_crashes(bench: Bench, broken: _Step | None) -> list[ScenarioJudgement]:
    """A program that is started again and again has crashed; one that stays has refused."""
    if broken is None or broken.program is None or is_answered(bench, [broken.stretch]):
        return []
    # A step that was answered, if late, is no question of crashing; and one process is the least that there is.
    restarts = max(0, len(broken.program.pids) - 1)
    is_graceful = restarts == 0 and broken.stretch.completed > 0
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
    if broken is None or not broken.stretch.errors:
        return []
    kind = find_frequent_error(broken.stretch)
    is_graceful = kind not in _CRASHES
    how = "refused" if is_graceful else "not refused: the connection breaks off"
    text = f"{count(int(broken.load))} tokens are {how} ({kind})"
    return [ScenarioJudgement("graceful", text, is_fine=is_graceful, is_criterion=True)]
