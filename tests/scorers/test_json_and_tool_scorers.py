"""json, json_schema, tool_calls."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scorers.asking import judgement, made, shown, value

from assay.errors import MissingExtra
from assay.model import ToolCall
from assay.plugin.scorer import Judgement

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ORDER = {"item": "tea", "prices": [1, 2.5], "paid": True}


@pytest.mark.parametrize(
    "output",
    [
        ORDER,
        '{"paid": true, "item": "tea", "prices": [1, 2.5]}',
        'Here you are:\n```json\n{"item": "tea", "prices": [1, 2.5], "paid": true}\n```\nAnything else?',
        'The set {x} maps to {"item": "tea", "prices": [1.0, 2.5], "paid": true}, I believe.',
    ],
)
def test_json_is_found_in_the_output_and_compared_in_depth(output: object) -> None:
    assert value("json", output, ORDER) == 1.0


@pytest.mark.parametrize(
    ("output", "options", "score"),
    [
        ('{"item": "tea", "prices": [2.5, 1], "paid": true}', {}, 0.0),
        ('{"item": "tea", "prices": [2.5, 1], "paid": true}', {"ignore_order": True}, 1.0),
        ('{"item": "tea", "prices": [1, 2.4], "paid": true}', {"tolerance": 0.2}, 1.0),
        ('{"item": "tea", "prices": [1, 2.5], "paid": 1}', {}, 0.0),
        ('{"item": "tea", "prices": [1, 2.5], "paid": true, "tip": 1}', {}, 0.0),
        ('{"item": "tea", "prices": [0, 1, 2.5], "paid": true, "tip": 1}', {"subset": True}, 1.0),
        ('{"item": "tea", "prices": [1, 9], "paid": true}', {"partial": True}, 0.75),
        ('{"item": "tea", "paid": true, "a": 1, "b": 1, "c": 1, "d": 1}', {"partial": True}, 2 / 6),
        ('{"item": "tea", "paid": true, "a": 1}', {"partial": True, "subset": True}, 0.5),
        ("no JSON here", {}, 0.0),
        ("", {}, 0.0),
    ],
)
def test_json_options_say_what_counts_as_equal(output: str, options: dict[str, object], score: float) -> None:
    assert value("json", output, ORDER, **options) == pytest.approx(score)


def test_expected_json_may_be_written_as_text() -> None:
    assert value("json", [1, 2], "[1, 2]") == 1.0


def test_without_order_each_expected_item_needs_one_of_its_own() -> None:
    options = {"ignore_order": True, "subset": True}
    both, one = '[{"a": 1, "b": 2}, {"a": 1}]', '[{"a": 1, "b": 2}]'
    assert value("json", both, [{"a": 1}, {"a": 1, "b": 2}], **options) == 1.0
    assert value("json", one, [{"a": 1}, {"a": 1, "b": 2}], **options) == 0.0
    assert value("json", [1] * 1500 + [2], [1] * 1501, ignore_order=True) == 0.0


@pytest.mark.parametrize(
    "output", ["[" * 100_000, "{" * 100_000, '{"a":' * 20_000, "[1,2", "\ud800", "9" * 10_000]
)
def test_nested_and_broken_json_is_wrong_not_a_crash(output: str) -> None:
    assert value("json", output, ORDER) == 0.0


def test_an_output_nested_beyond_reason_is_wrong() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert value("json", deep, [[]]) == 0.0
    assert value("exact", deep, [[[]]]) == 0.0


@given(ANY_JSON.filter(lambda data: data is not None), st.booleans(), st.booleans(), st.booleans())
def test_any_json_equals_itself(data: object, ignore_order: bool, subset: bool, partial: bool) -> None:
    options = {"ignore_order": ignore_order, "subset": subset, "partial": partial}
    assert value("json", {"value": data}, {"value": data}, **options) == 1.0


@given(ANY_JSON, ANY_JSON, st.booleans(), st.booleans())
def test_the_share_of_equal_leaves_lies_between_0_and_1(
    a: object, b: object, subset: bool, order: bool
) -> None:
    score = value("json", {"v": a}, {"v": b}, partial=True, subset=subset, ignore_order=order)
    assert score is not None
    assert 0 <= score <= 1


SCHEMA = {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer", "minimum": 0}}}


def test_a_schema_is_obeyed_or_the_place_of_the_fault_is_reported() -> None:
    assert value("json_schema", '```\n{"age":3}\n```', None, schema=SCHEMA) == 1.0
    assert judgement("json_schema", '{"age": -3}', SCHEMA).reason.startswith("$.age: ")
    assert value("json_schema", "no JSON", SCHEMA) == 0.0


def test_a_schema_that_is_none_or_refers_elsewhere_leaves_the_case_unscored() -> None:
    assert value("json_schema", "{}", "no schema") is None
    assert value("json_schema", "{}", {"$ref": "http://example.invalid/schema.json"}) is None


def test_without_jsonschema_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtra, match=r"pip install 'assay-bench\[json\]'"):
        made("json_schema")


SEARCH = ToolCall("search", {"query": "tea", "limit": 5})
BUY = ToolCall("buy", {"id": 7})
EXPECTED = [
    {"name": "search", "arguments": {"query": "tea", "limit": 5}},
    {"name": "buy", "arguments": {"id": 7}},
]


def called(calls: list[ToolCall], expected: object, metadata: object = None, **options: object) -> Judgement:
    result = made("tool_calls", **options).score(shown("done", expected, metadata, calls))  # type: ignore[arg-type]
    assert isinstance(result, Judgement)
    return result


@pytest.mark.parametrize(
    ("calls", "options", "score"),
    [
        ([SEARCH, BUY], {}, 1.0),
        ([BUY, SEARCH], {}, 1.0),
        ([BUY, SEARCH], {"order": "strict"}, 0.0),
        ([BUY, SEARCH], {"order": "strict", "partial": True}, 0.5),
        ([SEARCH], {}, 0.0),
        ([SEARCH], {"partial": True}, 2 / 3),
        ([SEARCH, BUY, BUY], {"partial": True}, 0.8),
        ([ToolCall("search", {"query": "milk"}), BUY], {"arguments": "ignore"}, 1.0),
        ([SEARCH, ToolCall("buy", {"id": 7, "express": True})], {"arguments": "subset"}, 1.0),
        ([SEARCH, ToolCall("buy", {"id": 7, "express": True})], {}, 0.0),
        ([], {"partial": True}, 0.0),
    ],
)
def test_calls_are_matched_with_the_expected_ones(
    calls: list[ToolCall], options: dict[str, object], score: float
) -> None:
    assert called(calls, EXPECTED, **options).value == pytest.approx(score)


def test_expected_calls_come_from_the_case_first_and_may_be_none() -> None:
    assert called([], "a text", {"expected_calls": []}).value == 1.0
    assert called([BUY], "a text", {"expected_calls": []}).value == 0.0
    assert called([BUY], None, {"expected_calls": ["buy"]}).value == 1.0


def test_expected_calls_may_be_written_as_providers_do() -> None:
    assert (
        called([BUY], [{"type": "function", "function": {"name": "buy", "arguments": '{"id": 7}'}}]).value
        == 1.0
    )


@pytest.mark.parametrize("expected", [None, "buy tea", [{"tool": "buy"}], 5])
def test_a_case_without_expected_calls_is_unscored(expected: object) -> None:
    assert called([BUY], expected).value is None


def test_a_call_of_one_name_fits_the_expected_one_that_needs_it() -> None:
    expected = [{"name": "buy", "arguments": {}}, {"name": "buy", "arguments": {"id": 7}}]
    assert called([BUY, ToolCall("buy", {"id": 8})], expected, arguments="subset").value == 1.0
