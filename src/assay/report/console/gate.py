"""The result of `assay gate` for the terminal: the verdict, what changed, and what is unsure.

The texts about requirements, lost cases and open questions are also those of the Markdown comment and of the JUnit file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Comparison, Verdict
from assay.model.head_to_head import Flips
from assay.model.regression import Gate
from assay.model.requirement import CheckedRequirement
from assay.report.change import change_text, sides_name
from assay.report.console.screen import VERDICT_STYLES, RowGroup, bullet, join_texts, literal, print_groups
from assay.report.figures import NOTHING
from assay.report.warnings import rank_warnings
from assay.stats.permutation import repetitions_to_settle
from assay.units import format_count, show

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_QUESTIONS = 3
_ROWS = 16
"""Changes in the table; whatever got worse or better is always among the first."""
_TITLES = ("Trial, metric", "Baseline", "Run", "Change [interval]", "Verdict")
_NAMED = 3
_CASES = 10
_ORDER = (Verdict.WORSE, Verdict.BETTER, Verdict.UNSURE)


def print_gate(gate: Gate, console: Console) -> None:
    """The verdict, then what changed; what stayed the same is only counted."""
    style = "green" if gate.passed else "red"
    console.print(
        join_texts(literal("✓ " if gate.passed else "✗ ", style), literal(headline(gate), f"bold {style}"))
    )
    console.print(literal(sides_text(gate), "dim"))
    console.print()
    for requirement in gate.requirements:
        is_met = requirement.is_met
        console.print(
            bullet("✓" if is_met else "✗", requirement_text(requirement), "green" if is_met else "red")
        )
    for name in gate.broken:
        console.print(bullet("✗", broken_text(name), "red"))
    for name in gate.unscored:
        console.print(bullet("✗", scoring_failure_text(name), "red"))
    for name in gate.incomplete:
        console.print(bullet("✗", incomplete_text(name), "red"))
    for sign, line in case_lines(gate):
        console.print(bullet(sign, line, "red" if sign == "✗" else "green"))
    # Sorted by gravity before it is cut, so that what got worse is never among the rows left out.
    judged = [comparison for verdict in _ORDER for comparison in gate.select_by_verdict(verdict)]
    changed = [
        comparison
        for comparison in judged
        if comparison.value_a != comparison.value_b or comparison.verdict is not Verdict.UNSURE
    ]
    if changed:
        print_groups(_TITLES, _groups(changed[:_ROWS]), console)
        if len(changed) > _ROWS:
            console.print(literal(f"… and {len(changed) - _ROWS} more unsure", "dim"))
        console.print()
    for question in open_questions(gate):
        console.print(bullet("?", question, "yellow"))
    if rest := rest_text(gate):
        console.print(literal(rest, "dim"))
    for doubt in rank_warnings(gate.doubts):
        console.print(bullet("!", str(doubt), "yellow"))


def headline(gate: Gate) -> str:
    """The verdict in one line with its reasons.

    A gate that passes because nothing is proved says so, since that is not the same as no change.
    """
    worse, unsure = len(gate.select_by_verdict(Verdict.WORSE)), len(gate.select_by_verdict(Verdict.UNSURE))
    number = len(gate.verdicts)
    if not gate.passed:
        parts = [f"{worse} of {number} comparisons got worse"] if worse else []
        parts += [f"{len(gate.broken)} no longer work{'s' * (len(gate.broken) == 1)}"] if gate.broken else []
        parts += [f"scoring failed in {format_count(len(gate.unscored), 'trial')}"] if gate.unscored else []
        parts += [f"{format_count(len(gate.incomplete), 'trial')} incomplete"] if gate.incomplete else []
        parts += [_lost_cases(gate)] if gate.has_lost_too_many else []
        parts += [f"{len(gate.unmet)} of {len(gate.requirements)} requirements not met"] if gate.unmet else []
        also = f"; {_lost_cases(gate)}" if gate.lost and not gate.has_lost_too_many else ""
        return f"Gate failed: {', '.join(parts)}{also}"
    met = f"{format_count(len(gate.requirements), 'requirement')} met" if gate.requirements else ""
    if not gate.has_baseline:
        return f"Gate passed: {met}"
    also = f", {met}" if met else ""
    also += f"; {_lost_cases(gate)}" if gate.lost else ""
    if unsure:
        return f"Gate passed: nothing got significantly worse; {unsure} of {number} comparisons unsure{also}"
    return f"Gate passed: 0 of {number} comparisons got worse{also}"


def _lost_cases(gate: Gate) -> str:
    allowed = f" (at most {gate.max_lost} allowed)" if gate.max_lost is not None else ""
    return f"{format_count(gate.lost, 'case')} lost{allowed}"


def requirement_text(requirement: CheckedRequirement) -> str:
    """The value, the limit, and whether that holds."""
    value = "unknown" if requirement.value is None else show(requirement.value, requirement.unit)
    if requirement.low is not None and requirement.high is not None:
        value += f" [{show(requirement.low, requirement.unit)}, {show(requirement.high, requirement.unit)}]"
    notes = [requirement.note, "the interval includes the limit" if requirement.is_close else ""]
    note = "; ".join(part for part in notes if part)
    met = "met" if requirement.is_met else "not met"
    return f"{requirement.trial}: {requirement.requirement} is {met}: {value}{f' ({note})' if note else ''}"


def case_lines(gate: Gate) -> list[tuple[str, str]]:
    """A sign and a sentence each: the cases lost and won, whatever the verdict, then those that changed in part."""
    family = sum(comparison.p_corrected is not None for comparison in gate.comparisons)
    lines = []
    for flips in gate.flips:
        if flips.lost:
            lines.append(("✗", lost_text(flips, family)))
        if flips.won:
            lines.append(("✓", f"{flips.trial}: {_case_list('won', flips.won, flips)}."))
        if flips.weaker:
            lines.append(("✗", f"{flips.trial}: {_format_cases(flips, flips.weaker)} passed less often."))
        if flips.stronger:
            lines.append(("✓", f"{flips.trial}: {_format_cases(flips, flips.stronger)} passed more often."))
    return lines


def lost_text(flips: Flips, family: int = 1) -> str:
    """Each case with the repetitions that passed before and now, and whether single ones can be told from noise."""
    sentence = f"{flips.trial}: {_case_list('lost', flips.lost, flips)}."
    if any(side.judged > 1 for case in flips.lost for side in flips.passes[case]):
        return sentence
    needed = repetitions_to_settle(len(flips.lost), len(flips.won), 0.05 / max(1, family)) or 3
    return f"{sentence} With one repetition a flip cannot be distinguished from noise; run with --repetitions {max(2, needed)}."


def _case_list(what: str, cases: Sequence[str], flips: Flips) -> str:
    return f"{what} {format_count(len(cases), 'case')}: {_format_cases(flips, cases)}"


def _format_cases(flips: Flips, cases: Sequence[str]) -> str:
    named = [_case_text(case, flips) for case in cases[:_CASES]]
    more = f" and {len(cases) - _CASES} more" if len(cases) > _CASES else ""
    return ", ".join(named) + more


def _case_text(case: str, flips: Flips) -> str:
    before, after = flips.passes[case]
    if before.judged == after.judged == 1:
        return case
    return f"{case} ({before.passed} of {before.judged} → {after.passed} of {after.judged})"


def sides_text(gate: Gate) -> str:
    """What was compared with what; after a rerun, also the commits that were checked out for it."""
    if not gate.has_baseline:
        return f"{gate.b.run.name} · run {gate.b.run.id}, without a baseline"
    if gate.rerun is not None:
        commits = sorted({commit[:10] for commit in gate.rerun.commits.values()})
        code = f", code of commit {' and '.join(commits)} checked out" if commits else ""
        return (
            f"{gate.b.run.name} · run {gate.b.run.id}: baseline {gate.baseline} ({gate.rerun.baseline}) and "
            f"{gate.rerun.judged}, run again interleaved{code}"
        )
    return f"{gate.b.run.name} · run {gate.b.run.id} against baseline {gate.baseline} ({gate.a.run.id})"


def broken_text(name: str) -> str:
    return f"{name}: succeeded in the baseline; now no execution succeeds"


def scoring_failure_text(name: str) -> str:
    return f"{name}: scored in the baseline; scoring now fails for most executions, so a regression cannot be ruled out"


def incomplete_text(name: str) -> str:
    return f"{name}: too many planned executions have no result, so a regression cannot be ruled out"


def open_questions(gate: Gate) -> list[str]:
    """What is unsure and what would settle it; said once where it is the same for several trials."""
    places: dict[tuple[str, str], list[str]] = {}
    for comparison in gate.select_by_verdict(Verdict.UNSURE):
        places.setdefault((comparison.metric.name, comparison.reason), []).append(sides_name(comparison))
    questions = []
    for (metric, reason), names in places.items():
        others = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        questions.append(f"{metric} of {', '.join(names[:_NAMED])}{others}: {reason}")
    left = len(questions) - _QUESTIONS
    see = f"assay compare {gate.a.run.id} {gate.b.run.id}" if gate.rerun is None else "--json lists all"
    more = [f"and {left} more: {see}"] if left > 0 else []
    return questions[:_QUESTIONS] + more


def rest_text(gate: Gate) -> str:
    same = len(gate.select_by_verdict(Verdict.SAME))
    parts = [f"{same} the same within tolerance"] if same else []
    if gate.unjudged:
        parts.append(f"not judged by default (add --metric to judge them): {', '.join(gate.unjudged)}")
    return " · ".join(parts)


def _groups(comparisons: Sequence[Comparison]) -> list[RowGroup]:
    """A heading for each trial; the trial with the gravest change first."""
    trials: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        trials.setdefault(sides_name(comparison), []).append(comparison)
    return [
        RowGroup(literal(name, "bold"), [_cells(comparison) for comparison in changes])
        for name, changes in trials.items()
    ]


def _cells(comparison: Comparison) -> list[Text]:
    change, bracket, ends = change_text(comparison).partition(" [")
    return [
        literal(f"  {comparison.metric.name}"),
        literal(show(comparison.value_a, comparison.metric.unit)),
        literal(show(comparison.value_b, comparison.metric.unit)),
        join_texts(literal(change, "bold"), literal(bracket + ends, "dim")),
        literal(comparison.verdict.value, VERDICT_STYLES[comparison.verdict])
        if comparison.verdict
        else literal(NOTHING, "dim"),
    ]
