"""The files that the benchmarks of StateSet Agents write, with true figures.

`benchmark_results/benchmark_results.json`, the same as a page, and `grpo_benchmark_results_TIME.json`, one file a run. Percentiles
are interpolated and null where there are too few executions for them. Memory is Python's peak in executions of their own,
which are not timed, and null without the instrument `memory`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.errors import ReportError
from assay.model import Estimate, Report, TrialReport
from assay.model.page import Cell, PageSection, Table
from assay.plugin import format_strict_json, make_folder, to_json_data, write_private
from assay.plugin.figures import NOTHING
from assay.report.findings import finding_sections
from assay.report.pages.page import Page, page_html
from assay.report.warnings import run_warnings
from assay.units import significant

_MEMORY = "traced_peak_bytes"
_FIGURES = ("avg_time_ms", "min_time_ms", "max_time_ms", "std_dev_ms", "p50_ms", "p95_ms", "p99_ms")


class ComponentFiles:
    """Writes each trial as one benchmark; ReportError for a run that has only suites."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        results = [_read_result(report, trial) for trial in report.trials if trial.ratings is None]
        if not results:
            raise ReportError(
                f"Run '{report.run.id}' has no experiments, so --report components has nothing to write."
            )
        document = {
            "timestamp": report.run.started.isoformat(),
            "run_id": report.run.id,
            "system_info": dict(report.run.environment.facts),
            "results": results,
            **{
                key: value
                for finding in report.findings.values()
                for key, value in finding.document().items()
            },
        }
        text = format_strict_json(to_json_data(document), indent=2) + "\n"
        own = folder / "benchmark_results"
        make_folder(own)
        stamp = report.run.started.strftime("%Y%m%d_%H%M%S")
        names = ("benchmark_results.json", "benchmark_results.html", f"grpo_benchmark_results_{stamp}.json")
        files = [own / name for name in names]
        for path, content in zip(files, (text, page_html(_build_page(report, results)), text), strict=True):
            write_private(path, content)
        return files


def _read_result(report: Report, trial: TrialReport) -> dict[str, Any]:
    """The fields of the original's BenchmarkResult. `throughput` is executions per second of measured time."""
    point = trial.stored.trial
    estimate = next((e for e in trial.estimates if e.metric.name == "seconds"), None)
    entries = report.run.source.get("experiments")
    own = [e for e in entries if isinstance(e, Mapping)] if isinstance(entries, list) else []
    group = next((e.get("group") for e in own if e.get("experiment") == point.benchmark), None)
    peaks = [e.measurements[_MEMORY] for e in trial.executions if _MEMORY in e.measurements]
    return {
        "name": trial.name,
        "iterations": estimate.n if estimate is not None else 0,
        **_read_times(estimate),
        "memory_mb": max(peaks) / 1e6 if peaks else None,
        "metadata": {
            "group": group,
            "agent": point.agent.name,
            "params": dict(point.params),
            "counts": dict(trial.counts),
            "simulated": trial.is_simulated,
            "metrics": {
                e.metric.name: {"median": e.median, "low": e.low, "high": e.high, "unit": e.metric.unit}
                for e in trial.estimates
                if e.metric.name != "seconds"
            },
        },
    }


def _read_times(estimate: Estimate | None) -> dict[str, float | None]:
    if estimate is None:
        names = (*_FIGURES, *(name.replace("_time", "") for name in _FIGURES))
        return dict.fromkeys(("total_time_ms", *names, "throughput"))
    total = estimate.mean * estimate.n
    values = (
        estimate.mean,
        estimate.min,
        estimate.max,
        estimate.std,
        estimate.median,
        estimate.p95,
        estimate.p99,
    )
    figures = {
        name: None if name.removesuffix("_ms") in estimate.insufficient else value * 1000
        for name, value in zip(_FIGURES, values, strict=True)
    }
    # Mean, lowest and highest go by two names in descriptions of these files: `avg_time_ms` and `avg_ms`.
    short = {name.replace("_time", ""): value for name, value in figures.items()}
    throughput = estimate.n / total if total else None
    return {"total_time_ms": total * 1000, **figures, **short, "throughput": throughput}


def _build_page(report: Report, results: Sequence[Mapping[str, Any]]) -> Page:
    titles = (
        "Benchmark",
        "Executions",
        "Mean ms",
        "Min",
        "Max",
        "Std",
        "P50",
        "P95",
        "P99",
        "Per second",
        "Memory MB",
    )
    keys = ("iterations", *_FIGURES, "throughput", "memory_mb")
    rows = [
        [
            Cell(str(result["name"]), note="simulated" if result["metadata"]["simulated"] else ""),
            *(Cell(NOTHING if result[key] is None else significant(result[key])) for key in keys),
        ]
        for result in results
    ]
    caption = Cell(
        f"{NOTHING} is where there are too few executions for a percentile, or nothing was measured."
    )
    run = report.run
    return Page(
        title=run.label or run.name,
        kind="benchmark_results",
        facts=[f"run {run.id}", run.started.strftime("%Y-%m-%d %H:%M UTC")],
        sections=[
            PageSection("Benchmarks", [Table(titles, rows, caption=caption)]),
            *finding_sections(report, with_charts=True),
        ],
        warnings=run_warnings(report),
    )
