"""A gate as the comment that a pull request gets."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from assay.model import Comparison, Run, Verdict
from assay.model.regression import Gate
from assay.report.change import change_text, sides_name, tolerance_text
from assay.report.figures import NOTHING, environment_line
from assay.report.gate import broken_text, headline, open_questions, rest_text, sides_text
from assay.report.marking import fenced, table, text
from assay.units import show

_SIGNS = {Verdict.WORSE: "❌", Verdict.BETTER: "🎉", Verdict.UNSURE: "❔", Verdict.SAME: "✅"}


def gate_markdown(gate: Gate) -> str:
    changed = (*gate.judged(Verdict.WORSE), *gate.judged(Verdict.BETTER))
    rest = (*gate.judged(Verdict.UNSURE), *gate.judged(Verdict.SAME))
    parts = [
        f"## {'✅' if gate.passed else '❌'} {text(headline(gate))}",
        text(sides_text(gate)),
        "\n".join(f"- ❌ {text(broken_text(name))}" for name in gate.broken),
        _table(changed) if changed else "",
        _unsure(gate),
        _folded(f"{len(rest)} without a proved change", _table(rest)) if rest else "",
        "\n".join(f"> ⚠ {text(doubt)}  " for doubt in gate.doubts),
        _folded("How to reproduce", _recipe(gate)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(comparisons: Sequence[Comparison]) -> str:
    names = ("", "Trial", "Metric", "Baseline", "This run", "Change [95 % interval]", "p", "Tolerance")
    return table(names, [_row(one) for one in comparisons], right=range(3, 8))


def _row(one: Comparison) -> tuple[str, ...]:
    change, bracket, ends = change_text(one).partition(" [")
    is_claim = one.verdict in (Verdict.WORSE, Verdict.BETTER)
    return (
        _SIGNS[one.verdict],
        text(sides_name(one)),
        text(one.metric.name),
        text(show(one.value_a, one.metric.unit)),
        text(show(one.value_b, one.metric.unit)),
        text(f"{change}{bracket}{ends}") if not is_claim else f"**{text(change)}**{text(bracket + ends)}",
        NOTHING if one.p_corrected is None else f"{one.p_corrected:.2g}",
        tolerance_text(one),
    )


def _unsure(gate: Gate) -> str:
    lines = [f"- ❔ {text(question)}" for question in open_questions(gate)]
    return "\n".join(("**Unsure**, which fails nothing:", "", *lines)) if lines else ""


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def _recipe(gate: Gate) -> str:
    run = gate.b.run
    commit = run.environment.vcs.get("commit")
    lines = [
        *([f"git checkout {commit}"] if commit else []),
        _run_command(run),
        f"assay gate last --baseline {shlex.quote(gate.baseline)}",
    ]
    note = "p values are corrected over all comparisons (Holm); a change counts only beyond its tolerance."
    told = [text(environment_line(run.environment)), text(rest_text(gate)), text(note)]
    return "\n\n".join([fenced("\n".join(lines)), *filter(None, told)])


def _run_command(run: Run) -> str:
    """As it was begun, as far as the run itself tells."""
    agents = dict.fromkeys(stored.trial.agent.name for stored in run.trials if stored.trial.agent_use)
    words = ["assay", "run", run.suite.name if run.suite else run.name]
    words += [word for agent in agents for word in ("--agent", agent)]
    return shlex.join([*words, "--seed", str(run.seed)])
