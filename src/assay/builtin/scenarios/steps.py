"""Scenarios that go up step by step, and then halve the gap between a step that held and one that did not.

Each try is a load of its own and takes as long as a step of the scenario, so their number is bounded by the scenario, and the
search also ends where the gap is too small to matter, or has no whole number left in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from assay.model.load import Objective
from assay.model.stress import Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import (
    Bench,
    HandledLoad,
    Scenario,
    build_finding,
    build_load_point,
    build_step_bands,
    compute_scenario_time,
    find_late_breach,
    is_answered,
    watch_recovery,
)

CLOSE = 1.05
"""Within a twentieth a breaking point is known well enough."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """The highest load that held, and the lowest that did not."""

    held: float
    broke: float


def bisect_load(
    held: float, broke: float, holds: Callable[[float], bool], steps: int, *, is_whole: bool = True
) -> Bracket:
    """Tries loads between them, in the middle by their ratio, `steps` times at most; only whole numbers unless told otherwise.

    >>> bisect_load(100, 1000, lambda size: size <= 250, 8)
    Bracket(held=246, broke=255)
    >>> bisect_load(4, 8, lambda level: level < 6, 8)
    Bracket(held=5, broke=6)
    """
    # Loads differ by factors, so the middle is the geometric mean: 100 and 1000 have it at 316. Without a load that held
    # there is nothing to halve.
    for _ in range(steps if held > 0 else 0):
        middle = math.sqrt(held * broke)
        if is_whole:
            middle = round(middle)
        if broke / held <= CLOSE or middle <= held or middle >= broke:
            break
        if holds(middle):
            held = middle
        else:
            broke = middle
    return Bracket(held, broke)


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """All that was asked with one size of load, in a regular step or in a probe between two; of two stretches the first counts."""

    load: float
    stretches: tuple[Stretch, ...]
    is_accepted: bool
    """Whether nearly all requests were answered."""
    is_held: bool
    """Accepted, and in time where an objective was given."""

    @property
    def first(self) -> Stretch:
        return self.stretches[0]


S = TypeVar("S", bound=ScenarioStep)


def judge_step(
    bench: Bench, stretches: Sequence[Stretch], objectives: Sequence[Objective]
) -> tuple[bool, bool]:
    """Whether a step is accepted, and whether it held."""
    is_accepted = is_answered(bench, stretches)
    breach = find_late_breach(stretches[0], objectives)
    return is_accepted, is_accepted and (breach is None or breach.is_in_calm)


@dataclass(frozen=True, slots=True)
class Steps(Generic[S]):
    """The regular steps of a scenario, and the probes for its breaking point."""

    regular: Sequence[S]
    probes: Sequence[S]

    @property
    def known(self) -> list[S]:
        """By their loads, whether steps or probes."""
        return sorted((*self.regular, *self.probes), key=lambda step: step.load)

    @property
    def held(self) -> float:
        """The largest load that held, also where a smaller one did not: that was a hiccup, or refused by its content."""
        return max((step.load for step in self.known if step.is_held), default=0)

    @property
    def broken(self) -> S | None:
        """The smallest above all that held."""
        return next((step for step in self.known if step.load > self.held), None)

    @property
    def stretches(self) -> list[Stretch]:
        """Of a step that was put twice only the first load counts in totals."""
        return [step.first for step in self.regular]


def climb(loads: Iterable[float], attempt: Callable[[float], S]) -> list[S]:
    """Try each load, and no larger one after nothing was answered: it would hardly fare better, and may take the agent down for good."""
    steps: list[S] = []
    for load in loads:
        steps.append(attempt(load))
        if not steps[-1].first.completed:
            break
    return steps


def probe_gap(
    regular: Sequence[S], attempt: Callable[[float], S], halvings: int, *, is_whole: bool = True
) -> Steps[S]:
    """Bisect between the largest load that held and the smallest above it."""
    probes: list[S] = []

    def holds(load: float) -> bool:
        probes.append(attempt(load))
        return probes[-1].is_held

    steps = Steps(regular, probes)
    if steps.broken is not None:
        bisect_load(steps.held, steps.broken.load, holds, halvings, is_whole=is_whole)
    return steps


def build_steps_finding(
    scenario: Scenario,
    bench: Bench,
    steps: Steps[S],
    handled: HandledLoad,
    breach: Breach | None,
    *,
    label: Callable[[float], str],
    recovery_seconds: float,
    judgements: Sequence[ScenarioJudgement],
    lasted: float | None = None,
    unasked: int = 0,
    scale: Callable[[float], float] = float,
) -> ScenarioFinding:
    """The finding of a scenario in steps; `label` names the band of a step, and `scale` gives its place in the chart."""
    stretches = steps.stretches
    return build_finding(
        scenario,
        bench,
        stretches,
        handled,
        breach,
        lasted=compute_scenario_time(stretches, recovery_seconds) if lasted is None else lasted,
        shown=next((stretch for stretch in reversed(stretches) if stretch.completed), stretches[-1]),
        recovery=watch_recovery(bench, recovery_seconds),
        judgements=judgements,
        unasked=unasked,
        probes=[
            *(stretch for step in steps.regular for stretch in step.stretches[1:]),
            *(stretch for step in steps.probes for stretch in step.stretches),
        ],
        points=[
            build_load_point(
                scale(step.load), step.first, is_broken=not step.is_held, is_probe=step in steps.probes
            )
            for step in steps.known
        ],
        bands=build_step_bands([label(step.load) for step in steps.regular], stretches),
    )
