from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.services import Postgres
from tests.store.examples import (
    ENVIRONMENT,
    NOON,
    NOP,
    batch,
    begin,
    elaborate_plan,
    execution,
    small_suite,
    suite_plan,
)

from assay.errors import RunInUse, StoreError
from assay.model import Artifact, Batch
from assay.model.access import Scope
from assay.model.database_copy import CopyProgress
from assay.model.redaction import known_secrets
from assay.store import copying
from assay.store.processes import current_owner
from assay.store.store import Store

WAYS = [
    pytest.param(("sqlite", "sqlite")),
    pytest.param(("sqlite", "postgresql"), marks=pytest.mark.postgres),
    pytest.param(("postgresql", "sqlite"), marks=pytest.mark.postgres),
]


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The URLs of two empty databases, of each kind in turn."""

    def empty(place: int, dialect: str) -> str:
        if dialect == "sqlite":
            return f"sqlite:///{tmp_path / f'{place}.db'}"
        server: Postgres = request.getfixturevalue("postgres")
        return server.empty()

    source, target = (empty(place, dialect) for place, dialect in enumerate(request.param))
    return source, target


def _fill(url: str) -> None:
    with Store.open(url) as store:
        begin(store, "r1", elaborate_plan())
        begin(store, "r2")
        begin(store, "r3", suite_plan(small_suite(), NOP))
        odd = execution(0, output={"longer": [1.5, 2**60], "b": "tab\t back\\slash \\N\nline"})
        store.add("r1", Batch((odd, execution(0, trial=1)), (Artifact(0, "a", "t", b"\x00\xff"),)))
        store.add("r2", batch(map(execution, range(50))))
        store.set_baseline("main", "r1")
        store.create_key("robot", Scope.ADMIN)
        store.create_workspace("other")
        begin(store.in_workspace("other"), "r4")
        store.in_workspace("other").add("r4", batch(map(execution, range(3))))


def _ignore(progress: CopyProgress) -> None:
    pass


def test_a_copy_holds_everything_of_every_workspace(ends: tuple[str, str]) -> None:
    _fill(ends[0])
    copied = copying.copy_database(*ends, _ignore)
    assert (copied.executions, copied.found) == (55, 0)
    assert copied.rows["executions"] == 55
    with Store.open(ends[0]) as source, Store.open(ends[1]) as target:
        assert target.workspaces() == ["default", "other"]
        assert target.keys() == source.keys()
        for name in target.workspaces():
            there, here = source.in_workspace(name), target.in_workspace(name)
            assert here.runs() == there.runs()
            for run in here.runs():
                assert here.run(run.id) == there.run(run.id)
                for trial in here.run(run.id).trials:
                    assert list(here.executions(trial.id)) == list(there.executions(trial.id))
                    assert here.artifacts(trial.id) == there.artifacts(trial.id)


def test_a_number_that_postgresql_writes_in_full_is_no_difference(ends: tuple[str, str]) -> None:
    with Store.open(ends[0]) as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0, output=1e300)]))
    assert copying.copy_database(*ends, _ignore).executions == 1


def test_work_goes_on_in_the_copy(ends: tuple[str, str]) -> None:
    """New rows get numbers that no copied row has."""
    _fill(ends[0])
    copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        begin(store, "r5")
        store.add("r5", batch(map(execution, range(4))))
        assert len(list(store.executions(store.run("r5").trials[0].id))) == 4
        assert store.run("@main").id == "r1"


def test_an_interrupted_copy_is_completed_by_the_same_command(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(ends[0])
    monkeypatch.setattr(copying, "EXECUTIONS_AT_ONCE", 1)

    def interrupt(progress: CopyProgress) -> None:
        if progress.trials == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copying.copy_database(*ends, interrupt)
    copied = copying.copy_database(*ends, _ignore)
    assert 0 < copied.found < copied.executions == 55


def test_a_target_with_other_data_is_refused_and_left_alone(ends: tuple[str, str]) -> None:
    _fill(ends[0])
    with Store.open(ends[1]) as store:
        begin(store, "mine")
    with pytest.raises(StoreError, match="other data"):
        copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        assert [run.id for run in store.runs()] == ["mine"]


@pytest.fixture
def engine(ends: tuple[str, str]) -> Iterator[sa.Engine]:
    with Store.open(ends[1]) as store:
        yield store._engine


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE measurements SET value = value + 1 WHERE seq = 7",
        "DELETE FROM executions WHERE seq = 3",
        "UPDATE executions SET output = '{}' WHERE output IS NOT NULL",
        "UPDATE runs SET name = 'another' WHERE id = 'r2'",
    ],
)
def test_a_copy_that_was_changed_is_found_out(ends: tuple[str, str], engine: sa.Engine, change: str) -> None:
    _fill(ends[0])
    copying.copy_database(*ends, _ignore)
    with engine.begin() as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(StoreError, match="does not hold what the source does"):
        copying.copy_database(*ends, _ignore)


def test_a_run_under_way_is_not_copied_in_half(tmp_path: Path) -> None:
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    with Store.open(source) as store:
        store.begin(elaborate_plan(), ENVIRONMENT, "r1", NOON, current_owner())
        with pytest.raises(RunInUse):
            copying.copy_database(source, target, _ignore)


@pytest.mark.parametrize("target", ["sqlite:///a.db", "sqlite:///./a.db"])
def test_a_database_is_not_copied_onto_itself(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _fill("sqlite:///a.db")
    with pytest.raises(StoreError, match="both source and target"):
        copying.copy_database("sqlite:///a.db", target, _ignore)


def test_a_secret_that_the_source_still_holds_is_redacted_in_the_copy(ends: tuple[str, str]) -> None:
    """An earlier version may have stored it, or it was no secret then."""
    with Store.open(ends[0]) as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0, output={"said": "hush-hush-4711"}, error="hush-hush-4711")]))
    known_secrets().learn("hush-hush-4711", "NAME")
    copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        (copied,) = store.executions(store.run("r1").trials[0].id)
    assert "hush" not in f"{copied.output} {copied.error}"
