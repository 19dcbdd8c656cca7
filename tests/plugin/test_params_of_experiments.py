"""Params are checked against what an experiment declares, whichever way it declares them."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from tests.wording import Wording

from assay import Experiment, benchmark
from assay.plugin.params import check_params, is_axis, param_schema


class Mode(Enum):
    FAST = "fast"
    SAFE = "safe"


class Parts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sizes: list[int] = []
    is_whole: bool = True


class Height(BaseModel, extra="forbid"):
    height: int = 1


class Typed(Experiment):
    class Params(BaseModel):
        size: int = Field(10, ge=1, description="How many.")
        mode: Mode = Mode.FAST
        choice: int | Literal["auto"] = "auto"
        nested: dict[str, int] = {}
        sizes: list[Annotated[int, Field(ge=1)]] = []
        parts: Parts = Parts()


class Built(Experiment):
    def __init__(self, size: int, label: str = "x", *, json: bool = False, **rest: Any) -> None:
        super().__init__({})


class Unresolvable(Experiment):
    def __init__(self, size: NoSuchType = 3) -> None:  # type: ignore[name-defined]  # noqa: F821
        super().__init__({})


def told(member: Any, **params: Any) -> list[str]:
    _, mistakes = check_params(member, params)
    return [f"{mistake.name} {mistake.problem} {mistake.hint}".strip() for mistake in mistakes]


def test_params_come_back_as_plain_data_with_defaults() -> None:
    params, mistakes = check_params(Typed, {"size": "5"})

    assert mistakes == []
    assert params == {
        "size": 5,
        "mode": "fast",
        "choice": "auto",
        "nested": {},
        "sizes": [],
        "parts": {"sizes": [], "is_whole": True},
    }


def test_arguments_beyond_the_named_ones_are_taken_where_a_constructor_takes_them() -> None:
    params, mistakes = check_params(Built, {"size": 1, "anything": [1]})

    assert mistakes == []
    assert params == {"size": 1, "label": "x", "json": False, "anything": [1]}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"size": 0}, "size must be at least 1, not 0."),
        ({"size": "x"}, "size must be a whole number, not 'x'."),
        ({"size": 1e99}, "size must be a number with fewer digits, not 1e+99."),
        ({"mode": "quick"}, "mode must be 'fast' or 'safe', not 'quick'."),
        ({"choice": "never"}, "choice must be a whole number or 'auto', not 'never'."),
        ({"nested": {"a": "b"}}, "nested 'a' must be a whole number, not 'b'."),
        ({"sizes": [1, 0]}, "sizes item 2 must be at least 1, not 0."),
        ({"parts": {"sizes": [1, 2, "x"]}}, "parts item 3 of 'sizes' must be a whole number, not 'x'."),
        (
            {"parts": {"size": 1}},
            "parts 'size' is an unknown key. Did you mean 'sizes'? Known: sizes, is_whole.",
        ),
        ({"nested": None}, "nested must be a mapping, not empty."),
        (
            {"sice": 3},
            "sice is not a param of this experiment. Did you mean 'size'? Known: choice, mode, nested, parts, size, sizes.",
        ),
        (
            {"zzz": 3},
            "zzz is not a param of this experiment. Known: choice, mode, nested, parts, size, sizes.",
        ),
    ],
)
def test_a_wrong_param_is_reported_in_plain_words(params: dict[str, Any], message: str) -> None:
    assert told(Typed, **params) == [message]


def test_a_wrong_item_within_one_of_several_models_is_named_without_that_model() -> None:
    class Either(Experiment):
        class Params(BaseModel):
            parts: Parts | Height = Parts()

    assert told(Either, parts={"sizes": "x"}) == ["parts 'sizes' must be a list, not 'x'."]


def test_each_wrong_item_of_a_param_is_reported_by_itself() -> None:
    assert told(Typed, sizes=[0, 1, "x"], parts={"sizes": "x", "all": True}) == [
        "sizes item 1 must be at least 1, not 0.",
        "sizes item 3 must be a whole number, not 'x'.",
        "parts 'sizes' must be a list, not 'x'.",
        "parts 'all' is an unknown key. Known: sizes, is_whole.",
    ]


def test_a_param_without_default_that_is_not_given_is_reported() -> None:
    assert told(Built) == ["size is missing."]


def test_text_that_looks_like_a_number_gets_a_hint(wording: Wording) -> None:
    (mistake,) = told(Built, size=1, label=12)
    assert mistake.startswith("label ")
    assert " 12. " in mistake
    wording(mistake)


@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), [1.0, float("-inf")], {"deep": [float("nan")]}]
)
def test_a_param_without_end_is_reported(value: object) -> None:
    (mistake,) = told(Built, size=1, other=value)
    assert mistake.startswith("other ")
    assert "NaN" in mistake


def test_annotations_that_cannot_be_resolved_are_not_checked() -> None:
    assert check_params(Unresolvable, {"size": "anything"}) == ({"size": "anything"}, [])


def test_arguments_of_a_benchmark_are_its_params(own_names: None) -> None:
    @benchmark
    def parse(text: str = "a", times: int = 2) -> None: ...

    assert check_params(parse, {"times": 5}) == ({"text": "a", "times": 5}, [])


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [
        ("size", [1, 2], True),
        ("size", [1, "x"], False),
        ("size", [], False),
        ("size", 5, False),
        ("mode", ["fast", "safe"], True),
        ("nested", [{"a": 1}], True),
        ("unknown", [1, 2], False),
    ],
)
def test_a_list_is_an_axis_when_its_items_fit_the_param_and_it_does_not(
    name: str, value: object, is_one: bool
) -> None:
    assert is_axis(Typed, name, value) is is_one


def test_the_schema_of_params_names_types_defaults_and_meanings() -> None:
    assert param_schema(Typed)["properties"]["size"] == {
        "default": 10,
        "description": "How many.",
        "minimum": 1,
        "title": "Size",
        "type": "integer",
    }
