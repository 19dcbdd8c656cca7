"""The instrument `profile`: what it sees of a process, and what it says where it can see nothing."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from assay.analysis.profile.profile import explain_problem, sampling_overhead
from assay.builtin.findings.profile_text import format_overhead
from assay.builtin.instruments.process_sampler import IO, SLEEP, read_state
from assay.builtin.instruments.profile import SamplingProfiler
from assay.builtin.instruments.profile_merge import merge_samples
from assay.builtin.instruments.repeats import Repeats
from assay.model import Execution, Phase, Status
from assay.plugin.experiment import ExperimentContext


def test_memray_names_the_line_that_held_most_at_the_peak(tmp_path: Path):
    pytest.importorskip("memray")
    from assay.builtin.instruments.memray import Memray

    instrument = Memray()
    state = instrument.start(ExperimentContext("run", tmp_path, seed=1, phase="profiled"))
    held = bytearray(5_000_000)
    reading = instrument.stop(state)
    assert len(held) <= reading.measurements["memray_peak_bytes"] < 6_000_000
    assert json.loads(reading.files[0].content)["top_peak"][0]["file"].endswith("test_sampling.py")


def record_of(instrument: SamplingProfiler, folder: Path) -> dict[str, Any]:
    reading = instrument.stop(instrument.start(ExperimentContext("run", folder, seed=1, phase="profiled")))
    (content,) = [file.content for file in reading.files if file.type == "profile"]
    found: dict[str, Any] = json.loads(content)
    return found


def test_without_py_spy_the_rest_goes_on(tmp_path: Path, wording: Any):
    record = record_of(SamplingProfiler(py_spy=str(tmp_path / "nowhere")), tmp_path)
    wording(record["problem"])
    assert record["samples"] == 0
    wording(explain_problem("py-spy is not installed"))


def test_a_sampler_without_permission_is_recorded_with_the_way_out(tmp_path: Path, wording: Any):
    refused = tmp_path / "py-spy"
    refused.write_text("#!/bin/sh\necho 'Error: Operation not permitted (os error 1)'\nexit 1\n")
    refused.chmod(0o755)
    problem = record_of(SamplingProfiler(py_spy=str(refused)), tmp_path)["problem"]
    assert "not permitted" in problem
    explained = explain_problem(problem)
    assert "ptrace_scope" in explained
    wording(explained)


def test_the_kernel_says_what_a_thread_waits_for():
    import os
    import socket

    ours, theirs = socket.socketpair()
    reader = threading.Thread(target=ours.recv, args=(1,))
    sleeper = threading.Thread(target=time.sleep, args=(0.3,))
    for thread in (reader, sleeper):
        thread.start()
    time.sleep(0.05)
    states = [read_state(os.getpid(), str(thread.native_id)) for thread in (reader, sleeper)]
    theirs.send(b"x")
    for thread in (reader, sleeper):
        thread.join()
    ours.close()
    theirs.close()
    assert states == [IO, SLEEP]


def event(kind: str, name: str, line: int, ts: int, file: str = "/home/ann/agent.py") -> dict[str, Any]:
    return {"ph": kind, "name": name, "pid": 1, "tid": 9, "ts": ts, "args": {"filename": file, "line": line}}


def test_stacks_and_states_are_joined_by_time():
    events = [
        event("B", "thread (7): MainThread", 0, 0, ""),
        event("B", "answer", 3, 0),
        event("B", "compute", 8, 500_000),
        event("E", "compute", 8, 900_000),
    ]
    rows = [
        {
            "at": 10.0 + n / 10,
            "threads": {"7": "S" if n < 5 else "C"},
            "cpu": n,
            "rss": 1,
            "io": 0,
            "io_bytes": 0,
        }
        for n in range(10)
    ]
    merged = merge_samples(events, {"began": 10.0, "rows": rows}, 10.0, 11.0)
    (thread,) = merged.threads.values()
    named = [[frame[0] for frame in stack] for stack in thread.stacks]
    assert named == [["answer", "[sleep]"], ["answer", "compute"], ["answer"]]
    assert sum(thread.weights) == pytest.approx(1.0)
    assert thread.weights[0] == pytest.approx(0.45)
    assert merged.speedscope("x")["profiles"][0]["endValue"] == pytest.approx(1.0)


def test_a_late_sampler_does_not_move_the_wait_of_an_idle_thread_into_the_work_before_it():
    """Up to 0.3 s the thread works; then it is idle, and py-spy sees that only at 0.5 s."""
    events = [
        event("B", "thread (7): pool", 0, 0, ""),
        event("B", "work", 3, 0),
        event("E", "work", 3, 500_000),
        event("B", "_worker", 81, 500_000, "concurrent/futures/thread.py"),
    ]

    def locked_until(last: int) -> set[str]:
        rows = [
            {
                "at": 10.0 + n / 10,
                "threads": {"7": "Lff" if 3 <= n <= last else "C"},
                "cpu": n,
                "rss": 1,
                "io": 0,
                "io_bytes": 0,
            }
            for n in range(8)
        ]
        merged = merge_samples(events, {"began": 10.0, "rows": rows}, 10.0, 10.8)
        (thread,) = merged.threads.values()
        return {stack[0][0] for stack in thread.stacks if stack[-1][0] == "[lock 1]"}

    assert locked_until(4) == {"work"}  # the wait ended while it worked
    assert locked_until(6) == {"_worker"}
    assert locked_until(7) == set()  # it outlasts the execution, so it did not hold it up


def test_rows_from_before_the_execution_say_nothing_about_it():
    rows = [{"at": 1.0, "threads": {"7": "S"}, "cpu": 0, "rss": 1, "io": 0, "io_bytes": 0}]
    events = [event("B", "thread (7): MainThread", 0, 0, ""), event("B", "answer", 3, 0)]
    assert merge_samples(events, {"began": 0.0, "rows": rows}, 1.5, 2.0).samples == 0


def test_parsing_is_counted_by_caller_and_document(tmp_path: Path):
    instrument = Repeats()
    state = instrument.start(ExperimentContext("run", tmp_path, seed=1, phase="profiled"))
    for _ in range(3):
        json.loads('{"a": 1}')
    for number in range(3):
        json.loads(f"[{number}]")
    reading = instrument.stop(state)
    json.loads("[4]")
    again, once = json.loads(reading.files[0].content)["json"]
    assert (again["calls"], again["documents"], again["repeated_characters"]) == (3, 1, 16)
    assert (once["calls"], once["documents"], once["repeated_characters"]) == (3, 3, 0)
    assert again["function"] == "test_parsing_is_counted_by_caller_and_document"
    assert reading.measurements == {"json_parsed": 6, "json_parsed_again": 2, "sql_queries": 0}


def test_queries_are_counted_by_line_and_rows_of_one_statement_are_not(tmp_path: Path):
    instrument = Repeats()
    state = instrument.start(ExperimentContext("run", tmp_path, seed=1, phase="profiled"))
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (id INTEGER)")
    database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(9)])
    for number in range(9):
        database.execute("SELECT * FROM t WHERE id = ?", (number,)).fetchall()
    reading = instrument.stop(state)
    database.close()
    (caller,) = json.loads(reading.files[0].content)["sql"]
    assert (caller["calls"], caller["documents"]) == (9, 1)
    assert reading.measurements["sql_queries"] == 9


def pair(number: int, without: float, with_it: float) -> list[Execution]:
    return [
        Execution(1, 0, phase, number, Status.OK, 0.0, {"seconds": took})
        for phase, took in ((Phase.MEASURED, without), (Phase.PROFILED, with_it))
    ]


def test_overhead_is_the_mean_ratio_of_pairs_with_its_interval(wording: Any):
    executions = [e for n, (a, b) in enumerate([(1, 1.02), (2, 2.06), (1, 1.025)]) for e in pair(n, a, b)]
    found = sampling_overhead(executions, [0, 1, 2])
    assert found is not None
    logs = [math.log(1.02), math.log(1.03), math.log(1.025)]
    assert found.value == pytest.approx(math.expm1(sum(logs) / 3))
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.value < found.high
    assert found.is_resolved
    wording(format_overhead(found))


def test_overhead_below_the_noise_is_not_resolvable(wording: Any):
    executions = [e for n, (a, b) in enumerate([(1, 1.2), (1, 0.85)]) for e in pair(n, a, b)]
    found = sampling_overhead(executions, [0, 1])
    assert found is not None
    assert not found.is_resolved
    wording(format_overhead(found))
    assert sampling_overhead(executions, [0, 1], "cpu_seconds") is None
    assert sampling_overhead([], []) is None
