from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from assay.model import Suite
from assay.spec.suite import read_suite

BENCHMARK = {"id": "b", "cases": [{"input": "1"}]}


def read(folder: Path, text: object, name: str = "suite.yaml") -> Suite:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return read_suite(path).suite


def cases_in(folder: Path, name: str, content: str) -> list[tuple[str, object, object]]:
    (folder / name).write_text(content, encoding="utf-8")
    suite = read(folder, {"suite": "s", "benchmarks": [{"id": "b", "cases": name}]})
    return [(case.id, case.input, case.expected) for case in suite.benchmarks[0].cases]


def test_the_names_of_the_specification_are_understood(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        {
            "suite_id": "desk",
            "suite_name": "The support desk",
            "benchmarks": [
                {
                    "benchmark_id": "refunds",
                    "cases": [{"input": "a"}, {"input": "b", "expected": "own"}],
                    "expected_outputs": ["A", "B"],
                    "num_runs": 7,
                    "constraints": {
                        "time_limit_ms": 1500,
                        "memory_limit_mb": 2,
                        "token_limit": 9,
                        "cost_limit_usd": 0.5,
                    },
                    "scoring_rubric": {"weights": {"accuracy": 1}, "reference": {"seconds": 2}},
                }
            ],
        },
    )
    benchmark = suite.benchmarks[0]
    assert (suite.name, benchmark.id, benchmark.iterations.measured) == ("desk", "refunds", 7)
    assert [case.expected for case in benchmark.cases] == ["A", "own"]
    limits = benchmark.limits
    assert (limits.seconds, limits.memory_bytes, limits.tokens, limits.usd) == (1.5, 2 * 2**20, 9, 0.5)
    assert (benchmark.rubric.weights, benchmark.rubric.reference) == ({"accuracy": 1}, {"seconds": 2})


def test_a_suite_may_be_called_only_by_its_long_name(tmp_path: Path) -> None:
    assert read(tmp_path, {"suite_name": "desk", "benchmarks": [BENCHMARK]}).name == "desk"


def test_a_suite_asks_three_times_after_a_warm_up_unless_it_says_otherwise(tmp_path: Path) -> None:
    iterations = read(tmp_path, {"suite": "s", "benchmarks": [BENCHMARK]}).benchmarks[0].iterations
    assert (iterations.warmup, iterations.measured) == (1, 3)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.jsonl", '{"id": "x", "question": "1+1", "answer": "2"}\n\n{"prompt": "2+2", "target": "4"}\n'),
        ("c.csv", "id,question,answer\nx,1+1,2\n,2+2,4\n"),
        ("c.json", '[{"id": "x", "input": "1+1", "expected": "2"}, {"input": "2+2", "ideal": "4"}]'),
        ("c.yaml", "cases:\n- {id: x, input: 1+1, expected: '2'}\n- {input: 2+2, expected: '4'}\n"),
    ],
)
def test_cases_come_from_files_of_several_kinds(tmp_path: Path, name: str, content: str) -> None:
    assert cases_in(tmp_path, name, content) == [("x", "1+1", "2"), ("2", "2+2", "4")]


def test_a_file_of_cases_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert cases_in(tmp_path, "c.csv", "\ufeffinput,expected\na,b\n") == [("1", "a", "b")]


def test_a_cell_may_span_lines_and_hold_commas(tmp_path: Path) -> None:
    assert cases_in(tmp_path, "c.csv", 'input,expected\n"a,\nb",c\n') == [("1", "a,\nb", "c")]


def test_characters_that_only_some_take_for_line_ends_do_not_cut_a_case(tmp_path: Path) -> None:
    line = json.dumps({"input": "a\u2028b\u0085c"}, ensure_ascii=False)
    assert cases_in(tmp_path, "c.jsonl", line) == [("1", "a\u2028b\u0085c", None)]


def test_what_a_case_has_beyond_its_own_keys_is_metadata(tmp_path: Path) -> None:
    row = {"input": "x", "expected": "y", "coins": [1, 2], "tags": "a, b", "level": 3}
    case = read(tmp_path, {"suite": "s", "benchmarks": [{"id": "b", "cases": [row]}]}).benchmarks[0].cases[0]
    assert (case.metadata, case.tags) == ({"coins": [1, 2], "level": 3}, ("a", "b"))


def test_files_of_a_case_are_found_beside_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("hello")
    (tmp_path / "data" / "c.jsonl").write_text('{"input": "x", "files": ["a.txt"]}')
    suite = read(tmp_path, {"suite": "s", "benchmarks": [{"id": "b", "cases": "data/c.jsonl"}]})
    assert suite.benchmarks[0].cases[0].files == {"a.txt": str(tmp_path / "data" / "a.txt")}


def test_a_scorer_in_a_file_counts_from_the_suite_and_names_its_score(tmp_path: Path) -> None:
    own = {**BENCHMARK, "scorer": ["own.py:grade", {"name": "contains", "weight": 0.5, "as": "completeness"}]}
    grade, contains = read(tmp_path, {"suite": "s", "benchmarks": [own]}).benchmarks[0].scorers
    assert (grade.name, grade.score_name) == (f"{tmp_path / 'own.py'}::grade", "grade")
    assert (contains.weight, contains.score_name) == (0.5, "completeness")


ROW = {"id": "1", "input": "a", "expected": "b", "level": 1, "tags": ["t"]}


def hash_of(folder: Path, row: Mapping[str, object] = ROW, /, **keys: object) -> str:
    benchmark = {"id": "b", "cases": [row], **keys}
    return read(folder, {"suite": "s", "description": str(keys), "benchmarks": [benchmark]}).hash


def test_the_hash_stays_when_only_words_about_the_suite_change(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert hash_of(tmp_path) == hash_of(other, description="new", name="new", iterations={"measured": 9})


@pytest.mark.parametrize(
    "change",
    [
        {"input": "z"},
        {"expected": "z"},
        {"id": "2"},
        {"level": 2},
        {"turns": ["a", "b"]},
        {"tools": [{"name": "t"}]},
    ],
)
def test_the_hash_changes_with_a_case(tmp_path: Path, change: dict[str, object]) -> None:
    assert hash_of(tmp_path, ROW | change) != hash_of(tmp_path)


def test_the_hash_changes_with_how_a_turn_is_checked(tmp_path: Path) -> None:
    def of(scorer: str) -> str:
        return hash_of(tmp_path, ROW | {"turns": [{"input": "a", "expected": "b", "scorer": scorer}]})

    assert of("exact") != of("contains")


def test_the_hash_changes_with_the_content_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")
    before = hash_of(tmp_path, ROW | {"files": "a.txt"})
    (tmp_path / "a.txt").write_text("after")
    assert hash_of(tmp_path, ROW | {"files": "a.txt"}) != before


@pytest.mark.parametrize("change", [{"scorer": "numeric"}, {"limits": {"seconds": 3}}])
def test_the_hash_changes_with_how_cases_are_judged(tmp_path: Path, change: dict[str, object]) -> None:
    assert hash_of(tmp_path, ROW, **change) != hash_of(tmp_path)
