"""What a server reported about itself while it was under load, scraped from its Prometheus endpoint by `load.server_metrics`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One metric over time. Points are seconds after the start of the load, and the value then."""

    name: str
    """As the server calls it: `vllm:num_requests_running`."""
    title: str
    unit: str
    """`requests`, `share`, `tokens`, `bytes` or `cores`."""
    is_counter: bool
    """Whether it only grows, so that what counts is how fast."""
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """All series of one endpoint, and how many of the scrapes failed."""

    url: str
    software: str
    """`vLLM`, `llama.cpp`, `SGLang` or `TGI`; empty where nothing known was found."""
    scrapes: int
    failed: int
    error: str | None
    """Why the last scrape that failed did."""
    series: tuple[MetricSeries, ...]
