"""Jobs and batches as lines of JSON: what crosses a process border is plain data."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from typing import Any

from assay.model import (
    Artifact,
    Batch,
    Execution,
    InstrumentUse,
    Isolation,
    Iterations,
    Job,
    Limits,
    Phase,
    Status,
    Stretch,
    Until,
)

_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, check_circular=False).encode


def encode_job(job: Job) -> bytes:
    return _dumps(asdict(job)).encode() + b"\n"


def decode_job(line: bytes) -> Job:
    fields = json.loads(line)
    iterations = fields["iterations"]
    iterations["until"] = Until(**iterations["until"]) if iterations["until"] else None
    fields["iterations"] = Iterations(**iterations)
    fields["stretches"] = tuple(Stretch(**stretch) for stretch in fields["stretches"])
    fields["instruments"] = tuple(InstrumentUse(**use) for use in fields["instruments"])
    fields["isolation"] = Isolation(fields["isolation"])
    fields["limits"] = Limits(**fields["limits"])
    fields["load"] = tuple(fields["load"])
    return Job(**fields)


def encode_batch(batch: Batch) -> bytes:
    """One line; an execution alone, by far the most frequent, is a bare list."""
    if len(batch.executions) == 1 and not (batch.artifacts or batch.stopped or batch.settled or batch.costs):
        return _dumps(_row(batch.executions[0])).encode() + b"\n"
    document = {
        "executions": [_row(execution) for execution in batch.executions],
        "artifacts": [
            [a.trial, a.name, a.type, base64.b64encode(a.content).decode()] for a in batch.artifacts
        ],
        "stopped": {str(trial): reason for trial, reason in batch.stopped.items()},
        "costs": dict(batch.costs),
        "unmeasured": dict(batch.unmeasured),
        "settled": batch.settled,
    }
    return _dumps(document).encode() + b"\n"


def decode_batch(line: bytes) -> Batch:
    message = json.loads(line)
    if isinstance(message, list):
        return Batch((_execution(message),))
    return Batch(
        executions=tuple(_execution(row) for row in message["executions"]),
        artifacts=tuple(
            Artifact(t, name, kind, base64.b64decode(data)) for t, name, kind, data in message["artifacts"]
        ),
        stopped={int(trial): reason for trial, reason in message["stopped"].items()},
        costs=message["costs"],
        unmeasured=message["unmeasured"],
        settled=tuple((trial, process) for trial, process in message["settled"]),
    )


def _row(e: Execution) -> list[Any]:
    return [e.trial, e.process, e.phase, e.repetition, e.status, e.started, e.measurements,
            e.loops, e.case, e.output, e.applied, e.error, e.log]  # fmt: skip


_PHASES = {phase.value: phase for phase in Phase}
_STATUSES = {status.value: status for status in Status}


def _execution(row: list[Any]) -> Execution:
    trial, process, phase, repetition, status, *rest = row
    return Execution(trial, process, _PHASES[phase], repetition, _STATUSES[status], *rest)
