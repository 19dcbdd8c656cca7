"""Progress of a run, unless the user asked for quiet.

It goes to standard error, like all that is not a result, so that it never mixes with output that is piped.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from assay.report.console.progress import Watch, show_progress

if TYPE_CHECKING:
    from assay.cli.session import Session
    from assay.model import Plan


def watching(session: Session, plan: Plan, done: int = 0) -> contextlib.AbstractContextManager[Watch]:
    """A context with a function to call with each batch. It shows the progress of the run; `done` executions were stored before."""
    if session.is_quiet:
        from assay.pipeline.run import ignore_batch

        return contextlib.nullcontext(ignore_batch)
    return show_progress(plan, done)
