"""The JSON document of `assay cost`, which the server answers with as well.

At its top are the keys of the performance specification: `cost_per_task`, `cost_per_success` and `performance_per_dollar` by
configuration and benchmark, `optimal_configurations` and `cost_optimization_opportunities`. `suites` has every figure with its
interval. What is not known is null, and the reason stands beside it. Scripts rely on these keys: they may be added to, but not
renamed or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.model.codec import to_plain
from assay.model.cost import Amount, ConfigurationCost, CostAnalysis, FrontStatus, TaskCost


def cost_document(found: Sequence[CostAnalysis]) -> dict[str, Any]:
    """One document for all suites. Where there are several, benchmarks are named with their suite."""
    has_several = len({analysis.suite for analysis in found}) > 1
    return {
        "volume_per_month": found[0].volume,
        "cost_per_task": _by_configuration(found, has_several, lambda cost: cost.cost_per_task),
        "cost_per_success": _by_configuration(found, has_several, lambda cost: cost.cost_per_success),
        "performance_per_dollar": _by_configuration(
            found, has_several, lambda cost: cost.performance_per_dollar
        ),
        "optimal_configurations": [
            _optimal(configuration, cost_analysis)
            for cost_analysis in found
            for configuration in cost_analysis.optimal
        ],
        "cost_optimization_opportunities": [
            {"suite": cost_analysis.suite, "simulated": cost_analysis.is_simulated, **to_plain(opportunity)}
            for cost_analysis in found
            for opportunity in cost_analysis.opportunities
        ],
        "suites": [_suite(cost_analysis) for cost_analysis in found],
    }


def _by_configuration(
    found: Sequence[CostAnalysis], has_several: bool, choose: Callable[[TaskCost], Amount]
) -> dict[str, dict[str, float | None]]:
    document: dict[str, dict[str, float | None]] = {}
    for analysis in found:
        for configuration in analysis.configurations:
            for benchmark, cost in configuration.benchmarks.items():
                key = f"{analysis.suite}/{benchmark}" if has_several else benchmark
                document.setdefault(configuration.name, {})[key] = choose(cost).value
    return document


def _optimal(configuration: ConfigurationCost, analysis: CostAnalysis) -> dict[str, Any]:
    saving = configuration.saving
    return {
        "suite": analysis.suite,
        "simulated": analysis.is_simulated,
        "agent": configuration.agent,
        "configuration": configuration.name,
        "efficiency_score": configuration.efficiency,
        "estimated_savings": saving.per_month.value if saving else None,
        "estimated_savings_interval": [saving.per_month.low, saving.per_month.high] if saving else None,
        "instead_of": saving.instead_of if saving else None,
        "undecided": list(configuration.undecided),
    }


def _suite(analysis: CostAnalysis) -> dict[str, Any]:
    places = {configuration.name: configuration.place for configuration in analysis.configurations}
    return {
        "suite": analysis.suite,
        "category": analysis.category,
        "simulated": analysis.is_simulated,
        "volume_per_month": analysis.volume,
        "tolerance": analysis.tolerance,
        "pareto_front": [
            name for name, place in places.items() if place and place.status is not FrontStatus.DOMINATED
        ],
        "dominated": [
            name for name, place in places.items() if place and place.status is FrontStatus.DOMINATED
        ],
        "unknown_cost": [
            configuration.name
            for configuration in analysis.configurations
            if configuration.whole.cost_per_task.value is None
        ],
        "configurations": [_configuration(configuration) for configuration in analysis.configurations],
        "break_even": to_plain(analysis.break_even),
        "warnings": list(analysis.doubts),
    }


def _configuration(configuration: ConfigurationCost) -> dict[str, Any]:
    document = to_plain(configuration)
    return {
        "configuration": document.pop("name"),
        "agent": document.pop("agent"),
        "version": document.pop("version"),
        **document.pop("whole"),
        "is_optimal": configuration.is_optimal,
        **document,
        "warnings": document.pop("doubts"),
    }
