"""What PostgreSQL does differently so that ten million executions fit into it."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.services import Postgres
from tests.store.examples import batch, begin, execution

from assay.store.bulk import insert_rows
from assay.store.store import Store, upgrade
from assay.store.tables import measurements

pytestmark = pytest.mark.postgres


def _number(store: Store, statement: str) -> int:
    with store._engine.connect() as connection:
        return int(connection.exec_driver_sql(statement).scalar_one())


def test_rows_of_a_trial_that_does_not_exist_are_refused(postgres: Postgres) -> None:
    with Store.open(postgres.empty()) as store:
        begin(store, "r1")
        [trial] = store.run("r1").trials
        rows = [(trial.id, "seconds", 1, 0.5), (4711, "seconds", 1, 0.5)]
        with pytest.raises(sa.exc.IntegrityError), store._writer.begin() as connection:
            insert_rows(connection, measurements, rows)
        assert _number(store, "SELECT count(*) FROM measurements") == 0


def test_executions_and_measurements_go_with_their_run_and_no_other(postgres: Postgres) -> None:
    with Store.open(postgres.empty()) as store:
        for run_id in ("r1", "r2"):
            begin(store, run_id)
            store.add(run_id, batch(map(execution, range(5))))
        store.delete("r1", force=True)
        assert _number(store, "SELECT count(*) FROM executions") == 5
        assert _number(store, "SELECT count(*) FROM measurements") == 5
        assert len(list(store.executions(store.run("r2").trials[0].id))) == 5


def test_a_trial_cannot_be_deleted_from_under_rows_that_are_being_stored(postgres: Postgres) -> None:
    with Store.open(postgres.empty()) as store:
        begin(store, "r1")
        [trial] = store.run("r1").trials
        with store._engine.connect() as writer, store._engine.connect() as other:
            insert_rows(writer, measurements, [(trial.id, "seconds", 1, 0.5)])
            other.exec_driver_sql("SET lock_timeout = '50ms'")
            with pytest.raises(Exception, match="locked"):
                other.exec_driver_sql(f"DELETE FROM trials WHERE id = {trial.id}")
            writer.commit()


def test_an_upgrade_builds_indexes_that_are_missing_or_were_left_half_built(postgres: Postgres) -> None:
    url = postgres.empty()
    valid = (
        "SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        "WHERE relnamespace = current_schema()::regnamespace AND indisvalid"
    )
    with Store.open(url) as store:
        before = _number(store, valid)
        with store._engine.begin() as connection:
            connection.exec_driver_sql("DROP INDEX ix_trials_experiment")
            connection.exec_driver_sql(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_trials_of_agent'::regclass"
            )
        assert _number(store, valid) == before - 2
        upgrade(url)
        assert _number(store, valid) == before
