"""Whatever an experiment raises is its own failure, and its other executions go on."""

from __future__ import annotations

import json
from collections import Counter

from tests.command import AssayInline
from tests.suites.project import Stored

EXPERIMENTS = """
import asyncio
from assay import Experiment, register_experiment

class Own(BaseException):
    pass

class Silent(Exception):
    def __str__(self):
        raise KeyboardInterrupt
    __repr__ = __str__

def define(make):
    @register_experiment(f"{make.__name__}_sync")
    class Sync(Experiment):
        calls = 0
        def execute_once(self, context):
            self.calls += 1
            if self.calls % 3 == 0:
                raise make()

    @register_experiment(f"{make.__name__}_async")
    class Async(Sync):
        async def execute_once(self, context):
            async def task():
                Sync.execute_once(self, context)
            await asyncio.gather(task())

for make in (asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit, Own, Silent):
    define(make)
"""
BIG = """
from assay import Experiment, register_experiment

@register_experiment("big")
class Big(Experiment):
    def execute_once(self, context):
        return {f"text{number}": "x" * 99_000 for number in range(50)}
"""


def test_what_an_experiment_raises_is_a_failed_execution(assay_inline: AssayInline) -> None:
    assay_inline.write("experiments.py", EXPERIMENTS)
    assert (
        assay_inline("run", "experiments.py", "-q", "--isolation", "inline", "--repetitions", "6").code == 0
    )
    stored = Stored(assay_inline.folder)
    counts = [Counter(one.status.value for one in made) for made in stored.by_trial.values()]
    assert counts == [Counter(ok=4, failed=2)] * 12


def test_what_an_experiment_returns_is_stored_within_a_limit(assay_inline: AssayInline) -> None:
    assay_inline.write("big.py", BIG)
    assert assay_inline("run", "big.py", "-q", "--isolation", "inline").code == 0
    [execution] = Stored(assay_inline.folder).measured
    assert len(json.dumps(execution.output)) < 1_100_000
    assert (execution.detail or {})["shortened"]["output"] > 4_900_000  # type: ignore[index]
