"""Results of loads made by hand."""

from __future__ import annotations

from typing import Any

from assay.model.figure import Figure
from assay.model.load import Distribution, LoadResult


def times(value: float = 0.1, n: int = 1000) -> Distribution:
    return Distribution(
        n, value, value, value, value, value, value, value, {"p95": (value * 0.9, value * 1.1)}
    )


def result(**changes: Any) -> LoadResult:
    """A load of 100/s with 10 in flight of which nothing bad is to be said."""
    plain: dict[str, Any] = {
        "requests_sent": 1000,
        "requests_completed": 1000,
        "errors": {},
        "duration": 10.1,
        "measured_from": 0.0,
        "measured_seconds": 10.0,
        "is_steady": True,
        "throughput": Figure(100.0, 99.0, 101.0),
        "output_tokens": Figure(2000.0, 1980.0, 2020.0),
        "error_rate": Figure(0.0, 0.0, 0.004),
        "goodput": Figure(90.0, 89.0, 91.0),
        "offered_rate": 100.0,
        "achieved_rate": 100.0,
        "concurrency": 10.0,
        "times": {"ttft": times(0.05), "latency": times(0.1), "schedule_delay": times(1e-5)},
        "held": (),
        "moments": (),
        "curve": (),
        "lag_p99": 0.0002,
        "cpu_share": 0.1,
        "is_valid": True,
        "is_saturated": False,
        "is_simulated": False,
        "counts_pieces": False,
        "warnings": (),
    }
    return LoadResult(**{**plain, **changes})
