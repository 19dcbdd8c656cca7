"""A reporter: one line of plain text a trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.model import Report, TrialReport
from assay.units import show


class Txt:
    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        file = folder / "summary.txt"
        file.write_text(
            "".join(f"{line}\n" for trial in report.trials for line in _lines(trial)), encoding="utf-8"
        )
        return [file]


def _lines(trial: TrialReport) -> Iterator[str]:
    yield f"{trial.name}: {trial.ok} ok"
    for estimate in trial.estimates:
        yield f"  {estimate.metric.name}: {show(estimate.median, estimate.metric.unit)}"
