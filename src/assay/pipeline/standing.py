"""Leaderboards, and the health of a suite."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace

from assay.analysis.health import SuiteHealth, suite_health
from assay.analysis.leaderboard import leaderboard
from assay.errors import PlanError
from assay.model import (
    Budget,
    CaseTable,
    Contender,
    Leaderboard,
)
from assay.pipeline.rating import ratings_of
from assay.pipeline.running import prepare, run_plan
from assay.plan.target import Request
from assay.spec.settings import Settings
from assay.store.listing import TrialSummary
from assay.store.store import Store


def check_suite(target: str, settings: Settings, store: Store) -> SuiteHealth:
    """Put `oracle` and `nop` through a suite, and look at what real agents made of it."""
    with (
        tempfile.TemporaryDirectory(prefix="assay-") as folder,
        Store.open(f"sqlite:///{folder}/check.db") as aside,
    ):
        changes = {"iterations": {"measured": 1, "warmup": 0}}
        request = Request(target, changes, agents=("oracle", "nop"))
        plan = replace(prepare(request, settings, store), output_dir=None, budget=Budget())
        assert plan.suite is not None
        done = run_plan(plan, aside)
        tables = {(t.trial.agent.name, t.trial.benchmark): aside.case_table(t.id) for t in done.trials}
    oracle, nop = ({b: table for (a, b), table in tables.items() if a == name} for name in ("oracle", "nop"))
    history: dict[str, dict[str, CaseTable]] = {}
    for latest in store.latest_trials(suite=plan.suite.name):
        history.setdefault(latest.agent, {})[latest.benchmark] = store.case_table(latest.trial_id)
    return suite_health(plan.suite, oracle, nop, list(history.values()))


def leaderboards(
    store: Store, *, suite: str | None = None, category: str | None = None, metric: str = "overall"
) -> list[Leaderboard]:
    """A board for each suite asked for; without a name, for that of the latest trials."""
    latest = store.latest_trials(suite=suite)
    latest = [one for one in latest if one.suite and category in (None, one.category)]
    if not latest:
        asked = f" of suite '{suite}'" if suite else ""
        raise PlanError(
            f"There are no results{asked} to rank. Make some: assay run SUITE --agent A --agent B"
        )
    names = list(dict.fromkeys(one.suite for one in latest))
    return [_board(store, name, [one for one in latest if one.suite == name], metric) for name in names]


def _board(store: Store, suite: str, trials: Sequence[TrialSummary], metric: str) -> Leaderboard:
    contenders: dict[str, Contender] = {}
    asked: dict[str, set[object]] = {}
    for one in trials:
        definition = store.suite_of(one.run_id)
        stored = next(t for t in store.run(one.run_id).trials if t.id == one.trial_id)
        if definition is None:
            continue
        asked.setdefault(one.benchmark, set()).add((one.benchmark_hash, stored.trial.cases))
        before = contenders.get(one.agent)
        ratings = {**(before.ratings if before else {}), one.benchmark: ratings_of(store, stored, definition)}
        is_simulated = one.simulated or (before is not None and before.is_simulated)
        contenders[one.agent] = Contender(one.agent, one.agent_version, ratings, is_simulated, one.ended)
    board = leaderboard(suite, list(contenders.values()), list(asked), metric)
    if differing := [benchmark for benchmark, questions in asked.items() if len(questions) > 1]:
        doubt = f"Not all agents were asked the same cases of {', '.join(differing)}. Run them together."
        board = replace(board, doubts=(*board.doubts, doubt))
    return board
