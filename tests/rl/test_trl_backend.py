"""The backend trl, in an environment of its own: torch and TRL would triple the size of the one for development."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def assay_rl() -> Path:
    """The command where the extra `rl` is installed; made here in CI, elsewhere by `make rl`."""
    command = ROOT / ".venv-rl" / "bin" / "assay"
    if os.environ.get("CI"):
        # One process of the tests makes it while the others wait.
        with (ROOT / ".venv-rl.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            subprocess.run(["make", "-C", ROOT, "rl"], check=True, timeout=1500)
    if not command.exists():
        pytest.skip("The extra 'rl' is not installed: make rl")
    return command


def run(command: Path, folder: Path, *words: str) -> Any:
    done = subprocess.run(
        [command, "run", *words, "--json"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_each_algorithm_is_trained_by_other_peoples_code(assay_rl: Path, tmp_path: Path) -> None:
    # In one process, because each would import torch anew, which takes longer than the training.
    words = (
        "--set",
        "backend=trl",
        "--set",
        "task=arithmetic",
        "--set",
        "episodes=20",
        "--isolation",
        "inline",
    )
    found = run(assay_rl, tmp_path, "algorithm_comparison", "--processes", "1", *words)

    assert [trial["counts"] for trial in found["trials"]] == [{"ok": 1}] * 4
    (contest,) = found["algorithms"]
    assert contest["simulated"] is False
    assert all(result["samples_per_sec"] > 0 for result in contest["results"])
    assert {trial["applied"]["backend"] for trial in found["trials"]} == {"trl"}


@pytest.mark.slow
def test_frameworks_that_are_installed_are_measured_and_the_others_go_on(
    assay_rl: Path, tmp_path: Path
) -> None:
    found = run(assay_rl, tmp_path, "framework_comparison", "--set", "samples=80", "--processes", "1")
    results = {result["framework"]: result for result in found["frameworks"]["results"]}
    assert {name: result["measured"] for name, result in results.items()} == {
        "native": True, "trl": True, "custom": True, "rllib": False,
    }  # fmt: skip
    facts = {fact["feature"]: fact["found"] for fact in results["trl"]["features"]}
    assert facts["grpo"]
    assert facts["dpo"]
    assert facts["gspo"]


@pytest.mark.slow
def test_a_model_that_is_not_here_is_said_so(assay_rl: Path, tmp_path: Path) -> None:
    words = ("--set", "backend=trl", "--set", "model=nobody/nothing", "--set", "episodes=2")
    found = run(assay_rl, tmp_path, "algorithm", *words)
    (trial,) = found["trials"]
    assert trial["counts"] == {"failed": 1}
    assert "nobody/nothing" in json.dumps(found["warnings"])


def test_without_the_extra_a_training_says_what_to_install(assay_inline: AssayInline) -> None:
    done = assay_inline.run_inline("algorithm", "--set", "backend=trl", "--set", "episodes=2")
    assert done.code == 1
    assert "assay-bench[rl]" in done.out + done.err
