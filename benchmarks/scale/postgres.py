"""How fast executions are stored in PostgreSQL, by one writer and by four at once."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import psutil
from arms import PYTHON, CommandFailed, tell
from record import Bound, Figure, Promise, Result, figure, in_unit

from assay.store.store import Store
from scale.rows import TIMINGS, begin_run, build_batches, find_server_process, make_database, postgres

WRITER = Promise("writer", "Executions a second that one writer stores in PostgreSQL", Bound.AT_LEAST, 20_000, "1/s")  # fmt: skip
_CLAIM = "Executions a second that four writers store in PostgreSQL"
TIMES, USED = 2.0, 0.95
WRITERS = Promise(
    "writers", _CLAIM, Bound.AT_LEAST, TIMES, "times", f"one writer, or {USED:.0%} of the free cores used"
)
CORES = Promise(
    "writers", _CLAIM, Bound.AT_LEAST, USED, "share", f"of the free cores used, or {TIMES:g}× one writer"
)
TRIALS = 4


@dataclass(frozen=True, slots=True)
class Written:
    """What was stored a second by all writers, from the first batch to the last, and what that took."""

    rate: float
    writers: float
    """CPU seconds of the writers for an execution."""
    server: float
    """CPU seconds of PostgreSQL for an execution."""
    left: float
    """How many cores other programs and the disk left to writers and server."""

    @property
    def used(self) -> float:
        """Which share of what other programs left of all cores writers and server used; the rest was idle."""
        return self.rate * (self.writers + self.server) / self.left


def measure(quick: bool) -> list[Result]:
    # Long enough that the moment in which the last writer is alone does not count.
    per_trial, rounds = (2_500, 1) if quick else (60_000, 5)
    with postgres() as server:
        url = make_database(server, "writers")
        Store.open(url).close()
        alone, together = [], []
        for number in range(rounds):
            alone.append(_write(url, f"alone-{number}", 1, per_trial))
            together.append(_write(url, f"four-{number}", 4, per_trial))
            tell(
                f"  one {alone[-1].rate:,.0f}/s, four {together[-1].rate:,.0f}/s, {together[-1].used:.0%} of the free cores"
            )
    one = figure([found.rate for found in alone])
    told = f"A writer takes {_micro(alone, 'writers')} of CPU time for an execution, beside what PostgreSQL takes."
    observed = {"rates": [found.rate for found in alone], "cpu": [found.writers for found in alone]}
    return [Result(WRITER, "1/s", one, one, detail=told, values=observed), _judge_writers(alone, together)]


def _judge_writers(alone: Sequence[Written], together: Sequence[Written]) -> Result:
    """By the rate of one writer; where that is out of reach, by how much of the machine's time was used."""
    times = figure([four.rate / one.rate for one, four in zip(alone, together, strict=True)])
    used = figure([four.used for four in together])
    is_fast = times.value >= TIMES
    told = f"{_describe(times, used, together)} An execution took {_micro(together, 'writers')} of CPU time of the writers and {_micro(together, 'server')} of PostgreSQL."
    observed = {"one": [found.rate for found in alone]} | {
        name: [getattr(found, part) for found in together]
        for name, part in (
            ("four", "rate"),
            ("writers' CPU", "writers"),
            ("server's CPU", "server"),
            ("used", "used"),
            ("cores left", "left"),
        )
    }
    four, peers = figure(observed["four"]), {"one writer": figure(observed["one"])}
    promise, judged = (WRITERS, times) if is_fast else (CORES, used)
    return Result(promise, "1/s", four, judged, peers, told, observed)


def _describe(times: Figure, used: Figure, together: Sequence[Written]) -> str:
    by = "the rate" if times.value >= TIMES else "the machine's limit"
    left = figure([found.left for found in together]).value
    return (
        f"Judged by {by}: four writers stored {in_unit(times.value, 'times')} as much as one, and they and PostgreSQL "
        f"used {in_unit(used.value, 'share')} of the {left:.2f} of {os.cpu_count()} cores that other programs and the disk left."
    )


def _micro(found: Sequence[Written], part: str) -> str:
    return f"{1e6 * figure([getattr(one, part) for one in found]).value:.0f} µs"


def _write(url: str, name: str, writers: int, per_trial: int) -> Written:
    words = [PYTHON, "-m", "scale.postgres", url, str(per_trial)]
    folder = str(Path(__file__).parent.parent)
    started = [
        subprocess.Popen(
            [*words, f"{name}-{n}"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for n in range(writers)
    ]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    server = find_server_process(url)
    began, before, idle = perf_counter(), _read_cpu(server), _read_idle()
    for process in started:
        assert process.stdin
        process.stdin.close()
    spent = []
    for process in started:
        assert process.stdout
        spent.append(json.loads(process.stdout.readline())["cpu"])
    taken, unused = perf_counter() - began, _read_idle() - idle
    served = _read_cpu(server) - before
    if any(process.wait() for process in started):
        raise CommandFailed("a writer failed")
    stored = writers * TRIALS * per_trial
    return Written(
        stored / taken, sum(spent) / stored, served / stored, (sum(spent) + served + unused) / taken
    )


def _read_cpu(server: psutil.Process) -> float:
    """CPU seconds of all processes of PostgreSQL, those that have ended among them."""
    own = server.cpu_times()
    ended = own.children_user + own.children_system
    living = [own]
    for process in server.children():
        with contextlib.suppress(psutil.NoSuchProcess):  # its time is among that of ended ones the next time
            living.append(process.cpu_times())
    return float(ended + sum(times.user + times.system for times in living))


def _read_idle() -> float:
    """Seconds that all cores together had nothing to do. Waiting for the disk is not among them: that is a limit of the machine, too."""
    return float(psutil.cpu_times().idle)


def main() -> None:
    """A writer: gets ready, waits until its input is closed, and stores a run."""
    url, per_trial, run_id = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with Store.open(url) as store:
        begin_run(store, run_id, TRIALS, per_trial)
        batches = build_batches(TIMINGS, TRIALS, per_trial)
        print("ready", flush=True)
        sys.stdin.read()
        before = process_time()
        for batch in batches:
            store.add(run_id, batch)
        print(json.dumps({"cpu": process_time() - before}), flush=True)


if __name__ == "__main__":
    main()
