"""Which trials of `serving` are compared with which, and what one answer of a side says.

Trials form a group if they do the same work, that is, if all params are equal except those that choose how the server is used.
Within a group each trial is compared with the one whose profile is `baseline`, or with the first if there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.analysis.estimates.treatment import same_value
from assay.builtin.experiments.serving_params import OPTIONS
from assay.model import Execution, Phase, Report, Status, TrialReport
from assay.units import percent, seconds, significant

_TREATMENT = frozenset(
    {*OPTIONS, "profile", "options", "url", "api", "model", "allow_host", "headers", "api_key"}
)
"""Params in which the two sides may differ; in all others they must be alike."""
_SERVERS = "eval_tokens_per_second"
_CLIENTS = "tokens_per_second"
_NOTICEABLE = 0.2
_STALL = 5


@dataclass(frozen=True, slots=True)
class Side:
    role: str
    """`baseline` or `chimera`: the names that the files of seed 002 have."""
    trial: TrialReport

    @property
    def params(self) -> Mapping[str, Any]:
        return self.trial.stored.trial.params

    @property
    def is_simulated(self) -> bool:
        return self.trial.applied.get("simulated") is True

    def find_requested_options(self) -> dict[str, Any]:
        own = {name: self.params.get(name) for name in OPTIONS}
        return {name: value for name, value in own.items() if value is not None}

    def options(self) -> dict[str, Any]:
        """Return the options in effect as the server reports them, and as requested where it does not."""
        applied = {
            name: value for name, value in self.trial.applied.items() if name in OPTIONS and value is not None
        }
        return {
            name: applied.get(name, self.find_requested_options().get(name))
            for name in OPTIONS
            if name in {**applied, **self.find_requested_options()}
        }

    def untold(self) -> list[str]:
        return [name for name in self.find_requested_options() if self.trial.applied.get(name) is None]

    def summary(self, execution: Execution) -> str:
        if execution.status is not Status.OK:
            return f"No answer: {(execution.error or execution.status.value).splitlines()[0]}"
        seen = execution.measurements
        first = f", the first after {seconds(seen['ttft'])}" if "ttft" in seen else ""
        tokens, rate = significant(seen.get("output_tokens", 0)), significant(seen.get(_CLIENTS, 0))
        return f"{tokens} tokens in {seconds(seen['seconds'])} ({rate} a second){first}."

    def findings(self, execution: Execution) -> list[str]:
        return list(_findings(execution.measurements))

    def recommendations(self, execution: Execution) -> list[str]:
        return list(_recommendations(execution.measurements, self.params))


def _findings(seen: Mapping[str, float]) -> Iterator[str]:
    whole = seen.get("seconds")
    if not whole:
        return
    if "ttft" in seen:
        yield f"{percent(seen['ttft'] / whole)} of the time went by before the first token."
    if seen.get("load_seconds", 0) > _NOTICEABLE * whole:
        yield f"Loading the model took {percent(seen['load_seconds'] / whole)} of the time."
    if "itl" in seen and seen["itl_max"] > _STALL * seen["itl"] > 0:
        yield f"The longest pause between tokens was {significant(seen['itl_max'] / seen['itl'])} × the usual one."


def _recommendations(seen: Mapping[str, float], params: Mapping[str, Any]) -> Iterator[str]:
    whole = seen.get("seconds")
    if whole and params.get("start") == "warm" and seen.get("load_seconds", 0) > _NOTICEABLE * whole:
        yield "The model was loaded again although it was warm: keep it loaded longer (keep_alive)."
    if seen.get("output_tokens", 0) >= params.get("max_tokens", float("inf")):
        yield f"The answer was cut at {params['max_tokens']} tokens: raise max_tokens to see it whole."
    if seen.get("cached_tokens"):
        yield "Part of the prompt came from the server's cache, which makes the first token come sooner."


@dataclass(frozen=True, slots=True)
class Pair:
    reference: Side
    candidate: Side | None
    """None where there is nothing to hold against the baseline."""

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.reference,) if self.candidate is None else (self.reference, self.candidate)

    @property
    def throughput(self) -> str:
        """Tokens a second of generating, as the server counts, where both servers tell; else those the client saw."""
        return _SERVERS if all(_SERVERS in side.trial.series for side in self.sides) else _CLIENTS


@dataclass(frozen=True, slots=True)
class PairedExecutions:
    """The executions of both sides with the same process and repetition."""

    reference: Execution | None
    candidate: Execution | None

    @property
    def is_whole(self) -> bool:
        executions = (self.reference, self.candidate)
        return all(execution is not None and execution.status is Status.OK for execution in executions)

    def of(self, pair: Pair) -> list[tuple[Side, Execution]]:
        found = zip(pair.sides, (self.reference, self.candidate), strict=False)
        return [(side, execution) for side, execution in found if execution is not None]


def pairs(report: Report) -> list[Pair]:
    """Pair each point with the baseline among the points that differ from it only in how the server is used."""
    groups: dict[str, list[TrialReport]] = {}
    for trial in report.trials:
        if trial.stored.trial.experiment == "serving":
            params = trial.stored.trial.params
            work = {name: value for name, value in params.items() if name not in _TREATMENT}
            groups.setdefault(same_value(work), []).append(trial)
    return [pair for trials in groups.values() for pair in _against(trials)]


def _against(trials: Sequence[TrialReport]) -> list[Pair]:
    """Against the one whose profile is called baseline, else the first."""
    first = next(
        (trial for trial in trials if trial.stored.trial.params.get("profile") == "baseline"), trials[0]
    )
    reference = Side("baseline", first)
    others = [Pair(reference, Side("chimera", trial)) for trial in trials if trial is not first]
    return others or [Pair(reference, None)]


def rounds(pair: Pair) -> list[PairedExecutions]:
    sides = [
        {
            (execution.process, execution.repetition): execution
            for execution in side.trial.executions
            if execution.phase is Phase.MEASURED
        }
        for side in pair.sides
    ]
    places = sorted({place for side in sides for place in side})
    candidate = sides[1] if len(sides) > 1 else {}
    return [PairedExecutions(sides[0].get(place), candidate.get(place)) for place in places]
