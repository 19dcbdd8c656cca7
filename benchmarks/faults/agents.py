"""Bad agents of every kind in runs together with a good one: each gets the status that fits, and the good one stays right."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from tests.load.faulty import Guest, faulty, head, with_length

from faults.agent_kinds import Kind, kinds
from faults.campaign import Fault, Outcome, Part, Size
from faults.project import Done, Hung, Project, eventually

_IN_A_RUN = 12
_IN_QUICK = 180
"""Kinds in the quick campaign, which the seed chooses among all."""
_SECONDS_OF_HANGS = 1.5
"""The limit of an execution among agents that may run into it: long enough for an honest one on a busy machine."""
_SECONDS = 30.0
"""The limit among all others, whose large answers may take a busy machine seconds."""
_HEAD = """
import asyncio, builtins, ctypes, gc, json, os, signal, subprocess, sys, threading, time
HERE = {folder!r}
held = []
class Own(BaseException): pass
class Unprintable(Exception):
    def __str__(self): raise ValueError('no text')
    __repr__ = __str__
class Unpicklable(Exception):
    def __reduce__(self): raise TypeError('no pickle')
class Liar(str):
    def __str__(self): return 'something else'
    def __eq__(self, other): return True
    __hash__ = str.__hash__
async def late():
    raise ValueError('late')
def daemonise():
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            with open(HERE + '/pids', 'a') as file: file.write(f'{{os.getpid()}}\\n')
            os.closerange(0, 4096)
            time.sleep(600)
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.1)
"""
_PYTHON = {
    "plain": "def act(q):\n    {body}\n\ndef agent(q):\n    return act(q) if q == 'bad' else q\n",
    "async": "async def act(q):\n    {body}\n\nasync def agent(q):\n    return await act(q) if q == 'bad' else q\n",
    "stream": "def act(q):\n    {body}\n\ndef agent(q):\n    if q == 'bad':\n        yield 'b'\n        act(q)\n    yield q\n",
}
_PROGRAM = """
def say(**answer):
    print(json.dumps(answer), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    if r['input'] == 'bad':
        {body}
    else:
        say(id=r['id'], output=r['input'])
"""


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    every = kinds()
    chance = random.Random(f"{seed} agents")
    chance.shuffle(every)
    if size is Size.SMALLEST:
        every = [kind for kind in every if (kind.name, kind.way) in _WORST]
    elif size is Size.QUICK:
        every = every[:_IN_QUICK]
    with faulty(_answer, path="/") as server:
        faults = []
        for concurrency in (1,) if size is not Size.FULL else (1, 3):
            for number, batch in enumerate(_batches(every)):
                name = f"run {number} with concurrency {concurrency}"
                faults.append(Fault(name, partial(_check, batch, server.url, concurrency)))
        yield [*faults, *_imports(size)]


def _batches(every: Sequence[Kind]) -> Iterator[list[Kind]]:
    """Agents that share a run: those that may hang apart from the others, whose limit is longer."""
    for may_hang in (True, False):
        group = [kind for kind in every if ("timeout" in kind.statuses) is may_hang]
        for start in range(0, len(group), _IN_A_RUN):
            yield group[start : start + _IN_A_RUN]


_AT_IMPORT = {
    "raises": "raise ValueError('boom')",
    "raises CancelledError": "import asyncio; raise asyncio.CancelledError",
    "exits": "import sys; sys.exit(0)",
    "ends the process": "import os; os._exit(0)",
    "kills the process": "import os; os.kill(os.getpid(), 9)",
    "hangs": "import time; time.sleep(600)",
    "is no Python": "def (",
    "holds NUL": "x = 1\0",
    "recurses": "def again(): again()\nagain()",
}
_IMPORTERS = (
    ("run", "suite.json"),
    ("validate", "suite.json"),
    ("run", "suite.json", "--dry-run"),
    ("list", "agents"),
)


def _imports(size: Size) -> Iterator[Fault]:
    """Files of the user that misbehave when they are imported: the command is refused in one message with their name."""
    names = list(_AT_IMPORT) if size is not Size.SMALLEST else ["ends the process"]
    for number, name in enumerate(names):
        for words in _IMPORTERS if size is Size.FULL else [_IMPORTERS[number % len(_IMPORTERS)]]:
            yield Fault(f"import that {name}, {' '.join(words)}", partial(_check_import, name, words))


def _check_import(name: str, words: Sequence[str], folder: Path) -> Outcome:
    project = Project(folder, db=f"sqlite:///{folder / 'assay.db'}")
    project.write("culprit.py", f"{_AT_IMPORT[name]}\ndef agent(q):\n    return q\n")
    project.write("assay.toml", '[assay]\nload = ["culprit.py"]\n')
    agents = [{"name": "a", "type": "python", "target": "culprit.py:agent"}]
    benchmark = {
        "id": "b",
        "name": "b",
        "cases": [{"id": "c", "input": "1", "expected": "1"}],
        "scorer": "exact",
    }
    project.write(
        "suite.json", json.dumps({"suite": "s", "version": "1", "agents": agents, "benchmarks": [benchmark]})
    )
    kind = f"a file whose import {name}, assay {' '.join(words)}"
    try:
        done = project(*words, seconds=90)
    except Hung as hung:
        return Outcome(wrongs=((kind, str(hung)),))
    # A list shows what can be shown, and says what cannot.
    problem = done.problem(*((0, 2) if words[0] == "list" else (2,))) or (
        "" if "culprit.py" in done.err else f"the file is not named: {done.err[-200:]}"
    )
    return Outcome(wrongs=((kind, problem),) if problem else ())


_WORST = {
    ("raises CancelledError", "plain"), ("raises CancelledError", "async"), ("raises KeyboardInterrupt", "plain"),
    ("raises 10 MB of text", "plain"), ("dies of SIGKILL", "plain"), ("reports negative durations", "plain"),
    ("hangs: SIGSTOP", "plain"), ("leaves a daemon without environment", "plain"), ("writes another id", "lines"),
    ("writes closed standard input", "lines"), ("answers half a body", "http"),
}  # fmt: skip


def _check(batch: Sequence[Kind], url: str, concurrency: int, folder: Path) -> Outcome:
    """All in one run; where that run itself goes wrong, each alone, to find the one that it was."""
    found, problem = _run(batch, url, concurrency, folder / "all")
    if problem and len(batch) > 1:
        found = {}
        for number, kind in enumerate(batch):
            alone, problem = _run([kind], url, concurrency, folder / str(number))
            found |= {kind: [problem] if problem else alone.get(kind, [])}
    elif problem:
        found = {batch[0]: [problem]}
    wrongs = [(f"{kind.way} agent that {kind.name}", text) for kind, texts in found.items() for text in texts]
    return Outcome(len(batch), tuple(wrongs))


def _run(
    batch: Sequence[Kind], url: str, concurrency: int, folder: Path
) -> tuple[dict[Kind, list[str]], str]:
    """The problems of each kind, and what went wrong with the run as a whole."""
    folder.mkdir()
    project = Project(folder, db=f"sqlite:///{folder / 'assay.db'}")
    project.write("not-a-program", "plain text").chmod(0o755)
    project.write("good.py", "def good(q):\n    return q\n")
    agents = [_definition(project, number, kind, url) for number, kind in enumerate(batch)]
    agents.insert(len(agents) // 2, {"name": "good", "type": "python", "target": "good.py:good"})
    cases = [{"id": word, "input": word, "expected": word} for word in ("before", "bad", "after")]
    may_hang = any("timeout" in kind.statuses for kind in batch)
    limits = {"seconds": _SECONDS_OF_HANGS if may_hang else _SECONDS, "memory_mb": 250}
    iterations = {"warmup": 0, "measured": 1}
    benchmark = {
        "id": "b",
        "name": "b",
        "cases": cases,
        "scorer": "exact",
        "limits": limits,
        "iterations": iterations,
    }
    suite = {"suite": "s", "version": "1", "agents": agents, "benchmarks": [benchmark]}
    project.write("suite.json", json.dumps(suite))
    try:
        done = project("run", "suite.json", "--json", "--quiet", "--concurrency", str(concurrency))
        reported = project("report", "last", "--format", "json,md,html", "--out", "out")
    except Hung as hung:
        return {}, str(hung)
    if problem := _whole(project, done, reported):
        return {}, problem
    document = json.loads((folder / "out" / "result.json").read_text(), parse_constant=_refuse)
    trials = {trial["agent"]["name"]: trial for trial in document["trials"]}
    if problem := _good(trials["good"]):
        return {}, problem
    return {kind: _problems(kind, trials[f"bad-{n}"]) for n, kind in enumerate(batch)}, ""


def _definition(project: Project, number: int, kind: Kind, url: str) -> dict[str, Any]:
    start = _HEAD.format(folder=str(project.folder))
    definition: dict[str, Any] = {"name": f"bad-{number}"}
    if kind.way == "http":
        definition |= {
            "type": "http",
            "url": f"{url}{quote(kind.body)}",
            "retries": 0,
            "max_bytes": 30_000_000,
        }
    elif kind.way in _PYTHON:
        project.write(f"agent_{number}.py", start + _PYTHON[kind.way].replace("{body}", kind.body))
        definition |= {"type": "python", "target": f"agent_{number}.py:agent"}
    else:
        project.write(f"program_{number}.py", start + _PROGRAM.replace("{body}", kind.body))
        words = [sys.executable, "-S", "-E", f"program_{number}.py"]
        definition |= {"type": "command", "command": words, "mode": kind.way}
    return definition | dict(kind.options)


def _whole(project: Project, done: Done, reported: Done) -> str:
    """What is wrong with the run itself: its end, its reports, processes that it left."""
    if problem := done.problem(0, 1) or reported.problem(0):
        return problem
    if left := project.left_behind(10.0):
        return f"left behind: {left}"
    pids = project.folder / "pids"
    noted = [int(pid) for pid in pids.read_text().split()] if pids.exists() else []
    eventually(lambda: not any(map(_runs, noted)), 5.0)
    if alive := [pid for pid in noted if _runs(pid)]:
        for pid in alive:
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        return "a daemon was left behind"
    return ""


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _good(trial: Mapping[str, Any]) -> str:
    rows = trial["iteration_metrics"]
    found = {(row["case"], row["status"], row.get("score"), row.get("output")) for row in rows}
    wanted = {(word, "ok", 1.0, word) for word in ("before", "bad", "after")}
    return (
        ""
        if found == wanted and len(rows) == 3
        else f"the good agent in the same run got {sorted(found, key=str)}"
    )


def _problems(kind: Kind, trial: Mapping[str, Any]) -> list[str]:
    rows = {row["case"]: row for row in trial["iteration_metrics"]}
    problems = []
    if len(rows) != len(trial["iteration_metrics"]) or set(rows) - {"before", "bad", "after"}:
        problems.append("executions stored that were not asked for")
    if missing := {"before", "bad", "after"} - set(rows):
        problems.append(f"no execution of {sorted(missing)}: {trial['stopped']}")
    bad = rows.get("bad")
    if bad is not None and bad["status"] not in kind.statuses:
        problems.append(
            f"{bad['status']} instead of {' or '.join(sorted(kind.statuses))}: {str(bad.get('error'))[:200]}"
        )
    if bad is not None and bad.get("score") and bad.get("output") != "bad":
        problems.append(f"score {bad['score']} for the output {str(bad.get('output'))[:60]!r}")
    for word in ("before", "after") if kind.is_whole_after else ():
        row = rows.get(word)
        if row is not None and (row["status"], row.get("score")) != ("ok", 1.0):
            problems.append(f"the case '{word}' the bad one is {row['status']}, score {row.get('score')}: {str(row.get('error'))[:200]}")  # fmt: skip
    for row in rows.values():
        figures = {"duration_s": row["duration_s"], **row["metrics"]}
        if odd := {
            n: v for n, v in figures.items() if v is not None and (not math.isfinite(v) or v < 0 or v > 1e15)
        }:
            problems.append(f"figures that cannot be: {odd}")
    return problems


def _refuse(word: str) -> None:
    raise ValueError(f"the result document holds {word}")


def _answer(guest: Guest) -> bool | None:
    """Behind /BODY; only the case "bad" is answered badly."""
    from urllib.parse import unquote

    top, _, sent = guest.request.partition(b"\r\n\r\n")
    asked = json.loads(sent)
    if asked["input"] != "bad":
        guest.say(with_length(json.dumps({"id": asked["id"], "output": asked["input"]}).encode()))
        return None
    deed = unquote(top.split(b" ")[1].decode()).removeprefix("/")
    return bool(eval(deed, {name: partial(act, guest) for name, act in _DEEDS.items()}))


def _status(guest: Guest, code: int) -> bool:
    guest.say(with_length(b"{}", status=b"%d Odd" % code))
    return True


def _redirect(guest: Guest) -> bool:
    guest.say(with_length(b"", b"location: /redirect()\r\n", status=b"302 Found"))
    return True


def _body(guest: Guest, content: bytes) -> bool:
    guest.say(with_length(content, b"content-type: application/json\r\n"))
    return True


def _hang(guest: Guest) -> bool:
    return bool(guest.socket.recv(1))


def _half(guest: Guest) -> bool:
    guest.say(head(b"content-length: 100\r\n"), b'{"output": "bad"}')
    return False


def _headers(guest: Guest) -> bool:
    guest.say(b"HTTP/1.1 200 OK\r\n", *[b"x-more: %b\r\n" % (b"y" * 1000)] * 5000)
    return False


_DEEDS = {"status": _status, "redirect": _redirect, "body": _body, "close": lambda guest: False, "hang": _hang,
          "half": _half, "headers": _headers}  # fmt: skip
PART = Part(
    "agents",
    "A misbehaving agent gets the right status and no impossible values; a well-behaved agent in the same run is unaffected.",
    prepare,
    at_a_time=4,  # most of the time is spent waiting for limits
)
