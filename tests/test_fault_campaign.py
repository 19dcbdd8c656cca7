"""The fault campaign in its smallest size, and the page that is written from the results of larger ones."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.command import heeding_signals

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results" / "faults"
FORKED = ("servers", "files", "secrets")
"""These parts neither send signals nor look for processes by what `/proc` shows of them."""
PARTS = ("kills", "signals", "owners", "agents", "surroundings", "escapes")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Gives modules of the benchmarks, which are no package that is installed."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(BENCHMARKS)):
            del sys.modules[name]


@pytest.mark.skipif(sys.platform != "linux", reason="Processes are found in /proc, which only Linux has.")
@pytest.mark.parametrize(
    "part", [*(pytest.param(part, marks=pytest.mark.real_starts) for part in PARTS), *FORKED]
)
def test_nothing_goes_wrong_in_the_smallest_campaign(
    bench: Any, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if part == "escapes" and shutil.which("bwrap") is None and not os.environ.get("CI"):
        pytest.skip(
            "The sandbox is not tested: bubblewrap is not installed. Enable it: apt-get install bubblewrap"
        )
    run, campaign = bench("faults.run"), bench("faults.campaign")
    if part in FORKED:
        monkeypatch.setattr(bench("faults.project"), "_heed_signals", heeding_signals)

    tally = campaign.run_part(run.load_part(part), seed=1, size=campaign.Size.SMALLEST)

    assert [f"{wrong.kind}: {wrong.problem}" for wrong in tally.wrong] == []
    assert tally.tried == tally.right > 0


def tally_of(campaign: Any, check: Any) -> Any:
    from contextlib import nullcontext

    fault = campaign.Fault("7 the only one", check)
    part = campaign.Part("kills", "Nothing is lost.", lambda seed, size: nullcontext([fault]))
    return campaign.run_part(part, seed=5, size=campaign.Size.QUICK)


def test_a_wrong_is_kept_with_the_command_that_shows_it_again(bench: Any, tmp_path: Path) -> None:
    campaign, page = bench("faults.campaign"), bench("faults.page")
    outcome = campaign.Outcome(3, (("a kind", "2 executions lost"),), {"lost": 2})
    tally = tally_of(campaign, lambda folder: outcome)
    campaign.save(tally, tmp_path)

    assert (tally.tried, tally.right) == (3, 2)
    assert campaign.stored(tmp_path) == [tally]
    text = page.page(campaign.stored(tmp_path))
    again = "--seed 5 --size quick --only kills --match '7 the only one'"
    assert "3 faults " in text
    assert "2 right" in text
    assert "1 wrong" in text
    assert "2 executions lost" in text
    assert again in text


def test_a_check_that_breaks_counts_as_wrong(bench: Any) -> None:
    tally = tally_of(bench("faults.campaign"), lambda folder: 1 / 0)

    assert (tally.tried, tally.right) == (1, 0)
    assert "ZeroDivisionError" in tally.wrong[0].problem


def test_the_same_seed_tries_the_same_faults(bench: Any) -> None:
    campaign, files = bench("faults.campaign"), bench("faults.kills")
    names = []
    for _ in range(2):
        with files.prepare(3, campaign.Size.SMALLEST) as faults:
            names.append([fault.name for fault in faults])
    assert names[0] == names[1]


def test_the_page_of_reliability_is_current_with_the_stored_results(bench: Any) -> None:
    assert bench("faults.page").main(["--check"]) == 0


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_stored_counts_of_faults_add_up(file: Path) -> None:
    stored = json.loads(file.read_text(encoding="utf-8"))
    wrong = {(one["kind"], one["reproduce"]) for one in stored["wrong"]}

    assert file.stem == f"{stored['size']}-{stored['part']}"
    assert stored["tried"] == stored["right"] + len(wrong)
