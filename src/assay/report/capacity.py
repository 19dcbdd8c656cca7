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


def capacity_document(capacity: Capacity) -> dict[str, Any]:
    return {
        "sustained_rate": capacity.sustained,
        "sustained_interval": [capacity.sustained, _upper(capacity)] if capacity.sustained else None,
        "breaking_rate": capacity.broken,
        "highest_borne_rate": capacity.highest_borne,
        "cause": capacity.cause,
        "why": capacity.why,
        "confirmed": capacity.confirmed,
        "knee_concurrency": capacity.knee,
        "highest_throughput_rps": capacity.highest_throughput,
        "simulated": capacity.is_simulated,
        "warnings": list(capacity.warnings),
        "steps": [_step(step) for step in capacity.steps],
    }


def _upper(capacity: Capacity) -> float | None:
    """The limit lies below it: what was not borne, or more where that was borne in another step."""
    if capacity.broken is None:
        return None
    return max(capacity.broken, capacity.highest_borne or 0.0)


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
    asked = f"{significant(step.rate)}/s" if step.rate is not None else f"{step.concurrency} at a time"
    told = f"{asked:>16}  {significant(step.result.throughput.value):>7} answers/s  {_time(step.result):>21}"
    return f"{told}  {'borne' if not step.broken_by else step.broken_by + ': ' + step.why}"


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
    >>> capacity_text({"sustained_rate": 95.0, "breaking_rate": None, "simulated": True})
    '95 requests/s are borne (simulated); no limit was reached.'
    """
    simulated = " (simulated)" if document["simulated"] else ""
    once = document.get("highest_borne_rate")
    if document["sustained_rate"] is None and once:
        broken = f"{significant(document['breaking_rate'])} requests/s were not{simulated}"
        return f"{significant(once)} requests/s were borne once, but {broken}: what is borne is not known."
    if document["sustained_rate"] is None:
        return f"No rate was borne{simulated}: {document['why'] or 'nothing was answered'}."
    borne = f"{significant(document['sustained_rate'])} requests/s are borne{simulated}"
    if not document["breaking_rate"]:
        return f"{borne}; no limit was reached."
    broken = significant(document["breaking_rate"])
    told = f"{borne}; {broken} requests/s are not ({document['cause']}: {document['why']})"
    if not once or once <= document["breaking_rate"]:
        return f"{told}."
    span = f"between {significant(document['sustained_rate'])} and {significant(once)} requests/s"
    return f"{told}, though {significant(once)} requests/s once were: the limit lies {span}."


def capacity_notes(document: Mapping[str, Any]) -> Iterator[str]:
    """Whether it was confirmed, and what a closed loop brought."""
    if document["sustained_rate"] is not None:
        yield (
            "Tried again: 0.95 of it is borne, 1.05 of it is not."
            if document["confirmed"]
            else "Not confirmed by a second try at 0.95 and 1.05 of what was found at first."
        )
    if document["knee_concurrency"] is not None:
        yield (
            f"Knee at {count(document['knee_concurrency'])} requests at a time; at most "
            f"{significant(document['highest_throughput_rps'])} answers/s in a closed loop."
        )
