"""Manages the references that ratings are relative to: set by the first completed run, shown, and changed on request.

References belong to a `RatingScope`: a definition of a benchmark, separately for measured and simulated agents. The first
completed run with all cases sets them for good; a run of only some cases sets them until then. Whenever a reference
changes, all trials of its scope are rated again, so that stored ratings are always comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from assay.errors import LookupFailed, PlanError, format_unknown_name
from assay.model import DIMENSIONS, Ratings, Run, RunState, Suite
from assay.model.rating import (
    QUANTITIES,
    ChangedRating,
    ChangedReference,
    RatingScope,
    Reference,
    ReferenceChange,
    ReferenceOrigin,
    ShownReference,
)
from assay.pipeline.ratings import (
    Watch,
    benchmark_of,
    ignore_progress,
    rate_by_latest_rubric,
    read_rated_table,
)
from assay.store.references import CompletedTrial
from assay.store.store import Store


def establish_references(store: Store, run_id: str, ended: datetime) -> None:
    """Store the references that a run which is being completed is the first to set, and rate earlier trials by them.

    A run of only some of a benchmark's cases is a reference until a run of all of them is completed.
    """
    run = store.run(run_id)
    suite = store.suite_of(run_id)
    assert suite is not None
    by_id = {stored.id: stored for stored in run.trials}
    for scope, trial_ids in store.rating_scopes(run_id).items():
        ending = [
            CompletedTrial(
                trial_id,
                run_id,
                ended,
                stored.stopped is None and len(stored.trial.cases) >= len(benchmark_of(stored, suite).cases),
            )
            for trial_id in trial_ids
            if (stored := by_id[trial_id])
        ]
        _establish(store, scope, ending, ignore_progress)


def rate_after_upgrade(store: Store, watch: Watch = ignore_progress) -> int:
    """Store references of definitions that have none, and rate every trial that an older version rated."""
    scopes = store.rating_scopes()
    rated = 0

    def count() -> None:
        nonlocal rated
        rated += 1
        watch()

    known = {reference.scope for suite in {s.suite for s in scopes} for reference in store.references(suite)}
    for scope in scopes:
        if scope not in known:
            _establish(store, scope, (), count)
    outdated = set(store.read_outdated_ratings())
    for scope in scopes:
        rate_by_latest_rubric(
            store, [trial for trial in store.read_rated_trials(scope) if trial in outdated], scope, count
        )
    if rated:
        store.refresh()
    return rated


def _establish(store: Store, scope: RatingScope, ending: Sequence[CompletedTrial], watch: Watch) -> None:
    """Store references that are still missing or partial, by the earliest runs that can set them; then rate again."""
    known = {
        reference.quantity: reference
        for reference in store.references(scope.suite)
        if reference.scope == scope
    }
    # If there are references, earlier runs have already been looked at.
    candidates = list(ending) if known else [*store.read_completed_trials(scope), *ending]
    # Runs of all cases come before runs of some, and within both the earliest: the sort is stable. Each quantity takes its
    # reference from the first run that has it, as a run without prices has no cost to refer to.
    candidates.sort(key=lambda trial: not trial.is_whole)
    found: dict[str, Reference] = {}
    for (run_id, is_whole), group in groupby(candidates, lambda trial: (trial.run_id, trial.is_whole)):
        if all(_is_settled(known.get(name) or found.get(name)) for name in QUANTITIES):
            break
        trials = list(group)
        origin = ReferenceOrigin.FIRST if is_whole else ReferenceOrigin.PARTIAL
        values = _quantities(store, run_id, [trial.trial_id for trial in trials])
        for name, value in values.items():
            if name not in found and (name not in known or (is_whole and not _is_settled(known[name]))):
                found[name] = Reference(scope, name, value, run_id, trials[0].ended, origin)
    # Every trial of the scope is rated again, and not only those without a rating: what they were relative to has changed.
    if found:
        store.keep_references(found.values())
        rate_by_latest_rubric(store, store.read_rated_trials(scope), scope, watch)


def _is_settled(reference: Reference | None) -> bool:
    return reference is not None and reference.origin is not ReferenceOrigin.PARTIAL


def _quantities(store: Store, run_id: str, trial_ids: Sequence[int]) -> dict[str, float]:
    """The median over a run's agents of each quantity, which is what becomes its reference."""
    from assay.analysis.ranking.reference import typical_quantities

    suite = store.suite_of(run_id)
    assert suite is not None
    by_id = {stored.id: stored for stored in store.run(run_id).trials}
    tables = [read_rated_table(store, by_id[trial_id]) for trial_id in trial_ids]
    return typical_quantities(tables, benchmark_of(by_id[trial_ids[0]], suite).rubric.pass_mark)


# Shown


def find_definition(store: Store, name: str) -> Suite:
    """The definition of the suite in its latest run."""
    suite = store.latest_suite(name)
    if suite is None:
        raise LookupFailed(format_unknown_name(name, "suites with results", store.categories()))
    return suite


def list_references(store: Store, suite: Suite) -> list[ShownReference]:
    """The references of all benchmarks of the current suite; for simulated agents only if there are such results."""
    from assay.analysis.ranking.reference import references_of

    stored = store.references(suite.name)
    found: list[ShownReference] = []
    for benchmark in suite.benchmarks:
        for simulated in (False, True):
            scope = RatingScope(suite.name, benchmark.id, benchmark.hash, simulated)
            kept = {reference.quantity: reference for reference in stored if reference.scope == scope}
            if simulated and not kept:
                continue
            values = references_of(benchmark.rubric, benchmark.limits, kept)
            by_dimension = sorted(QUANTITIES, key=lambda name: DIMENSIONS.index(QUANTITIES[name]))
            found += [ShownReference(scope, name, values.get(name)) for name in by_dimension]
    return found


# Changed


def set_references(store: Store, suite: Suite, ref: str, watch: Watch = ignore_progress) -> ReferenceChange:
    """Make a run the reference of every benchmark that it ran as the suite defines it, and rate all their
    trials again.

    References and ratings are read before anything is stored, so that the user is shown what the change
    did. PlanError if none of the run's executions succeeded.
    """
    run = store.run(ref)
    chosen = {
        scope: values
        for scope, trial_ids in _scopes_to_set(store, suite, run).items()
        if (values := _quantities(store, run.id, trial_ids))
    }
    if not chosen:
        raise PlanError(
            f"Run '{run.id}' cannot be a reference: none of its executions succeeded. Name another run."
        )
    # Read before anything is stored, so that the user is shown what the change did to references and ratings.
    before_by_scope = {
        (reference.scope, reference.quantity): reference.reference
        for reference in list_references(store, suite)
    }
    trials = [trial for scope in chosen for trial in store.read_rated_trials(scope)]
    ratings = store.ratings([trial_id for _, trial_id in trials])
    origin, ended = ReferenceOrigin.CHOSEN, run.ended or run.started
    store.keep_references(
        Reference(scope, name, value, run.id, ended, origin)
        for scope, values in chosen.items()
        for name, value in values.items()
    )
    for scope in chosen:
        rate_by_latest_rubric(store, store.read_rated_trials(scope), scope, watch)
    store.refresh()
    after = [reference for reference in list_references(store, suite) if reference.scope in chosen]
    put = {scope.benchmark for scope in chosen}
    return ReferenceChange(
        run.id,
        tuple(
            ChangedReference(before, reference)
            for reference in after
            if (before := before_by_scope.get((reference.scope, reference.quantity))) != reference.reference
        ),
        tuple(_find_changed_ratings(store, trials, ratings)),
        len(trials),
        tuple(benchmark.id for benchmark in suite.benchmarks if benchmark.id not in put),
    )


def _scopes_to_set(store: Store, suite: Suite, run: Run) -> dict[RatingScope, list[int]]:
    """The scopes that a run can be the reference of, with its trials; refuses runs that have none."""
    if run.state is RunState.RUNNING:
        raise PlanError(f"Run '{run.id}' is still running. Wait for it, or name another run.")
    if run.suite is None or run.suite.name != suite.name:
        raise PlanError(f"Run '{run.id}' did not run suite '{suite.name}', so it cannot be its reference.")
    hashes = {benchmark.id: benchmark.hash for benchmark in suite.benchmarks}
    found = {s: ids for s, ids in store.rating_scopes(run.id).items() if hashes.get(s.benchmark) == s.hash}
    if not found:
        raise PlanError(
            f"Run '{run.id}' used a different definition of suite '{suite.name}': no benchmark is the same."
        )
    return found


def _find_changed_ratings(
    store: Store, trials: Sequence[tuple[str, int]], before: Mapping[int, Ratings]
) -> Iterator[ChangedRating]:
    """Trials whose ratings are other than before. They are read back from the store, so what is shown is what is stored."""
    after = store.ratings([trial_id for _, trial_id in trials])
    for run_id, group in groupby(sorted(trials), lambda trial: trial[0]):
        by_id = {stored.id: stored.trial for stored in store.run(run_id).trials}
        for _, trial_id in group:
            was = _values(before[trial_id]) if trial_id in before else {}
            values = _values(after[trial_id])
            if was != values:
                trial = by_id[trial_id]
                yield ChangedRating(run_id, trial.agent.name, trial.benchmark, was, values)


def _values(ratings: Ratings) -> dict[str, float | None]:
    return {**{name: ratings.dimensions[name].value for name in DIMENSIONS}, "overall": ratings.overall.value}
