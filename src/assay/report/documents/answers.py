"""The JSON answers of commands that change or list what is stored.

Scripts rely on these keys: they may be added to, but not renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model import AgentUse, Report, Suite
from assay.model.load_verdict import worst_verdict

if TYPE_CHECKING:
    from assay.errors import Mistake
    from assay.model import Judging
    from assay.report.console.run import ListedRun

_OF_A_RUN = ("id", "name", "state", "started", "ended", "trials", "executions", "tags", "label")


def runs_document(runs: Iterable[ListedRun]) -> list[dict[str, Any]]:
    return [
        {**{name: getattr(run, name) for name in _OF_A_RUN}, "verdict": worst_verdict(run.verdicts)}
        for run in runs
    ]


def deletion_document(ids: Iterable[str]) -> dict[str, Any]:
    return {"deleted": list(ids)}


def pruning_document(ids: Sequence[str], *, is_dry_run: bool) -> dict[str, Any]:
    return {"deleted": [] if is_dry_run else list(ids), "would_delete": list(ids) if is_dry_run else []}


def tags_document(run_id: str, tags: Iterable[str]) -> dict[str, Any]:
    return {"run_id": run_id, "tags": list(tags)}


def baseline_document(name: str, run_id: str) -> dict[str, Any]:
    return {"baseline": name, "run_id": run_id, "rated_again": 0}


def baseline_deletion_document(name: str, run_id: str) -> dict[str, Any]:
    return {"deleted": name, "run_id": run_id, "rated_again": 0}


def upgrade_document(before: object, after: object, rated: int) -> dict[str, Any]:
    return {"from": before, "to": after, "rated_again": rated}


def agent_registration_document(names: Iterable[str]) -> dict[str, Any]:
    return {"registered": list(names)}


def agents_document(agents: Iterable[AgentUse]) -> list[dict[str, Any]]:
    return [{"name": use.name, "type": use.type, "version": use.version} for use in agents]


def suite_registration_document(suite: Suite) -> dict[str, Any]:
    return {"suite": suite.name, "version": suite.version, "hash": suite.hash}


def files_document(files: Iterable[Path]) -> dict[str, Any]:
    return {"files": [str(file) for file in files]}


def report_files_document(report: Report, files: Iterable[Path]) -> dict[str, Any]:
    return {"run_id": report.run.id, **files_document(files)}


def export_document(file: Path) -> dict[str, Any]:
    return {"file": str(file)}


def check_document(mistakes: Sequence[Mistake], warnings: Iterable[Mistake]) -> dict[str, Any]:
    return {
        "valid": not mistakes,
        "mistakes": [asdict(mistake) for mistake in mistakes],
        "warnings": [asdict(warning) for warning in warnings],
    }


def calls_document(cassette: Path, exit_code: int, **calls: object) -> dict[str, Any]:
    """Of `assay record` and `assay replay`; `calls` says what became of the calls."""
    return {"cassette": str(cassette), **calls, "exit_code": exit_code}


def load_answer_document(
    run_id: str, documents: Sequence[Mapping[str, Any]], *, is_interrupted: bool
) -> dict[str, Any]:
    """The last load, and where there were several all of them under `loads`."""
    several = {"loads": list(documents)} if len(documents) > 1 else {}
    return {"run": run_id, **documents[-1], "interrupted": is_interrupted, **several}


def capacity_answer_document(run_id: str, document: Mapping[str, Any]) -> dict[str, Any]:
    return {"run": run_id, **document}


def stress_answer_document(
    run_id: str, document: Mapping[str, Any], *, is_interrupted: bool
) -> dict[str, Any]:
    return {"run": run_id, "interrupted": is_interrupted, **document}


def rescoring_document(
    document: Mapping[str, Any], spent: Judging | None, *, scores: int, changed: int, kept: int
) -> dict[str, Any]:
    """The result document, what judging cost this time, and how many scores are other than before."""
    cost = {"spent": asdict(spent)} if spent else {}
    return {**document, **cost, "scores": scores, "scores_changed": changed, "scores_kept": kept}
