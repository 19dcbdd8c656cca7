"""Labels answers of an agent in a run."""

from __future__ import annotations

from datetime import UTC, datetime

from assay.errors import LookupFailed, format_unknown_name
from assay.model.label import Label, LabelVerdict
from assay.store.store import Store


def label_case(
    store: Store,
    ref: str,
    case: str,
    agent: str | None,
    benchmark: str | None,
    verdict: LabelVerdict,
    note: str,
    author: str,
) -> list[Label]:
    """Label all answers of an agent to a case in a run; LookupFailed where it is not clear which are meant."""
    run = store.run(ref)
    trials = [stored for stored in run.trials if case in stored.trial.cases]
    if not trials:
        cases = {known for stored in run.trials for known in stored.trial.cases}
        raise LookupFailed(format_unknown_name(case, f"cases of run '{run.id}'", cases))
    agents = {stored.trial.agent.name for stored in trials}
    if agent is not None and agent not in agents:
        raise LookupFailed(format_unknown_name(agent, f"agents with the case '{case}'", agents))
    chosen = [
        stored
        for stored in trials
        if agent in (None, stored.trial.agent.name) and benchmark in (None, stored.trial.benchmark)
    ]
    if len(chosen) != 1:
        names = ", ".join(stored.trial.name for stored in chosen or trials)
        raise LookupFailed(f"'{case}' is in several trials ({names}). Choose one: --agent A --benchmark B")
    return store.label(chosen[0].id, case, None, author, verdict, note, datetime.now(UTC))
