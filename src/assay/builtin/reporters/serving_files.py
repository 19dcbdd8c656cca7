"""The files that seed 002 wrote of a single-agent benchmark, with conclusions that follow from the figures.

For each point that is held against the baseline a folder, named after the options that the server really had:
`data/metrics.json`, `reports/baseline_report_run_N.md`, `reports/chimera_report_run_N.md` and
`reports/comparison_report.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.builtin.reporters.finding_files import write_json, write_text
from assay.builtin.reporters.serving_pages import comparison_page, run_page
from assay.builtin.reporters.serving_sides import Pair, PairedExecutions, Side, pairs, rounds
from assay.errors import ReportError
from assay.model import Execution, Report
from assay.plugin import safe_name

_SHORT = {
    "num_gpu": "gpu",
    "num_ctx": "ctx",
    "temperature": "temp",
    "top_p": "topp",
    "top_k": "topk",
    "repeat_penalty": "rep",
}


class ServingFiles:
    """Writes JSON and Markdown files that compare two servers; ReportError for a run without a trial of `serving`."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        held = pairs(report)
        if not held:
            raise ReportError(
                f"Run '{report.run.id}' has no trial of 'serving', so --report serving has nothing to write. Use html, md or json."
            )
        files: list[Path] = []
        for pair, name in _name_folders(held):
            files += _write_pair(report, pair, folder / name)
        return files


def _write_pair(report: Report, pair: Pair, folder: Path) -> list[Path]:
    pairs = rounds(pair)
    document = [_run(pair, executions, number) for number, executions in enumerate(pairs, 1)]
    pages = {
        f"{side.role}_report_run_{number}.md": run_page(side, execution, number)
        for number, executions in enumerate(pairs, 1)
        for side, execution in executions.of(pair)
    }
    pages = {"comparison_report.md": comparison_page(report, pair, pairs), **pages}
    return [
        write_json(folder / "data" / "metrics.json", document),
        *(write_text(folder / "reports" / name, page) for name, page in pages.items()),
    ]


def _name_folders(held: Sequence[Pair]) -> Iterator[tuple[Pair, str]]:
    """Points that the same options were read back of are told apart by a number."""
    taken: dict[str, int] = {}
    for pair in held:
        name = folder_name(pair.candidate or pair.reference)
        taken[name] = taken.get(name, 0) + 1
        yield pair, name if taken[name] == 1 else f"{name}_{taken[name]}"


def folder_name(side: Side) -> str:
    """The agent and the options that it had: as read back, else as asked for; never those of some other run."""
    words = [
        f"{_SHORT[name]}{value:g}" if isinstance(value, float) else f"{_SHORT[name]}{value}"
        for name, value in side.options().items()
        if name in _SHORT
    ]
    start = ["cold"] if side.params.get("start") == "cold" else []
    return safe_name("_".join([side.trial.stored.trial.agent.name, *(words or ["server-defaults"]), *start]))


def _run(pair: Pair, execution_pair: PairedExecutions, number: int) -> dict[str, Any]:
    sides = {side.role: execution for side, execution in execution_pair.of(pair)}
    found: dict[str, Any] = {"run_number": number}
    for side in pair.sides:
        found[f"{side.role}_results"] = _result(pair, side, sides.get(side.role))
    found["performance_delta"] = _delta(pair, execution_pair)
    for side in pair.sides:
        execution = sides.get(side.role)
        found[f"{side.role}_duration"] = execution.measurements.get("seconds") if execution else None
    return found


def _result(pair: Pair, side: Side, execution: Execution | None) -> dict[str, Any] | None:
    if execution is None:
        return None
    output = execution.output if isinstance(execution.output, Mapping) else {}
    seen = execution.measurements
    return {
        "model": side.params.get("model"),
        "config": side.find_requested_options(),
        "status": execution.status.value,
        "error": execution.error,
        "analysis": {
            "summary": side.summary(execution),
            "key_findings": side.findings(execution),
            "performance_metrics": dict(seen),
            "recommendations": side.recommendations(execution),
        },
        "report": output.get("text"),
        "metrics": {
            "agent_type": side.role,
            "model": output.get("model") or side.params.get("model"),
            "configuration": side.options(),
            "aggregate_metrics": _aggregate(pair, execution),
            "execution_summary": {
                "process": execution.process,
                "repetition": execution.repetition,
                "start": side.params.get("start"),
                "simulated": side.is_simulated,
            },
        },
    }


def _aggregate(pair: Pair, execution: Execution) -> dict[str, Any]:
    seen = execution.measurements
    began = datetime.fromtimestamp(execution.started, UTC)
    ended = datetime.fromtimestamp(execution.started + seen.get("seconds", 0.0), UTC)
    return {
        "request_count": 1,
        "total_tokens_generated": seen.get("output_tokens"),
        "average_tokens_per_second": seen.get(pair.throughput),
        "throughput_metric": pair.throughput,
        "average_ttft_ms": _ms(seen.get("ttft")),
        "total_duration_ms": _ms(seen.get("seconds")),
        "start_time": began.isoformat(),
        "end_time": ended.isoformat(),
    }


def _delta(pair: Pair, execution_pair: PairedExecutions) -> dict[str, Any] | None:
    """Compute how the figures of one execution changed; None unless both sides have an answer.

    It is a difference of single executions and proves nothing; `comparison_report.md` has the verdict.
    """
    if execution_pair.reference is None or execution_pair.candidate is None or not execution_pair.is_whole:
        return None
    b, c = execution_pair.reference.measurements, execution_pair.candidate.measurements
    found: dict[str, Any] = {
        "throughput_improvement_percent": _change(b.get(pair.throughput), c.get(pair.throughput)),
        "ttft_reduction_percent": _change(b.get("ttft"), c.get("ttft"), sign=-1),
    }
    for name, metric, scale in (
        ("throughput", pair.throughput, 1),
        ("ttft_ms", "ttft", 1000),
        ("duration_ms", "seconds", 1000),
        ("tokens", "output_tokens", 1),
    ):
        before, after = b.get(metric), c.get(metric)
        found[f"baseline_{name}"] = None if before is None else before * scale
        found[f"chimera_{name}"] = None if after is None else after * scale
        known = before is not None and after is not None
        found[f"{name}_delta"] = (after - before) * scale if known else None  # type: ignore[operator]
    return found


def _change(before: float | None, after: float | None, sign: int = 1) -> float | None:
    """
    >>> _change(100.0, 120.0), _change(200.0, 150.0, sign=-1), _change(0.0, 1.0)
    (20.0, 25.0, None)
    """
    if not before or after is None:
        return None
    return sign * (after - before) / before * 100


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
