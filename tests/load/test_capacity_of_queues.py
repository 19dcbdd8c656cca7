"""A few of the searches behind the promised rates; `benchmarks/stats/capacities.py` makes the others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from benchmarks.stats.capacities import CELLS, WITH_OBJECTIVE, Cell, search

from assay.analysis.load.judgement import judge_load
from assay.load.build import LoadOptions, build_prepared_load
from assay.load.capacity import Search
from assay.model.load import Arrivals, Load, LoadResult


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_the_capacity_of_a_queue_is_found_within_five_percent(cell: Cell) -> None:
    found = [search(cell, seed) for seed in (1, 2, 3)]
    assert all(one.rate == pytest.approx(1, abs=0.05) for one in found)
    assert sum(one.is_covered for one in found) >= 2
    assert all(one.seconds < 180 for one in found)


def test_answers_of_six_seconds_take_less_than_three_minutes() -> None:
    slow = next(cell for cell in CELLS if cell.name == "M/D/4, 6 s")
    found = search(slow, 1)
    assert found.seconds < 150
    assert found.is_confirmed


def test_an_objective_breaks_before_the_server_is_full() -> None:
    found = [search(WITH_OBJECTIVE[1], seed) for seed in (1, 2, 3)]
    assert sum(one.is_covered for one in found) >= 2
    assert all(one.rate == pytest.approx(1, abs=0.12) for one in found)


SERVER = """
import asyncio, random, sys

slots, mean = int(sys.argv[1]), float(sys.argv[2])
draw, free = random.Random(7), asyncio.Semaphore(slots)


async def answer(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\\r\\n\\r\\n")
            async with free:
                await asyncio.sleep(draw.expovariate(1 / mean))
            writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve():
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(serve())
"""


@contextmanager
def serving(slots: int, mean: float) -> Iterator[str]:
    """Exponential service times over HTTP, for so many at a time.

    In a process of its own: a thread here would wait for Python's lock while the thread that reads the load, which runs only
    when nothing else wants the processor, holds it.
    """
    words = [sys.executable, "-c", SERVER, str(slots), str(mean)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
        finally:
            server.kill()


@pytest.mark.slow
def test_the_capacity_of_a_real_server_with_random_times_lies_in_the_interval() -> None:
    """16 slots of 0.2 s: 80/s. A busy machine makes it slower, never faster."""
    with serving(16, 0.2) as url:
        asked = build_prepared_load(LoadOptions(url))

        def probe(load: Load) -> LoadResult:
            return judge_load(asked.at(load).measure(), load)

        found = Search(Load(Arrivals.CLOSED), 0.5, probe).run()
    low, high = found.interval
    assert found.sustained == pytest.approx(80, rel=0.15)
    assert low is not None
    assert high is not None
    assert found.sustained is not None
    assert low < found.sustained < high
    assert high - low > 0.05 * 80
