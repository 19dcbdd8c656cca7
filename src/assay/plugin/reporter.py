"""A reporter writes findings in a format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from assay.model import Report


@runtime_checkable
class Reporter(Protocol):
    """Writes one report into a folder that exists and says which files it made."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]: ...
