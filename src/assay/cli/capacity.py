"""`assay load --find-capacity`: the sustained rate with its interval, the knee, and what breaks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.cli.session import Session

if TYPE_CHECKING:
    from assay.execute.load.asking import LoadOptions, PreparedLoad
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
    from functools import partial

    from assay.cli.load import looking_on
    from assay.execute.signals import interrupted_exit_code
    from assay.pipeline.capacity import find_capacity
    from assay.report.capacity import capacity_document, print_capacity, step_text

    def tell(step: Step) -> None:
        if not session.is_json:
            session.say(step_text(step))

    found = find_capacity(
        options, asked, store, session.settings, tell, partial(looking_on, session), tags, arrivals
    )
    if session.is_json:
        session.emit({"run": found.run_id, **capacity_document(found.capacity)})
    else:
        print_capacity(capacity_document(found.capacity), session.console())
    session.next(f"assay report {found.run_id} --format html", f"assay show {found.run_id}")
    if found.is_interrupted:
        return interrupted_exit_code()
    return 0 if found.capacity.sustained else 1
