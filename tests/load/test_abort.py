"""`--abort-on`: by what workers tell, made by hand, and through the command against a server that dies."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from tests.command import AssayInline
from tests.load.faulty import ANSWER, Guest, always, faulty, with_length
from tests.wording import Wording

from assay.errors import SpecError
from assay.load.abort import FEWEST, WINDOW_SECONDS, AbortMonitor
from assay.load.worker_report import COLUMNS, Chunk
from assay.spec.load_settings import abort_conditions_of

OK, FAILED, CUT = "ok", "http_500", "cut_off"


def chunk(at: float, requests: Sequence[tuple[float, str]], ttft: float = 0.1) -> Chunk:
    """What a worker tells at a time: when each request ended, and how."""
    kinds = [OK, FAILED, CUT]
    rows: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for end, kind in requests:
        row: dict[str, float] = {
            "due": end - 2 * ttft,
            "sent": end - 2 * ttft,
            "first": end - ttft,
            "end": end,
        }
        row |= {"output": 5.0, "kind": float(kinds.index(kind))}
        for name in COLUMNS:
            rows[name].append(row.get(name, 0.0))
    columns = {name: array("d", values) for name, values in rows.items()}
    return Chunk(columns, array("d"), {"at": at, "kinds": kinds})


def reason(conditions: str, chunks: Sequence[Chunk]) -> str | None:
    monitor = AbortMonitor(abort_conditions_of(conditions))
    for one in chunks:
        monitor.watch(one)
    assert monitor.is_triggered() == (monitor.reason is not None)
    return monitor.reason


def seconds_of(kinds: Sequence[str], first: int = 0, each: int = 10, ttft: float = 0.1) -> list[Chunk]:
    """A chunk a second, with so many requests of one kind."""
    return [
        chunk(first + place + 1, [(first + place + 0.5, kind)] * each, ttft)
        for place, kind in enumerate(kinds)
    ]


def test_too_many_errors_of_the_last_seconds_abort(wording: Wording) -> None:
    told = reason("error_rate>50%", seconds_of([OK] * 20 + [FAILED] * 10))
    assert told is not None
    assert told.startswith("error_rate>50% ")
    assert re.findall(r"\d+ (?:%|s\b)|\b100\b", told) == ["60 %", "100", "10 s", "26 s"]
    wording(told)


def test_errors_that_are_long_past_do_not() -> None:
    assert reason("error_rate>50%", seconds_of([FAILED, FAILED, *[OK] * 12], each=9)) is not None
    assert reason("error_rate>60%", seconds_of([OK, OK, FAILED, FAILED, *[OK] * 20])) is None


def test_a_few_requests_are_not_enough() -> None:
    assert reason("error_rate>50%", [chunk(1, [(0.5, FAILED)] * (FEWEST - 1))]) is None
    assert reason("error_rate>50%", [chunk(1, [(0.5, FAILED)] * FEWEST)]) is not None


def test_of_a_slow_server_the_last_requests_count_however_long_ago() -> None:
    slow = [chunk(30.0 * place, [(30.0 * place - 1, FAILED)]) for place in range(1, FEWEST + 1)]
    told = reason("error_rate>50%", slow)
    assert told is not None
    assert f" {FEWEST} " in told


def test_what_was_cut_off_is_neither_an_answer_nor_an_error() -> None:
    requests = [(0.5, CUT)] * 100 + [(0.5, OK)] * (FEWEST - 1)
    assert reason("error_rate>=0%", [chunk(1, requests)]) is None


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("ttft_p95>5s", True),
        ("ttft_p95>7s", False),
        ("latency_p50>=12s", True),
        ("latency_max>13s", False),
        ("throughput<9", False),
        ("throughput<11", True),
        ("tokens>45", True),
        ("error_rate<1%", True),
    ],
)
def test_conditions_on_times_and_rates(condition: str, holds: bool) -> None:
    """Ten answers a second of five tokens each; the first token comes after 6 s, the last after 12 s."""
    chunks = seconds_of([OK] * 15, first=20, ttft=6.0)
    assert (reason(condition, chunks) is not None) is holds


def test_memory_is_bounded_by_the_window() -> None:
    monitor = AbortMonitor(abort_conditions_of("error_rate>99%"))
    for one in seconds_of([OK] * 200):
        monitor.watch(one)
    assert len(monitor._chunks) <= WINDOW_SECONDS + 2


@pytest.mark.parametrize("text", ["goodput<5", "itl_p95>1s", "ttft>1s", "nonsense"])
def test_conditions_that_cannot_be_judged_while_it_runs_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        abort_conditions_of(text)


def dies_after(answers: int) -> Any:
    def talk(guest: Guest) -> None:
        guest.say(ANSWER if guest.number <= answers else with_length(b"", status=b"500 Oops"))

    return talk


def test_a_load_is_aborted_and_says_so_everywhere(assay_inline: AssayInline) -> None:
    with faulty(dies_after(25)) as server:
        done = assay_inline(
            "load", server.url, "--rate", "25", "--duration", "60", "--abort-on", "error_rate>50%", "--json"
        )
    assert done.code == 1
    found = json.loads(done.out)
    assert found["verdict"] == "aborted"
    assert found["aborted"].startswith("error_rate>50% ")
    assert found["interrupted"] is False
    assert found["duration_s"] < 10
    assert 50 <= found["requests_sent"] < 250
    (row,) = assay_inline("runs", "list", "--json").json
    assert (row["state"], row["verdict"]) == ("completed", "aborted")
    assert found["aborted"] in " ".join(assay_inline("show", "last").out.split())


def test_further_levels_are_not_tried_after_an_abort(assay_inline: AssayInline) -> None:
    with faulty(dies_after(0)) as server:
        done = assay_inline(
            "load", server.url, "--concurrency", "20,40", "--duration", "60", "--abort-on", "error_rate>50%", "--json"
        )  # fmt: skip
    assert done.code == 1
    found = json.loads(done.out)
    assert "loads" not in found
    assert found["aborted"]


def test_a_condition_that_never_holds_changes_nothing(assay_inline: AssayInline) -> None:
    with faulty(always(ANSWER)) as server:
        found = assay_inline(
            "load", server.url, "--requests", "60", "--abort-on", "error_rate>50%", "--json"
        ).json
    assert found["aborted"] is None
    assert found["requests_completed"] == 60


def test_abort_on_is_a_param_of_the_experiment(assay_inline: AssayInline) -> None:
    with faulty(dies_after(25)) as server:
        done = assay_inline(
            "run", "load", "--set", f"target={server.url}", "--set", "rate=25", "--set", "duration=60s", "--set",
            "abort_on=error_rate>50%",
        )  # fmt: skip
    assert done.code == 0, done.err
    (row,) = assay_inline("runs", "list", "--json").json
    assert row["verdict"] == "aborted"


def test_a_search_for_the_capacity_takes_no_condition(assay_inline: AssayInline) -> None:
    done = assay_inline("load", "http://127.0.0.1:9/v1", "--find-capacity", "--abort-on", "error_rate>50%")
    assert done.code == 2
    assert "--abort-on" in done.err
