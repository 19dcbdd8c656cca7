"""Names runs to compare later runs with."""

from __future__ import annotations

from assay.errors import PlanError
from assay.model import Run
from assay.model.run import RERUN_TAG
from assay.store.store import Store


def name_baseline(store: Store, name: str, ref: str) -> Run:
    """The run that has the name from now on."""
    found = store.run(ref)
    if RERUN_TAG in found.tags:
        raise PlanError(
            f"Run '{found.id}' was made by assay gate --rerun-baseline and has both sides, so it cannot be a baseline. "
            "Name the run that was judged."
        )
    store.set_baseline(name, found.id)
    return found
