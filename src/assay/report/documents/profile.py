"""The JSON answer of `assay profile`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.model import Report

_FINDING = "profile"


def profile_answer_document(report: Report, files: Sequence[Path]) -> dict[str, Any]:
    """The profile of the first trial with the names of the specification; `profiles` has those of all trials."""
    finding = report.findings.get(_FINDING)
    profiles = list(finding.document()["profiles"]) if finding is not None else []
    return {
        "run_id": report.run.id,
        "status": report.run.state.value,
        **(profiles[0] if profiles else {}),
        "profiles": profiles,
        "warnings": [str(doubt) for doubt in report.doubts if doubt.code == _FINDING],
        "files": [str(file) for file in files],
    }
