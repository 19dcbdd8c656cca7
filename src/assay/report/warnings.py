"""Which warnings matter most: one order for the terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assay.model import Doubt, Report
from assay.report.figures import doubts_of, estimate_doubts
from assay.report.side_by_side import Contest, build_contests, rating_doubts
from assay.units import count

SHOWN = 3
"""Warnings that a summary shows; the others are counted."""

_ORDER = (
    # The figures are not what they claim to be.
    (
        "nothing-ok",
        "incomplete",
        "unscored",
        "sandbox",
        "scorer",
        "mixed-versions",
        "setting-not-taken",
        "identical-arms",
        "wrong-results",
    ),
    # Two sides, or two agents, are not comparable.
    ("not-comparable", "kind", "unlike", "missing", "unmatched", "params", "dimensions", "unfinished"),
    ("failures", "teardown"),
    # The machine may explain a difference.
    ("environment", "parallelism", "machine", "noise", "hours", "inline"),
    # There is too little data.
    ("few", "rating"),
    # Something that was planned is missing.
    ("stopped", "budget", "lost-metric", "cost-unknown"),
    ("team", "stress"),
    ("setting-not-told", "ended-when-decided", "remark", "unmeasured"),
    # The shape of the data: drift, outliers, modes.
    ("estimate",),
)
_WEIGHTS = {code: weight for weight, codes in enumerate(_ORDER) for code in codes}
_ONE_KIND = ("nothing-ok", "failures", "budget", "environment")
"""They say the same of each trial or machine, however their messages begin."""
_MINOR = len(_ORDER) - 1
"""From this weight on a warning changes no conclusion, and a summary only counts it."""
_UNKNOWN = 3.5
"""A code from elsewhere may well change a conclusion."""


def rank_warnings(doubts: Iterable[Doubt]) -> list[Doubt]:
    """Order the warnings: those that can change a conclusion come first; one that holds for several
    trials is said once.
    """
    return _fold(sorted(doubts, key=lambda doubt: _WEIGHTS.get(doubt.code, _UNKNOWN)))


def split_warnings(doubts: Iterable[Doubt]) -> tuple[list[Doubt], list[Doubt]]:
    """The few that matter, to be shown in a summary, and the others."""
    ranked = rank_warnings(doubts)
    major = [doubt for doubt in ranked if _WEIGHTS.get(doubt.code, _UNKNOWN) < _MINOR][:SHOWN]
    return major, [doubt for doubt in ranked if doubt not in major]


def run_warnings(report: Report) -> list[Doubt]:
    """Every warning of a run, in that order: about the run, its trials, its ratings and its estimates."""
    of_run = [_with_nothing_ok(report, doubt) for doubt in doubts_of(report)]
    of_ratings = [doubt for contest in build_contests(report) for doubt in _list_rating_warnings(contest)]
    return rank_warnings([*of_run, *of_ratings, *_list_estimate_warnings(report)])


def _with_nothing_ok(report: Report, doubt: Doubt) -> Doubt:
    """A trial without one ok execution says nothing at all, which is worse than one with failures."""
    if doubt.code == "failures" and any(t.name == doubt.trial and not t.ok for t in report.trials):
        return replace(doubt, code="nothing-ok")
    return doubt


def _list_rating_warnings(contest: Contest) -> Iterator[Doubt]:
    for text in rating_doubts(contest):
        is_unscored = "unscored" in text and any(entry.ratings.unscored for entry in contest.entries)
        yield Doubt("unscored" if is_unscored else "rating", text, trial=contest.title)


def _list_estimate_warnings(report: Report) -> Iterator[Doubt]:
    for trial in report.trials:
        finding = report.finding_of(trial)
        if finding is not None and finding.has_own_intervals:
            continue
        has_interval = all(estimate.low is not None for estimate in trial.estimates)
        for place, text in enumerate(estimate_doubts(trial)):
            yield Doubt("estimate" if has_interval or place else "few", text, trial=trial.name)


def _fold(doubts: Sequence[Doubt]) -> list[Doubt]:
    """Warnings of one kind as the first of them, with the number of the other places that it holds for."""
    kinds: dict[str, list[Doubt]] = {}
    for doubt in doubts:
        # The words before the figures: "seconds: The values drift within each process: the last third …".
        opening = ":".join(doubt.message.split(":")[:2])
        kind = doubt.code if doubt.code in _ONE_KIND else f"{doubt.code} {opening}"
        kinds.setdefault(kind, []).append(doubt)
    folded = []
    for doubts_of_kind in kinds.values():
        first = doubts_of_kind[0]
        if len(doubts_of_kind) > 1:
            first = replace(
                first, hint=f"{first.hint} (and {count(len(doubts_of_kind) - 1)} more like it)".strip()
            )
        folded.append(first)
    return folded
