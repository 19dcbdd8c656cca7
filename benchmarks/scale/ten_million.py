"""Lists, pages and pruning with ten million executions in PostgreSQL: what people ask all day, and what the server needs for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from time import perf_counter

import psutil
import psycopg
from arms import CommandFailed, tell
from record import Bound, Promise, Result, figure
from server.fill import LARGE
from server.measure import Measured, Server, serving
from server.pages import LEADERBOARD, Route, find_routes

from assay.store.store import Store
from scale.fill import fill_large
from scale.rows import find_server_process, postgres

URL = "ASSAY_BENCH_DB"
"""The variable that names a database which `scale.fill` has filled; without it one is made, which takes most of an hour."""
BOARD, LIST = 0.05, 0.15
_WHERE = "with 10,000,000 executions in PostgreSQL"


def measure(quick: bool) -> list[Result]:
    with ExitStack() as stack:
        url = os.environ.get(URL) or stack.enter_context(_filled(0.02 if quick else 1.0))
        tell(f"  {_count(url):,} executions")
        with serving(url) as server:
            boards = _wait_for_boards(server, is_kept=URL in os.environ)
            tell(f"  {boards}")
            found = {route.name: _measure(server, route, 3 if quick else 20) for route in _find_routes(url)}
            memory = {"assay serve": float(server.rss), "postgres": _read_memory(url)}
        return [*_judge(found, boards), _judge_memory(memory), _judge_pruning(url)]


@contextmanager
def _filled(scale: float) -> Iterator[str]:
    with postgres() as url:
        tell("filling the database")
        fill_large(url, scale)
        yield url


def _measure(server: Server, route: Route, number: int) -> Measured:
    """The first request, then so many more; a page whose figures are still being computed is answered without them."""
    first, _ = server.ask(route)
    before = server.cpu
    latencies = [server.ask(route)[0] for _ in range(number)]
    measured = Measured(first, latencies, (server.cpu - before) / number)
    tell(f"  {route.name}: P95 {1e3 * measured.p95:.1f} ms, first {1e3 * first:.1f} ms")
    return measured


def _wait_for_boards(server: Server, is_kept: bool) -> str:
    """Boards of 500 agents take seconds each, beside the server; with a database that is kept they may be there from before."""
    try:
        waited = server.wait_for_boards(LEADERBOARD, 20 if is_kept else 3600)
    except CommandFailed:
        return "Measured while the boards of some suites were still being computed beside the server."
    return f"The boards of all suites were there {waited:.0f} s after the start of the server."


def _count(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM executions").fetchone()
    assert found is not None
    return int(found[0])


def _find_routes(url: str) -> list[Route]:
    """Those of the server's benchmark, with an ordinary run and the newest of the long suite."""
    with Store.open(url) as store:
        return find_routes([store.runs(limit=1, name=name)[0].id for name in ("suite-20", LARGE)])


def _read_memory(url: str) -> float:
    """Of all processes of PostgreSQL, what they share counted once."""
    main = find_server_process(url)
    read = 0
    for process in (main, *main.children()):
        with suppress(psutil.NoSuchProcess):  # the one that answered a moment ago
            read += process.memory_full_info().pss
    return float(read)


def _judge(found: Mapping[str, Measured], boards: str) -> list[Result]:
    board = found[f"GET {LEADERBOARD}"]
    lists = {name: one for name, one in found.items() if not name.endswith(LEADERBOARD)}
    slowest = max(lists, key=lambda name: lists[name].p95)
    over = [f"`{name}` {1e3 * one.p95:.0f} ms" for name, one in lists.items() if one.p95 > LIST]
    told = f"The slowest of {len(lists)} is `{slowest}`."
    told += f" Above the bound: {', '.join(over)}." if over else ""
    return [
        _result(Promise("board-ten-million", f"Leaderboard {_WHERE}, P95", Bound.AT_MOST, BOARD, "s"), [board.p95], boards,
                {"latencies": list(board.latencies)}),
        _result(Promise("lists-ten-million", f"Slowest other request {_WHERE}, P95", Bound.AT_MOST, LIST, "s"),
                [lists[slowest].p95], told, {name: list(one.latencies) for name, one in lists.items()}),
    ]  # fmt: skip


def _judge_memory(memory: Mapping[str, float]) -> Result:
    promise = Promise("memory-ten-million", f"Memory of `assay serve` {_WHERE}", Bound.BELOW, 300e6, "bytes")
    told = f"PostgreSQL had {memory['postgres'] / 1e6:.0f} MB beside it."
    return _result(promise, [memory["assay serve"]], told, {name: [value] for name, value in memory.items()})


def _judge_pruning(url: str) -> Result:
    """How long a run of the long suite, which has no copies, takes to go with all of its rows."""
    seconds = []
    with Store.open(url) as store:
        for run in store.runs(limit=3, name=LARGE):
            began = perf_counter()
            with store._writer.begin() as connection:
                from assay.store.pruning import delete_run

                delete_run(connection, run.id)
            seconds.append(perf_counter() - began)
    promise = Promise("pruning-ten-million", f"Deleting a run of 20,000 executions {_WHERE}", Bound.AT_MOST, 1.0, "s")  # fmt: skip
    return _result(promise, seconds, "Without refreshing the comparison matrix, which happens once a command.", {"seconds": seconds})  # fmt: skip


def _result(
    promise: Promise, values: list[float], detail: str, observed: Mapping[str, list[float]]
) -> Result:
    ours = figure(values)
    return Result(promise, promise.unit, ours, ours, detail=detail, values=observed)
