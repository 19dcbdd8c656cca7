"""What rankings need to know of trials: stored when a trial is rated, and read without a look at any execution.

A row of the table `ratings` has the ratings of a trial as one JSON document, and the marks of every case as an array of 32-bit
floats, dimension by dimension, from which intervals are computed; after them, what each case cost and came to. The names of the cases are compressed JSON. The view
`rated_trials` joins it with everything that a ranking filters by.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from assay.model import DIMENSIONS, WEIGHTS, AgentUse, Ratings
from assay.model.codec import from_plain, to_plain
from assay.model.rating import CASE_FIGURES
from assay.store import column_values as plain
from assay.store.tables import agents, benchmarks, ratings, runs, suites, tags, trials
from assay.store.workspaces import is_own, workspace_of

_SUMMARY = (
    "outcomes",
    "unscored",
    "cases",
    "solved",
    "pass_at",
    "pass_hat",
    "doubts",
    "yardstick",
    "attempted",
    "unpriced",
    "completion",
    "by_round",
    "is_recorded",
    "planned",
    "usage",
    "dimensions",
    "overall",
    "references",
    "usd_per_solved",
    "tokens_per_solved",
    "nodes",
)
"""Fields of ratings that are kept as one JSON document."""
_OF_CASES = "case."
"""Marks the names of figures of cases, which stand behind the marks of the dimensions."""


@dataclass(frozen=True, slots=True)
class RankedTrial:
    """The trial that counts for a contender on a benchmark. `read_entries` says which of several that is."""

    trial_id: int
    run_id: str
    suite: str
    category: str
    benchmark: str
    benchmark_hash: str
    contender: str
    """The agent's name, with its point where a sweep varied its options."""
    agent: str
    agent_version: str
    simulated: bool
    ok: int
    """Executions; 0 where all of the contender's trials on the benchmark are incomplete, or have none that is scored."""
    cases: int
    all_cases: int
    is_current: bool
    """Whether the benchmark was asked as the suite has it now."""
    is_whole: bool
    """Whether all cases were done."""
    started: datetime
    """Its run."""
    ended: datetime
    failed: datetime | None = None
    """When the newest run began in which not one of its executions was ok; None where there is none."""
    given_up: datetime | None = None
    """When the newest run began that gave up on it half way."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which trials to rank; nothing set is all of them."""

    suite: str | None = None
    category: str | None = None
    since: datetime | None = None
    """The earliest start of the run."""
    tag: str | None = None


def contender_name(agent: str, axes: Mapping[str, object]) -> str:
    """
    >>> contender_name("gpt", {"temperature": 0}), contender_name("gpt", {})
    ('gpt[temperature=0]', 'gpt')
    """
    point = ", ".join(f"{name}={value}" for name, value in axes.items())
    return f"{agent}[{point}]" if point else agent


# Writing


def write_standing(connection: sa.Connection, trial_id: int, rated: Ratings) -> None:
    """Store the ratings of a trial of a suite in place of earlier ones; the caller has locked the trial."""
    query = (
        sa.select(trials.c.suite, trials.c.benchmark, trials.c.benchmark_hash, trials.c.simulated)
        .add_columns(trials.c.axes, agents.c.name)
        .join(agents, agents.c.id == trials.c.agent_id)
        .where(trials.c.id == trial_id)
    )
    found = connection.execute(query).one()
    if not found.suite:
        return
    # The ok executions; 0 has an earlier trial count instead, where this one lacks scores or too many executions.
    usable = 0
    if not rated.is_incomplete:
        usable = rated.scored + (rated.unscored if rated.scored or not rated.expects_scores else 0)
    row = {
        "trial_id": trial_id,
        **{name: getattr(found, name) for name in ("suite", "benchmark", "benchmark_hash", "simulated")},
        "contender": contender_name(found.name, found.axes),
        "ok": usable,
        "cases": rated.attempted,
        "weights": dict(rated.weights),
        **_detail(rated),
    }
    connection.execute(ratings.delete().where(ratings.c.trial_id == trial_id))
    connection.execute(ratings.insert().values(row))


def _detail(rated: Ratings) -> dict[str, object]:
    """Everything of the ratings that is not a column.

    Marks are 32-bit floats: they are shares from 0 to 1, of which seven digits are more than any interval has. A ranking of a
    hundred agents on a thousand cases reads two megabytes that way instead of parsing as many numbers from JSON.
    """
    kept = {name: rated.marks[name] for name in DIMENSIONS if name in rated.marks} | {
        f"{_OF_CASES}{name}": rated.case_figures[name] for name in CASE_FIGURES if name in rated.case_figures
    }
    names = plain.to_json(list(rated.names)).encode()
    written = to_plain(replace(rated, names=(), marks={}, case_figures={}))
    return {
        "digest": hashlib.sha256(names).hexdigest()[:16],
        "dimensions": " ".join(kept),
        "summary": {name: written[name] for name in _SUMMARY},
        "marks": b"".join(array("f", values).tobytes() for values in kept.values()),
        "case_names": zlib.compress(names),
    }


# Reading

_rated = sa.table(
    "rated_trials",
    sa.column("trial_id", sa.Integer),
    sa.column("run_id", sa.Text),
    *(sa.column(name, sa.Text) for name in ("suite", "category", "benchmark", "benchmark_hash", "contender")),
    *(sa.column(name, sa.Text) for name in ("agent", "agent_version")),
    sa.column("simulated", sa.Boolean),
    *(sa.column(name, sa.Integer) for name in ("ok", "cases", "all_cases", "is_current", "is_whole")),
    sa.column("started", runs.c.started.type),
    sa.column("ended", trials.c.ended.type),
)
_is_stopped, _workspace = sa.column("is_stopped", sa.Integer), sa.column("workspace_id", sa.Integer)


def read_entries(connection: sa.Connection, chosen: Filter) -> list[RankedTrial]:
    """The trial that counts for each contender on each benchmark.

    Of several, one with ok executions goes before one without, one of the current definition of the benchmark before an
    older one, one with all cases before one with a few, and then the newest.
    """
    # One pass with window functions: each trial gets its place in its contest, and beside it the latest failure and the latest
    # stop of that contest, which a board shows even though an earlier trial counts.
    column = _rated.c
    contest = [column.suite, column.benchmark, column.contender]
    place = sa.func.row_number().over(
        partition_by=contest,
        order_by=[
            sa.case((column.ok > 0, 0), else_=1),
            column.is_current.desc(),
            column.is_whole.desc(),
            column.started.desc(),
            column.trial_id.desc(),
        ],
    )
    failed = sa.func.max(sa.case((column.ok == 0, column.started))).over(partition_by=contest)
    given_up = sa.func.max(sa.case((_is_stopped == 1, column.started))).over(partition_by=contest)
    picked = sa.select(_rated, place.label("place"), failed.label("failed"), given_up.label("given_up"))
    placed = picked.where(_workspace == workspace_of(connection), *_conditions(chosen)).subquery()
    kept = [chosen_column for chosen_column in placed.c if chosen_column.name != "place"]
    query = sa.select(*kept).where(placed.c.place == 1).order_by(placed.c.suite, placed.c.contender)
    return [from_plain(RankedTrial, row) for row in connection.execute(query).mappings()]


def _conditions(chosen: Filter) -> Iterable[sa.ColumnElement[bool]]:
    column = _rated.c
    if chosen.suite is not None:
        yield column.suite == chosen.suite
    if chosen.category is not None:
        yield column.category == chosen.category
    if chosen.since is not None:
        yield column.started >= chosen.since
    if chosen.tag is not None:
        yield column.run_id.in_(sa.select(tags.c.run_id).where(tags.c.tag == chosen.tag))


def read_board_benchmarks(connection: sa.Connection, suite: str) -> list[str]:
    """The benchmarks that the suite has now, which means: in its latest run."""
    newest = (
        sa.select(runs.c.suite_id)
        .join(suites, suites.c.id == runs.c.suite_id)
        .where(is_own(connection, suites), suites.c.name == suite)
        .order_by(runs.c.started.desc(), runs.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = sa.select(benchmarks.c.benchmark).where(benchmarks.c.suite_id == newest)
    return list(connection.scalars(query.order_by(benchmarks.c.position)))


def read_categories(connection: sa.Connection) -> dict[str, str]:
    """The category of every suite that was run; the suite that was run last comes first."""
    # The latest run of each definition is looked up: there are few of these, and many runs.
    of_suite = runs.alias()
    latest = (
        sa.select(of_suite.c.id)
        .where(of_suite.c.suite_id == suites.c.id)
        .order_by(of_suite.c.started.desc(), of_suite.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = sa.select(suites.c.name, suites.c.category).join(runs, runs.c.id == latest)
    query = query.where(is_own(connection, suites))
    found: dict[str, str] = {}
    for name, category in connection.execute(query.order_by(runs.c.started.desc(), runs.c.id.desc())):
        found.setdefault(name, category)
    return found


def read_ratings(connection: sa.Connection, trial_ids: Sequence[int]) -> dict[int, Ratings]:
    """The ratings of those of the trials that have them stored case by case, as all but old versions do."""
    column = ratings.c
    query = sa.select(column.trial_id, column.digest, column.dimensions, column.summary, column.marks)
    chosen = column.trial_id.in_(trial_ids), column.summary.is_not(None)
    found = connection.execute(query.add_columns(column.weights).where(*chosen)).all()
    names = _case_names(connection, {row.digest: row.trial_id for row in found})
    return {row.trial_id: _ratings_from(row, names[row.digest]) for row in found}


def read_agent_uses(connection: sa.Connection, trial_ids: Sequence[int]) -> dict[int, AgentUse]:
    """How the agents of trials were defined, with their prices; trials of code have none."""
    query = sa.select(trials.c.id, trials.c.agent_use)
    found = connection.execute(query.where(trials.c.id.in_(trial_ids), trials.c.agent_use.is_not(None)))
    return {row.id: from_plain(AgentUse, row.agent_use) for row in found}


def _case_names(connection: sa.Connection, one_of_each: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Read once where several trials have the same."""
    column = ratings.c
    query = sa.select(column.digest, column.case_names).where(column.trial_id.in_(one_of_each.values()))
    return {
        digest: tuple(plain.from_json(zlib.decompress(written).decode()))
        for digest, written in connection.execute(query)
    }


def _ratings_from(row: sa.Row[Any], names: tuple[str, ...]) -> Ratings:
    """Ratings as they were stored.

    Marks of all dimensions lie one after the other in one array, in the order that `dimensions` names.
    """
    marks = array("f")
    marks.frombytes(row.marks)
    columns = {
        name: marks[n * len(names) : (n + 1) * len(names)] for n, name in enumerate(row.dimensions.split())
    }
    fields = {
        "by_round": _ROUNDS_NOT_KEPT,
        **{name: row.summary[name] for name in _SUMMARY if name in row.summary},
        "dimensions": {name: row.summary["dimensions"][name] for name in DIMENSIONS},
        "weights": {**WEIGHTS, **row.weights},
        "names": names,
        "marks": {name: values for name, values in columns.items() if name in DIMENSIONS},
        "case_figures": {
            name.removeprefix(_OF_CASES): values for name, values in columns.items() if name not in DIMENSIONS
        },
    }
    return from_plain(Ratings, fields)


_ROUNDS_NOT_KEPT: Mapping[str, Sequence[float]] = {"speed": (), "efficiency": ()}
