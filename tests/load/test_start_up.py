"""Before the first request: workers start beside what the command still has to load, and none is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from datetime import datetime
from pathlib import Path
from threading import Thread

import pytest
from tests.command import Assay, AssayInline

from assay.load import warm_workers as standby
from assay.load.worker_report import COLUMNS, Chunk, ChunkWriter, Unpacker, columns_of
from assay.simulator import SimOptions, SimServer
from assay.store import revisions

pytestmark = pytest.mark.real_starts

Processes = list["subprocess.Popen[bytes]"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Processes:
    """The workers that are started, in order."""
    found: Processes = []
    start = standby._start

    def watched() -> subprocess.Popen[bytes]:
        found.append(start())
        return found[-1]

    monkeypatch.setattr(standby, "_start", watched)
    return found


def test_a_worker_that_stands_by_is_taken_and_one_that_nobody_takes_ends(started: Processes) -> None:
    with standby.start_workers_ahead(2):
        taken = standby.server_worker()
        other = next(one for one in started if one is not taken)
    assert len(started) == 2
    assert taken.poll() is None
    assert other.poll() is not None
    standby._dismiss(taken)
    assert taken.poll() is not None


def test_a_load_is_carried_out_by_the_worker_that_was_started_first(
    assay_inline: AssayInline, started: Processes
) -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2)) as server:
        done = assay_inline("load", f"{server.url}/v1", "--requests", "3", "--json")
    assert done.code == 0, done.err
    assert done.json["requests_completed"] == 3
    assert [worker.poll() for worker in started] == [0]


@pytest.mark.parametrize(
    "option", [("--slo", "nonsense"), ("--duration", "never"), ("--rate", "-1"), ("--timeout", "0")]
)
def test_a_load_that_is_refused_starts_nothing(
    option: tuple[str, str], assay_inline: AssayInline, started: Processes
) -> None:
    done = assay_inline("load", "http://127.0.0.1:9/v1", *option)
    assert done.code == 2
    assert not started


def test_another_host_is_refused_before_anything_starts(
    assay_inline: AssayInline, started: Processes
) -> None:
    assert "--allow-host" in assay_inline("load", "http://192.0.2.1/v1").refusal
    assert not started


@pytest.mark.parametrize("is_found_late", [False, True])
def test_a_database_that_cannot_be_opened_leaves_no_worker_behind(
    is_found_late: bool, assay_inline: AssayInline, started: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_found_late:
        monkeypatch.setattr(revisions, "will_open", lambda url: True)
    assay_inline.write("no.db", "this is no database, but a text that is long enough to be looked at" * 20)
    done = assay_inline("load", "http://127.0.0.1:9/v1", "--requests", "1", "--db", "sqlite:///no.db")
    assert done.code == 2
    assert len(started) == 1
    assert started[0].poll() is not None


LOADED_AT_THE_START = """
import sys
from assay.load import engine

begin = engine._Crew.begin

def watched(crew, *given):
    print(*sorted(sys.modules), file=sys.__stderr__)
    return begin(crew, *given)

engine._Crew.begin = watched
from assay.cli.main import main
main(sys.argv[1:])
"""


def test_what_only_reads_answers_is_not_loaded_before_the_first_request(tmp_path: Path) -> None:
    words = ["load", "http://127.0.0.1:9/v1", "--requests", "1"]
    done = subprocess.run(
        [sys.executable, "-c", LOADED_AT_THE_START, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    loaded = next(line.split() for line in done.stderr.splitlines() if "assay.cli.load_view" in line)
    late = {
        "sqlalchemy",
        "pydantic",
        "yaml",
        "numpy",
        "rich",
        "assay.load.summary",
        "assay.execute.scoring",
    }
    assert not late & {*loaded}


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind a process to a core"
)
def test_a_load_on_a_single_core_is_stored_like_any_other(assay: Assay) -> None:
    allowed = os.sched_getaffinity(0)
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2)) as server:
        os.sched_setaffinity(0, {min(allowed)})
        try:
            done = assay("load", f"{server.url}/v1", "--requests", "3", "--json")
        finally:
            os.sched_setaffinity(0, allowed)
    assert done.code == 0, done.err
    assert assay("show", done.json["run"], "--json").json["status"] == "completed"


def test_the_run_of_a_load_started_before_its_first_request(assay: Assay) -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2)) as server:
        done = assay("load", f"{server.url}/v1", "--duration", "1", "--concurrency", "1", "--json")
        shown = assay("show", done.json["run"], "--json").json
    took = datetime.fromisoformat(shown["ended"]) - datetime.fromisoformat(shown["started"])
    assert took.total_seconds() >= 1.0


def test_a_worker_does_not_wait_for_whoever_reads_its_results() -> None:
    reading, writing = os.pipe()
    writer, held = ChunkWriter(writing), Unpacker()
    sent = 40
    for number in range(sent):
        rows = [(float(number),) * len(COLUMNS)] * 1000
        writer.send(Chunk(columns_of(rows), array("d")), is_last=False)
    ending = Thread(target=writer.send, args=(Chunk(columns_of([]), array("d")), True))
    ending.start()
    chunks: list[Chunk] = []
    while len(chunks) <= sent:
        chunks += held.feed(os.read(reading, 2**20))
    ending.join()
    os.close(reading)
    os.close(writing)
    assert [chunk.columns["number"][0] for chunk in chunks[:-1]] == [*range(sent)]
