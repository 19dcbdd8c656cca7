"""How far scorers agree with people, as a section."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.figure import Share
from assay.model.label import Agreement
from assay.model.page import Cell, PageSection, Table
from assay.report.figures import NOTHING
from assay.units import format_count, significant

_NOTES = (
    "Cohen's kappa: 1 is perfect agreement, 0 is chance. The interval accounts for repetitions of a case.",
    "The queue starts with doubtful answers, on which scorers agree with people less often than on others.",
)


def agreement_section(agreements: Sequence[Agreement]) -> PageSection:
    """Each scorer on each benchmark with labels; the score of all scorers together comes first."""
    title = "Agreement with the scorers"
    if not agreements:
        sentence = (
            "No answer has a label yet. After the first labels, this shows how reliable each scorer is."
        )
        return PageSection(title, finding=sentence, anchor="agreement")
    rows = [
        [
            Cell(agreement.scorer or "all scorers together", note=agreement.benchmark),
            Cell(format_share(agreement.share), tone="" if agreement.labels else "quiet"),
            Cell(NOTHING if agreement.kappa is None else f"{round(agreement.kappa, 2) + 0.0:.2f}"),
            Cell(str(agreement.both_pass)),
            Cell(str(agreement.both_fail)),
            Cell(str(agreement.only_person_passes), tone="warn" if agreement.only_person_passes else "quiet"),
            Cell(str(agreement.only_scorer_passes), tone="warn" if agreement.only_scorer_passes else "quiet"),
            Cell(f"{agreement.labels} on {format_count(agreement.cases, 'case')}"),
        ]
        for agreement in agreements
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
