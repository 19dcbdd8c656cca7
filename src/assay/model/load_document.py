"""Loads and capacities as they are stored: metrics that can be compared, and documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.model.figure import Figure
from assay.model.load import (
    QUANTILES,
    Capacity,
    Distribution,
    LoadResult,
    Moment,
    Quality,
    Step,
    TimeHistogram,
)
from assay.model.load_generator import GeneratorResult
from assay.model.load_verdict import verdict_of
from assay.model.server_metrics import ServerMetrics

CAPACITY_FILE = "capacity.json"
"""The artifact of a run that searched for a capacity."""
_STATISTICS = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
_ALWAYS = ("ttft", "itl", "tpot", "latency", "schedule_delay")
TIME_TITLES = {
    "ttft": "Time to first token",
    "itl": "Between tokens (ITL)",
    "tpot": "Per output token (TPOT)",
    "latency": "Latency",
    "schedule_delay": "Schedule delay",
    "ttft_from_send": "First token, from the send",
    "latency_from_send": "Latency, from the send",
}


def load_metrics(result: LoadResult) -> dict[str, float]:
    """What is stored with an execution and can be compared: base units."""
    metrics = {
        "throughput_rps": result.throughput.value,
        "output_tokens_per_s": result.output_tokens.value,
        "error_rate": result.error_rate.value,
    }
    if result.goodput is not None:
        metrics["goodput_rps"] = result.goodput.value
    if result.quality is not None:
        metrics["score"] = result.quality.score.value
    for name in _ALWAYS:
        times = result.times.get(name)
        if times is not None:
            metrics |= {f"{name}_{s}_seconds": times.at(s) for s in ("p50", "p95", "p99")}
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def load_document(result: LoadResult) -> dict[str, Any]:
    """Times in milliseconds, as their names say; null where nothing was measured."""
    document = _figures_document(result)
    return {"verdict": verdict_of(document).value, **document}


def _figures_document(result: LoadResult) -> dict[str, Any]:
    """Names end in their unit; times are milliseconds, as load tools and SLOs write them."""
    times = {f"{name}_ms": times_document(result.times.get(name)) for name in TIME_TITLES}
    return {
        "requests_sent": result.requests_sent,
        "requests_completed": result.requests_completed,
        "requests_cancelled": result.cancelled,
        "errors": dict(result.errors),
        "error_reasons": {kind: dict(reasons) for kind, reasons in result.error_reasons.items()},
        "duration_s": result.duration,
        "measured_from_s": result.measured_from,
        "measured_s": result.measured_seconds,
        "throughput_rps": result.throughput.value,
        "output_tokens_per_s": result.output_tokens.value,
        "error_rate": result.error_rate.value,
        "goodput_rps": result.goodput.value if result.goodput else None,
        "achieved_rate": result.achieved_rate,
        "offered_rate": result.offered_rate,
        "concurrency": result.concurrency,
        **times,
        "intervals": {
            "throughput_rps": interval_of(result.throughput),
            "output_tokens_per_s": interval_of(result.output_tokens),
            "error_rate": interval_of(result.error_rate),
            "goodput_rps": interval_of(result.goodput),
        },
        **input_tokens_document(result),
        "prompt_seed": result.prompt_seed,
        "targets": [target_document(url, outcomes) for url, outcomes in result.targets.items()],
        "quality": _quality(result.quality),
        "slo": [
            {
                "objective": held.objective.text,
                "value": held.figure.value if held.figure else None,
                "interval": interval_of(held.figure),
                "met": held.is_met,
                "certain": held.is_certain,
            }
            for held in result.held
        ],
        "valid": result.is_valid,
        "invalid_because": list(result.doubts),
        "interrupted": result.is_cut and result.aborted is None,
        "aborted": result.aborted,
        "unavailable": result.is_unavailable,
        "outages": [
            {"at_s": outage.begin, "seconds": outage.seconds, "failed": outage.failed}
            for outage in result.outages
        ],
        "saturated": result.is_saturated,
        "steady": result.is_steady,
        "simulated": result.is_simulated,
        "generator": {"lag_p99_ms": result.lag_p99 * 1e3, "cpu_share": result.cpu_share},
        "generators": [generator_document(generator) for generator in result.generators],
        "warnings": list(result.warnings),
        "over_time": [_moment(moment) for moment in result.moments],
        "latency_curve_ms": [[value * 1e3, share] for value, share in result.curve],
        "histograms_ms": {name: _histogram(shape) for name, shape in result.histograms.items()},
        "server_metrics": _server(result.server),
    }


def _histogram(shape: TimeHistogram) -> dict[str, Any]:
    return {
        "edges": [float(f"{edge * 1e3:.6g}") for edge in shape.edges],
        "counts": list(shape.counts),
        "beyond": shape.beyond,
        "log": shape.is_log,
    }


def _server(server: ServerMetrics | None) -> dict[str, Any] | None:
    if server is None:
        return None
    return {
        "url": server.url,
        "software": server.software,
        "scrapes": server.scrapes,
        "failed": server.failed,
        "error": server.error,
        "series": [
            {
                "name": series.name,
                "title": series.title,
                "unit": series.unit,
                "kind": "counter" if series.is_counter else "gauge",
                "points": [list(point) for point in series.points],
            }
            for series in server.series
        ],
    }


def target_document(url: str, outcomes: Mapping[str, int]) -> dict[str, Any]:
    """Build the document of one of several targets: what became of the requests that went to it."""
    return {
        "url": url,
        "requests_sent": sum(outcomes.values()),
        "requests_completed": outcomes.get("ok", 0),
        "requests_cancelled": outcomes.get("cancelled", 0),
        "errors": {kind: number for kind, number in outcomes.items() if kind not in ("ok", "cancelled")},
    }


def generator_document(generator: GeneratorResult) -> dict[str, Any]:
    """Build the document of one of several load generators: what it sent, and whether it kept up."""
    delay = generator.schedule_delay_p99
    return {
        "node": generator.node,
        "workers": generator.workers,
        "requests_sent": generator.requests_sent,
        "requests_completed": generator.requests_completed,
        "errors": dict(generator.errors),
        "schedule_delay_p99_ms": None if delay is None else delay * 1e3,
        "lag_p99_ms": generator.lag_p99 * 1e3,
        "cpu_share": generator.cpu_share,
        "bottleneck": generator.is_limit,
        "clock_offset_ms": generator.clock_offset * 1e3,
        "clock_uncertainty_ms": generator.clock_uncertainty * 1e3,
        "late_start_ms": generator.late_start * 1e3,
        "lost": generator.lost,
    }


def input_tokens_document(result: LoadResult) -> dict[str, Any]:
    """Build the document of input tokens, as the server counted them over all answered requests.

    Values are null where the server does not report them.
    """
    given, cached = result.input_tokens, result.cached_tokens
    mean = None if given is None else given / result.counted_requests
    return {
        "input_tokens": given,
        "input_tokens_per_request": mean,
        "input_tokens_per_s": None if mean is None else mean * result.throughput.value,
        "cached_tokens": cached,
        "cached_share": None if cached is None else cached / given if given else 0.0,
    }


def _quality(quality: Quality | None) -> dict[str, Any] | None:
    if quality is None:
        return None
    return {
        "score": quality.score.value,
        "interval": interval_of(quality.score),
        "scored": quality.scored,
        "unscored": quality.unscored,
    }


def _moment(moment: Moment) -> dict[str, Any]:
    def ms(value: float | None) -> float | None:
        return None if value is None else value * 1e3

    return {
        "at_s": moment.begin,
        "seconds": moment.seconds,
        "sent": moment.sent,
        "completed": moment.completed,
        "failed": moment.failed,
        "output_tokens": moment.tokens,
        "in_flight": moment.in_flight,
        "latency_p50_ms": ms(moment.latency_p50),
        "latency_p99_ms": ms(moment.latency_p99),
        "ttft_p50_ms": ms(moment.ttft_p50),
        "ttft_p99_ms": ms(moment.ttft_p99),
        "itl_p50_ms": ms(moment.itl_p50),
        "itl_p99_ms": ms(moment.itl_p99),
        "schedule_delay_p99_ms": ms(moment.schedule_delay_p99),
        "lag_p99_ms": ms(moment.lag_p99),
        "errors": dict(moment.errors),
    }


def times_document(times: Distribution | None) -> dict[str, Any] | None:
    """Build the document of times, in milliseconds; an interval is null if there are too few values for one."""
    if times is None:
        return None
    known = {name: [low * 1e3, high * 1e3] for name, (low, high) in times.intervals.items()}
    return {
        **{name: times.at(name) * 1e3 for name in _STATISTICS},
        "n": times.n,
        "intervals": {name: known.get(name) for name in QUANTILES},
    }


def interval_of(span: Figure | None) -> list[float] | None:
    return None if span is None or span.low is None or span.high is None else [span.low, span.high]


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
