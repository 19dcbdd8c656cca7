"""Trials on several nodes are compared within nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from assay.analysis.comparison.comparability import list_comparability_doubts
from assay.analysis.comparison.compare import compare_reports, compare_trials
from assay.model import Comparison, Environment, TrialReport, Verdict

PACES = {"n1": 1.0, "n2": 1.5}
TOGETHER = {number: ("n1", "n2")[number % 2] for number in range(20)}
MOSTLY_FAST = {number: "n2" if number % 4 == 0 else "n1" for number in range(20)}
MOSTLY_SLOW = {number: "n1" if number % 4 == 0 else "n2" for number in range(20)}


def _on(lab, nodes: Mapping[int, str], factor: float = 1.0, agent: str = "parser") -> TrialReport:
    """A trial of code: one process of five executions a number, as fast as its node."""
    paces = np.array([PACES[nodes[number].partition(" ")[0]] for number in sorted(nodes)])
    values = np.repeat(paces * factor * np.exp(lab.chance.normal(0, 0.01, len(nodes))), 5)
    trial: TrialReport = lab.trial(agent, lab.series(values, len(nodes)), agent=agent)
    return replace(trial, nodes=nodes)


def _compare(a: TrialReport, b: TrialReport, interleaved: bool = True) -> Comparison:
    (found,) = compare_trials(a, b, interleaved=interleaved)
    return found


def test_rounds_that_share_a_node_stay_pairs(lab) -> None:
    found = _compare(_on(lab, TOGETHER), _on(lab, TOGETHER, 1.1))

    assert (found.verdict, found.units_a) == (Verdict.WORSE, 20)
    assert "Wilcoxon" in found.method


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, Verdict.SAME), (1.1, Verdict.WORSE), (0.9, Verdict.BETTER)]
)
@pytest.mark.parametrize("interleaved", [True, False])
def test_unequal_shares_of_nodes_are_compared_within_these(
    lab, factor: float, verdict: Verdict, interleaved: bool
) -> None:
    found = _compare(_on(lab, MOSTLY_FAST), _on(lab, MOSTLY_SLOW, factor), interleaved)

    assert found.verdict is verdict
    assert found.ratio == pytest.approx(factor, rel=0.02)
    assert "within nodes" in found.method


def test_a_few_torn_rounds_are_left_out(lab) -> None:
    torn = {**TOGETHER, 0: "n2", 1: "n1", 2: "n2"}
    found = _compare(_on(lab, TOGETHER), _on(lab, torn))

    assert (found.verdict, found.units_a) == (Verdict.SAME, 17)


def test_arms_of_one_run_without_a_common_node_are_not_compared(lab) -> None:
    found = _compare(_on(lab, dict.fromkeys(range(20), "n1")), _on(lab, dict.fromkeys(range(20), "n2")))

    assert found.verdict is Verdict.UNSURE
    assert "'n1'" in found.reason
    assert "'n2'" in found.reason


def test_a_process_that_moved_belongs_to_no_node(lab) -> None:
    moved = {**TOGETHER, **dict.fromkeys(range(6), "n1 + n2")}
    found = _compare(_on(lab, moved), _on(lab, moved))

    assert found.units_a == 14


def test_one_node_is_as_one_machine(lab) -> None:
    alone = dict.fromkeys(range(20), "n1")
    a, b = _on(lab, alone), _on(lab, alone, 1.1)

    assert _compare(a, b) == _compare(replace(a, nodes={}), replace(b, nodes={}))


def test_two_runs_on_other_nodes_are_compared_as_on_other_machines(lab) -> None:
    a, b = (lab.report(_on(lab, dict.fromkeys(range(20), node))) for node in ("n1", "n2"))
    facts = {"nodes": {name: {"facts": {"cpu": {"model": name}}} for name in PACES}}
    b = replace(b, run=replace(b.run, id="other", environment=Environment(facts)))
    (found,) = compare_reports(a, b)

    assert "'n1'" not in found.reason
    assert {"machine", "nodes"} <= {doubt.code for doubt in list_comparability_doubts(a, b)}


def test_the_kind_of_a_cluster_is_that_of_its_nodes() -> None:
    def on(*models: str) -> Environment:
        nodes = {f"n{n}": {"facts": {"cpu": {"model": model}}} for n, model in enumerate(models)}
        return Environment({"cpu": {"model": "laptop"}, "nodes": nodes})

    assert on("epyc", "epyc").machine_class == Environment({"cpu": {"model": "epyc"}}).machine_class
    assert on("epyc", "xeon").machine_class == on("xeon", "epyc").machine_class != on("epyc").machine_class
