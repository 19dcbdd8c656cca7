"""The live view of a load, from what workers told by hand: figures now, and charts of how they were."""

from __future__ import annotations

from array import array

from rich.console import Console
from tests.wording import Wording

from assay.cli.load_view import InFlight, ViewLine, picture, view_lines
from assay.load.tally import Tally
from assay.load.worker_report import COLUMNS, Chunk
from assay.model.load import Arrivals, Load

LOAD = Load(Arrivals.CONSTANT, stages=((20.0, 40.0, 40.0),), seconds=20.0)
KINDS = ["ok", "http_500"]


def chunk(at: float, ok: int, failed: int, latency: float, in_flight: int = 3) -> Chunk:
    """Requests that were due and ended in the quarter of a second before `at`."""
    rows: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for number in range(ok + failed):
        due = at - 0.24
        row = {
            "due": due,
            "begun": due,
            "sent": due,
            "first": due + latency / 2,
            "end": due + latency,
            "output": 5.0,
        }
        row["kind"] = 0.0 if number < ok else 1.0
        for name in COLUMNS:
            rows[name].append(row.get(name, 0.0))
    facts = {
        "at": at, "sent": 0, "in_flight": in_flight, "reconnects": 0, "coalesced": 0, "counted": False, "simulated": False,
        "cpu": 0.0, "is_last": False, "answers": [], "kinds": KINDS, "censored": 0,
    }  # fmt: skip
    return Chunk({name: array("d", values) for name, values in rows.items()}, array("d"), facts)


def watched() -> tuple[Tally, InFlight]:
    """Eight quarters of a second with 10 answers of 100 ms each, then eight with 5 answers of 200 ms and 5 errors."""
    tally, history = Tally(), InFlight()
    for place in range(16):
        is_bad = place >= 8
        at = (place + 1) * 0.25
        tally.add(
            0, chunk(at, 5 if is_bad else 10, 5 if is_bad else 0, 0.2 if is_bad else 0.1, 9 if is_bad else 3)
        )
        history.add(tally.read_progress())
    return tally, history


def found() -> dict[str, ViewLine]:
    tally, history = watched()
    return {line.name: line for line in view_lines(tally.read_progress(), tally, LOAD, history, room=60)}


def test_figures_are_those_of_the_last_seconds(wording: Wording) -> None:
    lines = found()
    assert lines["time"].now == "4 s"
    assert lines["answers/s"].now == "20"
    assert lines["in flight"].now == "9"
    assert lines["latency P50"].now == lines["latency P99"].now == "200 ms"
    assert lines["first token P95"].now == "100 ms"
    assert lines["failed"].now == "40"
    assert "25 %" in lines["failed"].note
    assert "http_500 40" in lines["failed"].note
    wording(lines["failed"].note)


def test_charts_have_a_column_for_each_slice_on_one_scale() -> None:
    lines = found()
    assert list(lines["answers/s"].values) == [40.0] * 8 + [20.0] * 8
    assert list(lines["failed/s"].values) == [0.0] * 8 + [20.0] * 8
    assert list(lines["in flight"].values)[1:8] == [3.0] * 7
    assert lines["latency P50"].top == lines["latency P99"].top


def test_it_fits_a_narrow_terminal() -> None:
    tally, history = watched()
    for width in (40, 80, 200):
        console = Console(width=width)
        with console.capture() as shown:
            console.print(picture(tally.read_progress(), tally, LOAD, history, width))
        text = shown.get().splitlines()
        assert all(len(line) <= width for line in text)
        assert len(text) == len(found())
        # Charts are cut rather than names and figures.
        assert [line.split("  ")[0] for line in text] == list(found())


def test_the_history_is_cleared_by_the_next_load_and_bounded() -> None:
    _, history = watched()
    assert history.between(0.25, 0.5) == 3
    history.forget_before(3.0)
    assert history.between(0.25, 0.5) is None
    fresh = Tally()
    fresh.add(0, chunk(0.3, 1, 0, 0.1, in_flight=1))
    history.add(fresh.read_progress())
    assert history.between(3.5, 3.75) is None
    assert history.between(0.25, 0.5) == 1
