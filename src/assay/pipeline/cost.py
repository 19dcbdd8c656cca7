"""Reads costs and scores of configurations from the store, and analyses them suite by suite.

Nothing here looks at executions: the figures of each case and the tokens of each trial are stored with its ratings, so a store of a
million executions is answered as quickly as a small one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.errors import LookupFailed, PlanError, format_unknown_name
from assay.model import AgentUse, Ratings
from assay.model.cost import CostAnalysis
from assay.store.standings import Filter, RankedTrial
from assay.store.store import Store

if TYPE_CHECKING:
    from assay.analysis.cost.analyse import Workload
    from assay.analysis.cost.estimates import CostSubject


def analyse_stored_costs(
    store: Store, agents: Sequence[str], suite: str | None, workload: Workload
) -> list[CostAnalysis]:
    """An analysis for each suite with results, the one that ran last first; simulated agents apart from measured ones.

    `agents` and `suite` narrow it down; a name that no result has is an error.
    """
    from assay.analysis.cost.analyse import analyse_costs

    entries = _select_entries(store, agents, suite)
    ratings = _read_all_ratings(store, entries)
    uses = store.agent_uses([entry.trial_id for entry in entries])
    groups: dict[tuple[str, bool], list[RankedTrial]] = {}
    for entry in entries:
        groups.setdefault((entry.suite, entry.simulated), []).append(entry)
    categories = store.categories()
    found = []
    for (name, is_simulated), group in sorted(
        groups.items(), key=lambda item: (list(categories).index(item[0][0]), item[0][1])
    ):
        subjects, left_out = _build_subjects(group, ratings, uses)
        if subjects:
            analysis = analyse_costs(name, categories[name], is_simulated, subjects, workload)
            found.append(replace(analysis, doubts=(*analysis.doubts, *left_out)))
    if not found:
        raise PlanError(
            "There is no complete result to analyse: every trial is incomplete or of an older definition. See why: assay runs list"
        )
    return found


def _select_entries(store: Store, agents: Sequence[str], suite: str | None) -> list[RankedTrial]:
    """The trials that count; refuses names that match nothing."""
    categories = store.categories()
    if not categories:
        raise PlanError(
            "There are no results of suites yet. Run a suite first: assay run SUITE --agent A --agent B"
        )
    if suite is not None and suite not in categories:
        raise LookupFailed(format_unknown_name(suite, "suites with results", categories))
    entries = store.entries(Filter(suite))
    known = {entry.agent for entry in entries}
    for name in agents:
        if name not in known:
            of_suite = f" of suite '{suite}'" if suite else ""
            raise LookupFailed(format_unknown_name(name, f"agents with results{of_suite}", known))
    return [entry for entry in entries if not agents or entry.agent in agents]


def _read_all_ratings(store: Store, entries: Sequence[RankedTrial]) -> Mapping[int, Ratings]:
    """Ratings as stored; those that an older version made without the figures of cases are made again, once."""
    from assay.pipeline.ratings import read_ratings

    return read_ratings(store, entries, with_usage=True)


def _build_subjects(
    entries: Sequence[RankedTrial], ratings: Mapping[int, Ratings], uses: Mapping[int, AgentUse]
) -> tuple[list[CostSubject], list[str]]:
    """A subject for each configuration, and what is left out, with the reason."""
    left_out = []
    by_name: dict[str, list[RankedTrial]] = {}
    for entry in entries:
        rated = ratings.get(entry.trial_id)
        if rated is None or rated.is_incomplete:
            left_out.append(f"{entry.contender} on {entry.benchmark} is left out: its trial is incomplete")
        elif not entry.is_current:
            left_out.append(
                f"{entry.contender} on {entry.benchmark} is left out: the benchmark has changed since"
            )
        else:
            by_name.setdefault(entry.contender, []).append(entry)
    return [_build_subject(name, group, ratings, uses) for name, group in by_name.items()], left_out


def _build_subject(
    name: str, entries: Sequence[RankedTrial], ratings: Mapping[int, Ratings], uses: Mapping[int, AgentUse]
) -> CostSubject:
    from assay.analysis.cost.estimates import CostSubject

    newest = max(entries, key=lambda entry: entry.ended)
    subject = CostSubject(
        name,
        newest.agent,
        newest.agent_version,
        {(entry.benchmark, entry.benchmark_hash): ratings[entry.trial_id] for entry in entries},
        runs=tuple(dict.fromkeys(entry.run_id for entry in entries)),
        doubts=tuple(
            f"only {entry.cases} of {entry.all_cases} cases of {entry.benchmark}"
            for entry in entries
            if not entry.is_whole
        ),
    )
    use = uses.get(newest.trial_id)
    return subject if use is None else _with_prices(subject, use)


def _with_prices(subject: CostSubject, use: AgentUse) -> CostSubject:
    """The subject with the prices that explain its stored costs: its own, or those of the public list."""
    from assay.analysis.cost.estimates import estimate_mean
    from assay.analysis.cost.prices import matches

    per_task = estimate_mean(subject.figures["usd"], "").value
    if per_task is None:
        return subject
    if not per_task:
        return replace(subject, price_source="free")
    if use.price is not None:
        return replace(subject, prices=dict(use.price), price_source="price")
    model = use.options.get("model")
    if isinstance(model, str) and subject.usage("input_tokens") is not None:
        from assay.plugin.prices import list_prices

        for provider in (None, use.type):
            listed = list_prices(model, provider)
            if listed is not None and matches(listed, subject, per_task):
                return replace(subject, prices=listed, price_source="list")
    return replace(subject, price_source="reported")
