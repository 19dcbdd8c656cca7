"""A capacity for machines and for the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.model import Report
from assay.model.load import Capacity, LoadResult, Step
from assay.units import count, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console

FILE = "capacity.json"
"""The artifact of a run that searched for a capacity."""
_LIMITS = {"generator": "the load generator"}
"""Causes that read better in a sentence than as they are stored."""


def capacity_document(capacity: Capacity) -> dict[str, Any]:
    return {
        "sustained_rate": capacity.sustained,
        "sustained_interval": list(capacity.interval) if capacity.sustained else None,
        "breaking_rate": capacity.broken,
        "highest_borne_rate": capacity.highest_held,
        "cause": capacity.cause,
        "why": capacity.why,
        "confirmed": capacity.confirmed,
        "interrupted": capacity.is_cut,
        "knee_concurrency": capacity.knee,
        "highest_throughput_rps": capacity.highest_throughput,
        "simulated": capacity.is_simulated,
        "warnings": list(capacity.warnings),
        "steps": [_step(step) for step in capacity.steps],
    }


def _step(step: Step) -> dict[str, Any]:
    result = step.result

    def ms(name: str, statistic: str) -> float | None:
        times = result.times.get(name)
        return None if times is None else times.at(statistic) * 1e3

    return {
        "concurrency": step.concurrency,
        "rate": step.rate,
        "throughput_rps": result.throughput.value,
        "error_rate": result.error_rate.value,
        "ttft_p50_ms": ms("ttft", "p50"),
        "ttft_p95_ms": ms("ttft", "p95"),
        "latency_p50_ms": ms("latency", "p50"),
        "latency_p95_ms": ms("latency", "p95"),
        "latency_p99_ms": ms("latency", "p99"),
        "in_flight": result.concurrency,
        "seconds": result.measured_seconds,
        "broken_by": step.broken_by,
        "why": step.why,
    }


def step_text(step: Step) -> str:
    """One line for whoever waits."""
    load = f"{significant(step.rate)}/s" if step.rate is not None else f"{step.concurrency} in flight"
    rate = significant(step.result.throughput.value)
    outcome = "ok" if not step.broken_by else f"{step.broken_by}: {step.why}"
    return f"{load:>16}  {rate:>7} answers/s  {_time(step.result):>21}  {outcome}"


def _time(result: LoadResult) -> str:
    """Of the first objective that is about a time; P95 of the latency where none is."""
    asked = (held.objective for held in result.held)
    metric, statistic = next(
        ((one.metric, one.statistic) for one in asked if one.statistic and one.metric in result.times),
        ("latency", "p95"),
    )
    if metric not in result.times:
        return ""
    title = metric if metric == "latency" else metric.upper().replace("_", " ")
    shown = statistic.upper() if statistic.startswith("p") else statistic
    return f"{title} {shown} {seconds(result.times[metric].at(statistic))}"


def print_capacity(document: Mapping[str, Any], console: Console) -> None:
    from assay.report.screen import bullet, literal

    console.print(literal(capacity_text(document), "bold"))
    for text in capacity_notes(document):
        console.print(literal(text, "dim"))
    for warning in document["warnings"]:
        console.print(bullet("!", warning, "yellow"))


def stored_capacity(report: Report) -> Mapping[str, Any] | None:
    """What the run's search for a capacity found; None where it was no search."""
    for trial in report.trials:
        for artifact in trial.artifacts:
            if artifact.name == FILE and isinstance(found := json.loads(artifact.content), dict):
                return found
    return None


def capacity_text(document: Mapping[str, Any]) -> str:
    """
    >>> capacity_text({"sustained_rate": 95.0, "sustained_interval": [91, 99], "breaking_rate": None, "simulated": True})
    'Sustained rate: 95 requests/s [91, 99] (simulated). No limit was reached.'
    """
    simulated = " (simulated)" if document["simulated"] else ""
    if document["sustained_rate"] is None:
        return f"No rate was sustained{simulated}: {document['why'] or 'nothing was answered'}."
    shown = f"Sustained rate: {significant(document['sustained_rate'])} requests/s{interval_text(document)}{simulated}."
    if not document["breaking_rate"]:
        limit = (
            f"Limited by {_LIMITS.get(document['cause'], document['cause'])}: {document['why']}."
            if document.get("cause")
            else "No limit was reached."
        )
        return f"{shown} {limit}"
    broken = significant(document["breaking_rate"])
    cause = _LIMITS.get(document["cause"], document["cause"])
    return f"{shown} It broke at {broken} requests/s ({cause}: {document['why']})."


def interval_text(document: Mapping[str, Any]) -> str:
    """With a blank before it, where there is one.

    >>> interval_text({"sustained_interval": [91, None]})
    ' [91, ?]'
    """
    ends = document.get("sustained_interval") or (None, None)
    if ends[0] is None and ends[1] is None:
        return ""
    low, high = ("?" if end is None else significant(end) for end in ends)
    return f" [{low}, {high}]"


def capacity_notes(document: Mapping[str, Any]) -> Iterator[str]:
    """Whether it was confirmed, and what a closed loop brought."""
    if document["sustained_rate"] is not None:
        yield (
            "Confirmed: a lower rate held, and a higher one broke."
            if document["confirmed"]
            else "Not confirmed: that takes a lower rate that holds and a higher one that breaks."
        )
    if document["knee_concurrency"] is not None:
        yield (
            f"Knee at {count(document['knee_concurrency'])} requests in flight; at most "
            f"{significant(document['highest_throughput_rps'])} answers/s in a closed loop."
        )
