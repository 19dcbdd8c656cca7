"""How far scorers agree with people, as a section."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.figure import Share
from assay.model.label import Agreement
from assay.model.page import Cell, PageSection, Table
from assay.report.figures import NOTHING
from assay.units import format_count, significant

_NOTES = (
    "Kappa (Cohen): 1 agrees always, 0 no more than chance. The interval counts repetitions of a case for what they are worth.",
    "The queue begins with doubtful answers, on which scorers agree less with people than on others.",
)


def agreement_section(agreements: Sequence[Agreement]) -> PageSection:
    """Each scorer on each benchmark with labels; the score of all scorers together comes first."""
    title = "Agreement with the scorers"
    if not agreements:
        told = "No answer has a label yet. After the first labels, this shows how far each scorer can be trusted."
        return PageSection(title, finding=told, anchor="agreement")
    rows = [
        [
            Cell(one.scorer or "all scorers together", note=one.benchmark),
            Cell(format_share(one.share), tone="" if one.labels else "quiet"),
            Cell(NOTHING if one.kappa is None else f"{round(one.kappa, 2) + 0.0:.2f}"),
            Cell(str(one.both_pass)),
            Cell(str(one.both_fail)),
            Cell(str(one.only_person_passes), tone="warn" if one.only_person_passes else "quiet"),
            Cell(str(one.only_scorer_passes), tone="warn" if one.only_scorer_passes else "quiet"),
            Cell(f"{one.labels} on {format_count(one.cases, 'case')}"),
        ]
        for one in agreements
    ]
    titles = ["Scorer", "Agreement", "Kappa", "Both pass", "Both fail", "Only person passes", "Only scorer passes", "Labels"]  # fmt: skip
    return PageSection(title, [Table(titles, rows)], notes=_NOTES, anchor="agreement")


def format_share(share: Share) -> str:
    """
    >>> format_share(Share(3, 4, 0.75, 0.3, 0.95)), format_share(Share(0, 0))
    ('75 % [30, 95]', '–')
    """
    if share.value is None or share.low is None or share.high is None:
        return NOTHING
    return f"{significant(100 * share.value)} % [{significant(100 * share.low)}, {significant(100 * share.high)}]"
