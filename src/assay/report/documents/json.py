"""The result document as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.model import Report
from assay.plugin.private_files import open_private
from assay.report.documents.result import write_document


class Json:
    """Writes `result.json`, format `assay.result/1`."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        path = folder / "result.json"
        with open_private(path) as stream:
            write_document(report, stream)
        return [path]
