from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command import AssayInline

from assay.execute.noise import PaceSampler, clock_facts, noise_of, probe

MS = 1_000_000


def test_equal_times_are_no_noise():
    noise = noise_of([MS] * 50, worked=50 * MS)
    assert (noise.spread, noise.worst, noise.cv, noise.lost) == (0, 1, 0, 0)
    assert not noise.is_noisy


def test_known_times_give_known_figures():
    noise = noise_of([100, 110, 120, 130, 140, 150, 160, 170, 180, 400], worked=830)
    assert noise.spread == pytest.approx((400 - 110) / 150)
    assert noise.worst == pytest.approx(400 / 150)
    assert noise.lost == pytest.approx(0.5)
    assert noise.seconds == pytest.approx(1660e-9)
    assert noise.is_noisy


def test_a_single_interruption_is_not_called_a_noisy_machine():
    noise = noise_of([MS] * 59 + [5 * MS], worked=59 * MS)
    assert noise.worst == 5
    assert not noise.is_noisy


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=100))
def test_the_variation_is_that_of_numpy_and_nothing_is_negative(times: list[int]):
    noise = noise_of(times, worked=2 * sum(times))
    assert math.isclose(noise.cv, float(numpy.std(times) / numpy.mean(times)), rel_tol=1e-9, abs_tol=1e-9)
    assert noise.spread >= 0
    assert noise.worst >= 1
    assert noise.lost == 0


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=50), st.integers(2, 1000))
def test_a_slower_machine_is_as_noisy_as_a_fast_one(times: list[int], slower: int):
    fast = noise_of(times, worked=sum(times))
    slow = noise_of([time * slower for time in times], worked=sum(times) * slower)
    assert slow.spread == pytest.approx(fast.spread)
    assert slow.cv == pytest.approx(fast.cv)


def test_the_probe_ends_when_its_time_is_up():
    ticks = count(step=10 * MS)
    noise = probe(0.06, clock=lambda: next(ticks), on_processor=lambda: 0)
    assert (noise.chunks, noise.seconds) == (6, 0.06)
    assert noise.lost == 1


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to cores"
)
def test_competitors_on_the_same_core_make_noise():
    """In a process bound to one core with three busy children: the rest of the machine does not matter."""
    code = """
import os, subprocess, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
busy = [subprocess.Popen([sys.executable, "-c", "print(flush=True)\\nwhile True: pass"], stdout=subprocess.PIPE) for _ in range(3)]
for child in busy:
    child.stdout.readline()
from assay.execute.noise import probe
print(any(probe(0.1).is_noisy for _ in range(3)))
for child in busy:
    child.kill()
    child.communicate()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_the_step_of_a_coarse_clock_is_found():
    readings = (n // 10 * 1000 for n in count())
    facts = clock_facts(lambda: next(readings), readings=100)
    assert facts["step_s"] == pytest.approx(1e-6)


def test_a_clock_that_stands_still_has_no_step():
    assert clock_facts(lambda: 7, readings=10)["step_s"] is None


class Ticking:
    """An executor whose jobs take as long as they say, on a clock of our own."""

    def __init__(self) -> None:
        self.now, self.worked = 0, 0

    def clock(self) -> int:
        self.now += 1_000_000
        return self.now

    def map(self, attempt: Any, jobs: Iterable[int], stop: Any) -> Iterator[int]:
        for job in jobs:
            self.now += job
            yield job


def test_the_pace_is_looked_at_between_jobs_and_after_the_last() -> None:
    ticking = Ticking()
    sampler: Any = PaceSampler(ticking, ticking.clock, lambda: 0)  # type: ignore[arg-type]
    assert list(sampler.map(None, [10**9] * 5, None)) == [10**9] * 5
    found = sampler.summary()
    assert found is not None
    assert found.samples == 6
    assert found.chunk_seconds == pytest.approx(0.00025)
    assert found.spread == pytest.approx(0)
    assert found.is_noisy  # this thread was on no processor at all


def test_looking_at_the_pace_takes_at_most_a_hundredth_of_a_run() -> None:
    ticking = Ticking()
    sampler: Any = PaceSampler(ticking, ticking.clock, lambda: 0)  # type: ignore[arg-type]
    list(sampler.map(None, [10**7] * 100, None))
    found = sampler.summary()
    assert found is not None
    assert 2 <= found.samples <= 1 + ticking.now / 100 / 2_000_000


def test_one_look_says_nothing() -> None:
    ticking = Ticking()
    sampler: Any = PaceSampler(ticking, ticking.clock, lambda: 0)  # type: ignore[arg-type]
    list(sampler.map(None, [], None))
    assert sampler.summary() is None


def test_a_run_says_how_fast_the_machine_was_meanwhile(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "naps.py",
        "import time\nfrom assay import benchmark\n\n\n@benchmark\ndef nap():\n    time.sleep(0.7)\n",
    )
    words = ("--processes", "4", "--repetitions", "1", "--warmup", "0")
    assert assay_inline("run", "naps.py::nap", *words).code == 0
    shown = assay_inline("show", "last", "--json").json
    seen = shown["environment"]["noise_during"]
    assert seen["samples"] >= 2
    assert seen["chunk_seconds"] > 0
