"""The Markdown pages of the reporter for `serving`: one for each answer, and one that compares a point with the baseline.

The conclusions follow from the verdicts of the comparison: where a verdict is unsure, the page says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from assay.analysis.comparison.compare import compare_trials
from assay.analysis.findings import SEVERE
from assay.builtin.reporters.serving_sides import Pair, PairedExecutions, Side
from assay.model import Comparison, Estimate, Execution, Metric, Order, Report, Status, Verdict
from assay.plugin.figures import NOTHING, cv_text, size_text, with_interval
from assay.report.change import change_text, tolerance_text
from assay.report.pages.markdown_escape import format_code_block, table, text
from assay.units import show

_HEADS = ("ttft", "seconds")
_CALLED = {"ttft": "time to the first token", "seconds": "time of the whole answer"}


def run_page(side: Side, execution: Execution, number: int) -> str:
    """One answer of one side."""
    units = {estimate.metric.name: estimate.metric for estimate in side.trial.estimates}
    rows = [
        (text(name), show(value, units.get(name, Metric(name)).unit))
        for name, value in execution.measurements.items()
    ]
    output = execution.output if isinstance(execution.output, dict) else {}
    parts = [
        f"# {side.role.capitalize()}, run {number}",
        _describe_side(side),
        text(side.summary(execution)),
        _format_list("Findings", side.findings(execution)),
        _format_list("Recommendations", side.recommendations(execution)),
        "## Figures\n\n" + table(("Metric", "Value"), rows, right=(1,)) if rows else "",
        "## Answer\n\n" + format_code_block(str(output["text"])) if output.get("text") else "",
        "## Error\n\n" + format_code_block(execution.error) if execution.error else "",
    ]
    return _page(parts)


def comparison_page(report: Report, pair: Pair, pairs: Sequence[PairedExecutions]) -> str:
    """The baseline against the other point, as far as the figures tell them apart."""
    compared = _compare_pair(report, pair)
    names = {side.trial.name for side in pair.sides}
    doubts = [doubt for doubt in report.doubts if doubt.trial is None or doubt.trial in names]
    parts = [
        f"# {text(pair.reference.trial.name)}"
        + (f" against {text(pair.candidate.trial.name)}" if pair.candidate else ""),
        *(f"**{side.role.capitalize()}**: {_describe_side(side)}" for side in pair.sides),
        _runs(pair, pairs),
        "\n".join(f"> ⚠ {text(doubt)}  " for doubt in doubts),
        "## Conclusion\n\n" + "\n".join(f"- {line}" for line in conclusions(report, pair, compared)),
        _estimates(pair),
        _comparisons(compared),
    ]
    return _page(parts)


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _describe_side(side: Side) -> str:
    options = (
        ", ".join(f"{name} = {value}" for name, value in side.options().items()) or "the server's defaults"
    )
    untold = f" (not reported by the server: {', '.join(side.untold())})" if side.untold() else ""
    kind = ", simulated" if side.is_simulated else ""
    return text(f"model {side.params.get('model')}, {side.params.get('start')}{kind}; {options}{untold}")


def _format_list(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {text(line)}" for line in lines) if lines else ""


def _runs(pair: Pair, pairs: Sequence[PairedExecutions]) -> str:
    entries = [entry for round_ in pairs for entry in round_.of(pair)]
    counts = []
    for side in pair.sides:
        statuses = [execution.status for of_side, execution in entries if of_side is side]
        counts.append(f"{side.role} {statuses.count(Status.OK)} of {len(statuses)} ok")
    return f"{len(pairs)} runs: {', '.join(counts)}."


def _compare_pair(report: Report, pair: Pair) -> tuple[Comparison, ...]:
    if pair.candidate is None:
        return ()
    interleaved = report.run.order == Order.INTERLEAVED
    a, b = pair.reference.trial, pair.candidate.trial
    # Few, because each further metric that is tested makes all of them harder to establish.
    shared = [name for name in (pair.throughput, *_HEADS) if name in a.series and name in b.series]
    return compare_trials(a, b, interleaved=interleaved, metrics=shared)


def conclusions(report: Report, pair: Pair, compared: Sequence[Comparison]) -> Iterator[str]:
    """What the figures say of throughput and times, and what follows from all three together."""
    if pair.candidate is None:
        yield "There is no other point to compare with this one."
        return
    names = {side.trial.name for side in pair.sides}
    spoilt = [doubt for doubt in report.doubts if doubt.code in SEVERE and doubt.trial in names]
    if spoilt:
        yield f"No conclusion: the two points did not run with the requested settings. {text(spoilt[0].message)}"
        return
    yield from (_sentence(comparison) for comparison in compared)
    yield f"**{_together([comparison.verdict for comparison in compared if comparison.verdict])}**"


def _sentence(comparison: Comparison) -> str:
    what = _CALLED.get(comparison.metric.name, f"throughput ({comparison.metric.name})").capitalize()
    change = text(change_text(comparison))
    match comparison.verdict:
        case Verdict.BETTER | Verdict.WORSE:
            return f"{what}: chimera is {comparison.verdict.value}, {change}."
        case Verdict.SAME:
            return f"{what}: a tie, {change}; differences within {text(tolerance_text(comparison))} count as the same."
        case _:
            return f"{what}: undecided, {change}. {text(comparison.reason)}"


def _together(verdicts: Sequence[Verdict]) -> str:
    """
    >>> _together([Verdict.SAME, Verdict.SAME]), _together([Verdict.BETTER, Verdict.SAME])
    ('A tie.', 'Chimera is better.')
    """
    found = set(verdicts)
    if not found or found == {Verdict.UNSURE}:
        return "Undecided: the figures show no significant difference between the two."
    if {Verdict.BETTER, Verdict.WORSE} <= found:
        return "A trade-off: chimera is better in one metric and worse in another."
    sure = "" if Verdict.UNSURE not in found else " so far; some comparisons are undecided"
    if Verdict.BETTER in found:
        return f"Chimera is better{sure}."
    if Verdict.WORSE in found:
        return f"Chimera is worse{sure}."
    return f"A tie{sure}."


def _estimates(pair: Pair) -> str:
    names = {estimate.metric.name: None for side in pair.sides for estimate in side.trial.estimates}
    rows = [(text(name), *(cell for side in pair.sides for cell in _cells(side, name))) for name in names]
    heads = (
        "Metric",
        *(f"{side.role}: {what}" for side in pair.sides for what in ("median", "CV", "n / units")),
    )
    return "## Figures\n\n" + table(heads, rows, right=range(1, len(heads)))


def _cells(side: Side, name: str) -> tuple[str, str, str]:
    found: Estimate | None = next(
        (estimate for estimate in side.trial.estimates if estimate.metric.name == name), None
    )
    if found is None:
        return NOTHING, NOTHING, NOTHING
    kind = "" if found.metric.kind == "measured" else f" ({found.metric.kind.value})"
    outliers = f" ({found.outliers} outlier{'s' * (found.outliers > 1)})" if found.outliers else ""
    return with_interval(found) + kind, cv_text(found), size_text(found) + outliers


def _comparisons(compared: Sequence[Comparison]) -> str:
    if not compared:
        return ""
    rows = [
        (
            text(comparison.metric.name),
            text(change_text(comparison)),
            comparison.verdict or NOTHING,
            text(comparison.reason),
        )
        for comparison in compared
    ]
    return "## Chimera against baseline\n\n" + table(("Metric", "Change", "Verdict", "Why"), rows)
