"""Suites are run by their schedules: each time once, whatever servers and clocks do. Times are arguments, so they are exact."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay
from tests.past import NOON, Past
from tests.server.conftest import write_project
from tests.server.service import serving
from tests.server.waiting import wait_for
from tests.services import Postgres

from assay.model.alert import AlertKind
from assay.model.queue import QueueState
from assay.model.schedule import SuiteSchedule
from assay.pipeline.schedules import list_schedules, run_due_suites, settle_scheduled_runs
from assay.server.context import without_project_files
from assay.server.overviews import ScheduleList
from assay.spec.settings import Settings, find_settings
from assay.store.processes import current_owner
from assay.store.store import Store

MONDAY = datetime(2026, 5, 4, 3, tzinfo=UTC)
TUESDAY_BEFORE = datetime(2026, 4, 28, 12, tzinfo=UTC)
WEEK = timedelta(days=7)
MINUTE = timedelta(minutes=1)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'assay.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.empty()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


def schedule_suite(folder: Path, schedule: str = "0 3 * * mon", agents: str = "[good, bad]") -> None:
    file = folder / "suites" / "desk.yaml"
    kept = [line for line in file.read_text().splitlines() if not line.startswith(("schedule:", "agents:"))]
    added = [f"schedule: '{schedule}'", *([f"agents: {agents}"] if agents else [])]
    file.write_text("\n".join([kept[0], *added, *kept[1:]]) + "\n")


@pytest.fixture
def settings(project: Path) -> Settings:
    schedule_suite(project)
    return find_settings(project, {})


def started(store: Store, settings: Settings, now: datetime) -> list[tuple[str, str]]:
    return [(f"{one.due:%m-%d %H:%M}", one.agent) for one in run_due_suites(store, settings, now)]


def finish_queue(store: Store, state: QueueState = QueueState.CANCELLED) -> None:
    while (queued := store.claim_queued(current_owner())) is not None:
        store.settle_queued(queued.id, state, "" if state is QueueState.CANCELLED else "it broke")


def test_a_suite_is_run_with_its_agents_when_it_is_due(store: Store, settings: Settings) -> None:
    assert started(store, settings, TUESDAY_BEFORE) == []
    assert started(store, settings, MONDAY - MINUTE) == []
    assert started(store, settings, MONDAY) == [("05-04 03:00", "good"), ("05-04 03:00", "bad")]
    assert {(one.agent, one.suite, one.state.value) for one in store.queue()} == {
        ("good", "desk", "queued"),
        ("bad", "desk", "queued"),
    }
    assert started(store, settings, MONDAY + MINUTE) == []
    [status] = list_schedules(store, settings, MONDAY + MINUTE)
    assert (status.next_due, status.outcome) == (MONDAY + WEEK, "running")


def test_a_schedule_begins_when_a_server_first_sees_it(store: Store, settings: Settings) -> None:
    """Nobody expects a run for last Monday from a suite that was added on Tuesday."""
    assert started(store, settings, MONDAY + timedelta(hours=5)) == []
    assert started(store, settings, MONDAY + WEEK) != []


@pytest.mark.parametrize("weeks", [0, 1, 7])
def test_times_that_were_missed_are_made_up_for_once(store: Store, settings: Settings, weeks: int) -> None:
    run_due_suites(store, settings, TUESDAY_BEFORE)
    late = MONDAY + weeks * WEEK + timedelta(days=6, hours=23)
    latest = f"{MONDAY + weeks * WEEK:%m-%d %H:%M}"
    assert started(store, settings, late) == [(latest, "good"), (latest, "bad")]
    finish_queue(store)
    settle_scheduled_runs(store, settings, late)
    assert started(store, settings, late + MINUTE) == []
    assert started(store, settings, MONDAY + (weeks + 1) * WEEK) != []


def test_a_clock_that_is_put_back_runs_nothing_twice(store: Store, settings: Settings) -> None:
    run_due_suites(store, settings, TUESDAY_BEFORE)
    assert started(store, settings, MONDAY) != []
    finish_queue(store)
    for minutes in range(-120, 120, 7):
        assert started(store, settings, MONDAY + minutes * MINUTE) == []


@pytest.mark.parametrize(
    ("begin", "hours"),
    [
        (datetime(2026, 3, 28, 12, tzinfo=UTC), 2 * 24 - 1),
        (datetime(2026, 10, 24, 12, tzinfo=UTC), 2 * 24 + 1),
    ],
    ids=["spring", "autumn"],
)
def test_a_day_on_which_the_clock_changes_has_one_run(tmp_path: Path, begin: datetime, hours: int) -> None:
    write_project(tmp_path, 'timezone = "Europe/Berlin"')
    schedule_suite(tmp_path, "30 2 * * *", "[good]")
    settings = find_settings(tmp_path, {})
    with Store.open("sqlite:///:memory:") as store:
        days: list[str] = []
        for minutes in range(0, hours * 60, 10):
            now = begin + minutes * MINUTE
            for one in run_due_suites(store, settings, now):
                days.append(f"{one.due.astimezone(settings.zone):%d}")
            finish_queue(store)
            settle_scheduled_runs(store, settings, now)
    assert len(days) == len(set(days)) == 2


def test_a_changed_schedule_is_planned_anew(store: Store, settings: Settings, project: Path) -> None:
    run_due_suites(store, settings, TUESDAY_BEFORE)
    schedule_suite(project, "0 5 * * tue")
    assert started(store, settings, MONDAY + timedelta(hours=1)) == []
    [status] = list_schedules(store, settings, MONDAY + timedelta(hours=1))
    assert status.next_due == MONDAY + timedelta(days=1, hours=2)
    assert started(store, settings, MONDAY + timedelta(days=1, hours=2)) != []


@pytest.mark.parametrize("lines", ["", "schedule: '0 25 * * *'\n"], ids=["none", "invalid"])
def test_a_schedule_that_was_taken_away_begins_anew(
    store: Store, settings: Settings, project: Path, lines: str
) -> None:
    file = project / "suites" / "desk.yaml"
    scheduled = file.read_text()
    run_due_suites(store, settings, TUESDAY_BEFORE)
    file.write_text(lines + scheduled.replace("schedule: '0 3 * * mon'\n", ""))
    assert started(store, settings, TUESDAY_BEFORE + MINUTE) == []
    file.write_text(scheduled)
    assert started(store, settings, MONDAY + timedelta(hours=5)) == []
    assert started(store, settings, MONDAY + WEEK) != []


def test_a_suite_that_was_taken_away_begins_anew(store: Store, settings: Settings, project: Path) -> None:
    file = project / "suites" / "desk.yaml"
    scheduled = file.read_text()
    run_due_suites(store, settings, TUESDAY_BEFORE)
    file.unlink()
    elsewhere = without_project_files(settings)
    run_due_suites(store, elsewhere, TUESDAY_BEFORE + MINUTE)
    assert list(store.schedules()) == ["desk"]  # files are for the server whose workspace this is
    run_due_suites(store, settings, TUESDAY_BEFORE + MINUTE)
    assert store.schedules() == {}
    file.write_text(scheduled)
    assert started(store, settings, MONDAY + timedelta(hours=5)) == []


def test_two_servers_that_find_the_same_time_run_it_once(url: str, settings: Settings) -> None:
    with Store.open(url) as first, Store.open(url) as second, ThreadPoolExecutor(8) as pool:
        for week in range(5):
            for store in (first, second):
                run_due_suites(store, settings, TUESDAY_BEFORE + week * WEEK)
            due = MONDAY + week * WEEK
            asked = [pool.submit(run_due_suites, (first, second)[n % 2], settings, due) for n in range(8)]
            found = [one for done in asked for one in done.result()]
            assert sorted(one.agent for one in found) == ["bad", "good"]
            assert len(first.queue()) == 2
            finish_queue(first)
            settle_scheduled_runs(first, settings, due)


def test_without_named_agents_those_that_have_run_the_suite_are_run(
    store: Store, settings: Settings, project: Path
) -> None:
    schedule_suite(project, agents="")
    run_due_suites(store, settings, TUESDAY_BEFORE)
    assert started(store, settings, MONDAY) == [("05-04 03:00", "")]
    [alert] = store.alerts()
    assert (alert.kind, alert.facts["suite_id"], alert.state.value) == (
        AlertKind.SCHEDULE_FAILED,
        "desk",
        "unsent",
    )
    for agent in ("slow", "retired"):
        Past(store, agent, made=["slow", "retired"].index(agent)).run()
    assert started(store, settings, MONDAY + WEEK) == [("05-11 03:00", "slow")]


def test_an_agent_that_is_still_busy_is_not_queued_again(store: Store, settings: Settings) -> None:
    run_due_suites(store, settings, TUESDAY_BEFORE)
    first = {one.agent: one.run_id for one in run_due_suites(store, settings, MONDAY)}
    second = {one.agent: one.run_id for one in run_due_suites(store, settings, MONDAY + WEEK)}
    assert first == second
    assert len(store.queue()) == 2


def test_a_run_that_failed_is_reported_once_and_one_that_was_cancelled_is_not(
    store: Store, settings: Settings
) -> None:
    run_due_suites(store, settings, TUESDAY_BEFORE)
    run_due_suites(store, settings, MONDAY)
    first = store.claim_queued(current_owner())
    assert first is not None
    store.settle_queued(first.id, QueueState.REFUSED, "There is no such agent.")
    finish_queue(store, QueueState.CANCELLED)
    assert len(settle_scheduled_runs(store, settings, MONDAY)) == 2
    assert settle_scheduled_runs(store, settings, MONDAY) == []
    [alert] = store.alerts()
    assert alert.facts["run_id"] == first.id
    assert "There is no such agent." in alert.text
    [status] = list_schedules(store, settings, MONDAY)
    assert status.outcome == "failed"


def test_a_file_that_cannot_be_read_does_not_silence_a_schedule(
    store: Store, settings: Settings, project: Path
) -> None:
    run_due_suites(store, settings, TUESDAY_BEFORE)
    (project / "suites" / "desk.yaml").write_text("suite: [\n")
    [failed] = run_due_suites(store, settings, MONDAY)
    assert (failed.outcome, len(store.alerts())) == ("refused", 1)
    assert "desk.yaml" in failed.error
    assert run_due_suites(store, settings, MONDAY + MINUTE) == []


def test_a_schedule_that_is_none_is_refused_with_its_place(project: Path) -> None:
    schedule_suite(project, "0 25 * * *")
    done = Assay(project)("validate", "suites/desk.yaml")
    assert done.code == 2
    assert "desk.yaml:2: schedule: " in done.err
    with Store.open("sqlite:///:memory:") as store:
        [status] = list_schedules(store, find_settings(project, {}), NOON)
        assert run_due_suites(store, find_settings(project, {}), NOON) == []
    assert status.next_due is None


def miss_a_time(url: str, schedule: str = "0 3 * * mon", workspace: str | None = None) -> None:
    """As a server leaves it that was there before the last Monday."""
    due = datetime.now(UTC) - timedelta(days=8)
    with Store.open(url, workspace=workspace) as store:
        store.plan_schedule(SuiteSchedule("desk", schedule, "UTC", due), None)


def register_in_team(project: Path) -> None:
    """The agents and the suite of the project, in the database and in another workspace than that of the server."""
    assay = Assay(project)
    for command in (
        ("workspace", "create", "team"),
        ("agent", "add", "agents.yaml", "--workspace", "team"),
        ("suite", "add", "suites/desk.yaml", "--workspace", "team"),
    ):
        assert assay(*command).code == 0


def test_a_suite_of_another_workspace_is_run_there_when_it_is_due(project: Path) -> None:
    schedule_suite(project, agents="")
    register_in_team(project)
    url = f"sqlite:///{project / '.assay' / 'assay.db'}"
    miss_a_time(url, workspace="team")
    with Store.open(url, workspace="team") as team:
        Past(team, "good").run()
        with serving(project) as service:
            [done] = wait_for(
                lambda: team.latest_scheduled_runs().get("desk", []),
                lambda found: bool(found and found[0].outcome),
            )
            assert (done.agent, done.outcome) == ("good", "completed")
            assert team.run(done.run_id).trials
            assert service.get("/runs").document["runs"] == []


def read_last_runs(document: Any) -> list[tuple[str, str]]:
    [schedule] = ScheduleList.model_validate(document).schedules
    return sorted((run.agent_id or "", run.outcome) for run in schedule.last_runs)


def test_the_server_makes_up_for_the_time_that_it_missed(project: Path) -> None:
    schedule_suite(project)
    miss_a_time(f"sqlite:///{project / '.assay' / 'assay.db'}")
    with serving(project) as service:
        found = wait_for(
            lambda: service.get("/schedules").document,
            lambda document: document["schedules"][0]["last_outcome"] == "completed",
        )
        assert read_last_runs(found) == [("bad", "completed"), ("good", "completed")]
        runs = service.get("/runs").document["runs"]
        assert len(runs) == 2
        [schedule] = found["schedules"]
        assert datetime.fromisoformat(schedule["next_due"]) > datetime.now(UTC)
        assert {run["run_id"] for run in schedule["last_runs"]} == {run["id"] for run in runs}


@pytest.mark.postgres
def test_two_real_servers_run_a_time_once(project: Path, postgres: Postgres) -> None:
    url = postgres.empty()
    schedule_suite(project)
    miss_a_time(url)
    with serving(project, "--db", url) as first, serving(project, "--db", url) as second:
        for service in (first, second):
            found = wait_for(
                lambda service=service: service.get("/schedules").document,  # type: ignore[misc]
                lambda document: document["schedules"][0]["last_outcome"] == "completed",
            )
            assert read_last_runs(found) == [("bad", "completed"), ("good", "completed")]
    assert len(Assay(project)("runs", "list", "--json", "--db", url).json) == 2
