"""A plan of two arms that ends as soon as it is decided which of them is better (`until: {decided: METRIC}`).

The arms are two agents on a suite, paired case by case, or two trials of an experiment, paired process by process. After each pair the
runner looks at a confidence sequence (`stats.sequence`), which may be looked at as often as one likes. Such a run needs pairs that
are made side by side, and at least ten of them; `question_problems` checks that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from assay.model import Isolation, Order, Plan, Question, Trial, metric_named
from assay.model.metric import is_score
from assay.spec.schema import UntilDecidedSection
from assay.units import format_count

PAIRS = 60
"""Pairs of processes, where the spec gives no other number."""
FEWEST = 10
"""Pairs before which nothing can be decided (`stats.sequence`)."""
TOLERANCE, TOLERANCE_OF_SCORES = 0.03, 0.01


def add_question(plan: Plan, section: UntilDecidedSection) -> Plan:
    """Add the question and the maximum number of pairs to a plan, which must have no `question_problems`."""
    by_score = is_score(metric_named(section.decided))
    default = TOLERANCE_OF_SCORES if by_score else TOLERANCE
    pairs = _most_pairs(plan, section)
    question = Question(
        arms=_arms(plan),
        metric=section.decided,
        tolerance=default if section.tolerance is None else section.tolerance,
        max=pairs,
        min=FEWEST,
    )
    # The plan has room for the largest number of pairs; the runner ends it as soon as the question is decided.
    trials = (trial if plan.suite else replace(trial, processes=pairs) for trial in plan.trials)
    return replace(plan, trials=tuple(trials), question=question)


def question_problems(plan: Plan, section: UntilDecidedSection) -> Iterator[str]:
    """Why a plan cannot be ended by a question: each is the rest of a sentence that begins with the key, `until`."""
    if plan.suite and (code := [trial.benchmark for trial in plan.trials if trial.agent_use is None]):
        yield f"compares two agents, but benchmark '{code[0]}' runs an experiment of its own."
        return
    sides = _sides(plan)
    if any(len(trials) != 2 for trials in sides.values()):
        what = "agents" if plan.suite else "trials"
        number = max((len(trials) for trials in sides.values()), default=0)
        yield f"compares exactly two {what}; this plan has {number}."
        return
    # From here on each problem can be put right by itself, so all of them are told at once.
    if plan.order is Order.SEQUENTIAL:
        yield "needs pairs that run side by side. Remove 'order: sequential'."
    trials = plan.trials
    if any(trial.isolation is not Isolation.PROCESS for trial in trials) and not plan.suite:
        yield "pairs fresh processes. Use: isolation: process"
    if any(trial.iterations.until for trial in trials):
        yield "cannot be combined with 'measured: auto'. Set iterations.measured to a number."
    if section.max is not None and any(trial.processes > 1 for trial in trials):
        yield "'max' and 'processes' mean the same here. Remove one of them."
    if plan.suite and section.decided == "accuracy":
        yield "'accuracy' is called 'score' here. Write: decided: score"
    if (pairs := _most_pairs(plan, section)) < FEWEST:
        processes = "1 process" if pairs == 1 else f"{pairs} processes"
        available = format_count(pairs, "case") if plan.suite else f"{processes} per side"
        yield f"needs at least {FEWEST} pairs, but there are only {available}."


def _sides(plan: Plan) -> dict[str, list[Trial]]:
    """The trials that answer one question: of a suite, those of each benchmark; else all of them."""
    sides: dict[str, list[Trial]] = defaultdict(list)
    for trial in plan.trials:
        sides[trial.benchmark if plan.suite else ""].append(trial)
    return sides


def _most_pairs(plan: Plan, section: UntilDecidedSection) -> int:
    """How many pairs there may be at most: of a suite its cases, of code as many processes as were asked for."""
    if plan.suite:
        cases = sum(len(trials[0].cases) for trials in _sides(plan).values())
        return min(cases, section.max or cases)
    processes = max(trial.processes for trial in plan.trials)
    return section.max or (processes if processes > 1 else PAIRS)


def _arms(plan: Plan) -> tuple[str, str]:
    """What each is called: an agent, with its options where both arms are the same one; else the trial."""
    first, second = next(iter(_sides(plan).values()))
    if plan.suite and first.agent.name != second.agent.name:
        return first.agent.name, second.agent.name
    if not plan.suite:
        return first.name, second.name
    # In a suite, trials are called "benchmark · agent[options]".
    return first.name.removeprefix(f"{first.benchmark} · "), second.name.removeprefix(
        f"{second.benchmark} · "
    )
