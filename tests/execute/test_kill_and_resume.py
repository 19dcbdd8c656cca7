"""However often the runner is killed, what is stored in the end is what was planned."""

from __future__ import annotations

import random
import time
from itertools import cycle
from pathlib import Path

import pytest
from tests.execute.carrying import eventually
from tests.execute.running import Running

KILLS = 20
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


def killed(running: Running, arguments: list[str], delay: float) -> bool:
    """Whether the runner was killed; it is not when it is done before that."""
    owner = running.owner
    process = running.start(*arguments)
    eventually(lambda: running.owner != owner or process.poll() is not None, 30)
    time.sleep(delay)
    was_running = process.poll() is None
    process.kill()
    out, err = process.communicate(timeout=20)
    assert was_running or process.returncode == 0, out + err
    return was_running


@pytest.mark.slow
def test_a_runner_that_is_killed_at_random_moments_ends_up_with_exactly_what_was_planned(
    tmp_path: Path,
) -> None:
    chance = random.Random(20)
    kills = 0
    for number, parallelism in enumerate(cycle((1, 2))):
        if kills >= KILLS:
            break
        folder = tmp_path / str(number)
        folder.mkdir()
        running = Running(folder)
        arguments = begun(running, parallelism)
        while killed(running, arguments, chance.uniform(0, 0.5)):
            kills += 1
            arguments = ["run", "--resume", "last"]

        assert sorted(running.executions) == PLANNED
        assert running.state == "completed"
