"""Who leads, in words: the same sentences in the terminal, in Markdown and in HTML.

No sentence claims more than the evidence: "leads" is said only of an agent that is significantly ahead of all others, and agents that
cannot be told apart are tied, whatever their figures are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Report
from assay.units import and_list

if TYPE_CHECKING:
    from assay.model.standing import Lead, Leaderboard, Standing

_NAMED = 4
_GROUPS = 4


def lead_of(report: Report, benchmark: str, *, is_simulated: bool = False) -> Lead | None:
    """Return who leads on a benchmark or, with an empty name, on the suite as a whole."""
    found = (
        lead for lead in report.leads if (lead.benchmark, lead.is_simulated) == (benchmark, is_simulated)
    )
    return next(found, None)


def main_lead(report: Report) -> Lead | None:
    """What the whole run says: of measured agents if there are two, on all benchmarks if there are several."""
    whole = [lead for lead in report.leads if not lead.benchmark]
    names = {trial.stored.trial.benchmark for trial in report.trials if trial.ratings is not None}
    single = [lead for lead in report.leads if len(names) == 1]
    return min([*whole, *single], key=lambda lead: lead.is_simulated, default=None)


def verdict_text(lead: Lead) -> str:
    """
    >>> from assay.model.standing import Lead
    >>> lead = Lead("", False, ("accuracy",), {"a": 0.9, "b": 0.8}, ("a",))
    >>> verdict_text(lead)
    'a leads'
    """
    return leaders_text(lead.leaders)


def leaders_text(leaders: Sequence[str]) -> str:
    """
    >>> leaders_text(["a"]), leaders_text(["a", "b"])
    ('a leads', 'a and b are tied')
    """
    return f"{leaders[0]} leads" if len(leaders) == 1 else f"{names_text(leaders)} are tied"


def names_text(names: Sequence[str]) -> str:
    """The first few by name, and how many more there are."""
    return and_list(names, most=_NAMED)


def lead_sentence(lead: Lead) -> str:
    """The verdict with its margin: who, by how much, and whether chance explains it.

    >>> from assay.model.standing import Lead
    >>> lead = Lead("", False, ("accuracy",), {"a": 0.96, "b": 0.9}, ("a",), 0.06, 0.031, 0.089, ("accuracy",), ("speed",))
    >>> lead_sentence(lead)
    'a leads: overall 0.960 against 0.900 for b, a margin of +0.060 [+0.031, +0.089].'
    """
    text = figures_text(lead)
    return f"{verdict_text(lead)}: {text[0].lower()}{text[1:]}"


def figures_text(lead: Lead) -> str:
    """The scores of the first two, and what is between them."""
    (first, best), (second, next_best), *_ = lead.scores.items()
    if not lead.is_tie:
        return f"Overall {best:.3f} against {next_best:.3f} for {second}{_margin(lead, 'a margin of ')}."
    between = f"{first} {best:.3f}, {second} {next_best:.3f}{_margin(lead, 'difference ')}"
    # The interval is of these two alone and of cases; a rank also has to hold among all agents and from round to round.
    is_apart_alone = lead.low is not None and lead.low > 0
    why = "the evidence is too weak to rank them" if is_apart_alone else "the difference may be chance"
    return f"Overall {between}; {why}."


def _margin(lead: Lead, words: str) -> str:
    if lead.margin is None:
        return ""
    ends = f" [{lead.low:+.3f}, {lead.high:+.3f}]" if lead.low is not None and lead.high is not None else ""
    return f", {words}{lead.margin:+.3f}{ends}".replace("-", "−")


def reason_text(lead: Lead) -> str:
    """In which dimensions the first two differ for certain.

    >>> from assay.model.standing import Lead
    >>> reason_text(Lead("", False, (), {"a": 1, "b": 0}, ("a",), ahead_in=("accuracy",), behind_in=("speed", "cost")))
    'a is better than b in accuracy, and worse in speed and cost.'
    """
    first, second, *_ = lead.scores
    if lead.ahead_in and lead.behind_in:
        return f"{first} is better than {second} in {names_text(lead.ahead_in)}, and worse in {names_text(lead.behind_in)}."
    if lead.ahead_in or lead.behind_in:
        word, names = ("better", lead.ahead_in) if lead.ahead_in else ("worse", lead.behind_in)
        return f"{first} is {word} than {second} in {names_text(names)}; no other difference is significant."
    return f"{first} is not significantly better or worse than {second} in any single dimension."


def board_sentence(board: Leaderboard) -> str:
    """Who leads on a leaderboard, and who is tied: `exact leads; moody and greedy are tied.`

    Empty where fewer than two agents are ranked.
    """
    rows = board.standings if len(board.standings) > 1 else board.simulated
    if len(rows) < 2:
        return ""
    leaders = [row for row in rows if row.best_rank == 1]
    # Rows of one tier cannot be told apart.
    tiers: dict[int, list[Standing]] = {}
    for row in rows:
        if row.best_rank > 1:
            tiers.setdefault(row.tier, []).append(row)
    groups = [leaders, *tiers.values()]
    parts = [leaders_text(_names(leaders)), *(_group_text(group) for group in groups[1:_GROUPS])]
    left = sum(len(group) for group in groups[_GROUPS:])
    sentence = "; ".join([*parts, *([f"then {left} more"] if left else [])])
    return f"{sentence}{' (simulated)' if rows is board.simulated else ''}."


def _group_text(group: Sequence[Standing]) -> str:
    names = _names(group)
    if len(names) == 1:
        return f"then {names[0]}"
    # With three agents the first may be better than the last, and the one between them apart from neither.
    is_tie = len({(row.best_rank, row.worst_rank) for row in group}) == 1
    return f"{names_text(names)} are {'tied' if is_tie else 'partly tied'}"


def _names(rows: Sequence[Standing]) -> list[str]:
    return [row.contender.agent for row in rows]
