"""Seven agents with one inefficiency each, and honest ones that have none; each takes about half a second.

Calls of models and databases are real waits for a socket: a server in another thread answers after a known time, so that a call looks
to the sampler as it would with a server elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from assay import span


def _call(seconds: float) -> None:
    """Wait for data on a socket, as a client of a server does."""
    ours, theirs = socket.socketpair()
    timer = threading.Timer(seconds, theirs.send, (b"x",))
    timer.start()
    ours.recv(1)
    timer.join()
    ours.close()
    theirs.close()


def _ask(prompt: str, answer: str, seconds: float = 0.12, cached: int = 0) -> str:
    with span("ask model", kind="llm", input=prompt) as call:
        _call(seconds)
        call.record(
            output=answer, input_tokens=len(prompt) // 4, output_tokens=len(answer) // 4, cached_tokens=cached
        )
    return answer


def _query(text: str, seconds: float) -> str:
    with span("query", kind="tool", input=text) as query:
        _call(seconds)
        query.record(output="row")
    return "row"


def _compute(seconds: float) -> float:
    """So much CPU time, whatever else runs on the machine."""
    end, x = time.thread_time() + seconds, 0.0
    while time.thread_time() < end:
        for _ in range(500):
            x += 1.0
    return x


def serial(question: str) -> str:
    """Asks four things, one after the other, of which none needs the answer to another."""
    topics = ("weather in Oslo", "price of copper", "height of Everest", "year of Magna Carta")
    return " ".join(_ask(f"Tell me the {topic}", f"Reply{number}zz") for number, topic in enumerate(topics))


def repeated(question: str) -> str:
    """Asks the same thing five times."""
    return "".join(_ask("Which language is this sentence written in?", "English")[0] for _ in range(5))


def n_plus_one(question: str) -> str:
    """Reads a list, and then each of its items with a query of its own."""
    _query("SELECT id FROM orders WHERE customer = 7", 0.03)
    for number in range(24):
        _query(f"SELECT * FROM items WHERE order_id = {number}", 0.02)
    return "done"


def sql_loop(question: str) -> str:
    """Sends a query for each of many ids, without telling anybody by a span."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE items (id INTEGER, name TEXT)")
    database.executemany("INSERT INTO items VALUES (?, ?)", [(n, f"item {n}") for n in range(3000)])
    for number in range(2000):
        database.execute("SELECT name FROM items WHERE id = ?", (number,)).fetchall()
    database.close()
    return "done"


_lock = threading.Lock()


def _work_alone(_: int) -> None:
    with _lock:
        _call(0.15)


def locked(question: str) -> str:
    """Four threads that hold one lock while they wait for a server."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(_work_alone, range(4)))
    return "done"


def growing(question: str) -> str:
    """A conversation whose every prompt repeats all that was said before; nothing of it is cached."""
    history = "You are a careful assistant. " * 20
    for turn in range(6):
        history += f"Step {turn}. "
        history += _ask(history, f"observation{turn} " * 10, 0.08) + " "
    return history[-20:]


_DOCUMENT = json.dumps([{"id": n, "name": f"name {n}", "tags": ["a", "b"]} for n in range(4000)])


def _find_name(number: int) -> str:
    return str(json.loads(_DOCUMENT)[number]["name"])


def reparsed(question: str) -> str:
    """Parses the same document for each of its lookups."""
    end = time.thread_time() + 0.5
    number = 0
    while time.thread_time() < end:
        _find_name(number := number + 1)
    return "done"


def sleepy(question: str) -> str:
    """Waits a fixed time between two short calls."""
    _ask("First question about geography", "Fjord", 0.05)
    time.sleep(0.4)
    return _ask("Then something on Fjord please", "Done", 0.05)


def clean(question: str) -> str:
    """Two calls of which the second needs the first, then independent ones at once, and some computing."""
    plan = _ask("Make a plan for the trip", "visit Bergen", 0.1)
    under_way = threading.Barrier(3)  # they are at once, even if the machine is slow to start threads

    def ask_option(number: int) -> None:
        with span("ask model", kind="llm", input=f"Option {number} for {plan}") as call:
            under_way.wait()
            _call(0.15)
            call.record(output=f"hotel{number}")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(ask_option, range(3)))
    _compute(0.1)
    return "done"


def busy(question: str) -> str:
    """Nothing but computing."""
    return str(_compute(0.4))


def waiting(question: str) -> str:
    """One necessary call of a model."""
    return _ask("What is the answer to everything?", "forty-two", 0.4)


def parsing(question: str) -> str:
    """Parses many documents, each of them once."""
    end = time.thread_time() + 0.4
    number = 0
    while time.thread_time() < end:
        json.loads(f"[{number}, {_DOCUMENT[1:]}")
        number += 1
    return "done"


def quick(question: str) -> str:
    """Ends long before the first sample."""
    return "done"


async def sleepy_async(question: str) -> str:
    """Sleeps in an event loop."""
    await asyncio.sleep(0.4)
    return "done"


async def in_thread(question: str) -> str:
    """Waits in a thread for a server, from an event loop."""
    await asyncio.to_thread(_call, 0.4)
    return "done"


async def together(question: str) -> str:
    """Independent calls in an event loop, all at once."""

    async def ask(number: int) -> None:
        with span("ask model", kind="llm", input=f"Question number{number}") as call:
            await asyncio.to_thread(_call, 0.3)
            call.record(output=f"answer{number}")

    await asyncio.gather(*(ask(number) for number in range(3)))
    return "done"
