"""A stress test as Markdown."""

from __future__ import annotations

from assay.model.stress import StressFinding
from assay.report.marking import table, text
from assay.report.stress import calm_text, columns, detail_text, headline, notes, rows, setting_text


def stress_section(finding: StressFinding) -> str:
    mark = " (simulated)" if finding.is_simulated else ""
    names, cells = columns(finding), [tuple(map(text, one)) for one in rows(finding)]
    parts = [
        f"## Under stress{mark}",
        f"**{text(headline(finding))}.** {text(setting_text(finding))}.",
        text(f"{told}.") if (told := calm_text(finding)) else "",
        _listed("Errors at the base rate", [detail_text(one) for one in finding.calm_errors.details]),
        table(names, cells, right=range(1, len(names))) if cells else "",
        *(_scenario(finding, place) for place in range(len(finding.scenarios))),
        _listed("Limits", finding.limits),
        _listed("Recommendations", finding.recommendations),
        _listed("Doubts", finding.warnings),
    ]
    return "\n\n".join(part for part in parts if part)


def _scenario(finding: StressFinding, place: int) -> str:
    one = finding.scenarios[place]
    if one.skipped:
        return f"### {text(one.scenario)}\n\nLeft out: {text(one.skipped)}."
    score = next((score for score in finding.scores if score.scenario == one.scenario), None)
    lines = [line if mark == "·" else f"{mark} {line}" for mark, line in notes(one, score)]
    return _listed(one.scenario, lines)


def _listed(title: str, lines: tuple[str, ...] | list[str]) -> str:
    return (
        "\n\n".join([f"### {text(title)}", "\n".join(f"- {text(line)}" for line in lines)]) if lines else ""
    )
