"""Counts what the server answers, and writes it as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import psutil

from assay import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class RequestCounts:
    """Requests by method, route and status, and the seconds that they took; streams of events count when they end."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, str]] = Counter()

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        self._seconds[method, route] += seconds  # type: ignore[assignment]

    def write(self, runs: Mapping[str, int], queue: Mapping[str, int]) -> str:
        """All figures; `runs` are those stored by state, `queue` those asked for by state."""
        process = psutil.Process()
        cpu = process.cpu_times()
        lines = [
            *_metric("assay_info", "gauge", "The version of the server.", [({"version": __version__}, 1)]),
            *_metric("assay_runs", "gauge", "Stored runs by state.", [({"state": k}, v) for k, v in runs.items()]),
            *_metric("assay_queue", "gauge", "Requested runs by state.", [({"state": k}, v) for k, v in queue.items()]),
            *_metric(
                "assay_requests_total", "counter", "Requests answered.",
                [({"method": m, "route": r, "status": s}, n) for (m, r, s), n in self._requests.items()],
            ),
            *_metric(
                "assay_request_seconds_total", "counter", "Seconds spent on requests.",
                [({"method": m, "route": r}, n) for (m, r), n in self._seconds.items()],
            ),
            *_metric("process_cpu_seconds_total", "counter", "CPU time of the server.", [({}, cpu.user + cpu.system)]),
            *_metric("process_resident_memory_bytes", "gauge", "Memory of the server.", [({}, process.memory_info().rss)]),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def _metric(
    name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, object], float]]
) -> list[str]:
    return [
        f"# HELP {name} {text}",
        f"# TYPE {name} {kind}",
        *(f"{name}{_labels(labels)} {value}" for labels, value in samples),
    ]


def _labels(labels: Mapping[str, object]) -> str:
    """Format the labels of a metric.

    Labels are names of ours and never what a request says, so they need no escapes and there are not
    many.
    """
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
