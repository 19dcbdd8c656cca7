"""A reporter: Assay hands it the findings of a run, and it writes them to files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.model import Report, TrialReport


class TemplateNameReporter:
    """Plain text: a line for each trial, and one for each of its metrics."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        file = folder / "summary.txt"
        lines = [line for trial in report.trials for line in _describe(trial)]
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return [file]


def _describe(trial: TrialReport) -> Iterator[str]:
    yield f"{trial.name}: {trial.ok} ok"
    for estimate in trial.estimates:
        yield f"  {estimate.metric.name}: {estimate.median:g} {estimate.metric.unit}".rstrip()
