"""The versioned result document, the flat result of one trial, and the folders that hold them.

The result document, format `assay.result/1`, is the full record of a run; `schema` describes it field by field. It holds plain
JSON: a number that is not finite becomes null. `write_document` writes it execution by execution, so that memory does not grow
with the run. The flat result is the layout of earlier tools, which `read_result` accepts as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from assay.errors import ReportError
from assay.files import UnreadableFile, read_bytes
from assay.model import (
    AxisEffect,
    BestPoint,
    Budget,
    Estimate,
    Execution,
    Phase,
    Rating,
    Ratings,
    Report,
    TrialReport,
)
from assay.model.codec import to_plain
from assay.model.redaction import redact
from assay.model.report import NodeShare
from assay.plugin.file_names import distinct_names, safe_name, trial_folder
from assay.plugin.json_data import format_strict_json, to_json_data
from assay.plugin.private_files import make_folder, write_private
from assay.report.figures import doubts_of, question_text, ruling_verdict
from assay.report.leads import lead_sentence

if TYPE_CHECKING:
    from assay.model.standing import Lead

RESULT = "assay.result/1"
TRIAL = "assay.trial/1"


def run_document(report: Report, *, with_executions: bool = True) -> dict[str, Any]:
    """One run as plain data that JSON can hold, without NaN or infinity; `result_schema` describes it."""
    document = _frame(report)
    document["trials"] = [_trial(report, trial) for trial in report.trials]
    if with_executions:
        for entry, trial in zip(document["trials"], report.trials, strict=True):
            entry["iteration_metrics"] = list(_executions(trial))
    return document


def write_document(report: Report, stream: IO[str]) -> None:
    """Write what `run_document` returns execution by execution, so that memory does not grow with the run.

    JSON is put together by hand at three places only, where a list begins and ends: each part is encoded as a whole, its
    closing bracket is cut off, and the list follows. Tests hold the result to be the same document.
    """
    stream.write(format_strict_json(_frame(report), indent=1)[:-2] + ',\n "trials": [')
    for number, trial in enumerate(report.trials):
        head = format_strict_json(_trial(report, trial))[:-1]
        stream.write(f'{"," if number else ""}\n  {head}, "iteration_metrics": [')
        for place, execution in enumerate(_executions(trial)):
            stream.write(f"{',' if place else ''}\n   {format_strict_json(execution)}")
        stream.write("]}")
    stream.write("\n ]\n}\n")


def case_document(report: Report, case: str) -> list[dict[str, Any]]:
    """One case as plain data: what was asked, and every execution of it; an entry for each benchmark that has it."""
    from assay.report.cases import answers_to

    return [
        {
            "case": case,
            "benchmark": answered.contest.benchmark,
            "input": to_json_data(answered.definition.input) if answered.definition else None,
            "expected": to_json_data(answered.definition.expected) if answered.definition else None,
            "turns": [
                {"input": to_json_data(turn.input), "expected": to_json_data(turn.expected)}
                for turn in (answered.definition.turns if answered.definition else ())
            ],
            "answers": [
                {"agent": entry.label, "simulated": answered.contest.is_simulated}
                | {"executions": [execution_document(execution) for execution in executions]}
                for entry, executions in answered.answers
            ],
        }
        for answered in answers_to(report, case)
    ]


def result_schema() -> dict[str, Any]:
    """JSON schema of the result document."""
    from assay.report.documents.schema import DocumentSchema, Result

    return Result.model_json_schema(by_alias=True, schema_generator=DocumentSchema)


def _frame(report: Report) -> dict[str, Any]:
    """Everything but the trials.

    What a run does not have, such as a suite or a budget, is left out instead of being null: absent keys mean "does not
    apply", null means "unknown".
    """
    run = report.run
    added: dict[str, Any] = {}  # what experiments add to a run, as loads and teams do
    for finding in report.findings.values():
        added |= to_json_data(finding.document())
    question = run.question and {
        **to_json_data(to_plain(run.question)),
        "verdict": ruling_verdict(report),
        "summary": question_text(report),  # the sentence that the other formats show
    }
    return {
        "schema": RESULT,
        "run_id": run.id,
        "name": run.name,
        "status": run.state.value,
        "started": run.started.isoformat(),
        "ended": run.ended.isoformat() if run.ended else None,
        "seed": run.seed,
        "tags": list(run.tags),
        "notes": run.notes,
        "label": run.label,
        "order": run.order,
        "parallelism": run.parallelism,
        "executor": run.executor,
        **({"suite": _suite(report)} if run.suite else {}),
        **({"budget": to_plain(run.budget)} if run.budget != Budget() else {}),
        **({"question": question} if question else {}),
        "spec": to_json_data(run.source),
        "environment": to_json_data(run.environment.facts),
        "vcs": to_json_data(run.environment.vcs),
        **({"nodes": [_node(node) for node in report.nodes]} if report.nodes else {}),
        "instrument_costs": to_json_data(run.instrument_costs),
        "unmeasured": dict(run.unmeasured),
        "warnings": [to_plain(doubt) for doubt in doubts_of(report)],
        "axes": [_axis(effect) for effect in report.axes],
        "best": [_best(point) for point in report.best],
        **({"leads": [_lead(lead) for lead in report.leads]} if report.leads else {}),
        **added,
    }


def _node(node: NodeShare) -> dict[str, Any]:
    document: dict[str, Any] = to_plain(node)
    return {
        **{key: value for key, value in document.items() if key != "doubts"},
        "warnings": list(node.doubts),
    }


def _suite(report: Report) -> dict[str, Any]:
    """Which suite the run was made with and, where the store has its definition, what that says."""
    assert report.run.suite is not None
    named: dict[str, Any] = to_plain(report.run.suite)
    if report.suite is None:
        return named
    from assay.report.documents.suite import suite_document

    document = to_json_data(suite_document(report.suite, report.run.started))
    return named | {key: value for key, value in document.items() if key != "suite"}


def _trial(run: Report, report: TrialReport) -> dict[str, Any]:
    """One trial without its executions, which are written beside it, one by one."""
    trial = report.stored.trial
    defined = run.benchmark(trial.benchmark)
    return {
        "id": report.stored.id,
        "name": trial.name,
        "agent": to_plain(trial.agent) | ({"type": trial.agent_use.type} if trial.agent_use else {}),
        "benchmark": trial.benchmark,
        **({"benchmark_hash": defined.hash} if defined and defined.hash else {}),
        "experiment": trial.experiment,
        "parameters": to_json_data(trial.params),
        "axes": to_json_data(trial.axes),
        "iterations": to_plain(trial.iterations),
        "processes": trial.processes,
        "isolation": trial.isolation.value,
        "limits": to_plain(trial.limits),
        **({"resources": to_plain(trial.resources)} if trial.resources else {}),
        **({"nodes": {str(process): node for process, node in report.nodes.items()}} if report.nodes else {}),
        "instruments": [
            {"name": use.name, "options": to_json_data(use.options)} for use in trial.instruments
        ],
        "status": "ok" if report.ok else "failed",
        "counts": {str(status): count for status, count in report.counts.items()},
        "stopped": report.stored.stopped,
        "applied": to_json_data(report.applied),
        **({} if report.ratings is None else _ratings(report, report.ratings)),
        "metrics": {estimate.metric.name: _estimate(estimate) for estimate in report.estimates},
        "artifacts": [{"name": a.name, "type": a.type, "bytes": len(a.content)} for a in report.artifacts],
    }


def _ratings(trial: TrialReport, ratings: Ratings) -> dict[str, Any]:
    """What only trials of suites have."""
    from assay.report.documents.references import reference_document

    return {
        "simulated": trial.is_simulated,
        "recorded": trial.is_recorded,
        "concurrency": trial.stored.trial.concurrency,
        "ratings": {name: _rating(rating) for name, rating in ratings.dimensions.items()},
        "overall": _rating(ratings.overall),
        "references": {name: reference_document(reference) for name, reference in ratings.references.items()},
        **({} if trial.deviation is None else {"deviation_from_baseline": to_json_data(trial.deviation)}),
        "rating_warnings": list(ratings.doubts),
        "outcomes": dict(ratings.outcomes),
        "completion": to_json_data(ratings.completion),
        "incomplete": ratings.is_incomplete,
        "without_result": ratings.without_result,
        "unscored": ratings.unscored,
        "scoring_failed": ratings.is_scoring_failed,
        "scorer_failures": [to_plain(failure) for failure in trial.scorer_failures],
        "cases": ratings.cases,
        "solved": ratings.solved,
        "pass_mark": ratings.pass_mark,
        "pass_at": {str(k): value for k, value in ratings.pass_at.items()},
        "pass_hat": {str(k): value for k, value in ratings.pass_hat.items()},
        "usd_per_solved": to_json_data(ratings.usd_per_solved),
        **_cost_sources(trial),
        "tokens_per_solved": to_json_data(ratings.tokens_per_solved),
        **({"judging": to_plain(trial.judging)} if trial.judging else {}),
    }


def _cost_sources(trial: TrialReport) -> dict[str, Any]:
    """Nothing for an agent that is free, or whose cost is unknown."""
    from assay.report.side_by_side import cost_sources

    sources = cost_sources(trial)
    lists = [
        {"name": source.get("list", ""), "date": source.get("date")}
        for source in sources
        if source.get("source") == "list"
    ]
    named = {"cost_sources": sorted({source["source"] for source in sources})} if sources else {}
    return named | ({"price_list": lists[-1]} if lists else {})


def _rating(rating: Rating) -> dict[str, Any]:
    return {
        "value": to_json_data(rating.value),
        "interval": _interval(rating.low, rating.high),
        "basis": rating.basis,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """One metric of a trial. `p50` repeats the median because tools that read percentiles look for it under that name."""
    figures = ("mean", "median", "p90", "p95", "p99", "std", "cv", "min", "max", "median_without_outliers")
    return {
        "unit": estimate.metric.unit,
        "better": estimate.metric.better.value,
        "kind": estimate.metric.kind.value,
        "n": estimate.n,
        "units": estimate.units,
        **{figure: to_json_data(getattr(estimate, figure)) for figure in figures},
        "p50": to_json_data(estimate.median),
        "interval": _interval(estimate.low, estimate.high),
        "mean_interval": _interval(estimate.mean_low, estimate.mean_high),
        "tails": {name: list(ends) for name, ends in estimate.tails.items()},
        "level": estimate.level,
        "outliers": estimate.outliers,
        "insufficient": list(estimate.insufficient),
        "warnings": list(estimate.doubts),
    }


def _interval(low: float | None, high: float | None) -> list[float] | None:
    ends = [to_json_data(low), to_json_data(high)]
    return None if None in ends else ends


def _axis(effect: AxisEffect) -> dict[str, Any]:
    """One axis of a sweep for one metric, with the median and its interval at each value."""
    points = zip(effect.values, effect.medians, effect.lows, effect.highs, strict=True)
    return {
        "axis": effect.axis,
        "metric": effect.metric.name,
        "unit": effect.metric.unit,
        "best": to_json_data(effect.best),
        "worst": to_json_data(effect.worst),
        "effect": to_json_data(effect.effect),
        "effect_interval": _interval(effect.effect_low, effect.effect_high),
        "effect_kind": "ratio" if effect.is_ratio else "difference",
        "share_of_variance": to_json_data(effect.share),
        "interacts_with": list(effect.interacts),
        "is_workload": effect.is_workload,
        "points": [
            {"value": to_json_data(value), "median": to_json_data(median), "interval": _interval(low, high)}
            for value, median, low, high in points
        ],
    }


def _best(point: BestPoint) -> dict[str, Any]:
    return {
        "benchmark": point.benchmark,
        "metric": point.metric.name,
        "trial": point.trial,
        "not_separable": list(point.alike),
        "compared_with": point.others,
    }


def _lead(lead: Lead) -> dict[str, Any]:
    return {
        "benchmark": lead.benchmark or None,
        "simulated": lead.is_simulated,
        "leaders": list(lead.leaders),
        "tied": lead.is_tie,
        "dimensions": list(lead.dimensions),
        "overall": dict(lead.scores),
        "margin": lead.margin,
        "margin_interval": _interval(lead.low, lead.high),
        "ahead_in": list(lead.ahead_in),
        "behind_in": list(lead.behind_in),
        "summary": lead_sentence(lead),
    }


def _executions(trial: TrialReport) -> Iterator[dict[str, Any]]:
    return (execution_document(execution) for execution in trial.executions)


def execution_document(execution: Execution) -> dict[str, Any]:
    """One execution as plain data. What is absent is left out, for there may be hundreds of thousands of them."""
    metrics = {name: to_json_data(value) for name, value in execution.measurements.items()}
    entry: dict[str, Any] = {
        "index": execution.repetition,
        "process": execution.process,
        "phase": execution.phase.value,
        "status": execution.status.value,
        "started": to_json_data(execution.started),
        "duration_s": metrics.pop("seconds", None),
        "loops": execution.loops,
        "metrics": metrics,
    }
    if execution.case:
        entry["case"] = execution.case
        entry |= _scores(metrics)
    for name in ("output", "applied", "error", "log", "detail"):
        if (value := getattr(execution, name)) is not None:
            entry[name] = to_json_data(value)
    return entry


def _scores(metrics: dict[str, Any]) -> dict[str, Any]:
    """The judgement of a case, taken out of its metrics."""
    named = {name: metrics.pop(name) for name in list(metrics) if name.startswith("score.")}
    found: dict[str, Any] = {"score": metrics.pop("score")} if "score" in metrics else {}
    return found | (
        {"scores": {name.removeprefix("score."): value for name, value in named.items()}} if named else {}
    )


def read_result(path: Path) -> Report:
    """A run from its result document, or one trial from a flat result; ready to be estimated anew and compared."""
    document = _read_document(path)
    from pydantic import ValidationError

    from assay.report.documents import read as reading
    from assay.report.documents import schema

    try:
        if document.get("schema") == RESULT:
            result = schema.Result.model_validate(document)
            if any(trial.iteration_metrics is None for trial in result.trials):
                raise ReportError(
                    f"'{path}' has no executions, which compare needs. Export it again: assay report RUN --format json"
                )
            return reading.report_from_result(result)
        if {"name", "metrics", "iteration_metrics"} <= document.keys():
            return reading.report_from_flat(schema.Flat.model_validate(document))
    except (ValidationError, ValueError) as error:
        raise ReportError(
            f"'{path}' is a damaged result file: {_first_mistake(error)}. {_EXPECTED}"
        ) from error
    raise ReportError(f"'{path}' is not a result file. {_EXPECTED}")


_LARGEST = 4 * 2**30
"""Bytes of a result file."""
_EXPECTED = (
    f'Expected is a document with "schema": "{RESULT}", as \'assay report RUN --format json\' writes it, '
    'or the result of one trial with "name", "metrics" and "iteration_metrics".'
)


def _read_document(path: Path) -> dict[str, Any]:
    """The JSON object in a file; ReportError says what else the file is.

    Its size is limited, as it may come from anywhere.
    """
    try:
        document = json.loads(read_bytes(path, _LARGEST).decode("utf-8-sig"), parse_int=_parse_int)
    except UnreadableFile as error:
        raise ReportError(str(error)) from error
    except UnicodeDecodeError as error:
        raise ReportError(f"'{path}' is not UTF-8 text (byte {error.start}). {_EXPECTED}") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"'{path}' is not JSON: {error}. {_EXPECTED}") from error
    if not isinstance(document, dict):
        raise ReportError(f"'{path}' is not a result file. {_EXPECTED}")
    return document


def _parse_int(digits: str) -> int | float:
    """Whole numbers that no column or array can hold are read as numbers, which the schema then refuses."""
    number = int(digits) if len(digits) <= 20 else None
    return number if number is not None and -(2**63) <= number < 2**63 else float(digits)


def _first_mistake(error: Exception) -> str:
    mistakes = getattr(error, "errors", None)
    if not callable(mistakes):
        return str(error)
    first = mistakes()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def seed_result(report: Report, trial: TrialReport) -> dict[str, Any]:
    """One trial as a flat document: the layout that earlier tools write, with every metric in it."""
    run, point = report.run, trial.stored.trial
    estimates = {estimate.metric.name: _estimate(estimate) for estimate in trial.estimates}
    return {
        "schema": TRIAL,
        "name": point.experiment,
        "trial": point.name,
        "run_id": run.id,
        "started": run.started.isoformat(),
        "parameters": to_json_data(point.params),
        "iterations": {"warmup": point.iterations.warmup, "measured": point.iterations.measured},
        "metrics": {"duration_s" if name == "seconds" else name: e for name, e in estimates.items()},
        "iteration_metrics": [_flat_execution(e) for e in trial.executions if e.phase is Phase.MEASURED],
        "environment": _flat_environment(run.environment.facts),
        "vcs": {name: to_json_data(run.environment.vcs.get(name)) for name in ("commit", "branch", "dirty")},
        "artifacts": [
            {"name": artifact.name, "type": artifact.type, "path": path}
            for artifact, path in zip(trial.artifacts, _file_names(trial), strict=True)
        ],
        "tags": list(run.tags),
        "notes": run.notes,
        "label": run.label,
        "warnings": [to_plain(doubt) for doubt in doubts_of(report) if doubt.trial in (None, point.name)],
        "status": "success" if trial.ok else "failed",
    }


def _flat_execution(execution: Execution) -> dict[str, Any]:
    entry = execution_document(execution)
    kept = {name: entry[name] for name in ("index", "duration_s", "metrics", "process")}
    extra = {"status": "success" if entry["status"] == "ok" else entry["status"]}
    return kept | extra | ({"error": entry["error"]} if "error" in entry else {})


def _flat_environment(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Texts where the full record has details."""
    os, python, cpu = (
        part if isinstance(part := facts.get(name), Mapping) else {} for name in ("os", "python", "cpu")
    )
    return {
        "os": f"{os.get('system', '')} {os.get('release', '')}".strip() or to_json_data(facts.get("os")),
        "python": python.get("version") or to_json_data(facts.get("python")),
        "machine": to_json_data(facts.get("machine")),
        "processor": cpu.get("model") or to_json_data(facts.get("processor")),
        "hostname": to_json_data(facts.get("hostname")),
        **({"gpus": to_json_data(facts["gpus"])} if facts.get("gpus") else {}),
    }


def write_output_dir(report: Report, folder: Path) -> list[Path]:
    """A folder a trial with its result, its Markdown and its artifacts; for several trials a summary beside them."""
    from assay.report.pages.markdown import sweep_summary

    run = report.run
    names = [trial_folder(t.name, run.started, f"{run.id}-{t.stored.trial.index}") for t in report.trials]
    written: list[Path] = []
    for name, trial in zip(names, report.trials, strict=True):
        written += _write_trial(report, trial, folder / name)
    if len(names) > 1:
        summary = folder / "SWEEP_SUMMARY.md"
        write_private(summary, sweep_summary(report, names))
        written.append(summary)
    return written


def _write_trial(report: Report, trial: TrialReport, folder: Path) -> list[Path]:
    """The folder of one trial: its flat result, a page about it, and the files that its executions left."""
    from assay.report.pages.markdown import trial_page

    make_folder(folder)
    result, readme = folder / f"{folder.name}.json", folder / "README.md"
    write_private(result, format_strict_json(seed_result(report, trial), indent=1) + "\n")
    write_private(readme, trial_page(report, trial))
    files = [folder / name for name in _file_names(trial)]
    for path, artifact in zip(files, trial.artifacts, strict=True):
        write_private(path, redact(artifact.content))
    return [result, readme, *files]


def write_artifacts(report: Report, folder: Path) -> list[Path]:
    """The files that executions left, in a folder for each trial; names lead nowhere else, and nothing is written twice."""
    written: list[Path] = []
    for name, trial in zip(
        distinct_names([trial.name for trial in report.trials]), report.trials, strict=True
    ):
        files = [folder / name / file for file in _file_names(trial)]
        if files:
            make_folder(folder / name)
        for path, artifact in zip(files, trial.artifacts, strict=True):
            write_private(path, redact(artifact.content))
        written += files
    return written


def _file_names(trial: TrialReport) -> list[str]:
    """The artifacts' names, safe and each of its own; the trial's own files keep theirs."""
    taken: list[str] = []
    for artifact in trial.artifacts:
        path = Path(safe_name(artifact.name))
        wanted = chain([path.name], (f"{path.stem}-{number}{path.suffix}" for number in count(2)))
        taken.append(next(name for name in wanted if name not in (*taken, "README.md")))
    return taken
