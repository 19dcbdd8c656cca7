"""Jobs and batches as lines of JSON: what crosses a process border is plain data."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from itertools import groupby
from typing import Any

from assay.model import (
    AgentUse,
    Artifact,
    Batch,
    Case,
    Cleanup,
    Execution,
    ExecutionRange,
    InstrumentUse,
    Isolation,
    Iterations,
    Job,
    Limits,
    Phase,
    ScorerUse,
    Status,
    Turn,
    Until,
)
from assay.model.execution import JobUsage
from assay.model.plan import Checkout


def _without_a_word_in_json(value: object) -> object:
    """A noun by its fields, a set as a list; anything else, such as a date among the params, as its text, like in the store."""
    if is_dataclass(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return sorted(value) if isinstance(value, frozenset) else str(value)


_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_without_a_word_in_json).encode


class Garbled(Exception):
    """A line that no worker of ours wrote."""


def encode_job(job: Job) -> bytes:
    return _dumps(job).encode()


def encode_order(job: Job, secret: str) -> bytes:
    """What a worker reads at its start: the secret that its results begin with, and its job."""
    return secret.encode() + b"\n" + encode_job(job)


def decode_order(content: bytes) -> tuple[Job, str]:
    secret, _, line = content.partition(b"\n")
    return decode_job(line), secret.decode()


def decode_job(line: bytes) -> Job:
    fields = json.loads(line)
    until = fields["iterations"].pop("until")
    fields["iterations"] = Iterations(**fields["iterations"], until=Until(**until) if until else None)
    fields["stretches"] = tuple(ExecutionRange(**stretch) for stretch in fields["stretches"])
    fields["instruments"] = tuple(InstrumentUse(**use) for use in fields["instruments"])
    fields["isolation"] = Isolation(fields["isolation"])
    fields["limits"] = Limits(**fields["limits"])
    if cleanup := fields["cleanup"]:
        fields["cleanup"] = Cleanup(tuple(cleanup["command"]), cleanup["folder"])
    fields["load"] = tuple(fields["load"])
    fields["agent"] = AgentUse(**fields["agent"]) if fields["agent"] else None
    fields["cases"] = tuple(map(_case, fields["cases"]))
    fields["scorers"] = tuple(ScorerUse(**use) for use in fields["scorers"])
    fields["done"] = frozenset(fields["done"])
    fields["checkout"] = Checkout(**fields["checkout"]) if fields["checkout"] else None
    return Job(**fields)


def _case(fields: dict[str, Any]) -> Case:
    turns = tuple(map(_turn, fields.pop("turns")))
    return Case(**{**fields, "turns": turns, "tools": tuple(fields["tools"]), "tags": tuple(fields["tags"])})


def _turn(fields: dict[str, Any]) -> Turn:
    return Turn(**{**fields, "scorers": tuple(ScorerUse(**use) for use in fields["scorers"])})


def encode_batch(batch: Batch, secret: str = "") -> bytes:
    """One line for each execution, and one for the rest if there is any; each begins with the secret of the worker."""
    written = "".join([f"{secret}{_dumps(_row(execution))}\n" for execution in batch.executions])
    rest = (batch.artifacts, batch.stopped, batch.settled, batch.costs, batch.unmeasured, batch.versions)
    if any(rest) or batch.usage:
        written += f"{secret}{_dumps(_rest(batch))}\n"
    return written.encode()


def _rest(batch: Batch) -> dict[str, Any]:
    return {
        "artifacts": [
            [a.trial, a.name, a.type, base64.b64encode(a.content).decode()] for a in batch.artifacts
        ],
        "stopped": {str(trial): reason for trial, reason in batch.stopped.items()},
        "costs": dict(batch.costs),
        "unmeasured": dict(batch.unmeasured),
        "versions": {str(trial): version for trial, version in batch.versions.items()},
        "settled": batch.settled,
        "usage": {
            str(trial): [used.cpu_seconds, used.wall_seconds, used.peak_bytes]
            for trial, used in batch.usage.items()
        },
    }


def decode_batches(lines: Sequence[bytes], secret: str = "") -> list[Batch]:
    """All lines in one go, which is several times faster; executions that follow each other share a batch."""
    if secret:
        mark = secret.encode()
        if not all(line.startswith(mark) for line in lines):
            raise Garbled("a line without the secret of the worker")
        lines = [line[len(mark) :] for line in lines]
    try:
        messages = json.loads(b"[" + b",".join(lines) + b"]")
        if len(messages) != len(lines):
            raise ValueError("not one message a line")
        return [batch for is_row, group in groupby(messages, _is_row) for batch in _batches(is_row, group)]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise Garbled(str(error)) from error


def _is_row(message: Any) -> bool:
    return isinstance(message, list)


def _batches(is_row: bool, messages: Iterator[Any]) -> Iterator[Batch]:
    if is_row:
        yield Batch(tuple(map(_execution, messages)))
    else:
        yield from map(_batch, messages)


def _batch(message: dict[str, Any]) -> Batch:
    return Batch(
        artifacts=tuple(
            Artifact(t, name, kind, base64.b64decode(data)) for t, name, kind, data in message["artifacts"]
        ),
        stopped={int(trial): reason for trial, reason in message["stopped"].items()},
        costs=message["costs"],
        unmeasured=message["unmeasured"],
        versions={int(trial): version for trial, version in message["versions"].items()},
        settled=tuple((trial, process) for trial, process in message["settled"]),
        usage={int(trial): JobUsage(*used) for trial, used in message["usage"].items()},
    )


def _row(e: Execution) -> list[Any]:
    """The fields in their order; most executions have nothing to say in the last ones, which are then left out."""
    row = [e.trial, e.process, e.phase, e.repetition, e.status, e.started, e.measurements, e.loops]
    rest = [e.case, e.output, e.applied, e.error, e.log, e.detail]
    return row if rest == _SILENT else row + rest


_SILENT = ["", None, None, None, None, None]
_PHASES = {phase.value: phase for phase in Phase}
_STATUSES = {status.value: status for status in Status}


def _execution(row: list[Any]) -> Execution:
    row[2], row[4] = _PHASES[row[2]], _STATUSES[row[4]]
    return Execution(*row)
