"""The JSON documents of suites: their definition, their health, and when those with a schedule are due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from assay.model import Benchmark, Suite
from assay.model.codec import to_plain
from assay.spec.cron import next_due

if TYPE_CHECKING:
    from assay.model.suite import SuiteHealth


class StoredSuite(Protocol):
    """What a list of suites shows of each that is in the store."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def hash(self) -> str: ...


def suite_document(suite: Suite, now: datetime) -> dict[str, Any]:
    """The suite as plain data, without its cases. Its schedule is read in the time zone of `now`."""
    due = next_due(suite.schedule, now)
    return {
        "suite": suite.name,
        "title": suite.title or suite.name,
        "version": suite.version,
        "category": suite.category,
        "description": suite.description,
        "hash": suite.hash,
        "created_at": suite.created_at or None,
        "schedule": suite.schedule,
        "next_due": due.isoformat() if due else None,
        "require": list(suite.require),
        "baseline_scores": [
            {"agent_id": agent, "scores": dict(scores)} for agent, scores in suite.baseline_scores.items()
        ],
        "benchmarks": [_benchmark(benchmark) for benchmark in suite.benchmarks],
    }


def _benchmark(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "id": benchmark.id,
        "name": benchmark.name,
        "description": benchmark.description,
        "test_type": benchmark.test_type,
        "experiment": benchmark.experiment,
        "params": dict(benchmark.params),
        "sweep": {name: list(values) for name, values in benchmark.sweep.items()},
        "cases": len(benchmark.cases),
        "scorers": [use.score_name for use in benchmark.scorers],
        "dataset": dict(benchmark.dataset),
        "metrics_measured": list(benchmark.metrics_measured),
        "instrumentation": [{"name": use.name, **use.options} for use in benchmark.instruments],
        "iterations": {
            "warmup": benchmark.iterations.warmup,
            "measured": benchmark.iterations.measured,
        },
        "limits": to_plain(benchmark.limits),
        "hash": benchmark.hash,
    }


def health_document(health: SuiteHealth) -> dict[str, Any]:
    """What `assay suite check` found, with the cases that each fault is about."""
    return {
        "suite": health.suite,
        "cases": health.cases,
        "sound": health.is_sound,
        "unchecked": health.number_of_unchecked,
        "faults": [
            {
                "code": fault.code,
                "benchmark": fault.benchmark,
                "cases": list(fault.cases),
                "message": fault.message,
                "severe": fault.is_severe,
            }
            for fault in health.faults
        ],
    }


def suites_document(
    files: Iterable[str],
    stored: Iterable[StoredSuite],
    schedules: Mapping[str, str | None],
    due: Mapping[str, datetime | None],
) -> dict[str, Any]:
    """Suites by name: those in files, those in the store, and when those with a schedule are due."""
    return {
        "files": list(files),
        "stored": [
            {"name": suite.name, "version": suite.version, "category": suite.category, "hash": suite.hash}
            for suite in stored
        ],
        "schedules": {
            name: {"schedule": schedules[name], "next_due": moment.isoformat() if moment else None}
            for name, moment in due.items()
        },
    }
