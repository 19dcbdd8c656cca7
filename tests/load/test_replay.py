"""Traces are kept as numbers, and requests made of them when they are due."""

from __future__ import annotations

import io
import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command import AssayInline
from tests.load.faulty import ANSWER, always, faulty

from assay.load.build import LoadOptions, build_prepared_load
from assay.load.engine import SERVER_WORKER, generate_load, part_of
from assay.load.payload import TemplateRequests
from assay.load.request import (
    LoadPrompt,
    Prefix,
    Target,
    requests_for,
    template_for,
    with_prefix,
)
from assay.load.request_lengths import encode_load_order, read_order
from assay.load.synthetic import Openings, SyntheticText
from assay.model.load import Arrivals, Load, Trace
from assay.spec.traces import read_trace

GIVEN = ['Say "hi" \\ and\nmore: é', "second"]
TARGETS = [
    Target("http://x/v1/chat/completions", "openai", "m", {"x-a": "b"}, {"top_p": 1}, "a system"),
    Target("http://x/v1/completions", "openai", None),
    Target("http://x/api/generate", "ollama", "m", params={"num_ctx": 5}, system="a system"),
    Target("http://x/api/chat", "ollama", "m"),
    Target("http://x/v1/messages", "anthropic", "m", streams=False),
    Target("http://x/ask", "http", params={"k": 7}, streams=False),
]
ROWS = [(0.0, 3, 7), (0.5, -1, 9), (0.5, 12, -1), (1.0, 0, 0), (1.5, -1, -1)]


def trace(rows: list[tuple[float, int, int]]) -> Trace:
    due, given, wanted = zip(*rows, strict=True)
    return Trace(array("d", due), array("i", given), array("i", wanted))


def orders(order: dict[str, Any], rows: Trace, workers: int) -> list[dict[str, Any]]:
    found = []
    for worker in range(workers):
        own = {**order, "worker": worker, "workers": workers}
        parts = encode_load_order(own, rows.part(slice(worker, None, workers)))
        found.append(read_order(io.BytesIO(b"".join(parts))))
    return [one for one in found if one is not None]


AS_WRITTEN = Prefix(is_unique=False)


def template(target: Target, prefix: Prefix = AS_WRITTEN, most: int | None = None) -> dict[str, Any]:
    return {
        "template": template_for(target, [LoadPrompt(prompt) for prompt in GIVEN], most, prefix),
        "salt": 7,
    }


@given(st.integers(1, 500), st.integers(0, 2**32 - 1))
def test_synthetic_prompts_have_so_many_words(number: int, request_number: int) -> None:
    prompt = SyntheticText(1).prompt(request_number, number)
    assert len(prompt.split()) == number
    assert prompt == prompt.strip()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.url)
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("most", [None, 5])
@pytest.mark.parametrize("prefix", [AS_WRITTEN, Prefix("all of us: ")], ids=["as written", "unique"])
def test_a_request_of_a_trace_is_the_one_that_would_have_been_made_beforehand(
    target: Target, workers: int, most: int | None, prefix: Prefix
) -> None:
    told = orders(template(target, prefix, most), trace(ROWS), workers)
    made = [TemplateRequests(order) for order in told]
    text, openings = SyntheticText(7), Openings(7)
    for number, (_, size, wanted) in enumerate(ROWS):
        prompt = text.prompt(number, size).decode() if size > 0 else GIVEN[number % 2]
        opening = openings(number).decode() if size <= 0 or target.system else ""
        there, ask = with_prefix(target, LoadPrompt(prompt), prefix.before(opening))
        expected = requests_for(there, [ask], wanted if wanted > 0 else most)
        assert made[number % workers](number) == expected[0]


def test_an_order_does_not_grow_with_what_its_requests_say() -> None:
    few, many = (
        b"".join(encode_load_order(template(TARGETS[0]), trace([(0.0, 100_000, 5)] * number)))
        for number in (1_000, 100_000)
    )
    assert len(many) - len(few) <= 99_000 * 16 + 10


def test_workers_are_given_their_own_rows_only_and_miss_none(tmp_path: Path) -> None:
    told = orders(template(TARGETS[0]), trace(ROWS), 2)
    assert [list(order["due"]) for order in told] == [[0.0, 0.5, 1.5], [0.5, 1.0]]
    assert [order["rows"] for order in told] == [part_of(len(ROWS), worker, 2) for worker in (0, 1)]


def test_a_trace_is_replayed_by_several_workers(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    lines = [f"{number / 1000},{number + 1},{number + 100}" for number in range(40)]
    file.write_text("time,input_tokens,output_tokens\n" + "\n".join(lines))
    with faulty(always(ANSWER)) as server:
        asked = build_prepared_load(LoadOptions(server.url, arrivals=f"trace:{file}", workers=3))
        tally = generate_load(asked.load, asked.order, lambda pulse, so_far: None, module=SERVER_WORKER)
        bodies = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]
    assert tally.completed == 40
    asked_for = sorted((len(body["messages"][0]["content"].split()), body["max_tokens"]) for body in bodies)
    assert asked_for == [(number + 1, number + 100) for number in range(40)]


def test_a_trace_is_cut_where_the_load_ends() -> None:
    rows = trace(ROWS)
    assert list(rows.before(1.0).due) == [0.0, 0.5, 0.5]
    assert Load(Arrivals.TRACE, trace=rows, seconds=2.5).offered == 2.0


def test_a_long_trace_is_read_row_by_row(tmp_path: Path) -> None:
    """Of a file whose text takes 40 MB, three columns of numbers remain."""
    import tracemalloc

    file = tmp_path / "trace.csv"
    note = "x" * 4000
    file.write_text("time,input_tokens,note\n" + "".join(f"{n},{n},{note}\n" for n in range(10_000)))
    tracemalloc.start()
    try:
        rows = read_trace(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(rows) == 10_000
    assert peak < 2_000_000


def test_an_agent_is_asked_as_a_trace_says(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "own.py",
        "from pathlib import Path\n"
        "def told(text):\n"
        "    with Path('asked.txt').open('a') as file: file.write(text + chr(10))\n"
        "    return text\n",
    )
    agents = assay_inline.write(
        "agents.yaml", "agents:\n  - {name: told, type: python, target: 'own.py:told'}\n"
    )
    assay_inline.write("trace.csv", "time,input_tokens\n0,2\n0.01,\n0.02,4\n")
    assert assay_inline("agent", "add", agents).code == 0
    assert assay_inline("load", "told", "--arrivals", "trace:trace.csv", "--prompt", "hello").code == 0
    asked = (assay_inline.folder / "asked.txt").read_text().splitlines()
    assert sorted(len(text.split()) for text in asked) == [1, 2, 4]
    assert "hello" in asked
