"""`algorithm_comparison.json` and `algorithm_comparison.md`: seed 000's names for true figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.builtin.findings.algorithm import AlgorithmResults, contest_document
from assay.builtin.reporters.finding_files import find_finding, write_comparison
from assay.model import Report


class AlgorithmFiles:
    """Writes both files; ReportError for a run without a comparison of algorithms.

    `results` has one entry for each algorithm and task, as in seed 000; `comparisons` and `gates` say how far they are proved.
    """

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        missing = (
            "compares no algorithms: the format 'algorithm_comparison' is for assay run algorithm_comparison."
        )
        found = find_finding(report, AlgorithmResults, missing)
        contests = [contest_document(contest) for contest in found.contests]
        document = {
            "commit": report.run.environment.facts.get("commit"),
            "results": [
                {**result, "task": contest["task"]} for contest in contests for result in contest["results"]
            ],
            "contests": [
                {key: value for key, value in contest.items() if key != "results"} for contest in contests
            ],
        }
        return write_comparison(
            report, found, document, folder / "algorithm_comparison", "Algorithm comparison"
        )
