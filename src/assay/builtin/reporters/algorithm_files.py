"""`algorithm_comparison.json` and `algorithm_comparison.md`: seed 000's names for true figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.builtin.findings.algorithm import AlgorithmResults, contest_document
from assay.errors import ReportError
from assay.model import Report
from assay.plugin import format_strict_json, to_json_data, write_private
from assay.report.pages.page import section_markdown


class AlgorithmFiles:
    """Writes both files; ReportError for a run without a comparison of algorithms.

    `results` has one entry for each algorithm and task, as in seed 000; `comparisons` and `gates` say how far they are proved.
    """

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        found = report.findings.get("algorithm")
        if not isinstance(found, AlgorithmResults):
            raise ReportError(
                f"Run '{report.run.id}' compares no algorithms: the format 'algorithm_comparison' is for assay run algorithm_comparison."
            )
        contests = [contest_document(contest) for contest in found.contests]
        document = {
            "timestamp": report.run.started.isoformat(),
            "run_id": report.run.id,
            "commit": report.run.environment.facts.get("commit"),
            "results": [
                {**result, "task": contest["task"]} for contest in contests for result in contest["results"]
            ],
            "contests": [
                {key: value for key, value in contest.items() if key != "results"} for contest in contests
            ],
        }
        sections = [section_markdown(section) for section in found.sections(with_charts=False)]
        data, page = folder / "algorithm_comparison.json", folder / "algorithm_comparison.md"
        write_private(data, format_strict_json(to_json_data(document), indent=2) + "\n")
        write_private(page, "# Algorithm comparison\n\n" + "\n\n".join(sections) + "\n")
        return [data, page]
