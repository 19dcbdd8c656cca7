"""The loads of a stored run, read from the outputs of its executions.

Each execution of a load test stores one or more load documents as its output. Tables, findings and charts share this one way of
reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model import TrialReport
from assay.report.capacity import read_stored_capacity
from assay.report.load import document_of
from assay.units import significant

_MOST = 24
"""Loads of a run that are shown one by one."""


@dataclass(frozen=True, slots=True)
class StoredLoad:
    """What an execution of a load told, and which one it was."""

    label: str
    document: Mapping[str, Any]
    concurrency: int | None = None
    """Requests in flight that were asked for."""


def read_stored_loads(trials: Sequence[TrialReport]) -> list[StoredLoad]:
    """Every load of these trials, in order."""
    return list(_loads(trials))


def _loads(trials: Sequence[TrialReport]) -> Iterator[StoredLoad]:
    """The loads of these trials, numbered through, with the concurrency that each was asked for."""
    steps = (read_stored_capacity(trials) or {}).get("steps", [])
    number = 0
    for trial in trials:
        for document in trial_documents(trial):
            number += 1
            axes = trial.stored.trial.axes if len(trials) > 1 else {}
            # A search asks for a concurrency of its own in each step.
            requested = (
                steps[number - 1]["concurrency"]
                if number <= len(steps)
                else trial.stored.trial.params.get("concurrency")
            )
            concurrency = requested if isinstance(requested, int) else None
            yield StoredLoad(_label(number, axes, document, concurrency), document, concurrency)


def trial_documents(trial: TrialReport) -> list[Mapping[str, Any]]:
    """What the loads of one trial showed, in order."""
    found = (document_of(execution.output) for execution in trial.executions)
    return [document for document in found if document is not None]


def _label(
    number: int, axes: Mapping[str, object], document: Mapping[str, Any], concurrency: int | None
) -> str:
    offered = document["offered_rate"]
    in_flight = significant(document["concurrency"]) if concurrency is None else concurrency
    pressure = f"{in_flight} in flight" if offered is None else f"{offered:.4g}/s offered"
    named = [f"{name} {value}" for name, value in axes.items() if name != "concurrency"]
    return ", ".join([f"{number}: {pressure}", *named])


_IN_FULL = 4


def is_brief(place: int, loads: Sequence[StoredLoad]) -> bool:
    """Whether a load gets the most important charts only: all but the last of many."""
    return place < len(loads) - _IN_FULL


def select_last_loads(loads: Sequence[StoredLoad]) -> Sequence[StoredLoad]:
    """Those that get pictures of their own: the last ones of many."""
    return loads[-_MOST:]
