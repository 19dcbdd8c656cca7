"""The JSON document of a dry run: the trials of a plan with the forecast of executions, time and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.model import Plan
from assay.model.codec import to_plain
from assay.model.forecast import Forecast, TrialForecast


def preview_document(plan: Plan, forecast: Forecast, warnings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "name": plan.name,
        "seed": plan.seed,
        **_build_forecast_fields(forecast),
        "executions": plan.most_executions,
        **({"question": to_plain(plan.question)} if plan.question else {}),
        "trials": [
            {
                "name": t.name,
                "parameters": dict(t.params),
                "processes": t.processes,
                "executions": t.most_executions,
                **_build_forecast_fields(expected),
            }
            for t, expected in zip(plan.trials, forecast.trials, strict=True)
        ],
        "warnings": list(warnings),
    }


def _build_forecast_fields(found: Forecast | TrialForecast) -> dict[str, Any]:
    """`expected_seconds` and `expected_usd` are null where nobody can tell; `expected_basis` says why."""
    return {
        "expected_seconds": found.seconds.value,
        "expected_usd": found.usd.value,
        "expected_basis": {
            name: {"basis": part.basis.value, "reason": part.reason}
            for name, part in (("seconds", found.seconds), ("usd", found.usd))
        },
    }
