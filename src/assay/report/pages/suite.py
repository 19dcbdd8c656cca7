"""A suite described for people: its facts, its benchmarks, and when it is due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from assay.model import Suite
from assay.model.page import Cell, Table
from assay.report.console.screen import bullet, literal
from assay.report.console.sections import print_table
from assay.report.figures import format_scheduled_time
from assay.report.pages.markdown_escape import text
from assay.report.pages.page import format_table
from assay.spec.cron import next_due
from assay.units import count

if TYPE_CHECKING:
    from rich.console import Console


_COLUMNS = ("Benchmark", "Test type", "Experiment", "Cases", "Scorers", "Dataset", "Leads with")


def facts(suite: Suite, now: datetime) -> list[tuple[str, str]]:
    """What a suite says of itself, each with its title; nothing for what it leaves out. Times are in the zone of `now`."""
    due = next_due(suite.schedule, now)
    found = [
        ("Version", suite.version),
        ("Category", suite.category),
        ("Description", suite.description),
        ("Created", suite.created_at),
        ("Requires", ", ".join(suite.require)),
        (
            "Schedule",
            f"{suite.schedule} (next: {format_scheduled_time(due)})" if due else suite.schedule or "",
        ),
        *(
            (f"Baseline {agent}", ", ".join(f"{name} {value:g}" for name, value in scores.items()))
            for agent, scores in suite.baseline_scores.items()
        ),
    ]
    return [(title, value) for title, value in found if value]


def benchmarks_table(suite: Suite) -> Table:
    """A row for each benchmark."""
    rows = [
        (
            benchmark.id if benchmark.name == benchmark.id else f"{benchmark.name} ({benchmark.id})",
            benchmark.test_type,
            benchmark.experiment.rsplit("/", 1)[-1],  # `/long/path/file.py::name` as `file.py::name`
            count(len(benchmark.cases)) if benchmark.cases else "–",
            ", ".join(use.score_name for use in benchmark.scorers) or "–",
            _dataset(benchmark.dataset),
            ", ".join(benchmark.metrics_measured) or "–",
        )
        for benchmark in suite.benchmarks
    ]
    return Table(_COLUMNS, [[Cell(text) for text in row] for row in rows], words=(1, 2, 4, 5, 6))


def _dataset(dataset: Mapping[str, object]) -> str:
    """The facts about the cases, but their number, which has a column of its own."""
    facts_of_cases = [
        str(value) if name in ("complexity", "data_source") else f"{name}: {value}"
        for name, value in dataset.items()
        if name != "size"
    ]
    return ", ".join(facts_of_cases) or "–"


def print_suite(suite: Suite, now: datetime, console: Console) -> None:
    """A suite for the terminal, from the same facts and rows that the pages show."""
    console.print(literal(suite.title or suite.name, "bold"), literal(suite.name if suite.title else ""))
    for title, value in facts(suite, now):
        console.print(bullet(f"{title}:", value, "dim"))
    console.print()
    print_table(benchmarks_table(suite), console)
    for benchmark in suite.benchmarks:
        if benchmark.description:
            console.print(bullet(f"{benchmark.id}:", benchmark.description, "dim"))


def suite_section(suite: Suite, started: datetime) -> str:
    """The suite in Markdown, for the report of a run that began then."""
    lines = [f"- {text(title)}: {text(value)}" for title, value in facts(suite, started)]
    descriptions = [
        f"- {text(benchmark.name)}: {text(benchmark.description)}"
        for benchmark in suite.benchmarks
        if benchmark.description
    ]
    parts = [
        f"## Suite {text(suite.title or suite.name)}",
        "\n".join(lines),
        format_table(benchmarks_table(suite)),
        "\n".join(descriptions),
    ]
    return "\n\n".join(part for part in parts if part)
