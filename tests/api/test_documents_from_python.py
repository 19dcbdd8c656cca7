"""`compare`, `gate` and `leaderboard` return the documents of the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.api.conftest import SUITE
from tests.command import Assay, AssayInline, Prepare

import assay


def play(project: Assay) -> None:
    cases = [{"input": str(number), "expected": str(number)} for number in range(30)]
    project.write("cases.jsonl", "\n".join(map(json.dumps, cases)))
    head, _, _ = SUITE.partition("    cases:")
    project.write("suite.yaml", f"{head}    cases: cases.jsonl\n")
    result = assay.run("suite.yaml", agents="right", repetitions=2)
    project("baseline", "set", "main", result.run_id)
    assay.run("suite.yaml", agents="wrong", repetitions=2)


@pytest.fixture
def done(project: Path, prepare: Prepare) -> Path:
    """A project in which `right` and `wrong` did 30 cases, and the run of `right` is the baseline main."""
    prepare(AssayInline(project), play)
    return project


def test_compare_returns_the_document_of_the_command(done: Path) -> None:
    ours = assay.compare("right", "wrong")

    assert ours == AssayInline(done)("compare", "right", "wrong", "--json").json
    verdicts = {one["metric"]: one["verdict"] for one in ours["comparisons"]}
    assert verdicts["score"] == "worse"
    assert ours.to_pandas()["metric"].tolist() == list(verdicts)
    assert "score" in str(ours)
    assert "score" in ours._repr_html_()


def test_compare_takes_more_sides_and_a_history(done: Path) -> None:
    pairs = assay.compare("right", "wrong", "right", type="multi_agent")
    words = ("right", "wrong", "right", "--type", "multi_agent", "--json")
    assert pairs == AssayInline(done)("compare", *words).json
    assert pairs["comparison_type"] == "multi_agent"
    assert "right" in str(pairs)
    history = assay.compare("right", "wrong", type="time_series", metrics=["score"])
    assert [one["metric"] for one in history["courses"]] == ["score"]
    with pytest.raises(assay.PlanError, match="two sides"):
        assay.compare("right")


def test_gate_returns_the_document_of_the_command(done: Path) -> None:
    ours = assay.gate(metrics=["score"])

    assert ours.to_dict() == json.loads(AssayInline(done)("gate", "--metric", "score", "--json").out)
    assert ours.passed is False
    assert assay.gate("@main", baseline="main").passed is True


def test_leaderboard_returns_the_document_of_the_command(done: Path) -> None:
    ours = assay.leaderboard(suite="sums", metric="accuracy")

    theirs = AssayInline(done)("leaderboard", "--suite", "sums", "--metric", "accuracy", "--json").json
    assert list(ours) == theirs
    assert ours.to_pandas()["agent"].tolist()[0] == "right"
    assert "right" in ours._repr_html_()
    json.dumps(ours.to_dict())


@pytest.mark.parametrize("function", [assay.compare, assay.gate, assay.leaderboard])
def test_unknown_keywords_are_refused_by_all_of_them(project: Path, function: Any) -> None:
    with pytest.raises(assay.OptionError, match="no keyword 'nonsense'"):
        function(nonsense=1)


def test_without_pandas_a_table_says_what_to_install(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(assay.MissingExtra, match="pip install pandas"):
        assay.leaderboard().to_pandas()


def test_every_error_can_be_imported_and_the_public_names_are_sorted() -> None:
    from assay import errors

    tree = {
        name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)
    }
    assert tree <= set(assay.__all__)
    assert assay.__all__ == sorted(assay.__all__)
    assert all(hasattr(assay, name) for name in assay.__all__)


def test_importing_assay_imports_nothing_heavy() -> None:
    code = "import assay, sys; print([m for m in ('pydantic', 'numpy', 'rich', 'sqlalchemy', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


GOOD = """\
import assay

def mine(question: str) -> str:
    return question

result = assay.run(cases=[{"input": "a", "expected": "a"}], agents={"mine": mine}, scorer="exact", repetitions=2)
status: str = result.status
assay.run("suite.yaml", agents=["fast", mine], cases=["one"], budget_usd=1, progress=True)
passed: bool = assay.gate("last", baseline="main", tolerance={"seconds": 0.1}).passed
first: str = assay.leaderboard(metric="accuracy")[0]["suite"]
assay.compare("a", "b", metrics=["score"])["comparisons"]
"""
BAD = """\
import assay

assay.run("suite.yaml", repetition=2)
assay.run("suite.yaml", repetitions="2")
assay.leaderboard(metric="fame")
assay.no_such_function
"""


MYPY = """\
[mypy]
strict = true
cache_dir = /dev/null

[mypy-numpy.*,pydantic.*,sqlalchemy.*,rich.*,click.*,yaml.*,scipy.*]
follow_imports = skip
follow_imports_for_stubs = true
"""
"""Without packages that no signature of the API mentions, which would take most of the time."""


@pytest.mark.slow
def test_a_type_checker_accepts_right_calls_and_rejects_wrong_keywords(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "mypy.ini").write_text(MYPY)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "good.py", "bad.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    lines = [line.split(": ")[0] for line in done.stdout.splitlines() if " error: " in line]
    assert lines == ["bad.py:3", "bad.py:4", "bad.py:5", "bad.py:6"], done.stdout
