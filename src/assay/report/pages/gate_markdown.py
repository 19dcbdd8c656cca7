"""The result of `assay gate` as Markdown for the comment on a pull request.

The verdict, lost cases and changes are visible at once. Everything else is folded, because such comments are read in passing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from assay.model import Comparison, Run, Verdict
from assay.model.regression import Gate
from assay.report.change import change_text, sides_name, tolerance_text
from assay.report.console.gate import (
    broken_text,
    case_lines,
    headline,
    incomplete_text,
    open_questions,
    requirement_text,
    rest_text,
    scoring_failure_text,
    sides_text,
)
from assay.report.figures import NOTHING, environment_line
from assay.report.pages.markdown_escape import format_code_block, table, text
from assay.report.warnings import rank_warnings
from assay.units import format_count, show

_SIGNS = {Verdict.WORSE: "❌", Verdict.BETTER: "🎉", Verdict.UNSURE: "❔", Verdict.SAME: "✅"}
_WARNINGS = 3


def gate_markdown(gate: Gate) -> str:
    """The verdict, the cases lost and what changed; everything else is folded away."""
    changed = (*gate.select_by_verdict(Verdict.WORSE), *gate.select_by_verdict(Verdict.BETTER))
    lines = [f"> ⚠ {text(doubt)}  " for doubt in rank_warnings(gate.doubts)]
    more = lines[_WARNINGS:]
    parts = [
        f"## {'✅' if gate.passed else '❌'} {text(headline(gate))}",
        text(sides_text(gate)),
        "\n".join(
            f"- {'✅' if requirement.is_met else '❌'} {text(requirement_text(requirement))}"
            for requirement in gate.requirements
        ),
        "\n".join(f"- ❌ {text(broken_text(name))}" for name in gate.broken),
        "\n".join(f"- ❌ {text(scoring_failure_text(name))}" for name in gate.unscored),
        "\n".join(f"- ❌ {text(incomplete_text(name))}" for name in gate.incomplete),
        "\n".join(f"- {'❌' if sign == '✗' else '🎉'} {text(line)}" for sign, line in case_lines(gate)),
        _table(changed) if changed else "",
        _format_unchanged(gate),
        "\n".join(lines[:_WARNINGS]),
        _fold(format_count(len(more), "more warning"), "\n".join(more)) if more else "",
        _fold("How to reproduce", _recipe(gate)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _format_unchanged(gate: Gate) -> str:
    """What fails nothing, folded away, so that a comment on a pull request shows what changed and not what did not."""
    unsure, same = gate.select_by_verdict(Verdict.UNSURE), gate.select_by_verdict(Verdict.SAME)
    unjudged = tuple(comparison for comparison in gate.comparisons if comparison.verdict is None)
    counts = ((len(unsure), "unsure"), (len(same), "the same"), (len(unjudged), "not judged"))
    title = ", ".join(f"{number} {what}" for number, what in counts if number)
    rows = (*unsure, *same, *unjudged)
    if not rows:
        return ""
    questions = [f"- ❔ {text(question)}" for question in open_questions(gate)]
    heading = ["", "**Unsure**, which fails nothing:", ""] if questions else []
    return _fold(title, "\n".join((_table(rows), *heading, *questions)))


def _table(comparisons: Sequence[Comparison]) -> str:
    names = ("", "Trial", "Metric", "Baseline", "This run", "Change [95 % interval]", "p", "Tolerance")
    return table(names, [_row(comparison) for comparison in comparisons], right=range(3, 8))


def _row(comparison: Comparison) -> tuple[str, ...]:
    change, bracket, ends = change_text(comparison).partition(" [")
    is_claim = comparison.verdict in (Verdict.WORSE, Verdict.BETTER)
    return (
        _SIGNS[comparison.verdict] if comparison.verdict else NOTHING,
        text(sides_name(comparison)),
        text(comparison.metric.name),
        text(show(comparison.value_a, comparison.metric.unit)),
        text(show(comparison.value_b, comparison.metric.unit)),
        text(f"{change}{bracket}{ends}") if not is_claim else f"**{text(change)}**{text(bracket + ends)}",
        NOTHING if comparison.p_corrected is None else f"{comparison.p_corrected:.2g}",
        tolerance_text(comparison) if comparison.verdict else NOTHING,
    )


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def _recipe(gate: Gate) -> str:
    """The commands that repeat the run and the gate, for readers who doubt the verdict."""
    run = gate.b.run
    commit = run.environment.vcs.get("commit")
    lines = [
        *([f"git checkout {commit}"] if commit else []),
        _run_command(run),
        _gate_command(gate),
    ]
    note = "p values are corrected over all comparisons (Holm); a change counts only beyond its tolerance."
    notes = [text(environment_line(run.environment)), text(rest_text(gate)), text(note)]
    return "\n\n".join([format_code_block("\n".join(lines)), *filter(None, notes)])


def _gate_command(gate: Gate) -> str:
    words = ["assay", "gate", "last"]
    words += ["--baseline", gate.baseline] if gate.has_baseline else []
    words += gate.asked
    words += ["--rerun-baseline"] if gate.rerun is not None else []
    words += ["--max-lost", str(gate.max_lost)] if gate.max_lost is not None else []
    limits = ",".join(dict.fromkeys(str(requirement.requirement) for requirement in gate.requirements))
    return shlex.join([*words, *(["--require", limits] if limits else [])])


def _run_command(run: Run) -> str:
    """Rebuild the command of the run, as far as the run itself tells.

    A run knows its suite by name and not by file.
    """
    agents = dict.fromkeys(stored.trial.agent.name for stored in run.trials if stored.trial.agent_use)
    words = ["assay", "run", run.suite.name if run.suite else run.name]
    words += [word for agent in agents for word in ("--agent", agent)]
    repetitions = {stored.trial.iterations.measured for stored in run.trials}
    words += ["--repetitions", str(*repetitions)] if run.suite and len(repetitions) == 1 else []
    command = shlex.join([*words, "--seed", str(run.seed)])
    return f"{command}   # if '{run.suite.name}' is not registered, name its file" if run.suite else command
