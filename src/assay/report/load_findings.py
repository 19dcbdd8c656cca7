"""What a load showed, in a few findings: the same in the terminal, in Markdown, in HTML and in the list of runs.

Everything here is read from the stored document of a load, so that nothing that the console said is lost afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.bottleneck import MOST_ERRORS
from assay.model.load_verdict import failures, verdict_of
from assay.units import count, percent, seconds, significant

_NOT_FAILED = {
    "cut_off": "in flight when the load ended: neither answered nor failed",
    "worker_lost": "in flight in a worker that died: neither answered nor failed",
}


_LONG = ("over_time", "latency_curve_ms", "histograms_ms", "server_metrics")


def brief_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """A load without what only charts need; the whole is the output of its execution."""
    kept = {name: value for name, value in document.items() if name not in _LONG}
    return {"verdict": verdict_of(document).value, **kept}


@dataclass(frozen=True, slots=True)
class LoadRemark:
    """One line about a load."""

    tone: str
    """`good`, `warn` or `bad`."""
    title: str
    detail: str = ""
    is_objective: bool = False

    def __str__(self) -> str:
        return f"{self.title}: {self.detail}" if self.detail else self.title


def findings_of(document: Mapping[str, Any]) -> list[LoadRemark]:
    """Why it ended early, each objective with its figure, whether it is valid and why not, and the errors by kind."""
    found = []
    if document.get("aborted"):
        found.append(LoadRemark("bad", "Aborted", document["aborted"]))
    if document.get("interrupted"):
        found.append(LoadRemark("warn", "Interrupted", "the figures cover what was measured until then"))
    found += [_objective(objective) for objective in document["slo"]]
    if not document["valid"]:
        reasons = document.get("invalid_because") or document["warnings"][:1]
        found.append(LoadRemark("warn", "Invalid, do not use these figures", " ".join(reasons)))
    if document.get("unavailable"):
        found.append(LoadRemark("bad", "The server was unavailable", unavailable_text(document)))
    if failed := failures(document):
        found.append(_errors(document, failed))
    return found


def _objective(objective: Mapping[str, Any]) -> LoadRemark:
    tone, word = {True: ("good", "met"), False: ("bad", "not met"), None: ("warn", "not measured")}[
        objective["met"]
    ]
    figure = "" if objective["value"] is None else objective_figure(objective)
    if objective.get("certain") is False:
        tone = "warn" if tone == "good" else tone
        figure = f"{figure}: the interval contains the limit; run a longer load to be sure"
    return LoadRemark(tone, f"{objective['objective']} {word}", figure, is_objective=True)


def objective_figure(objective: Mapping[str, Any]) -> str:
    """The figure that an objective was held against, with its interval: `183 ms, 170 ms to 195 ms`."""
    if objective["value"] is None:
        return "nothing was measured"
    show: Callable[[float], str] = seconds
    if objective["objective"].startswith("error_rate"):
        show = percent
    elif objective["objective"].startswith(("throughput", "goodput", "tokens")):
        show = significant
    ends = objective["interval"]
    interval = f", {show(ends[0])} to {show(ends[1])}" if ends else ""
    return f"{show(objective['value'])}{interval}"


def unavailable_text(document: Mapping[str, Any]) -> str:
    if document.get("outages"):
        stretches = ", ".join(
            f"{seconds(outage['at_s'])} to {seconds(outage['at_s'] + outage['seconds'])}"
            for outage in document["outages"][:5]
        )
        return f"no request scheduled in {stretches} was answered"
    return f"{percent(document['error_rate'])} of the requests failed"


def _errors(document: Mapping[str, Any], failed: Mapping[str, int]) -> LoadRemark:
    """Describe the errors in the words of the warning about them, which says what to do."""
    title = _errors_title(document, failed)
    warning = next((text for text in document["warnings"] if text.startswith(title)), "")
    detail = warning.removeprefix(f"{title}: ") or ", ".join(
        f"{kind} {count(n)}" for kind, n in failed.items()
    )
    return LoadRemark("bad" if document["error_rate"] > MOST_ERRORS else "warn", title, detail)


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
        for kind, number in sorted(document["errors"].items(), key=lambda entry: -entry[1])
    ]


def remarks_of(document: Mapping[str, Any]) -> Sequence[str]:
    """Warnings that no finding repeats."""
    reasons = set(document.get("invalid_because") or ())
    openings = [f"{_errors_title(document, failures(document))}: "]
    openings += ["The server stopped answering: "] if document.get("unavailable") else []
    return [
        text for text in document["warnings"] if text not in reasons and not text.startswith(tuple(openings))
    ]
