"""The page that shows what Assay costs says what the stored results say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wording import Wording

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"


def page(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = ROOT / "benchmarks" / "page.py"
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return shutil.copytree(RESULTS, tmp_path / "results")


def change(results: Path, name: str, **changes: object) -> None:
    file = results / f"{name}.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def test_the_page_is_current_with_the_stored_results() -> None:
    done = page("--check")

    assert done.returncode == 0, done.stdout


def test_a_page_that_lags_behind_the_results_is_reported(results: Path) -> None:
    change(results, "throughput", detail="Something else was found.")

    done = page("--check", "--results", results)

    assert done.returncode == 1
    assert "out of date" in done.stdout


def test_a_missed_promise_is_named_first(results: Path, tmp_path: Path) -> None:
    slow = {"value": 12.0, "low": 11.0, "high": 13.0, "n": 6}
    change(results, "report-seconds", judged=slow, ours=slow)

    page("--results", results, "--page", tmp_path / "page.md")

    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "missed" in text[: text.index("| what |")]
    assert text.index("`report-seconds`") < text.index("| what |")
    (row,) = [line for line in text.splitlines() if "| 12 s (" in line]
    assert re.findall(r"(\d+) s\b", row)[-3:] == ["12", "11", "13"]
    assert row.endswith("**missed** |")


def test_an_interval_across_the_bound_is_admitted(results: Path, tmp_path: Path, wording: Wording) -> None:
    change(results, "startup-list", threshold=10.0, judged={"value": 9.0, "low": 8.0, "high": 11.0, "n": 6})

    page("--results", results, "--page", tmp_path / "page.md")

    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if "`startup-list`" in line and "interval" in line]
    wording(line)


OF_PROMISES = sorted(file for file in RESULTS.rglob("*.json") if file.parent.name != "faults")


@pytest.mark.parametrize("file", OF_PROMISES, ids=lambda file: file.stem)
def test_a_stored_verdict_follows_from_its_figures(file: Path) -> None:
    stored = json.loads(file.read_text(encoding="utf-8"))
    value, threshold = stored["judged"]["value"], stored["threshold"]
    kept = {
        "at least": value >= threshold,
        "at most": value <= threshold,
        "below": value < threshold,
        "within": abs(value) <= threshold,
    }

    assert stored["name"] == file.stem
    assert stored["holds"] == kept[stored["bound"]]
