"""What a load showed, in a few findings: the same in the terminal, in Markdown, in HTML and in the list of runs.

Everything here is read from the stored document of a load, so that nothing that the console said is lost afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from assay.model.bottleneck import MOST_ERRORS
from assay.model.load import UNFINISHED
from assay.units import count, percent, seconds, significant

_NOT_FAILED = {
    "cut_off": "in flight when the load ended: neither answered nor failed",
    "worker_lost": "in flight in a worker that died: neither answered nor failed",
}


class LoadVerdict(StrEnum):
    """The worst that is to be said of a load or a stress test; the first that applies, in this order."""

    BROKE = "broke"
    """Of a stress test: the target did not bear a scenario."""
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
    LoadVerdict.SLO_BROKEN: "SLO broken",
    LoadVerdict.SLO_NOT_MEASURED: "SLO not measured",
    LoadVerdict.UNAVAILABLE: "server unavailable",
    LoadVerdict.INTERRUPTED: "interrupted",
    LoadVerdict.INVALID: "invalid",
    LoadVerdict.ERRORS: "errors",
    LoadVerdict.SLO_KEPT: "SLO kept",
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
    met = [one["met"] for one in document["slo"]]
    is_interrupted = bool(document.get("interrupted"))
    is_answered = bool(document["requests_completed"])
    applies = {
        LoadVerdict.ABORTED: bool(document.get("aborted")),
        # Who interrupts a load before the first answer can be there has not shown that there is none.
        LoadVerdict.NO_ANSWERS: not is_answered and (not is_interrupted or bool(failures(document))),
        LoadVerdict.SLO_BROKEN: any(one is False for one in met),
        LoadVerdict.SLO_NOT_MEASURED: any(one is None for one in met) and (is_answered or not is_interrupted),
        LoadVerdict.UNAVAILABLE: bool(document.get("unavailable")),
        LoadVerdict.INTERRUPTED: is_interrupted,
        LoadVerdict.INVALID: not document["valid"],
        LoadVerdict.ERRORS: bool(failures(document)),
        LoadVerdict.SLO_KEPT: bool(met) and all(met),
    }
    return [verdict for verdict, holds in applies.items() if holds] or [LoadVerdict.OK]


_LONG = ("over_time", "latency_curve_ms", "histograms_ms", "server_metrics")


def brief_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """A load without what only charts need; the whole is the output of its execution."""
    kept = {name: value for name, value in document.items() if name not in _LONG}
    return {"verdict": verdict_of(document).value, **kept}


def verdict_of(document: Mapping[str, Any]) -> LoadVerdict:
    return verdicts_of(document)[0]


def worst_verdict(verdicts: Iterable[str]) -> LoadVerdict | None:
    """The worst of several loads; None where there are none."""
    known = {verdict.value for verdict in LoadVerdict}
    order = list(LoadVerdict)
    return min((LoadVerdict(one) for one in verdicts if one in known), key=order.index, default=None)


def failures(document: Mapping[str, Any]) -> dict[str, int]:
    """Requests that failed, by kind, the most frequent first."""
    found = {kind: number for kind, number in document["errors"].items() if kind not in UNFINISHED}
    return dict(sorted(found.items(), key=lambda one: -one[1]))


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about a load."""

    tone: str
    """`good`, `warn` or `bad`."""
    title: str
    detail: str = ""
    is_objective: bool = False

    def __str__(self) -> str:
        return f"{self.title}: {self.detail}" if self.detail else self.title


def findings_of(document: Mapping[str, Any]) -> list[Finding]:
    """Why it ended early, each objective with its figure, whether it is valid and why not, and the errors by kind."""
    found = []
    if document.get("aborted"):
        found.append(Finding("bad", "Aborted", document["aborted"]))
    if document.get("interrupted"):
        found.append(Finding("warn", "Interrupted", "the figures are of what was measured until then"))
    found += [_objective(one) for one in document["slo"]]
    if not document["valid"]:
        reasons = document.get("invalid_because") or document["warnings"][:1]
        found.append(Finding("warn", "Invalid, do not use these figures", " ".join(reasons)))
    if document.get("unavailable"):
        found.append(Finding("bad", "The server was unavailable", unavailable_text(document)))
    if failed := failures(document):
        found.append(_errors(document, failed))
    return found


def _objective(objective: Mapping[str, Any]) -> Finding:
    tone, word = {True: ("good", "kept"), False: ("bad", "broken"), None: ("warn", "not measured")}[
        objective["met"]
    ]
    figure = "" if objective["value"] is None else objective_figure(objective)
    return Finding(tone, f"{objective['objective']} {word}", figure, is_objective=True)


def objective_figure(objective: Mapping[str, Any]) -> str:
    """The figure that an objective was held against, with its interval: `183 ms, 170 ms to 195 ms`."""
    show = _shower(objective["objective"])
    if objective["value"] is None:
        return "nothing was measured"
    ends = objective["interval"]
    interval = f", {show(ends[0])} to {show(ends[1])}" if ends else ""
    return f"{show(objective['value'])}{interval}"


def _shower(objective: str) -> Callable[[float], str]:
    if objective.startswith("error_rate"):
        return percent
    return significant if objective.startswith(("throughput", "goodput", "tokens")) else seconds


def unavailable_text(document: Mapping[str, Any]) -> str:
    if document.get("outages"):
        stretches = ", ".join(
            f"{seconds(one['at_s'])} to {seconds(one['at_s'] + one['seconds'])}"
            for one in document["outages"][:5]
        )
        return f"it answered none of the requests that were due in {stretches}"
    return f"{percent(document['error_rate'])} of the requests failed"


def _errors(document: Mapping[str, Any], failed: Mapping[str, int]) -> Finding:
    """In the words of the warning about them, which has a hint what to do."""
    title = _errors_title(document, failed)
    told = next((text for text in document["warnings"] if text.startswith(title)), "")
    detail = told.removeprefix(f"{title}: ") or ", ".join(f"{kind} {count(n)}" for kind, n in failed.items())
    return Finding("bad" if document["error_rate"] > MOST_ERRORS else "warn", title, detail)


def _errors_title(document: Mapping[str, Any], failed: Mapping[str, int]) -> str:
    return f"{count(sum(failed.values()))} of {count(document['requests_sent'])} requests failed"


def reasons_of(document: Mapping[str, Any], kind: str) -> list[str]:
    """Why requests failed in this way, where it is known, the most frequent first."""
    reasons = (document.get("error_reasons") or {}).get(kind) or {}
    return sorted(reasons, key=lambda reason: -reasons[reason])


def error_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Kind, number, share of all requests and reasons of each kind of error."""
    sent = max(1, document["requests_sent"])
    return [
        [
            kind,
            count(number),
            percent(number / sent),
            "; ".join(reasons_of(document, kind)) or _NOT_FAILED.get(kind, ""),
        ]
        for kind, number in sorted(document["errors"].items(), key=lambda one: -one[1])
    ]


def remarks_of(document: Mapping[str, Any]) -> Sequence[str]:
    """Warnings that no finding repeats."""
    told = set(document.get("invalid_because") or ())
    openings = [f"{_errors_title(document, failures(document))}: "]
    openings += ["The server stopped answering: "] if document.get("unavailable") else []
    return [
        text for text in document["warnings"] if text not in told and not text.startswith(tuple(openings))
    ]
