"""What people write: objectives, stages, times, traces and prompts."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wording import Wording

from assay.errors import AssayError, SpecError
from assay.spec.datasets import read_sessions
from assay.spec.load_settings import objectives_of, rate_of, seconds_of, stages_of
from assay.spec.traces import read_trace

NUMBERS = st.floats(0.001, 9999).map(lambda number: round(number, 3))


@given(
    NUMBERS, st.sampled_from([("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)])
)
def test_times_have_units(number: float, unit: tuple[str, float]) -> None:
    assert seconds_of(f"{number}{unit[0]}", "--duration") == pytest.approx(number * unit[1])


@given(st.text(max_size=12))
def test_any_text_is_a_time_or_refused_with_the_option(text: str) -> None:
    for read in (seconds_of, rate_of):
        told, found = "--x: ", 0.0
        try:
            found = read(text, "--x")
        except SpecError as error:
            told = str(error)
        assert told.startswith("--x: ")
        assert found >= 0


@pytest.mark.parametrize("text", ["0", "-1", "-0.5/s", "nan", "inf", "fast", "", "10000000", "1e300"])
def test_a_rate_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--rate: "):
        rate_of(text, "--rate")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ttft", "itl", "tpot", "latency", "schedule_delay"]),
            st.sampled_from(["mean", "max", "p50", "p90", "p95", "p99", "p999"]),
            st.sampled_from(["<", "<=", ">", ">="]),
            NUMBERS,
            st.sampled_from([("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([",", " , ", ",,"]),
)
def test_objectives_are_read_as_they_are_written(
    parts: list[tuple[str, str, str, float, tuple[str, float]]], comma: str
) -> None:
    text = comma.join(
        f"{metric}_{figure}{sign}{number}{unit[0]}" for metric, figure, sign, number, unit in parts
    )
    for found, (metric, figure, sign, number, unit) in zip(objectives_of(text), parts, strict=True):
        assert (found.metric, found.statistic) == (metric, figure)
        assert found.limit == pytest.approx(number * unit[1])
        assert (found.is_upper, found.is_inclusive) == (sign[0] == "<", sign.endswith("="))


def test_rates_are_objectives_too() -> None:
    found = objectives_of("error_rate<=0%,throughput>50/s,goodput>=10,tokens>1e3")
    assert [(one.metric, one.limit) for one in found] == [
        ("error_rate", 0.0), ("throughput", 50.0), ("goodput", 10.0), ("tokens", 1000.0),
    ]  # fmt: skip
    assert [one.is_met_by(one.limit) for one in found] == [True, False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "", ",", "ttft", "ttft<200ms", "ttft_p95<200", "ttft_p95<fast", "ttft_p96<1s", "speed_p95<1s", "ttft_p95<1.2.3s",
        "error_rate<1ms", "error_rate_p95<1%", "error_rate<5/s", "throughput>50%", "ttft_p95=1s", "ttft_p95<-1s", "ttft_p95<1%",
    ],
)  # fmt: skip
def test_an_objective_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--slo: "):
        objectives_of(text)


@given(st.text(max_size=30))
def test_any_text_is_an_objective_or_stages_or_refused(text: str) -> None:
    for read, option in ((objectives_of, "--slo"), (stages_of, "--stages")):
        told: object = None
        try:
            assert len(read(text)) >= 1
        except SpecError as error:
            told = str(error)
        assert told is None or str(told).startswith(f"{option}: ")


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.none() | NUMBERS), min_size=1, max_size=5))
def test_stages_stay_or_ramp(parts: list[tuple[float, float, float | None]]) -> None:
    text = ",".join(f"{s}s@{first}" + (f"..{last}" if last is not None else "") for s, first, last in parts)
    assert stages_of(text) == tuple((s, first, first if last is None else last) for s, first, last in parts)


def test_stages_may_say_per_second() -> None:
    assert stages_of("1m@5/s..10/s, 2@0") == ((60.0, 5.0, 10.0), (2.0, 0.0, 0.0))


@pytest.mark.parametrize(
    "text",
    ["", "10s", "10s@", "@50", "10s@-5", "0s@50", "10s@5e8", "10s@0", "10s@1..2..3", "10s@1.2.3", "x@5"],
)
def test_stages_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--stages: "):
        stages_of(text)


def trace(folder: Path, text: str | bytes) -> Path:
    file = folder / "trace.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_a_trace_counts_from_its_first_request(tmp_path: Path) -> None:
    rows = read_trace(
        trace(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n100.5,10,3\n100.75,,\n")
    )
    assert (list(rows.due), list(rows.input_tokens), list(rows.output_tokens)) == (
        [0, 0.25],
        [10, -1],
        [3, -1],
    )


def test_a_trace_of_dates_is_read_in_utc_with_seven_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In March clocks in Berlin jump from 2 to 3: that must not tear a hole."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-03-26 01:59:59.6805900,4808,10\n2023-03-26 03:00:00.1805900,3180,8\n"
    try:
        rows = read_trace(trace(tmp_path, text))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert rows.due[1] == pytest.approx(3600.5)
    assert list(rows.input_tokens) == [4808, 3180]


def test_every_bad_row_of_a_trace_is_named_with_its_line(tmp_path: Path, wording: Wording) -> None:
    file = trace(
        tmp_path, "timestamp,input_tokens\n1,5\nsoon,5\n3,many\n2.9,5\n0.5,1\n4,-3\n5,1e300\nnan,1\n6,nan\n"
    )
    with pytest.raises(SpecError) as wrong:
        read_trace(file)
    mistakes = wrong.value.mistakes
    assert {mistake.file for mistake in mistakes} == {str(file)}
    assert [mistake.line for mistake in mistakes] == [3, 4, 6, 7, 8, 9, 10]
    assert "'soon'" in mistakes[0].problem
    assert "0.5 " in mistakes[2].problem
    wording(wrong.value)


def test_a_trace_that_is_wrong_throughout_is_reported_in_short(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as wrong:
        read_trace(trace(tmp_path, "timestamp\n" + "never\n" * 5000))
    told = str(wrong.value).splitlines()
    assert len(told) == 21
    assert "4980" in told[-1]
    wording(told[-1])


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,2\n", "timestamp\n", b"\xff\xfe\x00", 'timestamp\n1\n"' + "x" * 200_000],
    ids=["empty", "no_time", "no_rows", "no_text", "no_csv"],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str | bytes, wording: Wording) -> None:
    # A limit of the whole process, which reading cases raises.
    csv.field_size_limit(131_072)
    with pytest.raises(SpecError, match=r"trace\.csv") as wrong:
        read_trace(trace(tmp_path, text))
    wording(wrong.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path, wording: Wording) -> None:
    for read in (read_trace, read_sessions):
        with pytest.raises(SpecError, match=r"nowhere\.csv: ") as wrong:
            read(tmp_path / "nowhere.csv")
        wording(wrong.value)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_times_in_order_are_a_trace(tmp_path_factory: pytest.TempPathFactory, moments: list[float]) -> None:
    moments.sort()
    file = trace(tmp_path_factory.mktemp("trace"), "time\n" + "".join(f"{moment!r}\n" for moment in moments))
    assert list(read_trace(file).due) == [moment - moments[0] for moment in moments]


def prompts_in(path: Path) -> list[object]:
    return [turn.prompt for session in read_sessions(path) for turn in session.turns]


def test_prompts_are_lines_or_fields_of_lines(tmp_path: Path) -> None:
    plain, rows = tmp_path / "p.txt", tmp_path / "p.jsonl"
    plain.write_text("one\r\n\n two\u2028three\n")
    rows.write_text(
        "\n".join(
            json.dumps(row)
            for row in ("a", {"prompt": "b"}, {"input": "c"}, {"question": "d"}, {"text": "e"})
        )
    )
    assert prompts_in(plain) == ["one", " two\u2028three"]
    assert prompts_in(rows) == ["a", "b", "c", "d", "e"]


def test_bad_prompts_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(
        '{"prompt": "a"}\n{"prompt": 5}\nno json\n{"prompt": "\\ud800"}\n{"prompt": " "}\n'
        + "[" * 100_000
        + "\n"
    )
    with pytest.raises(SpecError) as wrong:
        read_sessions(file)
    assert [line.split(":")[1] for line in str(wrong.value).splitlines()] == ["2", "3", "4", "5", "6"]


def test_an_empty_file_has_no_prompts(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "p.txt").write_text("\n \n")
    with pytest.raises(AssayError, match=r"p\.txt") as wrong:
        read_sessions(tmp_path / "p.txt")
    wording(wrong.value)
