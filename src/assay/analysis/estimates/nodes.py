"""Counts what each node of a cluster executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from assay.model import Environment, TrialReport
from assay.model.report import NodeShare


def count_by_node(environment: Environment, trials: Sequence[TrialReport]) -> tuple[NodeShare, ...]:
    """Count processes and executions by node; a process that moved counts under the joined names of its nodes."""
    processes, executions = Counter[str](), Counter[str]()
    for trial in trials:
        processes.update(trial.nodes.values())
        for process, number in _count_executions(trial).items():
            if process in trial.nodes:
                executions[trial.nodes[process]] += number
    known = environment.nodes
    return tuple(
        NodeShare(
            name,
            known[name].machine_class if name in known else "",
            processes[name],
            executions[name],
            known[name].doubts if name in known else (),
        )
        for name in sorted({*known, *processes})
    )


def _count_executions(trial: TrialReport) -> Counter[int]:
    """Executions by process, from the metric that most of them have."""
    longest = max(trial.series.values(), key=lambda series: len(series.values), default=None)
    if longest is None:
        return Counter()
    return Counter(longest.rounds if longest.unit == "case" and len(longest.rounds) else longest.processes)
