"""Converts objects of `assay.model` to rows of the database and back.

Fields and columns that have the same name are converted by the codec of the model; only what differs is named here. The
databases of all earlier versions stay readable, so a field that is added needs a default.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from assay.model import (
    Artifact,
    Execution,
    Phase,
    Plan,
    Run,
    Status,
    StoredTrial,
    SuiteRef,
    Trial,
)
from assay.model.codec import from_plain, to_plain
from assay.model.redaction import redact

Row = Mapping[str, Any]

_PHASES = {phase.value: phase for phase in Phase}
_STATUSES = {status.value: status for status in Status}


_PLAN = (
    "name",
    "seed",
    "notes",
    "label",
    "parallelism",
    "executor",
    "load",
    "output_dir",
    "source",
    "budget",
)
"""Fields of a plan that are columns of its run."""


def plan_row(plan: Plan) -> dict[str, Any]:
    """The columns of a run that come from its plan. `order` is a word of SQL, so its column is called `trial_order`."""
    return {
        **{name: to_plain(getattr(plan, name)) for name in (*_PLAN, "question")},
        "trial_order": plan.order.value,
        "instrument_costs": {},
        "unmeasured": {},
    }


def run_from(row: Row, trials: Sequence[StoredTrial], tags: Sequence[str]) -> Run:
    """A run from its row, joined with those of its environment and its suite."""
    suite = None
    if row["suite_id"] is not None:
        suite = SuiteRef(row["suite_name"], row["suite_version"], row["suite_category"], row["suite_hash"])
    fields = {
        **_select_fields(Run, row),
        "tags": tags,
        "environment": {name: row[name] for name in ("facts", "vcs", "doubts")},
        "trials": trials,
        "order": row["trial_order"],
        "suite": suite,
    }
    return from_plain(Run, fields)


def _select_fields(kind: type[Run] | type[Trial], row: Row) -> dict[str, Any]:
    """Select the columns that have the name of a field of the class."""
    return {name: value for name, value in row.items() if name in kind.__dataclass_fields__}


def trial_row(trial: Trial, run_id: str, agent_id: int, benchmark_hash: str) -> dict[str, Any]:
    """A trial as a row. Its agent is a row of another table, and the hash of its benchmark is stored beside it, so that
    results can be compared without reading the definition of the suite."""
    fields = to_plain(trial)
    del fields["agent"]
    place = {"run_id": run_id, "position": fields.pop("index"), "agent_id": agent_id}
    return {**place, **fields, "benchmark_hash": benchmark_hash}


def trial_from(row: Row) -> StoredTrial:
    agent = {"name": row["agent_name"], "version": row["agent_version"]}
    trial = from_plain(Trial, {**_select_fields(Trial, row), "index": row["position"], "agent": agent})
    return StoredTrial(row["id"], trial, row["stopped"])


def execution_from(row: Sequence[Any], trial: int, measurements: Mapping[str, float]) -> Execution:
    """An execution from all columns of its table in their order, by position: in a report of a large run, no line runs
    more often than this one."""
    _, _, process, phase, case, repetition, status, started, loops, *rest = row
    status, phase = _STATUSES[status], _PHASES[phase]
    return Execution(trial, process, phase, repetition, status, started, measurements, loops, case, *rest)


def artifact_row(artifact: Artifact, trial_id: int) -> dict[str, Any]:
    content = zlib.compress(redact(artifact.content))
    return {"trial_id": trial_id, "name": artifact.name, "type": artifact.type, "content": content}


def artifact_from(row: Row, trial: int) -> Artifact:
    return Artifact(trial, row["name"], row["type"], zlib.decompress(row["content"]))
