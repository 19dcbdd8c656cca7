"""Signals that a terminal, a service manager or a person sends to a run: once, twice, and STOP with CONT."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from faults.campaign import Fault, Outcome, Part, Size
from faults.project import Done, Project, eventually, finish
from faults.workload import Sqlite, Workload

_CODE = """
import os, time
from pathlib import Path
from assay import Experiment, register_experiment

def note(name, text):
    with open(os.path.join(os.environ["NOTES"], name), "a") as file:
        file.write(text + "\\n")

@register_experiment("steps")
class Steps(Experiment):
    def setup(self, context):
        note("setup", "x")

    def execute_once(self, context):
        note("begun", str(context.iteration_index))
        time.sleep(0.03)
        note("done", str(context.iteration_index))

    def teardown(self, context):
        note("teardown", "x")
"""
_MEASURED = 30
_ENDS = {signal.SIGINT: (130,), signal.SIGTERM: (130, 143), signal.SIGHUP: (130, 129)}
"""The exit codes that say which signal ended a run, or that it was interrupted."""


@dataclass(frozen=True, slots=True)
class Blow:
    """Which signal, when, how often and to whom."""

    number: signal.Signals
    moment: str
    times: int
    to_group: bool

    @property
    def name(self) -> str:
        whom = "group" if self.to_group else "runner"
        return f"{self.number.name}{' twice' if self.times == 2 else ''} to the {whom} at {self.moment}"


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ends = [Blow(*one) for one in product(numbers, ("work", "start-up"), (1, 2), (False, True))]
    pauses = [
        Blow(signal.SIGSTOP, moment, 1, group)
        for moment, group in product(("work", "start-up"), (False, True))
    ]
    random.Random(f"{seed} signals").shuffle(ends)
    if size is Size.SMALLEST:
        ends, pauses = [Blow(signal.SIGHUP, "work", 1, False)], []
    elif size is Size.QUICK:
        chosen = [blow for blow in ends if blow.moment == "work" and blow.times == 1 and not blow.to_group]
        ends = chosen + [blow for blow in ends if blow not in chosen][:7]
    rounds = size.choose(1, 1, 6)
    faults = []
    for number, blow in product(range(rounds), [*ends, *pauses]):
        kind = "suite" if (number + blow.to_group) % 2 and size is not Size.SMALLEST else "experiment"
        chance = random.Random(f"{seed} signals {number} {blow.name}")
        faults.append(Fault(f"{number} {blow.name} of {kind}", partial(_check, blow, kind, chance)))
    yield faults


def _check(blow: Blow, kind: str, chance: random.Random, folder: Path) -> Outcome:
    problems = _suite(blow, chance, folder) if kind == "suite" else _experiment(blow, chance, folder)
    return Outcome(1, tuple((f"{blow.name} of {kind}", problem) for problem in problems))


def _suite(blow: Blow, chance: random.Random, folder: Path) -> list[str]:
    work = Workload(folder, Sqlite(folder / "assay.db"))
    done = _struck(work.project, ("run", "suite.json", "--json"), blow, chance, work.ledger)
    problems = _wrong_end(done, blow, bool(work.state()))
    problems += [f"left behind: {line}" for line in work.project.left_behind()]
    before, calls = {row for row in work.rows() if row.is_finished}, len(work.calls())
    if work.state() != "completed" and (problem := work.project(*work.resume()).problem(0)):
        problems.append(problem)
    finished = {(row.key[0], row.key[1], row.key[4]) for row in before}
    if again := [call for call in work.calls()[calls:] if call in finished]:
        problems.append(f"{len(again)} finished executions were done again")
    return problems + work.compare_with_plan()[0]


def _experiment(blow: Blow, chance: random.Random, folder: Path) -> list[str]:
    project = Project(folder, {"NOTES": str(folder)}, db=f"sqlite:///{folder / 'assay.db'}")
    project.write("code.py", _CODE)
    spec = {"experiment": "steps", "load": "code.py", "iterations": {"measured": _MEASURED}}
    project.write("spec.json", json.dumps(spec))
    place = Sqlite(folder / "assay.db")
    done = _struck(project, ("run", "spec.json", "--json"), blow, chance, folder / "begun")
    problems = _wrong_end(done, blow, bool(place.query("SELECT 1 FROM runs")))
    problems += [f"left behind: {line}" for line in project.left_behind()]
    setups, teardowns = len(_notes(folder, "setup")), len(_notes(folder, "teardown"))
    if blow.times == 1 and teardowns < setups:
        problems.append("teardown did not run")
    kept = [row[0] for row in place.query("SELECT repetition FROM executions WHERE status = 'ok'")]
    if len(_notes(folder, "done")) - len(kept) > 1:
        problems.append(f"{len(_notes(folder, 'done'))} iterations were finished, {len(kept)} are stored")
    state = place.query("SELECT state FROM runs")
    if state != [("completed",)]:
        words = ("run", "--resume", "last", "--json") if state else ("run", "spec.json", "--json")
        if problem := project(*words).problem(0):
            problems.append(problem)
    rows = sorted(row[0] for row in place.query("SELECT repetition FROM executions WHERE status = 'ok'"))
    if rows != list(range(_MEASURED)):
        problems.append(f"{len(rows)} ok executions stored after the resume instead of {_MEASURED}")
    return problems


def _struck(
    project: Project, words: Sequence[str], blow: Blow, chance: random.Random, sign: Path
) -> Done:  # fmt: skip
    process = project.start(*words)
    if blow.moment == "work":
        eventually(lambda: sign.exists() or process.poll() is not None, 60)
        time.sleep(chance.uniform(0, 0.6))
    else:
        time.sleep(chance.uniform(0.3, 1.0))
    send = os.killpg if blow.to_group else os.kill
    for _ in range(blow.times):
        if process.poll() is None:
            send(process.pid, blow.number)
            time.sleep(chance.uniform(0.01, 0.3))
    if blow.number == signal.SIGSTOP:
        time.sleep(1.0)
        send(process.pid, signal.SIGCONT)
    return finish(process)


def _wrong_end(done: Done, blow: Blow, has_begun: bool) -> list[str]:
    """Before a run has begun the signal may end the command as it ends any other program."""
    if blow.number == signal.SIGSTOP:
        codes: tuple[int, ...] = (0,)
    else:
        codes = (0, *_ENDS[blow.number], *(() if has_begun else (-blow.number,)))
    problem = done.problem(*codes)
    return [problem] if problem else []


def _notes(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text().splitlines() if path.exists() else []


PART = Part(
    "signals",
    "A signal ends a run with its exit code, after teardown, with all finished work kept; a resume completes it; STOP and CONT change nothing.",
    prepare,
)
