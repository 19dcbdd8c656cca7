"""Warns about differences between two runs other than the one being compared.

Two results can only be compared if everything else is the same: machine, Python, params, kind of figures and cases. What
differs does not stop a comparison, but it is shown beside the verdicts with the values of both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.analysis.comparison.compare import matching_trials
from assay.analysis.comparison.nodes import find_blocks
from assay.analysis.estimates.completion import incomplete_sides
from assay.analysis.estimates.scorer_failures import check_unscored_sides
from assay.analysis.estimates.treatment import differing_params
from assay.analysis.findings import early_end
from assay.model import Doubt, Environment, Kind, Report, TrialReport

_NAMED = 3
# Code of the doubt, path in the facts of an environment, plural for the message, hint.
_FACTS = (
    (
        "machine",
        ("cpu", "model"),
        "processors",
        "Times from different machines are not comparable: run both on the same machine.",
    ),
    ("machine", ("cpu", "cores_logical"), "numbers of cores", "Run both on the same machine."),
    ("machine", ("os", "system"), "operating systems", "Run both on the same machine."),
    (
        "python",
        ("python", "version"),
        "Python versions",
        "Unless this is what you compare, use the same one for both.",
    ),
    (
        "python",
        ("python", "implementation"),
        "Python implementations",
        "Unless this is what you compare, use the same one for both.",
    ),
)


def list_comparability_doubts(a: Report, b: Report) -> tuple[Doubt, ...]:
    """What else differs between two sides than what is compared, with the values of both; each warning once."""
    of_runs: list[Doubt] = []
    for first, second in split_by_runs(a, b):
        for code, path, plural, hint in _FACTS:
            fact_a, fact_b = (_read_fact(side.run.environment, path) for side in (first, second))
            if fact_a and fact_b and fact_a != fact_b:
                of_runs.append(Doubt(code, f"The {plural} differ: '{fact_a}' for A, '{fact_b}' for B.", hint))
        # A test for a fixed number of pairs finds too much if pairs were made until the result looked decided.
        questions = dict.fromkeys(side.run.question for side in (first, second))
        of_runs += [
            early_end(question) for question in questions if question is not None and question.is_decided
        ]
    found = (
        *check_unscored_sides(a, b),
        *incomplete_sides(a, b),
        *of_runs,
        *_check_nodes(a, b),
        *_kinds(a, b),
        *_check_recorded_times(a, b),
        *_params(a, b),
        *_check_unmatched_trials(a, b),
    )
    return tuple(dict.fromkeys(found))


def split_by_runs(a: Report, b: Report) -> list[tuple[Report, Report]]:
    """Both sides, split into parts that have one run on either side.

    An agent's side may have results of several runs, and noise between runs has to be looked up run by run.
    """
    parts: dict[tuple[str, str], list[tuple[TrialReport, TrialReport]]] = {}
    for first, second in matching_trials(a, b):
        parts.setdefault((a.run_of(first).id, b.run_of(second).id), []).append((first, second))
    if len(parts) < 2 and len(a.runs) == len(b.runs) == 1:
        return [(a, b)]
    return [
        (_part(a, [first for first, _ in pairs]), _part(b, [second for _, second in pairs]))
        for pairs in parts.values()
    ]


def _part(report: Report, trials: Sequence[TrialReport]) -> Report:
    return replace(report, run=report.run_of(trials[0]), trials=tuple(trials))


def _read_fact(environment: Environment, path: tuple[str, ...]) -> str:
    """A fact of the machine, or those of the nodes that made the executions; empty where it is not known."""
    values: dict[str, None] = {}
    for place in environment.nodes.values() or (environment,):
        found: object = place.facts
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is not None:
            values[str(found)] = None
    return "', '".join(sorted(values))


def _check_nodes(a: Report, b: Report) -> Iterator[Doubt]:
    """A warning if the sides ran on different nodes of a cluster, or on the same ones in other shares."""
    for first, second in matching_trials(a, b):
        blocks = find_blocks(first, second, is_one_run=True) if first.nodes and second.nodes else None
        if blocks is None:
            continue
        if blocks.separation:
            kinds_a, kinds_b = _node_kinds(a, first), _node_kinds(b, second)
            kinds = f" ({kinds_a} for A, {kinds_b} for B)" if kinds_a != kinds_b else ""
            message = f"{blocks.separation}{kinds}, so their times are not comparable."
            yield Doubt("nodes", message, "Run both in one run, on the same nodes.", second.name)
        elif Counter(first.nodes.values()) != Counter(second.nodes.values()):
            yield Doubt(
                "nodes",
                "A and B used the nodes in different proportions: times are compared within nodes, so their ratio may differ "
                "from the ratio of the medians, which cover all nodes.",
                trial=second.name,
            )


def _node_kinds(report: Report, trial: TrialReport) -> str:
    """The kinds of machine that executed a trial."""
    known = report.run_of(trial).environment.nodes
    kinds = {known[name].machine_class for name in set(trial.nodes.values()) if name in known}
    return " + ".join(sorted(kinds))


def _kinds(a: Report, b: Report) -> Iterator[Doubt]:
    """Metrics that are measured on one side and simulated or recorded on the other, of trials that match."""
    differing: dict[str, tuple[Kind, Kind]] = {}
    for first, second in matching_trials(a, b):
        kinds = {estimate.metric.name: estimate.metric.kind for estimate in second.estimates}
        for metric in (estimate.metric for estimate in first.estimates):
            if kinds.get(metric.name, metric.kind) is not metric.kind:
                differing[metric.name] = metric.kind, kinds[metric.name]
    hint = "Figures that were obtained in different ways are not comparable."
    for side, letter in enumerate("AB"):
        if made_up := [f"'{name}'" for name, kinds in differing.items() if kinds[side] is Kind.SIMULATED]:
            are = "is" if len(made_up) == 1 else "are"
            yield Doubt("kind", f"{', '.join(made_up)} {are} simulated for {letter} only.", hint)
    for name, (first_kind, second_kind) in differing.items():
        if Kind.SIMULATED not in (first_kind, second_kind):
            yield Doubt("kind", f"'{name}' is {first_kind} for A, but {second_kind} for B.", hint)


def _check_recorded_times(a: Report, b: Report) -> Iterator[Doubt]:
    """A warning if the times of both sides are recorded. If only one side's are, `_kinds` warns."""
    for first, second in matching_trials(a, b):
        if (
            first.is_recorded
            and second.is_recorded
            and "seconds" in first.series
            and "seconds" in second.series
        ):
            yield Doubt(
                "recorded",
                "The times of both sides were recorded earlier, perhaps on different machines or at different times, so "
                "the verdict on them holds for cases, not for rounds of a run.",
                "To compare times reliably, run both agents together.",
            )
            return


def _params(a: Report, b: Report) -> Iterator[Doubt]:
    """Params that differ between matching trials: the verdict cannot tell their effects apart."""
    for first, second in matching_trials(a, b):
        names = differing_params(first, second)
        if names:
            params_a, params_b = first.stored.trial.params, second.stored.trial.params
            values = ", ".join(
                f"{name} '{params_a.get(name)}' for A, '{params_b.get(name)}' for B" for name in names
            )
            yield Doubt("params", f"The params differ: {values}.", "The verdict covers all of them together.")


def _check_unmatched_trials(a: Report, b: Report) -> Iterator[Doubt]:
    """Trials that only one side has, and that are therefore not compared."""
    matched = matching_trials(a, b)
    parts = []
    for side, report, place in (("A", a, 0), ("B", b, 1)):
        known = {id(pair[place]) for pair in matched}
        if alone := [trial.name for trial in report.trials if id(trial) not in known]:
            more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
            parts.append(f"{', '.join(alone[:_NAMED])}{more} (only in {side})")
    if parts:
        message = f"Not compared: {'; '.join(parts)}."
        yield Doubt("unmatched", message, "Trials match by benchmark, params and agent.")
