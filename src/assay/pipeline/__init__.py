"""The flow: spec → plan → execute → store → analysis → show. Each module is one page of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.model import Comparison, Report


def run(target: str | Path, *, db: str | None = None, **changes: Any) -> Report:
    """Carry out a spec file, a Python file or an experiment and return what was found.

    `changes` are keys of a spec, laid over those of the file: `run("spec.yaml", processes=10, params={"size": 5})`.
    """
    from assay.pipeline.reporting import report_of
    from assay.pipeline.running import prepare, run_plan
    from assay.plan.target import Request
    from assay.spec.settings import find_settings
    from assay.store.store import Store

    settings = find_settings(Path.cwd())
    with Store.open(db or settings.db) as store:
        done = run_plan(prepare(Request(str(target), changes), settings, store), store)
        return report_of(store, done.id)


def compare(
    a: str, b: str, *, db: str | None = None, metrics: Sequence[str] | None = None
) -> tuple[Comparison, ...]:
    """Compare two runs, or result files; A is the reference, so *better* means that B is better."""
    from assay.pipeline.comparing import compared
    from assay.spec.settings import find_settings
    from assay.store.store import Store

    with Store.open(db or find_settings(Path.cwd()).db) as store:
        return compared(store, a, b, metrics=metrics).comparisons
