"""The JSON documents of `assay power` and `assay noise`: required sample sizes, and how much results vary by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.model.precision import Need, NoiseFloor, SimulatedPower


def power_document(target: str, needs: Sequence[Need]) -> dict[str, Any]:
    return {
        "schema": "assay.power/1",
        "target": target,
        "alpha": 0.05,
        "power": 0.8,
        "needs": [
            {
                "benchmark": need.benchmark,
                "metric": need.metric.name,
                "effect": need.effect,
                "unit": need.unit,
                "there": need.there,
                "units_needed": need.units,
                "repetitions": need.repetitions,
                "repetitions_needed": need.more_repetitions,
                "executions": need.executions,
                "minutes": need.minutes,
                "usd": need.usd,
                "basis": need.basis,
                "family": need.family,
                "power_now": _share_document(need.power_now),
                "power_with_units_needed": _share_document(need.power_units),
                "power_with_repetitions_needed": _share_document(need.power_repetitions),
                "why_not_units": need.why_not_units or None,
                "why_not_repetitions": need.why_not_repetitions or None,
            }
            for need in needs
        ],
    }


def _share_document(power: SimulatedPower | None) -> dict[str, float] | None:
    if power is None:
        return None
    return {"share": power.share, "low": power.low, "high": power.high, "simulations": power.simulations}


def noise_document(run_id: str, floors: Sequence[NoiseFloor]) -> dict[str, Any]:
    return {
        "schema": "assay.noise/1",
        "run_id": run_id,
        "floors": [
            {
                "trial": floor.trial,
                "metric": floor.metric.name,
                "unit": floor.unit,
                "cases": floor.cases if floor.unit == "case" else None,
                "rounds": floor.rounds,
                "noise_floor": floor.floor,
                "tolerance": floor.tolerance,
                "share_of_variance": {
                    "case": floor.share_case,
                    "machine": floor.share_machine,
                    "repetition": floor.share_repetition,
                },
                "against_itself": floor.verdict,
            }
            for floor in floors
        ],
    }
