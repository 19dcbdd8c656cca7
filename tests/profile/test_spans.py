"""`assay.span`: what Python code says about its own time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from assay import span
from assay.model import Span
from assay.plugin.spans import SpanCollector, usage_of_spans


def test_spans_nest_and_keep_their_order():
    with SpanCollector() as collector:
        with span("outer"), span("inner", kind="tool"):
            pass
        with span("last", kind="llm"):
            pass
    outer, inner, last = collector.take()
    assert [s.name for s in (outer, inner, last)] == ["outer", "inner", "last"]
    assert (outer.parent, inner.parent, last.parent) == (None, 0, None)
    assert outer.start <= inner.start
    assert outer.seconds >= inner.seconds


def test_a_span_outside_of_an_execution_does_nothing():
    with span("alone", kind="llm", input="question") as call:
        call.record(output="answer", input_tokens=3)
    with SpanCollector() as collector:
        pass
    assert collector.take() == ()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'magic'"):
        span("trick", kind="magic")


def test_no_text_is_kept():
    with SpanCollector() as collector, span("ask", kind="llm", input="my secret prompt") as call:
        call.record(output="my secret answer", input_tokens=4, output_tokens=3)
    (kept,) = collector.take()
    assert "secret" not in str(kept)
    assert kept.attributes["input_tokens"] == 4
    assert kept.attributes["input_characters"] == 16


def ask(prompt: str, answer: str) -> None:
    with span("ask", kind="llm", input=prompt) as call:
        call.record(output=answer)


def test_a_call_that_uses_an_earlier_output_says_so():
    with SpanCollector() as collector:
        ask("Which city has the fjord?", "It is Bergen")
        ask("How many people live in Bergen?", "285000")
        ask("Name a colour", "green")
    assert [s.attributes.get("uses") for s in collector.take()] == [None, [0], None]


def test_words_that_were_asked_before_are_no_use_of_an_output():
    with SpanCollector() as collector:
        ask("Translate water", "water")
        ask("Translate water bottle", "bottle")
    assert [s.attributes.get("uses") for s in collector.take()] == [None, None]


def test_equal_inputs_have_equal_hashes_and_shapes_ignore_values():
    with SpanCollector() as collector:
        for text in ("SELECT 1 FROM t", "SELECT 22 FROM t", "SELECT 1 FROM t"):
            with span("query", kind="tool", input=text):
                pass
    one, other, again = (s.attributes for s in collector.take())
    assert one["input_hash"] == again["input_hash"] != other["input_hash"]
    assert one["input_shape"] == other["input_shape"]


def test_a_prompt_knows_how_much_of_it_was_sent_before():
    with SpanCollector() as collector:
        ask("system text. first", "a")
        ask("system text. first and second", "b")
    assert [s.attributes["prefix_characters"] for s in collector.take()] == [0, 18]


def test_spans_of_threads_and_tasks_belong_to_the_execution():
    def work() -> None:
        with span("in thread", kind="tool"):
            pass

    async def main() -> None:
        async def task(name: str) -> None:
            with span(name, kind="llm"):
                await asyncio.sleep(0.001)

        with span("gather"):
            await asyncio.gather(task("one"), task("two"))

    with SpanCollector() as collector:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        asyncio.run(main())
    assert [(s.name, s.parent) for s in collector.take()] == [
        ("in thread", None),
        ("gather", None),
        ("one", 1),
        ("two", 1),
    ]


def test_an_error_within_a_span_is_named():
    collector = SpanCollector()
    with pytest.raises(KeyError), collector, span("fails"):
        raise KeyError("x")
    assert collector.take()[0].attributes == {"error": "KeyError"}


def test_usage_is_the_sum_of_model_calls_and_unknown_where_one_is():
    full = Span("a", "llm", 0, 1, attributes={"input_tokens": 3, "output_tokens": 2, "cached_tokens": 1})
    half = Span("b", "llm", 0, 1, attributes={"input_tokens": 4})
    tool = Span("c", "tool", 0, 1)
    total = usage_of_spans((full, full, tool))
    assert total is not None
    assert (total.input_tokens, total.output_tokens, total.cached_tokens, total.api_calls) == (6, 4, 2, 2)
    part = usage_of_spans((full, half))
    assert part is not None
    assert (part.input_tokens, part.output_tokens) == (7, None)
    assert usage_of_spans((tool,)) is None
