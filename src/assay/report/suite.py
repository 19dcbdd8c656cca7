"""A suite as a page: what it asks, of whom, and when it is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from assay.model import Benchmark, Suite
from assay.report.figures import when
from assay.report.marking import table, text
from assay.report.screen import bullet, literal, new_table
from assay.spec.cron import Schedule
from assay.units import count

if TYPE_CHECKING:
    from rich.console import Console

    from assay.analysis.health import SuiteHealth

COLUMNS = ("Benchmark", "Test type", "Experiment", "Cases", "Scorers", "Dataset", "Leads with")


def next_due(schedule: str | None, now: datetime | None = None) -> datetime | None:
    """The next time of a cron schedule; None where there is none."""
    if schedule is None:
        return None
    try:
        return Schedule.parse(schedule).next_after(now or datetime.now(UTC))
    except ValueError:  # stored before schedules were checked
        return None


def suite_document(suite: Suite, now: datetime | None = None) -> dict[str, Any]:
    """The suite as plain data, without its cases."""
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
        "limits": asdict(benchmark.limits),
        "hash": benchmark.hash,
    }


def health_document(health: SuiteHealth) -> dict[str, Any]:
    return {
        "suite": health.suite,
        "cases": health.cases,
        "sound": health.is_sound,
        "unchecked": health.unchecked,
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


def facts(suite: Suite, now: datetime | None = None) -> list[tuple[str, str]]:
    """What a suite says of itself, each with its title; nothing for what it leaves out."""
    due = next_due(suite.schedule, now)
    found = [
        ("Version", suite.version),
        ("Category", suite.category),
        ("Description", suite.description),
        ("Created", suite.created_at),
        ("Requires", ", ".join(suite.require)),
        ("Schedule", f"{suite.schedule} (next: {when(due)})" if due else suite.schedule or ""),
        *(
            (f"Baseline {agent}", ", ".join(f"{name} {value:g}" for name, value in scores.items()))
            for agent, scores in suite.baseline_scores.items()
        ),
    ]
    return [(title, value) for title, value in found if value]


def rows(suite: Suite) -> list[tuple[str, ...]]:
    """A row for each benchmark, under COLUMNS."""
    return [
        (
            benchmark.id if benchmark.name == benchmark.id else f"{benchmark.name} ({benchmark.id})",
            benchmark.test_type,
            _short(benchmark.experiment),
            count(len(benchmark.cases)) if benchmark.cases else "–",
            ", ".join(use.score_name for use in benchmark.scorers) or "–",
            _dataset(benchmark.dataset),
            ", ".join(benchmark.metrics_measured) or "–",
        )
        for benchmark in suite.benchmarks
    ]


def _short(experiment: str) -> str:
    """`/long/path/file.py::name` as `file.py::name`."""
    return experiment.rsplit("/", 1)[-1]


def _dataset(dataset: Mapping[str, object]) -> str:
    """The facts about the cases, but their number, which has a column of its own."""
    told = [
        str(value) if name in ("complexity", "data_source") else f"{name}: {value}"
        for name, value in dataset.items()
        if name != "size"
    ]
    return ", ".join(told) or "–"


def print_suite(suite: Suite, console: Console) -> None:
    console.print(literal(suite.title or suite.name, "bold"), literal(suite.name if suite.title else ""))
    for title, value in facts(suite):
        console.print(bullet(f"{title}:", value, "dim"))
    console.print()
    shown = new_table(tight=True)
    for title in COLUMNS:
        shown.add_column(title, overflow="fold")
    for row in rows(suite):
        shown.add_row(*map(literal, row))
    console.print(shown)
    for benchmark in suite.benchmarks:
        if benchmark.description:
            console.print(bullet(f"{benchmark.id}:", benchmark.description, "dim"))


def suite_section(suite: Suite, started: datetime) -> str:
    """The suite in Markdown, for the report of a run that began then."""
    lines = [f"- {text(title)}: {text(value)}" for title, value in facts(suite, started)]
    cells = [tuple(map(text, row)) for row in rows(suite)]
    told = [f"- {text(one.name)}: {text(one.description)}" for one in suite.benchmarks if one.description]
    parts = [
        f"## Suite {text(suite.title or suite.name)}",
        "\n".join(lines),
        table(COLUMNS, cells, right=(3,)),
        "\n".join(told),
    ]
    return "\n\n".join(part for part in parts if part)
