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
            _optimal(configuration, made) for made in found for configuration in made.optimal
        ],
        "cost_optimization_opportunities": [
            {"suite": made.suite, "simulated": made.is_simulated, **to_plain(opportunity)}
            for made in found
            for opportunity in made.opportunities
        ],
        "suites": [_suite(made) for made in found],
    }


def _by_configuration(
    found: Sequence[CostAnalysis], has_several: bool, choose: Callable[[TaskCost], Amount]
) -> dict[str, dict[str, float | None]]:
    document: dict[str, dict[str, float | None]] = {}
    for made in found:
        for configuration in made.configurations:
            for benchmark, cost in configuration.benchmarks.items():
                key = f"{made.suite}/{benchmark}" if has_several else benchmark
                document.setdefault(configuration.name, {})[key] = choose(cost).value
    return document


def _optimal(configuration: ConfigurationCost, made: CostAnalysis) -> dict[str, Any]:
    saving = configuration.saving
    return {
        "suite": made.suite,
        "simulated": made.is_simulated,
        "agent": configuration.agent,
        "configuration": configuration.name,
        "efficiency_score": configuration.efficiency,
        "estimated_savings": saving.per_month.value if saving else None,
        "estimated_savings_interval": [saving.per_month.low, saving.per_month.high] if saving else None,
        "instead_of": saving.instead_of if saving else None,
        "undecided": list(configuration.undecided),
    }


def _suite(made: CostAnalysis) -> dict[str, Any]:
    places = {configuration.name: configuration.place for configuration in made.configurations}
    return {
        "suite": made.suite,
        "category": made.category,
        "simulated": made.is_simulated,
        "volume_per_month": made.volume,
        "tolerance": made.tolerance,
        "pareto_front": [
            name for name, place in places.items() if place and place.status is not FrontStatus.DOMINATED
        ],
        "dominated": [
            name for name, place in places.items() if place and place.status is FrontStatus.DOMINATED
        ],
        "unknown_cost": [
            configuration.name
            for configuration in made.configurations
            if configuration.whole.cost_per_task.value is None
        ],
        "configurations": [_configuration(configuration) for configuration in made.configurations],
        "break_even": to_plain(made.break_even),
        "warnings": list(made.doubts),
    }


def _configuration(one: ConfigurationCost) -> dict[str, Any]:
    document = to_plain(one)
    return {
        "configuration": document.pop("name"),
        "agent": document.pop("agent"),
        "version": document.pop("version"),
        **document.pop("whole"),
        "is_optimal": one.is_optimal,
        **document,
        "warnings": document.pop("doubts"),
    }
