"""A stress test as Markdown."""

from __future__ import annotations

from assay.model.stress import StressFinding
from assay.report.marking import table, text
from assay.report.stress import COLUMNS, headline, notes, row, setting_text


def stress_section(finding: StressFinding) -> str:
    by_name = {one.scenario: one for one in finding.scenarios}
    mark = " (simulated)" if finding.is_simulated else ""
    rows = [tuple(map(text, row(by_name[score.scenario], score))) for score in finding.scores]
    parts = [
        f"## Under stress{mark}",
        f"**{text(headline(finding))}.** {text(setting_text(finding))}.",
        table(COLUMNS, rows, right=range(1, len(COLUMNS))) if rows else "",
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
    return _listed(one.scenario, [line if mark == "·" else f"{mark} {line}" for mark, line in notes(one)])


def _listed(title: str, lines: tuple[str, ...] | list[str]) -> str:
    return (
        "\n\n".join([f"### {text(title)}", "\n".join(f"- {text(line)}" for line in lines)]) if lines else ""
    )
