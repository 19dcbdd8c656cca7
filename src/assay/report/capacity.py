"""The result of a capacity search as text and for the terminal.

The search stores its result as the artifact `capacity.json` of a trial. Every format reads that document, so that `assay show`
says later what the search itself said. Rates are in requests per second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.model import TrialReport
from assay.model.load import LoadResult, Step
from assay.model.load_document import CAPACITY_FILE
from assay.units import count, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console


_LIMITS = {"generator": "the load generator"}
"""Causes that read better in a sentence than as they are stored."""


def step_text(step: Step) -> str:
    """One line for users who wait for the search."""
    load = f"{significant(step.rate)}/s" if step.rate is not None else f"{step.concurrency} in flight"
    rate = significant(step.result.throughput.value)
    outcome = "ok" if not step.broken_by else f"{step.broken_by}: {step.why}"
    return f"{load:>16}  {rate:>7} answers/s  {_time(step.result):>21}  {outcome}"


def _time(result: LoadResult) -> str:
    """Show the time of the first objective that is about a time; without one, P95 of the latency."""
    objectives = (held.objective for held in result.held)
    metric, statistic = next(
        (
            (objective.metric, objective.statistic)
            for objective in objectives
            if objective.statistic and objective.metric in result.times
        ),
        ("latency", "p95"),
    )
    if metric not in result.times:
        return ""
    title = metric if metric == "latency" else metric.upper().replace("_", " ")
    name = statistic.upper() if statistic.startswith("p") else statistic
    return f"{title} {name} {seconds(result.times[metric].at(statistic))}"


def print_capacity(document: Mapping[str, Any], console: Console) -> None:
    from assay.report.console.screen import bullet, literal

    console.print(literal(capacity_text(document), "bold"))
    for text in capacity_notes(document):
        console.print(literal(text, "dim"))
    for warning in document["warnings"]:
        console.print(bullet("!", warning, "yellow"))


def read_stored_capacity(trials: Iterable[TrialReport]) -> Mapping[str, Any] | None:
    """What the search for a capacity found whose steps these trials are; None where it was no search.

    A search that was resumed has several answers: the last one counts.
    """
    documents = (
        json.loads(artifact.content)
        for trial in trials
        for artifact in reversed(trial.artifacts)
        if artifact.name == CAPACITY_FILE
    )
    return next((document for document in documents if isinstance(document, dict)), None)


def capacity_text(document: Mapping[str, Any]) -> str:
    """
    >>> capacity_text({"sustained_rate": 95.0, "sustained_interval": [91, 99], "breaking_rate": None, "simulated": True})
    'Sustained rate: 95 requests/s [91, 99] (simulated). No limit was reached.'
    """
    simulated = " (simulated)" if document["simulated"] else ""
    if document["sustained_rate"] is None:
        return f"No rate was sustained{simulated}: {document['why'] or 'nothing was answered'}."
    sentence = f"Sustained rate: {significant(document['sustained_rate'])} requests/s{interval_text(document)}{simulated}."
    # Without a breaking rate the search ended for another reason, such as a load generator that was the limit. That has to be
    # said, or the figure would be taken for the capacity of the server.
    if not document["breaking_rate"]:
        limit = (
            f"Limited by {_LIMITS.get(document['cause'], document['cause'])}: {document['why']}."
            if document.get("cause")
            else "No limit was reached."
        )
        return f"{sentence} {limit}"
    broken = significant(document["breaking_rate"])
    cause = _LIMITS.get(document["cause"], document["cause"])
    return f"{sentence} Not sustained: {broken} requests/s ({cause}: {document['why']})."


def interval_text(document: Mapping[str, Any]) -> str:
    """With a blank before it, where there is one.

    >>> interval_text({"sustained_interval": [91, None]})
    ' [91, ?]'
    """
    ends = document.get("sustained_interval") or (None, None)
    if ends[0] is None and ends[1] is None:
        return ""
    low, high = ("?" if end is None else significant(end) for end in ends)
    return f" [{low}, {high}]"


def capacity_notes(document: Mapping[str, Any]) -> Iterator[str]:
    """Whether it was confirmed, and what a closed loop brought."""
    if document["sustained_rate"] is not None:
        yield (
            "Confirmed: a lower rate was sustained, and a higher one was not."
            if document["confirmed"]
            else "Not confirmed: confirmation needs one sustained rate below and one failing rate above."
        )
    if document["knee_concurrency"] is not None:
        yield (
            f"Knee at {count(document['knee_concurrency'])} requests in flight; at most "
            f"{significant(document['highest_throughput_rps'])} answers/s in a closed loop."
        )
