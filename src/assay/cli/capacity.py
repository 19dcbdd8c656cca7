"""`assay load --find-capacity`: search for the highest sustained rate, and show what limits it.

`assay load` checks the options and calls `find`; the search is in `load.capacity`, and `pipeline.capacity` stores its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.cli.session import Session

if TYPE_CHECKING:
    from assay.load.build import LoadOptions, PreparedLoad
    from assay.model.load import Arrivals, Step
    from assay.store.store import Store


def find(
    session: Session,
    store: Store,
    options: LoadOptions,
    asked: PreparedLoad,
    tags: tuple[str, ...],
    arrivals: Arrivals,
) -> int:
    """Run the search and print its answer. The exit code is 0 if a rate was sustained, else 1."""
    from functools import partial

    from assay.cli.load import looking_on
    from assay.execute.signals import interrupt_exit_code
    from assay.model.load_document import capacity_document
    from assay.pipeline.capacity import CapacityRequest, find_capacity
    from assay.report.capacity import print_capacity, step_text

    def tell(step: Step) -> None:
        if not session.is_json:
            session.say(step_text(step))

    request = CapacityRequest(options, asked, arrivals)
    found = find_capacity(request, store, session.settings, tell, partial(looking_on, session), tags)
    if session.is_json:
        from assay.report.documents.answers import capacity_answer_document

        session.emit(capacity_answer_document(found.run_id, capacity_document(found.capacity)))
    else:
        print_capacity(capacity_document(found.capacity), session.console())
    resume = [f"assay run --resume {found.run_id}"] if found.is_interrupted else []
    session.next(*resume, f"assay report {found.run_id} --format html", f"assay show {found.run_id}")
    if found.is_interrupted:
        return interrupt_exit_code()
    return 0 if found.capacity.sustained else 1
