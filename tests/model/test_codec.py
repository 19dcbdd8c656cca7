"""Nouns become plain data and come back as they were; what has another form is refused with the place of the fault."""

from __future__ import annotations

import importlib
import json
import pkgutil
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import assay.model
from assay.model import (
    AgentUse,
    Batch,
    Benchmark,
    Case,
    Execution,
    Iterations,
    Limits,
    Question,
    ScorerUse,
    Turn,
)
from assay.model.codec import UnreadableData, from_json, from_plain, to_json, to_plain
from assay.model.regression import Loss

NO_DATA = {"Report", "Gate", "Trace", "Load", "Stretch", "Compared", "ComparisonSides", "Boards"}
"""They hold, or nouns within them do, arrays, or what is read anew when it is needed."""

text = st.text(max_size=5)
finite = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=3,
)
SCALARS: dict[object, st.SearchStrategy[Any]] = {
    str: text,
    int: st.integers(),
    float: finite,
    bool: st.booleans(),
    bytes: st.binary(max_size=5),
    datetime: st.datetimes(timezones=st.just(UTC)),
    object: plain,
    Any: plain,
    types.NoneType: st.none(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if is_dataclass(hint):
        return st.deferred(lambda: nouns_of(hint))  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(kind) for kind in arguments])
    if origin is Mapping:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=2)
    if origin is tuple and arguments[1:] != (...,):
        return st.tuples(*map(values_of, arguments))
    items = st.lists(values_of(arguments[0]), max_size=2)
    if origin is frozenset:
        return items.map(frozenset)
    is_list = origin in (Sequence, Iterable) and not is_dataclass(arguments[0])
    return items if is_list else items.map(tuple)


@cache
def nouns_of(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in fields(kind)})


def all_nouns() -> Iterator[Any]:
    """All dataclasses of `assay.model` but the parts of pages, which are shown and never stored."""
    for module in pkgutil.iter_modules(assay.model.__path__):
        if module.name == "page":
            continue
        for value in vars(importlib.import_module(f"assay.model.{module.name}")).values():
            if (
                isinstance(value, type)
                and is_dataclass(value)
                and value.__module__.endswith(f".{module.name}")
            ):
                yield value


NOUNS = [noun for noun in all_nouns() if noun.__name__ not in NO_DATA]


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_noun_survives_plain_data_and_json(noun: Any, data: st.DataObject) -> None:
    value = data.draw(nouns_of(noun))
    read = from_plain(noun, json.loads(json.dumps(to_plain(value))))

    assert read == value == from_json(noun, to_json(value))
    assert to_plain(read) == to_plain(value)  # also the fields that equality leaves out


def test_plain_data_has_the_fields_in_their_order() -> None:
    use = AgentUse("greedy", "python", {"entry": "a.py:run"})

    assert json.dumps(to_plain(use)) == (
        '{"name": "greedy", "type": "python", "options": {"entry": "a.py:run"}, "version": "", "price": null, "folder": "", "resources": null}'
    )


def test_a_missing_key_takes_the_default_so_that_older_data_can_be_read() -> None:
    assert from_plain(Benchmark, {"id": "b", "name": "b", "cases": [{"id": "c", "input": 1}]}) == Benchmark(
        "b", "b", (Case("c", 1),)
    )


def test_a_whole_number_stays_one_where_a_float_is_expected() -> None:
    assert to_json(from_plain(ScorerUse, {"name": "exact", "weight": 1})) == (
        '{"name":"exact","weight":1,"options":{},"label":""}'
    )


def test_numbers_that_the_store_wrote_as_text_are_read_as_numbers() -> None:
    loss = from_plain(Loss, {"value": "inf", "low": "-inf", "high": 1.5})

    assert loss == Loss(float("inf"), float("-inf"), 1.5)


def test_a_list_in_the_place_of_a_noun_holds_its_fields_in_their_order() -> None:
    assert from_plain(Turn, ["hello", None, [["exact", 2.0]]]) == Turn(
        "hello", None, (ScorerUse("exact", 2.0),)
    )


def test_what_json_cannot_hold_is_written_as_text() -> None:
    written = to_json(Case("c", {"day": date(2026, 1, 2)}, metadata=types.MappingProxyType({"n": 1})))

    assert from_json(Case, written) == Case("c", {"day": "2026-01-02"}, metadata={"n": 1})


def test_the_content_of_an_object_is_passed_on_and_not_copied() -> None:
    asked = {"question": ["long"]}

    assert to_plain(Case("c", asked))["input"] is asked
    assert from_plain(Case, {"id": "c", "input": asked}).input is asked


@pytest.mark.parametrize(
    ("noun", "data", "place"),
    [
        (Iterations, {"warmup": "1"}, "warmup"),
        (Iterations, {"until": {"interval": []}}, "until: interval"),
        (Limits, {"seconds": "soon"}, "seconds"),
        (Limits, "none", "mapping"),
        (Limits, {"minutes": 1}, "minutes"),
        (Limits, [1, 2, 3, 4, 5], "mapping"),
        (Case, {"id": "c"}, "input"),
        (Case, {"id": b"c", "input": 1}, "id"),
        (Case, {"id": "c", "input": 1, "tags": "ab"}, "tags"),
        (Case, {"id": "c", "input": 1, "files": ["a"]}, "files"),
        (Question, {"arms": ["a"]}, "arms"),
        (Batch, {"stopped": {"first": "why"}}, "stopped"),
        (Execution, [0, 0, "cooled", 0, "ok", 0.0, {}], "phase"),
    ],
)
def test_data_of_another_form_is_refused_with_its_place(noun: Any, data: object, place: str) -> None:
    with pytest.raises(UnreadableData, match=place):
        from_plain(noun, data)
