"""The verdict on a stored load, read from its document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any


class LoadVerdict(StrEnum):
    """The worst that is to be said of a load or a stress test; the first that applies, in this order."""

    BROKE = "broke"
    """The target of a stress test broke in a scenario."""
    ABORTED = "aborted"
    NO_ANSWERS = "no_answers"
    SLO_BROKEN = "slo_broken"
    SLO_NOT_MEASURED = "slo_not_measured"
    UNAVAILABLE = "unavailable"
    INTERRUPTED = "interrupted"
    INVALID = "invalid"
    ERRORS = "errors"
    SLO_KEPT = "slo_kept"
    OK = "ok"

    @property
    def text(self) -> str:
        return _TEXTS[self]

    @property
    def tone(self) -> str:
        """`good`, `warn` or `bad`."""
        if self in FAILURES:
            return "bad"
        return "good" if self in (LoadVerdict.SLO_KEPT, LoadVerdict.OK) else "warn"


_TEXTS = {
    LoadVerdict.BROKE: "broke under stress",
    LoadVerdict.ABORTED: "aborted",
    LoadVerdict.NO_ANSWERS: "no answers",
    LoadVerdict.SLO_BROKEN: "SLO not met",
    LoadVerdict.SLO_NOT_MEASURED: "SLO not measured",
    LoadVerdict.UNAVAILABLE: "server unavailable",
    LoadVerdict.INTERRUPTED: "interrupted",
    LoadVerdict.INVALID: "invalid",
    LoadVerdict.ERRORS: "errors",
    LoadVerdict.SLO_KEPT: "SLO met",
    LoadVerdict.OK: "completed",
}
FAILURES = frozenset(
    {
        LoadVerdict.BROKE,
        LoadVerdict.ABORTED,
        LoadVerdict.NO_ANSWERS,
        LoadVerdict.SLO_BROKEN,
        LoadVerdict.SLO_NOT_MEASURED,
        LoadVerdict.UNAVAILABLE,
    }
)
"""With these, `assay load` and `assay stress` end with 1."""


def verdicts_of(document: Mapping[str, Any]) -> list[LoadVerdict]:
    """Everything that is to be said of a load, the worst first; never empty."""
    met = [objective["met"] for objective in document["slo"]]
    is_interrupted = bool(document.get("interrupted"))
    is_answered = bool(document["requests_completed"])
    applies = {
        LoadVerdict.ABORTED: bool(document.get("aborted")),
        # Who interrupts a load before the first answer can be there has not shown that there is none.
        LoadVerdict.NO_ANSWERS: not is_answered and (not is_interrupted or bool(failures(document))),
        LoadVerdict.SLO_BROKEN: any(is_met is False for is_met in met),
        LoadVerdict.SLO_NOT_MEASURED: any(is_met is None for is_met in met)
        and (is_answered or not is_interrupted),
        LoadVerdict.UNAVAILABLE: bool(document.get("unavailable")),
        LoadVerdict.INTERRUPTED: is_interrupted,
        LoadVerdict.INVALID: not document["valid"],
        LoadVerdict.ERRORS: bool(failures(document)),
        LoadVerdict.SLO_KEPT: bool(met) and all(met),
    }
    return [verdict for verdict, holds in applies.items() if holds] or [LoadVerdict.OK]


def verdict_of(document: Mapping[str, Any]) -> LoadVerdict:
    return verdicts_of(document)[0]


def worst_verdict(verdicts: Iterable[str]) -> LoadVerdict | None:
    """The worst of several loads; None where there are none."""
    known = {verdict.value for verdict in LoadVerdict}
    order = list(LoadVerdict)
    return min((LoadVerdict(text) for text in verdicts if text in known), key=order.index, default=None)


def failures(document: Mapping[str, Any]) -> dict[str, int]:
    """Requests that failed, by kind, the most frequent first."""
    from assay.model.load import UNFINISHED  # late: every command that shows runs imports this module

    found = {kind: number for kind, number in document["errors"].items() if kind not in UNFINISHED}
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))
