"""Text becomes plain data, as YAML 1.2 and JSON mean it, with the line of every key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.wording import Wording

from assay.errors import Mistake, SpecError
from assay.spec.document import read_document
from assay.spec.yaml_text import parse


def value(text: str) -> Any:
    document = parse(text, "f.yaml")
    assert document.mistakes == []
    return document.value


def faults(text: str) -> list[Mistake]:
    return parse(text, "f.yaml").mistakes


def places(found: list[Mistake]) -> list[tuple[str, int | None, str]]:
    return [(mistake.file, mistake.line, mistake.key) for mistake in found]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12", 12),
        ("-3", -3),
        ("10_000", 10_000),
        ("010", 10),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("1E5", 100_000.0),
        ("-.5e-3", -0.0005),
        ("2.", 2.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("'12'", "12"),
        ("a b", "a b"),
    ],
)
def test_a_plain_word_is_read_as_json_and_yaml_mean_it(text: str, meant: object) -> None:
    read = value(f"key: {text}")["key"]

    assert (read, type(read)) == (meant, type(meant))


@pytest.mark.parametrize("word", ["2024-05-01", "2024-13-45", "12:30:00", "off", "no", "1_", "1__0", "1.2.3"])
def test_what_older_yaml_took_for_dates_times_and_switches_is_text(word: str) -> None:
    assert value(f"key: {word}") == {"key": word}


def test_keys_that_are_not_words_become_text() -> None:
    text = "{1: a, true: b, null: c, 2024-05-01: d}"

    assert value(text) == {
        "1": "a",
        "true": "b",
        "null": "c",
        "2024-05-01": "d",
    }


def test_an_alias_stands_for_its_anchor() -> None:
    text = "a: &x [1, 2]\nb: *x"

    assert value(text) == {"a": [1, 2], "b": [1, 2]}


def test_merged_keys_give_way_to_the_mappings_own() -> None:
    text = "base: &base {size: 1, mode: fast}\nown: {<<: *base, size: 2}"

    assert value(text)["own"] == {"size": 2, "mode": "fast"}


def test_of_several_merged_mappings_the_first_counts() -> None:
    text = "a: &a {x: 1}\nb: &b {x: 2, y: 3}\nown: {<<: [*a, *b]}"

    assert value(text)["own"] == {"x": 1, "y": 3}


def test_merging_something_that_is_not_a_mapping_is_reported(wording: Wording) -> None:
    found = faults("a: 1\nb: {<<: 3}")

    assert places(found) == [("f.yaml", 2, "b.<<")]
    wording(found[0])


def test_every_duplicate_key_is_reported_with_its_line(wording: Wording) -> None:
    found = faults("a: 1\nb: {c: 1,\n  c: 2}\na: 2")

    assert places(found) == [("f.yaml", 3, "b.c"), ("f.yaml", 4, "a")]
    assert found[0].problem == found[1].problem
    wording(found[0])


@pytest.mark.parametrize("tag", ["!own", "!!timestamp", "!!binary", "!!python/name:os.system"])
def test_a_tag_is_refused(wording: Wording, tag: str) -> None:
    found = faults(f"a: {tag} word")

    assert places(found) == [("f.yaml", 1, "a")]
    assert f"'{tag}'" in found[0].problem
    wording(found[0])


def test_a_tag_never_makes_a_python_object(tmp_path: Path) -> None:
    victim = tmp_path / "made"

    found = faults(
        f'a: !!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ["{victim}"]]'
    )

    assert len(found) == 1
    assert not victim.exists()


def test_a_number_that_cannot_be_read_is_reported(wording: Wording) -> None:
    found = faults("a: !!int word")

    assert places(found) == [("f.yaml", 1, "a")]
    assert "'word'" in found[0].problem
    wording(found[0])


def test_a_whole_number_of_five_thousand_digits_is_reported_in_short() -> None:
    found = faults("a: " + "9" * 5000)

    assert places(found) == [("f.yaml", 1, "a")]
    assert "'999" in found[0].problem
    assert len(str(found[0])) < 120


def test_a_key_that_is_a_list_is_reported(wording: Wording) -> None:
    found = faults("a:\n  ? [x]\n  : 1")

    assert places(found) == [("f.yaml", 2, "a")]
    wording(found[0])


def test_the_line_of_a_key_is_remembered_at_any_depth() -> None:
    document = parse("a:\n  b:\n    - x\n    - c: 1\n", "f.yaml")

    assert [document.line(place) for place in [("a",), ("a", "b"), ("a", "b", 1), ("a", "b", 1, "c")]] == [
        1,
        2,
        4,
        4,
    ]


def test_a_key_that_the_file_lacks_has_the_line_of_what_should_hold_it() -> None:
    assert parse("a:\n  b: 1\n", "f.yaml").line(("a", "missing", "deeper")) == 1


def test_json_may_write_a_character_as_two_escapes(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(r'{"a": "\ud83d\ude00", "b": "\\ud83d"}')

    assert read_document(path).value == {"a": "😀", "b": "\\ud83d"}


def test_json_may_be_indented_with_tabs(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('{\n\t"a": [\n\t\t1,\n\t\t2.5e1]\n}')

    assert read_document(path).value == {"a": [1, 25.0]}


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("a: 1", encoding="utf-8-sig")

    assert read_document(path).value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a: {b: 1\nc: ]", 2, "flow mapping"),
        ("a:\n\tb: 1", 2, "tab"),
        ("a: *nowhere", 1, "alias"),
        ("a: 1\n---\nb: 2", 2, "document"),
        ("a: 1\nb: \x00", 2, "U+0000"),
        ("a: &x [*x]", 1, "60"),
        ("a: &x {<<: *x}", 1, "60"),
        ("a: " + "[" * 100, 1, "60"),
    ],
)
def test_text_that_cannot_be_read_is_reported_with_its_line(
    wording: Wording, text: str, line: int, told: str
) -> None:
    with pytest.raises(SpecError) as error:
        parse(text, "f.yaml")

    [fault] = error.value.mistakes
    assert places([fault]) == [("f.yaml", line, "")]
    assert told in fault.problem
    # What the parser of YAML says after a comma differs from release to release.
    wording(str(fault).partition(", ")[0])
