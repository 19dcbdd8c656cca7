"""A reporter writes findings in a format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from assay.model import Report


@runtime_checkable
class Reporter(Protocol):
    """Writes a run in a format of its own, besides those that Assay has.

    It is made without arguments and called once for each run that is to be reported, after the run has ended or from the
    database later. In a file that is named by `--load` it may also be a function of the results and the folder.
    """

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        """Write one report into a folder that exists, and say which files that made; ReportError where it cannot."""
        ...
