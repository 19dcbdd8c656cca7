"""What is stored in one workspace does not exist in another. The methods are those of `Store`, so that a new one cannot be forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.store.examples import ENVIRONMENT, GPT, NOON, NOP, execution, small_suite, suite_plan
from tests.store.test_store_references import SCOPE, reference
from tests.store.test_store_regressions import FOUND
from tests.store.test_store_standings import play, rated

from assay.errors import LookupFailed, RunNotFound, StoreError
from assay.model import AgentUse, Artifact, Batch, Budget, Environment, Question, RunState
from assay.model.access import AuditEntry, Scope
from assay.model.alert import Alert, AlertKind
from assay.model.board import BoardKey, StoredBoard
from assay.model.label import LabelVerdict
from assay.model.queue import QueuedRun
from assay.model.regression import RegressionState
from assay.model.schedule import ScheduledRun, SuiteSchedule
from assay.model.search import SearchResult
from assay.model.success import FoundOpportunity, GateRecord
from assay.store.labels import LabelFilter
from assay.store.processes import current_owner
from assay.store.regressions import RegressionFilter
from assay.store.results import ExecutionFilter, ResultFilter
from assay.store.standings import Filter
from assay.store.store import Store

SUITE = replace(
    small_suite("small", "sums", "words"), baseline_scores={"nop": {"sums": 0.5}}, schedule="@daily"
)
ENTRY = AuditEntry(NOON, "", "127.0.0.1", "POST", "/benchmarks/run", 200)
BOARD = StoredBoard(BoardKey("small", "", "overall"), 1, NOON, NOON + timedelta(days=1), "{}")
GATE = GateRecord("run-1", "main", NOON, False)
OPPORTUNITY = FoundOpportunity("nop", "sums", "cache", "line 1", 0.1, "run-1", NOON)
ALERT = Alert("k", AlertKind.STALE_AGENT, "major", "nop is stale", {}, NOON)
SCHEDULE = SuiteSchedule("small", "0 3 * * *", "UTC", NOON - timedelta(days=1))
SCHEDULED = (
    ScheduledRun("small", SCHEDULE.due, "nop", "queued-1"),
    ScheduledRun("small", SCHEDULE.due, "gpt", "queued-0"),
)
_files = count()


@dataclass(frozen=True)
class World:
    """Two workspaces of one database: `full` has one of everything, `other` nothing."""

    full: Store
    other: Store
    folder: Path
    run_id: str
    trials: tuple[int, ...]
    key: str

    @property
    def trial(self) -> int:
        return self.trials[0]


@pytest.fixture
def world(store: Store, url: str, tmp_path: Path) -> World:
    return fill(store, url, tmp_path)


def fill(store: Store, url: str, folder: Path) -> World:
    store.create_workspace("full")
    store.create_workspace("other")
    full = store.in_workspace("full")
    play(full, "old", {"nop": rated(overall=0.5)}, suite=SUITE, started=NOON - timedelta(days=1))
    full.register_agents([NOP, GPT])
    full.register_suite(SUITE)
    plan = replace(suite_plan(SUITE, NOP), tags=("nightly",))
    run = full.begin(plan, ENVIRONMENT, "run-1", NOON, "me")
    applied = {"temperature": 0}
    more = {"score": 1.0, "seconds": 0.5, "judge_calls": 2.0, "usd": 0.1}
    made = [
        execution(number, trial=stored.trial.index, case="c1", measurements=more, applied=applied)
        for stored in run.trials
        for number in range(2)
    ]
    failed = execution(5, case="c2", status=type(made[0].status).FAILED, error="no")
    simulated = execution(6, case="c2", measurements=more, detail={"simulated": True})
    artifact = Artifact(0, "capacity.json", "text/plain", b"{}")
    full.add("run-1", Batch((*made, failed, simulated), (artifact,)))
    for stored in run.trials:
        full.rate(stored.id, replace(rated(overall=0.8, accuracy=0.9), baseline_overall=0.4))
    full.finish("run-1", RunState.COMPLETED, NOON)
    full.set_baseline("main", "run-1")
    simulated_scope = replace(SCOPE, simulated=True)
    full.keep_references([reference(1.0), reference(1.0, scope=simulated_scope)])
    full.keep_regressions([FOUND])
    full.keep_board(BOARD)
    full.mark_regression("gpt", FOUND.id, RegressionState.CONFIRMED)
    full.keep_gate_result(GATE)
    full.keep_opportunities([("nop", "sums")], [OPPORTUNITY], NOON)
    full.raise_alerts([ALERT])
    full.plan_schedule(SCHEDULE, None)
    full.take_time(SCHEDULE, replace(SCHEDULE, due=NOON), SCHEDULED, [])
    full.audit(ENTRY)
    full.enqueue(QueuedRun("queued-0", "gpt", "small", {}, NOON))
    full.cancel_queued("queued-0")
    full.enqueue(QueuedRun("queued-1", "nop", "small", {}, NOON))
    full.label(run.trials[0].id, "c1", None, "ann", LabelVerdict.PASS, "", NOON)
    key, _ = full.create_key("ci", Scope.ADMIN)
    trials = tuple(stored.id for stored in run.trials)
    _rate_as_an_old_version_did(url, trials[-1])
    return World(full, store.in_workspace("other"), folder, "run-1", trials, key.prefix)


def _rate_as_an_old_version_did(url: str, trial_id: int) -> None:
    with _connect(url) as connection:
        connection.execute(
            sa.text("UPDATE ratings SET summary = NULL WHERE trial_id = :id"), {"id": trial_id}
        )


@contextmanager
def _connect(url: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        yield connection


READS: dict[str, Callable[[Store, World], Any]] = {
    "run": lambda store, world: [store.run(ref) for ref in (world.run_id, "run", "last", "@main")],
    "runs": lambda store, world: store.runs(),
    "count_runs": lambda store, world: store.count_runs(),
    "owner": lambda store, world: store.owner(world.run_id),
    "is_abandoned": lambda store, world: store.is_abandoned(world.run_id),
    "require_idle": lambda store, world: store.require_idle(world.run_id),
    "progress": lambda store, world: store.progress(world.run_id),
    "count_executions": lambda store, world: store.count_executions(world.run_id),
    "read_done": lambda store, world: store.read_done(world.run_id),
    "suite_of": lambda store, world: store.suite_of(world.run_id),
    "counts": lambda store, world: store.counts(world.trial),
    "series": lambda store, world: store.series(world.trial),
    "failures": lambda store, world: store.failures(world.trial),
    "executions": lambda store, world: list(store.executions(world.trial)),
    "executions_to_rescore": lambda store, world: list(store.executions_to_rescore(world.trial)),
    "execution_page": lambda store, world: store.execution_page(ExecutionFilter(world.trial)),
    "read_applied_settings": lambda store, world: store.read_applied_settings(world.trial),
    "artifacts": lambda store, world: store.artifacts(world.trial),
    "placements": lambda store, world: store.placements(world.trial),
    "case_table": lambda store, world: store.case_table(world.trial),
    "deviation": lambda store, world: store.deviation(world.trial),
    "is_simulated": lambda store, world: store.is_simulated(world.trial),
    "judging": lambda store, world: store.judging(world.trial),
    "latest_trials": lambda store, world: store.latest_trials(),
    "results": lambda store, world: [
        *store.results(ResultFilter()),
        *store.results(ResultFilter(run=world.run_id, trial=world.trial, is_latest=True)),
    ],
    "entries": lambda store, world: store.entries(Filter()),
    "ratings": lambda store, world: store.ratings(world.trials),
    "agent_uses": lambda store, world: store.agent_uses(world.trials),
    "categories": lambda store, world: store.categories(),
    "benchmarks": lambda store, world: store.benchmarks("small"),
    "rating_scopes": lambda store, world: {**store.rating_scopes(), **store.rating_scopes(world.run_id)},
    "read_completed_trials": lambda store, world: store.read_completed_trials(_scope(world)),
    "read_rated_trials": lambda store, world: store.read_rated_trials(_scope(world)),
    "read_yardsticks": lambda store, world: store.read_yardsticks(_scope(world)),
    "read_outdated_ratings": lambda store, world: store.read_outdated_ratings(),
    "references": lambda store, world: store.references("small"),
    "trial_references": lambda store, world: store.trial_references(world.trial),
    "agents": lambda store, world: store.agents(),
    "suites": lambda store, world: store.suites(),
    "suite": lambda store, world: store.suite("small"),
    "latest_suite": lambda store, world: store.latest_suite("small"),
    "baselines": lambda store, world: store.baselines(),
    "keys": lambda store, world: store.keys(),
    "audit_log": lambda store, world: store.audit_log(),
    "read_queued_run": lambda store, world: store.read_queued_run("queued-1"),
    "queue": lambda store, world: store.queue(),
    "agent_trials": lambda store, world: store.agent_trials("nop"),
    "past_figures": lambda store, world: store.past_figures(world.full.run(world.run_id).trials[0].trial),
    "columns": lambda store, world: list(store.columns(world.trials, ["seconds"])),
    "agents_with_trials": lambda store, world: store.agents_with_trials(),
    "versions": lambda store, world: store.versions("nop"),
    "suites_of": lambda store, world: store.suites_of("nop"),
    "count_agents": lambda store, world: store.count_agents(),
    "regressions": lambda store, world: store.regressions("gpt"),
    "find_profiled_runs": lambda store, world: store.find_profiled_runs("nightly"),
    "agent_overviews": lambda store, world: store.agent_overviews(),
    "suite_overviews": lambda store, world: store.suite_overviews(),
    "newest_trials": lambda store, world: store.newest_trials(),
    "count_statuses": lambda store, world: store.count_statuses(world.run_id),
    "fingerprint": lambda store, world: store.fingerprint(world.run_id),
    "run_of_trial": lambda store, world: store.run_of_trial(world.trial),
    "answers": lambda store, world: store.answers(world.trial, ["c1", "c2"]),
    "read_judged_executions": lambda store, world: store.read_judged_executions(world.trial, 5),
    "read_labelled_executions": lambda store, world: store.read_labelled_executions(world.trials),
    "schedules": lambda store, world: store.schedules(),
    "read_registered_schedules": lambda store, world: store.read_registered_schedules(),
    "latest_scheduled_runs": lambda store, world: store.latest_scheduled_runs(),
    "open_scheduled_runs": lambda store, world: store.open_scheduled_runs(),
    "find_ended_scheduled_runs": lambda store, world: store.find_ended_scheduled_runs(),
    "alerts": lambda store, world: store.alerts(),
    "labels": lambda store, world: store.labels(LabelFilter()),
    "read_labelled_scores": lambda store, world: store.read_labelled_scores(LabelFilter()),
    "coverage": lambda store, world: store.coverage(),
    "agents_on": lambda store, world: store.agents_on(SUITE.name),
    "search": lambda store, world: _found_names(store.search("n", 5)),
    "latest_by_suite": lambda store, world: store.latest_by_suite(),
    "latest_results": lambda store, world: store.latest_results(),
    "agent_activity": lambda store, world: store.agent_activity([(NOON - timedelta(days=1), NOON)]),
    "read_found_regressions": lambda store, world: store.read_found_regressions(),
    "gate_results": lambda store, world: store.gate_results(),
    "opportunities": lambda store, world: store.opportunities(),
    "regression_page": lambda store, world: store.regression_page(RegressionFilter()),
    "regression_changes": lambda store, world: store.regression_changes([FOUND.id]),
    "changes": lambda store, world: store.changes(),
    "changes_and_baselines": lambda store, world: any(store.changes_and_baselines()),
    "count_rated": lambda store, world: store.count_rated(10),
    "boards": lambda store, world: store.boards("overall"),
    "open_regressions": lambda store, world: store.open_regressions(),
    "find_runs_of": lambda store, world: store.find_runs_of(
        world.full.run(world.run_id).trials[0].trial.experiment
    ),
    "info": lambda store, world: _stored_rows(store),
    "export": lambda store, world: _exported(store, world),
}
"""What reads, each called with everything that there is in the full workspace."""

WRITES: dict[str, Callable[[Store, World], Any]] = {
    "begin": lambda store, world: store.begin(suite_plan(SUITE, NOP), ENVIRONMENT, world.run_id, NOON, "you"),
    "add": lambda store, world: store.add(world.run_id, Batch((execution(9, case="c2"),))),
    "set_environment": lambda store, world: store.set_environment(world.run_id, Environment({}, {}, ())),
    "rule": lambda store, world: store.rule(world.run_id, Question(("a", "b")), {}),
    "reopen": lambda store, world: store.reopen(world.run_id, current_owner(), Budget(usd=1)),
    "finish": lambda store, world: store.finish(world.run_id, RunState.FAILED, NOON),
    "rate": lambda store, world: store.rate(world.trial, rated(overall=0.1)),
    "rescore": lambda store, world: store.rescore(world.trial, [(0, {"score": 0.0}, None)]),
    "delete": lambda store, world: store.delete(world.run_id, force=True),
    "tag": lambda store, world: store.tag(world.run_id, ["mine"], ["nightly"]),
    "set_baseline": lambda store, world: store.set_baseline("main", world.run_id),
    "delete_baseline": lambda store, world: store.delete_baseline("main"),
    "revoke_key": lambda store, world: store.revoke_key(world.key),
    "cancel_queued": lambda store, world: store.cancel_queued("queued-1"),
    "requeue": lambda store, world: store.requeue("queued-1"),
    "label": lambda store, world: store.label(world.trial, "c1", None, "bob", LabelVerdict.FAIL, "", NOON),
    "mark_regression": lambda store, world: store.mark_regression("gpt", FOUND.id, RegressionState.RESOLVED),
}
"""What changes something that is there: refused in another workspace."""

ADDITIONS: dict[str, Callable[[Store, World], Any]] = {
    "register_agents": lambda store, world: store.register_agents([AgentUse("nop", "http"), GPT]),
    "register_suite": lambda store, world: store.register_suite(replace(SUITE, version="2", hash="s2")),
    "keep_references": lambda store, world: store.keep_references([reference(9.0, "chosen")]),
    "keep_regressions": lambda store, world: store.keep_regressions([replace(FOUND, note="another")]),
    "keep_gate_result": lambda store, world: store.keep_gate_result(GATE),
    "keep_opportunities": lambda store, world: store.keep_opportunities([("nop", "sums")], [], NOON),
    "raise_alerts": lambda store, world: store.raise_alerts([ALERT]),
    "claim_alert": lambda store, world: store.claim_alert(NOON, NOON + timedelta(hours=1)),
    "plan_schedule": lambda store, world: store.plan_schedule(replace(SCHEDULE, expression="@daily"), None),
    "forget_schedule": lambda store, world: store.forget_schedule(replace(SCHEDULE, due=NOON)),
    "take_time": lambda store, world: store.take_time(SCHEDULE, SCHEDULE, (), ()),
    "settle_scheduled_run": lambda store, world: store.settle_scheduled_run(
        replace(SCHEDULED[0], outcome="failed"), None
    ),
    "keep_board": lambda store, world: store.keep_board(replace(BOARD, document="[]")),
    "create_key": lambda store, world: store.create_key("ci", Scope.READ),
    "audit": lambda store, world: store.audit(ENTRY),
    "enqueue": lambda store, world: store.enqueue(QueuedRun("queued-2", "nop", "small", {}, NOON)),
    "prune": lambda store, world: store.prune(older_than_days=0, keep=0),
}
"""What adds something, or cleans up: it may be done in each workspace, and changes nothing in the others."""

EXCEPTIONS = {
    "open": "chooses the workspace",
    "in_workspace": "chooses another one",
    "workspace": "the name of the chosen one",
    "workspaces": "is about all of them; only the command line asks",
    "create_workspace": "is about all of them; only the command line asks",
    "facts": "is about the whole database, and names no result",
    "settle_alert": "takes the alert that was claimed",
    "check": "asks whether the database can be reached",
    "close": "is about connections",
    "is_shared": "is about the file",
    "insist": "calls what it is given",
    "stop_retrying": "is about runs that this process writes",
    "settle": "is about runs that this process writes",
    "renew": "is about leases that this process holds",
    "release": "is about leases that this process holds",
    "refresh": "computes a view again, which keeps workspaces apart",
    "find_key": "finds out which workspace a request may see",
    "note_use": "takes the key that was found",
    "create_session": "takes the key that was found",
    "find_session": "finds out which workspace a request may see",
    "end_session": "takes the secret of a session",
    "has_keys": "decides whether requests need a key at all",
    "whole_queue": "is for the server, which carries out the runs of all workspaces",
    "claim_queued": "is for the server, which carries out the runs of all workspaces",
    "renew_queued": "is for the server, which carries out the runs of all workspaces",
    "give_back_queued": "is for the server, which carries out the runs of all workspaces",
    "settle_queued": "is for the server, which carries out the runs of all workspaces",
}


def _found_names(found: SearchResult) -> list[object]:
    return [*found.agents, *found.suites, *found.runs, *found.cases]


def _scope(world: World) -> Any:
    return next(scope for scope, ids in world.full.rating_scopes().items() if world.trials[-1] in ids)


def _stored_rows(store: Store) -> dict[str, int]:
    rows = store.info()["rows"]
    assert isinstance(rows, dict)
    assert rows.pop("workspaces") == 1
    return {table: number for table, number in rows.items() if number}


def _exported(store: Store, world: World) -> list[object]:
    """What a table and a database with everything hold."""
    number = next(_files)
    table = store.export(world.folder / f"{number}.jsonl").read_text().splitlines()
    copy = store.export(world.folder / f"{number}.db")
    with Store.open(f"sqlite:///{copy}", workspace=store.workspace) as exported:
        return [*table, *_stored_rows(exported).items(), *exported.runs(), *exported.agents()]


def _ask(call: Callable[[Store, World], Any], store: Store, world: World) -> Any:
    """What comes of it; the error where it is refused."""
    try:
        return call(store, world)
    except (LookupFailed, RunNotFound, StoreError) as error:
        return error


def _is_nothing(found: Any) -> bool:
    return isinstance(found, Exception) or not found


def _read_everything(world: World) -> dict[str, str]:
    return {name: repr(_ask(call, world.full, world)) for name, call in READS.items()}


def test_every_method_of_the_store_is_known_here() -> None:
    public = {name for name in vars(Store) if not name.startswith("_")}
    listed = [*READS, *WRITES, *ADDITIONS, *EXCEPTIONS]
    assert sorted(listed) == sorted(public)


def test_nothing_of_a_workspace_can_be_read_in_another(world: World) -> None:
    seen = {
        name: (_ask(call, world.full, world), _ask(call, world.other, world)) for name, call in READS.items()
    }
    assert {name: there for name, (_, there) in seen.items() if not _is_nothing(there)} == {}
    assert {name: here for name, (here, _) in seen.items() if isinstance(here, Exception)} == {}
    # Each of them finds something where it is.
    without = {name for name, (here, _) in seen.items() if not here}
    assert without == {"is_abandoned", "placements", "require_idle"}  # no node carried anything out


def test_nothing_of_a_workspace_can_be_changed_in_another(world: World) -> None:
    before = _read_everything(world)
    came = {name: _ask(call, world.other, world) for name, call in WRITES.items()}
    assert {name: one for name, one in came.items() if not isinstance(one, Exception)} == {}
    for name, call in ADDITIONS.items():
        assert not isinstance(_ask(call, world.other, world), Exception), name
    assert _read_everything(world) == before


@pytest.mark.parametrize("name", WRITES)
def test_the_same_can_be_done_in_the_workspace_itself(tmp_path: Path, name: str) -> None:
    url = f"sqlite:///{tmp_path / 'assay.db'}"
    with Store.open(url) as store:
        world = fill(store, url, tmp_path)
        if name == "delete":
            world.full.delete_baseline("main")
        came = _ask(WRITES[name], world.full, world)
        assert isinstance(came, StoreError) if name == "begin" else not isinstance(came, Exception), came


def test_runs_of_the_same_names_do_not_meet(store: Store, tmp_path: Path) -> None:
    store.create_workspace("other")
    other = store.in_workspace("other")
    for place, run_id, overall in ((other, "run-2", 0.2), (store, "run-1", 0.9)):
        place.register_agents([NOP])
        play(place, run_id, {"nop": rated(overall=overall, accuracy=overall)}, suite=SUITE)
        place.set_baseline("main", run_id)
        place.keep_references([reference(overall)])
    copy = store.export(tmp_path / "copy.db", "run-1")
    with Store.open(f"sqlite:///{copy}") as exported:
        assert [one.value for one in exported.references("small")] == [0.9]
    trials = [place.run("last").trials[0].id for place in (store, other)]
    assert store.trial_references(trials[0])["seconds"].value == 0.9
    assert other.trial_references(trials[1])["seconds"].value == 0.2
    assert (store.run("last").id, other.run("last").id) == ("run-1", "run-2")
    assert (store.run("@main").id, other.run("run").id) == ("run-1", "run-2")
    assert [entry.run_id for entry in other.entries(Filter(suite="small"))] == ["run-2", "run-2"]
    assert [trial.run_id for trial in store.agent_trials("nop")] == ["run-1", "run-1"]
    other.delete_baseline("main")
    assert store.baselines() == {"main": "run-1"}
    assert other.prune(older_than_days=0, keep=0) == ["run-2"]
    assert (len(store.references("small")), other.references("small")) == (1, [])
    assert store.agents().keys() == other.agents().keys() == {"nop"}
    assert (store.benchmarks("small"), other.benchmarks("small")) == (["sums", "words"], [])


def test_views_say_of_which_workspace_a_row_is_and_rank_within_it(store: Store, url: str) -> None:
    now = datetime.now(UTC)
    store.create_workspace("other")
    for place, run_id, overall in ((store, "r1", 0.9), (store.in_workspace("other"), "r2", 0.2)):
        values = {"nop": rated(overall=overall, accuracy=overall)}
        play(place, run_id, values, suite=SUITE, started=now - timedelta(minutes=1))
        place.set_baseline("main", run_id)
    with _connect(url) as connection:
        for view in ("agent_comparison_matrix", "benchmark_leaderboard"):
            query = f"SELECT workspace_id, overall_rank, overall_score FROM {view} ORDER BY workspace_id"
            rows = [tuple(row) for row in connection.execute(sa.text(query))]
            assert [(name, rank) for name, rank, _ in rows] == [("default", 1), ("other", 1)], view
            assert [score for *_, score in rows] == pytest.approx([90, 20])
        query = "SELECT workspace_id, percentile_rank, deviation_from_baseline FROM benchmark_executions ORDER BY id"
        found = [tuple(row) for row in connection.execute(sa.text(query))]
    # Nobody else is in either workspace, so there is no rank among others; each is its own baseline.
    assert found == [("default", None, 0), ("default", None, 0), ("other", None, 0), ("other", None, 0)]


def test_the_store_of_a_workspace_shares_the_connections_of_the_store_that_it_comes_from() -> None:
    with Store.open("sqlite://") as store:  # another connection would see another database
        store.create_workspace("team")
        with store.in_workspace("team") as team:
            play(team, "r1", {"nop": rated()})
            assert team.in_workspace("team") is team
        assert sum(store.in_workspace("team").count_runs().values()) == 1
        assert store.count_runs() == {}
        assert store.workspaces() == ["default", "team"]


def test_an_unknown_workspace_is_refused_with_the_nearest_name(url: str) -> None:
    with Store.open(url) as store:
        store.create_workspace("team-a")
        with pytest.raises(LookupFailed, match="'team-a'"):
            store.in_workspace("team-b")
    with pytest.raises(LookupFailed, match="'team-a'"):
        Store.open(url, workspace="teama")
    with Store.open(url, workspace="team-a") as opened:
        assert opened.workspace == "team-a"


@pytest.mark.parametrize("name", ["", "a b", "-x", "../x", "x" * 65, "_x", "a\n"])
def test_a_workspace_has_a_plain_name(name: str) -> None:
    with Store.open("sqlite://") as store:
        with pytest.raises(StoreError):
            store.create_workspace(name)
        with pytest.raises(StoreError):
            store.create_workspace("default")
        assert store.workspaces() == ["default"]
