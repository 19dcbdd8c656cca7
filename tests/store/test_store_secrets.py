"""Nothing that is stored holds a secret, whatever field it comes in."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from tests.store.examples import ENVIRONMENT, EPOCH, NOON, elaborate_suite, plan_of, simple_trial

from assay.errors import StoreError
from assay.model import AgentUse, AgentVersion, Artifact, Batch, Environment, Execution, Phase, Plan, Status
from assay.model.redaction import Redaction
from assay.store import tables
from assay.store.store import Store

BY_VALUE = 'v3ry "hidden"/value'
BY_VARIABLE = "login of ann: pa55"
BY_SHAPE = "sk-ant-api03-4fJ7dK2mQ9xW1zR8tt"
EVERY = f"{BY_VALUE}|{BY_VARIABLE}|{BY_SHAPE}"


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_TOKEN", BY_VALUE)
    monkeypatch.setenv("WEB_LOGIN", BY_VARIABLE)


def everything_in(store: Store) -> str:
    """Every value of every row, artifacts unpacked."""
    found: list[str] = []
    with store._engine.connect() as connection:
        for table in tables.metadata.sorted_tables:
            for row in connection.execute(sa.select(table)):
                found += [unpacked(value) for value in row]
    file = store._address.file
    return "\n".join([*found, file.read_bytes().decode("latin-1") if file else ""])


def unpacked(value: Any) -> str:
    return (
        zlib.decompress(value).decode("latin-1")
        if isinstance(value, bytes) and value[:1] == b"x"
        else repr(value)
    )


def leaked(store: Store) -> list[str]:
    text, alone = everything_in(store), Redaction([BY_VALUE, BY_VARIABLE])
    found = [part for part in (BY_VALUE[:14], BY_VARIABLE[:14], BY_SHAPE[:20]) if part in text]
    return [*found, *([] if alone.origin_of_secret_in(text) is None else ["in an encoding"])]


def telling_execution(**fields: Any) -> Execution:
    telling = Execution(
        trial=0,
        process=0,
        phase=Phase.MEASURED,
        repetition=0,
        status=Status.FAILED,
        started=EPOCH,
        measurements={"seconds": 1.0, f"m {EVERY}": 2.0, f"m {BY_SHAPE}": 3.0},
        output={EVERY: [EVERY, {"deep": (EVERY,)}]},
        applied={"model": EVERY},
        error=EVERY,
        log=f"printed\n{EVERY}\n",
        detail={
            "spans": [{"name": EVERY}],
            "tool_calls": [{"arguments": {EVERY: EVERY}}],
            "usage": {EVERY: 1},
        },
    )
    return replace(telling, **fields)


def telling_plan() -> Plan:
    use = AgentUse("web", "http", {"headers": {"Authorization": "Basic ${WEB_LOGIN}"}, "note": EVERY}, EVERY)
    trial = replace(
        simple_trial(agent=AgentVersion(f"web {BY_SHAPE}", EVERY)),
        name=EVERY, experiment=EVERY, params={EVERY: EVERY}, axes={EVERY: EVERY}, agent_use=use,
    )  # fmt: skip
    return replace(
        plan_of(trial, name=EVERY, tags=(EVERY, BY_SHAPE)),
        notes=EVERY, label=EVERY, source={EVERY: EVERY}, output_dir=EVERY, load=(EVERY,),
    )  # fmt: skip


def test_a_secret_in_any_field_of_a_run_is_not_stored(store: Store) -> None:
    store.begin(telling_plan(), Environment({"argv": [EVERY]}, {"branch": EVERY}, (EVERY,)), "r1", NOON, "me")
    batch = Batch(
        (telling_execution(), telling_execution(repetition=1)),
        artifacts=(Artifact(0, f"{BY_SHAPE}.txt", "log", EVERY.encode()),),
        stopped={0: EVERY},
        unmeasured={EVERY: EVERY},
    )
    assert store.add("r1", batch) == 2
    store.add("r1", Batch(versions={0: f"model-{EVERY}"}))
    store.set_environment("r1", Environment({"after": EVERY}, {}, ()))
    assert leaked(store) == []
    (trial,) = store.run("r1").trials
    assert trial.trial.agent_use is not None
    assert trial.trial.agent_use.options["headers"] == {"Authorization": "Basic ${WEB_LOGIN}"}
    first = next(iter(store.executions(trial.id)))
    assert sorted(first.measurements.values()) == [1.0, 2.0, 3.0]


def test_a_judgement_made_later_holds_no_secret(store: Store) -> None:
    store.begin(telling_plan(), ENVIRONMENT, "r1", NOON, "me")
    plain = telling_execution(status=Status.OK, measurements={"seconds": 1.0}, output="x", error=None)
    store.add("r1", Batch((plain,)))
    (trial,) = store.run("r1").trials
    assert store.rescore(trial.id, [(0, {"score": 1.0}, {"reasons": [EVERY]})]) == 1
    assert leaked(store) == []


def test_agents_that_differ_only_by_a_secret_are_kept_as_one(store: Store) -> None:
    trials = [
        simple_trial(n, AgentVersion("web", f"v {secret}")) for n, secret in enumerate((BY_SHAPE, BY_VALUE))
    ]
    store.begin(plan_of(*trials), ENVIRONMENT, "r1", NOON, "me")
    assert {stored.trial.agent.version for stored in store.run("r1").trials} == {"v [redacted]"}


def test_a_suite_is_stored_as_written_and_refused_with_a_known_secret(store: Store) -> None:
    suite = elaborate_suite()
    shaped = replace(suite, description=f"Which of these is a key: {BY_SHAPE}?")
    store.begin(replace(plan_of(), suite=shaped), ENVIRONMENT, "r1", NOON, "me")
    assert store.suite_of("r1") == shaped
    known = replace(suite, description=f"The key is {BY_VALUE}")
    with pytest.raises(StoreError, match="'PROVIDER_TOKEN'") as caught:
        store.begin(replace(plan_of(), suite=known), ENVIRONMENT, "r2", NOON, "me")
    assert BY_VALUE not in str(caught.value)


def test_a_database_is_readable_by_its_owner_alone(store: Store) -> None:
    store.begin(plan_of(), ENVIRONMENT, "r1", NOON, "me")
    file = store._address.file
    if file is not None:
        files = [file, *file.parent.glob(f"{file.name}-*")]
        assert len(files) == 3
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
