"""However often the runner is killed, what is stored in the end is what was planned."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from tests.execute.carrying import eventually
from tests.execute.running import Running

KILLS = 3
PLANNED = sorted(
    (trial, process, phase, repetition, "ok")
    for trial in range(3)
    for process in range(2)
    for phase, number in (("warmup", 2), ("measured", 28))
    for repetition in range(number)
)


def begun(running: Running, parallelism: int) -> list[str]:
    """The command that begins a run."""
    path = running.spec(
        experiment="deeds",
        sweep={"deed": ["take a millisecond", "nothing", "use tokens"]},
        iterations={"warmup": 2, "measured": 28},
        processes=2,
        parallelism=parallelism,
    )
    return ["run", path]


def is_killed(running: Running, arguments: list[str], delay: float) -> bool:
    """Whether the runner was killed that long after it began; not when it was done before that."""
    owner = running.owner
    process = running.start(*arguments)
    eventually(lambda: running.owner != owner or process.poll() is not None, 30)
    try:
        _, err = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    assert process.returncode == 0, err
    return False


def stored_after_kills(folder: Path, parallelism: int, chance: random.Random) -> int:
    """Kill a run and resume it until it is done; how often it was killed."""
    folder.mkdir()
    running = Running(folder)
    arguments, kills = begun(running, parallelism), 0
    while is_killed(running, arguments, chance.uniform(0, 1) if kills < KILLS else 60):
        kills += 1
        arguments = ["run", "--resume", "last"] if running.owner else arguments
    assert sorted(running.executions) == PLANNED
    assert running.state == "completed"
    return kills


@pytest.mark.slow
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_runner_that_is_killed_at_random_moments_ends_up_with_exactly_what_was_planned(
    tmp_path: Path, parallelism: int
) -> None:
    chance, kills, runs = random.Random(parallelism), 0, 0
    while kills < KILLS:
        kills += stored_after_kills(tmp_path / str(runs), parallelism, chance)
        runs += 1
