"""A capacity for machines and for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.model.load import Capacity, Distribution, Step
from assay.units import count, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console


def capacity_document(capacity: Capacity) -> dict[str, Any]:
    return {
        "sustained_rate": capacity.sustained,
        "sustained_interval": [capacity.sustained, capacity.broken] if capacity.sustained else None,
        "breaking_rate": capacity.broken,
        "cause": capacity.cause,
        "why": capacity.why,
        "confirmed": capacity.confirmed,
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
    asked = f"{significant(step.rate)}/s" if step.rate is not None else f"{step.concurrency} at a time"
    times = step.result.times.get("latency")
    told = f"{asked:>16}  {significant(step.result.throughput.value):>7} answers/s  {_p95(times):>16}"
    return f"{told}  {'borne' if not step.broken_by else step.broken_by + ': ' + step.why}"


def _p95(times: Distribution | None) -> str:
    return "" if times is None else f"P95 {seconds(times.p95)}"


def print_capacity(capacity: Capacity, console: Console) -> None:
    from assay.report.screen import bullet

    simulated = " (simulated)" if capacity.is_simulated else ""
    if capacity.sustained is None:
        console.print(f"[bold]No rate was borne[/bold]{simulated}: {capacity.why or 'nothing was answered'}.")
    else:
        console.print(
            f"[bold]{significant(capacity.sustained)} requests/s are borne[/bold]{simulated}"
            + (
                f"; {significant(capacity.broken)} requests/s are not ({capacity.cause}: {capacity.why})."
                if capacity.broken
                else "; no limit was reached."
            )
        )
        console.print(f"[dim]{_confirmation(capacity)}[/dim]")
    if capacity.knee is not None:
        console.print(
            f"[dim]Knee at {count(capacity.knee)} requests at a time; at most "
            f"{significant(capacity.highest_throughput)} answers/s in a closed loop.[/dim]"
        )
    for warning in capacity.warnings:
        console.print(bullet("!", warning, "yellow"))


def _confirmation(capacity: Capacity) -> str:
    if capacity.confirmed:
        return "Tried again: 0.95 of it is borne, 1.05 of it is not."
    return "Not confirmed by a second try at 0.95 and 1.05 of it."
