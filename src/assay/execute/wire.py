"""Jobs and batches as lines of JSON: what crosses a process border is plain data.

A worker reads its order from standard input: a secret, its job and the cases of the job, a line each. It writes results to a pipe, one message
a line, and each line begins with the secret, as code under test may write to the pipe as well. An execution is a JSON list
of its fields in order, because there are many of them; everything else of a batch is one JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from assay.model import Batch, Case, Execution, Job, Phase, Status
from assay.model.codec import from_json, from_plain, to_json


class MalformedLine(Exception):
    """A line that no worker of ours can have written."""


def encode_order(job: Job, secret: str) -> Iterator[bytes]:
    """What a worker reads at its start: the secret that its results begin with, its job, and the cases of the job, a line each.

    A case is several times as large as an object than as text. Line by line, only one at a time is both, here and in the worker.
    """
    yield f"{secret}\n{to_json(replace(job, cases=()))}".encode()
    for case in job.cases:
        yield f"\n{to_json(case)}".encode()


def decode_order(content: bytes) -> tuple[Job, str]:
    secret, job, *cases = content.split(b"\n")
    return replace(from_json(Job, job), cases=tuple(from_json(Case, case) for case in cases)), secret.decode()


def encode_batch(batch: Batch, secret: str = "") -> bytes:
    """One line for each execution, and one for the rest if there is any; each begins with the secret of the worker."""
    written = "".join([f"{secret}{to_json(_row(execution))}\n" for execution in batch.executions])
    rest = (batch.artifacts, batch.stopped, batch.settled, batch.costs, batch.unmeasured, batch.versions,
            batch.usage, batch.judge_retries, batch.notes, batch.placements, batch.nodes, batch.lost_nodes)  # fmt: skip
    if any(rest):
        written += f"{secret}{to_json(replace(batch, executions=()))}\n"
    return written.encode()


def decode_batches(lines: Sequence[bytes], secret: str = "") -> list[Batch]:
    """The batches of these lines; executions that follow each other share a batch. Raises MalformedLine.

    All lines are parsed in one go, which is several times faster than line by line.
    """
    if secret:
        mark = secret.encode()
        if not all(line.startswith(mark) for line in lines):
            raise MalformedLine("a line without the secret of the worker")
        lines = [line[len(mark) :] for line in lines]
    try:
        messages = json.loads(b"[" + b",".join(lines) + b"]")
        if len(messages) != len(lines):
            raise ValueError("not one message a line")
        batches: list[Batch] = []
        for is_row, group in groupby(messages, lambda message: isinstance(message, list)):
            run = list(group)
            batches += [Batch(tuple(map(_execution, run)))] if is_row else map(_batch, run)
        return batches
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise MalformedLine(str(error)) from error


def _batch(message: dict[str, Any]) -> Batch:
    """A batch without executions. It has all of its fields: a message that lacks one is not from a worker of ours."""
    if message.keys() != Batch.__dataclass_fields__.keys():
        raise ValueError("not the fields of a batch")
    return from_plain(Batch, message)


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
