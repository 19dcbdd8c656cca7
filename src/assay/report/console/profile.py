"""Profiles for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model import Report
from assay.report.console.screen import bullet
from assay.report.console.sections import print_sections
from assay.report.profiles import print_profiles

if TYPE_CHECKING:
    from rich.console import Console


def print_profile(report: Report, console: Console) -> None:
    """What could be saved and where the time went, trial by trial; then what failed or could not be sampled."""
    finding = report.findings.get("profile")
    if finding is not None:
        headline = finding.headline()
        print_sections([*([headline] if headline else []), *finding.sections(with_charts=False)], console)
    for trial in report.trials:
        print_profiles(trial, console)
        for failure in trial.failures[:1]:
            console.print(bullet("✗", f"{trial.name}: {failure.error}", "red"))
    for doubt in report.doubts:
        if doubt.code in ("profile", "unmeasured"):
            console.print(bullet("!", str(doubt), "yellow"))
