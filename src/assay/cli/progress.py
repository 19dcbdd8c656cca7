"""Progress of a run, unless the user asked for quiet."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from assay.report.progress import Watch, show_progress

if TYPE_CHECKING:
    from assay.cli.session import Session
    from assay.model import Plan


def watching(session: Session, plan: Plan, done: int = 0) -> contextlib.AbstractContextManager[Watch]:
    """A function to be called with each batch; shows how far the run has come."""
    if session.is_quiet:
        from assay.pipeline.running import unwatched

        return contextlib.nullcontext(unwatched)
    return show_progress(plan, done)
