"""Traces in Mooncake's format, compressed, faster, and in part."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.load.faulty import ANSWER, always, faulty

from assay.errors import SpecError
from assay.load.build import LoadOptions, build_prepared_load
from assay.load.load_shape import load_for
from assay.spec.traces import read_trace

ROWS = [
    {"timestamp": 27482, "input_length": 1300, "output_length": 52, "hash_ids": [46, 47, 48]},
    {"timestamp": 27982, "input_length": 1100, "output_length": 26, "hash_ids": [46, 47, 2353]},
    {"timestamp": 28482, "input_length": 600, "output_length": 52, "hash_ids": [74, 75]},
    {"timestamp": 30482, "input_length": 600, "output_length": 9},
]


def trace(path: Path, rows: list[dict[str, object]] = ROWS) -> Path:  # type: ignore[assignment]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_mooncake_trace_counts_milliseconds_from_its_first_row(tmp_path: Path, name: str) -> None:
    rows = read_trace(trace(tmp_path / name))
    assert list(rows.due) == pytest.approx([0, 0.5, 1.0, 3.0])
    assert list(rows.input_tokens) == [1300, 1100, 600, 600]
    assert list(rows.output_tokens) == [52, 26, 52, 9]
    assert list(rows.block_ends) == [3, 6, 8, 8]
    assert list(rows.part(slice(1, None, 2)).blocks) == [46, 47, 2353]


def test_a_csv_trace_may_be_compressed(tmp_path: Path) -> None:
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress(b"time,input_tokens\n1,5\n2,6\n"))
    assert list(read_trace(file).input_tokens) == [5, 6]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(SpecError, match="gzip"):
        read_trace(file)
    file.write_bytes(b"time\n1\n")
    with pytest.raises(SpecError, match="gzip"):
        read_trace(file)


def test_prompts_share_the_blocks_that_the_trace_says_they_share(tmp_path: Path) -> None:
    file = trace(tmp_path / "t.jsonl")
    with faulty(always(ANSWER)) as server:
        options = LoadOptions(server.url, arrivals=f"trace:{file}", speed=20, workers=2)
        found = build_prepared_load(options).measure()
        texts = {
            body["max_tokens"]: body["messages"][0]["content"].split()
            for body in (json.loads(one.partition(b"\r\n\r\n")[2]) for one in server.requests)
        }
        all_texts = [
            json.loads(one.partition(b"\r\n\r\n")[2])["messages"][0]["content"] for one in server.requests
        ]
    assert found.requests_completed == 4
    assert found.duration < 1.0
    assert sorted(len(text.split()) for text in all_texts) == [600, 600, 1100, 1300]
    long = next(text for text in all_texts if len(text.split()) == 1300).split()
    other = texts[26]
    assert long[:1024] == other[:1024]
    assert long[1024:1030] != other[1024:1030]


@pytest.mark.parametrize(
    ("given", "due"),
    [
        ({"speed": 4.0}, [0, 0.125, 0.25, 0.75]),
        ({"window": "0.5s..3s"}, [0, 0.5]),
        ({"window": "400ms..10m", "speed": 2.0}, [0.05, 0.3, 1.3]),
        ({"window": "0..1s", "requests": 1}, [0]),
    ],
)
def test_a_part_of_a_trace_at_another_speed(
    tmp_path: Path, given: dict[str, object], due: list[float]
) -> None:
    options = LoadOptions("http://127.0.0.1:9/v1", arrivals=f"trace:{trace(tmp_path / 't.jsonl')}", **given)  # type: ignore[arg-type]
    rows = load_for(options).trace
    assert rows is not None
    assert list(rows.due) == pytest.approx(due)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"speed": 2.0}, "--speed"),
        ({"window": "1s..2s"}, "--window"),
        ({"arrivals": "trace", "window": "2s..1s"}, "--window"),
        ({"arrivals": "trace", "window": "5m..6m"}, "--window"),
        ({"arrivals": "trace", "speed": 0.0}, "--speed"),
    ],
)
def test_parts_that_are_none_are_refused(tmp_path: Path, given: dict[str, object], option: str) -> None:
    if given.get("arrivals"):
        given = {**given, "arrivals": f"trace:{trace(tmp_path / 't.jsonl')}"}
    with pytest.raises(SpecError) as refused:
        load_for(LoadOptions("http://127.0.0.1:9/v1", **given))  # type: ignore[arg-type]
    assert refused.value.mistakes[0].file == option


def test_every_bad_line_of_a_mooncake_trace_is_named(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(
        '{"timestamp": 5}\n[1]\nno\n{"timestamp": 4}\n{"input_length": 3}\n{"timestamp": 9, "hash_ids": ["a"]}\n'
        '{"timestamp": 9, "input_length": -4}\n{"time": 2}\n'
    )
    with pytest.raises(SpecError) as wrong:
        read_trace(file)
    assert [mistake.line for mistake in wrong.value.mistakes] == [2, 3, 4, 5, 6, 7]
