"""The files that FlowAgent's benchmark writes, with true figures: seed 003's names for data of the experiment `workflow`.

`metadata_ID.json`, `results_ID.json`, `summary_ID.json`, `visualizations_ID.json`, `data_ID.csv` and five plots.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay import __version__
from assay.builtin.findings.workflow import WorkflowResults
from assay.builtin.findings.workflow_charts import build_charts
from assay.builtin.findings.workflow_summary import ModelSummary
from assay.builtin.reporters.finding_files import find_finding, write_json, write_text
from assay.model import Execution, Report, Status
from assay.report.charts.renderer import Drawing, draw
from assay.report.charts.vega import apply_theme


class WorkflowFiles:
    """Writes the folder of a workflow benchmark: JSON, CSV and plots; ReportError for a run without workflows."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        found = find_finding(
            report, WorkflowResults, "has no workflow: the format 'workflow' is for assay run workflow."
        )
        models, name = found.models, report.run.id
        drawings = [
            Drawing(apply_theme(chart.spec, False), folder / f"{chart.name}.png")
            for chart in build_charts(models)
        ]
        failed = {failure.path for failure in draw(drawings)}
        plots = [drawing.path for drawing in drawings if drawing.path not in failed]
        metadata = _metadata(report, models)
        documents: dict[str, Any] = {
            "metadata": metadata,
            "results": {model.label: [_result(e) for e in model.executions] for model in models},
            "summary": _summary(metadata, found),
            "visualizations": {path.stem: path.name for path in plots},
        }
        files = [write_json(folder / f"{kind}_{name}.json", document) for kind, document in documents.items()]
        return [*files, write_text(folder / f"data_{name}.csv", _table(models)), *plots]


def _metadata(report: Report, models: Sequence[ModelSummary]) -> dict[str, Any]:
    run, first = report.run, models[0].trial.stored.trial
    return {
        "id": run.id,
        "prompt": first.params.get("prompt"),
        "models": [model.label for model in models],
        "answered_by": {model.label: model.model for model in models},
        "repetitions": first.iterations.measured,
        "description": run.label or run.notes,
        "start_time": run.started.isoformat(),
        "end_time": run.ended.isoformat() if run.ended else None,
        "duration": (run.ended - run.started).total_seconds() if run.ended else None,
        "status": run.state.value,
        "assay_version": __version__,
        "sandbox": run.environment.facts.get("sandbox"),
        "seed": run.seed,
    }


def _result(execution: Execution) -> dict[str, Any]:
    """One run of a model: its metrics, and its plan and steps or why it has none."""
    detail: Any = (execution.detail or {}).get("workflow") or {}
    output = execution.output if isinstance(execution.output, Mapping) else {}
    return {
        "repetition": execution.repetition + 1,
        "status": "success" if execution.status is Status.OK else execution.status.value,
        "duration": execution.measurements.get("seconds"),
        "metrics": dict(execution.measurements),
        "result": {**output, "steps": detail.get("steps"), "events": detail.get("events")},
        "error": execution.error,
    }


def _summary(metadata: Mapping[str, Any], found: WorkflowResults) -> dict[str, Any]:
    document = found.document()["workflow"]
    return {
        "benchmark_id": metadata["id"],
        **{name: metadata[name] for name in ("prompt", "models", "repetitions", "description")},
        "model_summaries": document["models"],
        "comparison": document["comparison"],
    }


def _table(models: Sequence[ModelSummary]) -> str:
    """A row for each run, a column for each metric that any of them has."""
    names = sorted({name for model in models for e in model.executions for name in e.measurements})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("model", "repetition", "status", "duration", "error", *names))
    for model in models:
        for e in model.executions:
            result = _result(e)
            fixed = (model.label, *(result[key] for key in ("repetition", "status", "duration", "error")))
            writer.writerow((*fixed, *(e.measurements.get(name) for name in names)))
    return text.getvalue()
