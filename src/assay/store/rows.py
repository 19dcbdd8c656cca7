"""Nouns to rows and back."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from assay.model import (
    AgentVersion,
    Artifact,
    Budget,
    Environment,
    Execution,
    InstrumentUse,
    Isolation,
    Limits,
    Phase,
    Plan,
    Question,
    Ruling,
    Run,
    RunState,
    Status,
    StoredTrial,
    SuiteRef,
    Trial,
)
from assay.model.redaction import redact
from assay.store.definitions import agent_use_from, agent_use_to_plain, cleanup_from, iterations_from

Row = Mapping[str, Any]

_PHASES = {phase.value: phase for phase in Phase}
_STATUSES = {status.value: status for status in Status}


def plan_row(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "seed": plan.seed,
        "notes": plan.notes,
        "label": plan.label,
        "trial_order": str(plan.order),
        "parallelism": plan.parallelism,
        "executor": plan.executor,
        "load": plan.load,
        "output_dir": plan.output_dir,
        "source": dict(plan.source),
        "instrument_costs": {},
        "unmeasured": {},
        "budget": asdict(plan.budget),
        "question": plan.question and asdict(plan.question),
    }


def check_kinds(row: Row, kinds: Mapping[str, type]) -> None:
    """SQLite holds any type in any column; what is not what was written there would fail far from here."""
    for name, kind in kinds.items():
        if not isinstance(row[name], kind):
            raise TypeError(f"column {name} holds {type(row[name]).__name__} instead of {kind.__name__}")


_RUN_KINDS = {"name": str, "notes": str, "label": str, "seed": int, "parallelism": int, "executor": str,
              "trial_order": str, "facts": dict, "vcs": dict, "doubts": list, "source": dict, "load": list,
              "budget": dict, "instrument_costs": dict, "unmeasured": dict}  # fmt: skip
_TRIAL_KINDS = {"name": str, "benchmark": str, "experiment": str, "params": dict, "axes": dict, "processes": int,
                "instruments": list, "limits": dict, "cases": list, "concurrency": int}  # fmt: skip


def run_from(row: Row, trials: Sequence[StoredTrial], tags: Sequence[str]) -> Run:
    check_kinds(row, _RUN_KINDS)
    return Run(
        id=row["id"],
        name=row["name"],
        state=RunState(row["state"]),
        started=row["started"],
        ended=row["ended"],
        seed=row["seed"],
        tags=tuple(tags),
        notes=row["notes"],
        environment=Environment(row["facts"], row["vcs"], tuple(row["doubts"])),
        trials=tuple(trials),
        source=row["source"],
        order=row["trial_order"],
        parallelism=row["parallelism"],
        executor=row["executor"],
        load=tuple(row["load"]),
        output_dir=row["output_dir"],
        instrument_costs=row["instrument_costs"],
        unmeasured=row["unmeasured"],
        budget=Budget(**row["budget"]),
        suite=_suite_ref(row),
        label=row["label"],
        question=row["question"] and _question_from(row["question"]),
    )


def _question_from(written: Row) -> Question:
    ruling = written["ruling"]
    rebuilt = {"arms": tuple(written["arms"]), "ruling": ruling and Ruling(**ruling)}
    return Question(**{**written, **rebuilt})


def _suite_ref(row: Row) -> SuiteRef | None:
    if row["suite_id"] is None:
        return None
    return SuiteRef(row["suite_name"], row["suite_version"], row["suite_category"], row["suite_hash"])


def trial_row(trial: Trial, run_id: str, agent_id: int, benchmark_hash: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "position": trial.index,
        "name": trial.name,
        "agent_id": agent_id,
        "benchmark": trial.benchmark,
        "experiment": trial.experiment,
        "params": dict(trial.params),
        "axes": dict(trial.axes),
        "iterations": asdict(trial.iterations),
        "processes": trial.processes,
        "instruments": [{"name": use.name, "options": dict(use.options)} for use in trial.instruments],
        "isolation": str(trial.isolation),
        "limits": asdict(trial.limits),
        "agent_use": trial.agent_use and agent_use_to_plain(trial.agent_use),
        "suite": trial.suite,
        "cases": trial.cases,
        "concurrency": trial.concurrency,
        "cleanup": trial.cleanup and asdict(trial.cleanup),
        "benchmark_hash": benchmark_hash,
    }


def trial_from(row: Row) -> StoredTrial:
    check_kinds(row, _TRIAL_KINDS)
    trial = Trial(
        index=row["position"],
        name=row["name"],
        agent=AgentVersion(row["agent_name"], row["agent_version"]),
        benchmark=row["benchmark"],
        experiment=row["experiment"],
        params=row["params"],
        iterations=iterations_from(row["iterations"]),
        axes=row["axes"],
        processes=row["processes"],
        instruments=tuple(InstrumentUse(**use) for use in row["instruments"]),
        isolation=Isolation(row["isolation"]),
        limits=Limits(**row["limits"]),
        agent_use=row["agent_use"] and agent_use_from(row["agent_use"]),
        suite=row["suite"],
        cases=tuple(row["cases"]),
        concurrency=row["concurrency"],
        cleanup=cleanup_from(row["cleanup"]),
    )
    return StoredTrial(row["id"], trial, row["stopped"])


def execution_from(row: Sequence[Any], trial: int, measurements: Mapping[str, float]) -> Execution:
    """From the columns of the table in their order: a large run makes this the hottest line of a report."""
    _, _, process, phase, case, repetition, status, started, loops, output, applied, error, log, detail = row
    return Execution(
        trial,
        process,
        _PHASES[phase],
        repetition,
        _STATUSES[status],
        started,
        measurements,
        loops,
        case,
        output,
        applied,
        error,
        log,
        detail,
    )


def artifact_row(artifact: Artifact, trial_id: int) -> dict[str, Any]:
    content = zlib.compress(redact(artifact.content))
    return {"trial_id": trial_id, "name": artifact.name, "type": artifact.type, "content": content}


def artifact_from(row: Row, trial: int) -> Artifact:
    return Artifact(trial, row["name"], row["type"], zlib.decompress(row["content"]))
