from __future__ import annotations

import subprocess
import sys
import time

import pytest

from assay.builtin.instruments.rusage import Rusage
from assay.builtin.instruments.timing import Timing
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import Instrument


@pytest.mark.parametrize("kind", [Timing, Rusage])
def test_they_fit_the_protocol_and_declare_what_they_give(kind: type, context: ExperimentContext):
    instrument = kind()
    assert isinstance(instrument, Instrument)
    assert set(instrument.stop(instrument.start(context)).measurements) == set(instrument.metrics)


def test_timing_measures_wall_time(context: ExperimentContext):
    instrument = Timing()
    state = instrument.start(context)
    time.sleep(0.02)
    assert 0.02 <= instrument.stop(state).measurements["seconds"] < 60


def test_user_time_is_that_of_a_busy_loop(context: ExperimentContext):
    instrument = Rusage()
    state = instrument.start(context)
    worked = time.process_time()
    while time.process_time() - worked < 0.1:
        sum(range(1000))
    used = instrument.stop(state).measurements
    assert 0.09 <= used["user_seconds"] + used["system_seconds"] < 0.3
    assert used["user_seconds"] > used["system_seconds"]


def test_a_child_that_has_ended_is_charged(context: ExperimentContext):
    instrument = Rusage()
    state = instrument.start(context)
    code = "import time\nwhile time.process_time() < 0.15: sum(range(1000))"
    subprocess.run([sys.executable, "-c", code], check=True)
    used = instrument.stop(state).measurements
    assert 0.15 <= used["user_seconds"] + used["system_seconds"] < 1.5


def test_sleeping_gives_the_processor_up_of_free_will(context: ExperimentContext):
    instrument = Rusage()
    state = instrument.start(context)
    for _ in range(400):
        time.sleep(0.001)
    # Pressed off the processor on its way to sleep, a process is counted with the unwilling ones: where others want
    # the processor as well that was more than half of the times.
    assert instrument.stop(state).measurements["voluntary_switches"] >= 20


def test_touching_new_pages_faults(context: ExperimentContext):
    instrument = Rusage()
    state = instrument.start(context)
    block = bytearray(64 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    reading = instrument.stop(state)
    # One fault may map a huge page, so far fewer than one for each page of 4 KiB can happen.
    assert reading.measurements["minor_faults"] >= 16
    assert reading.measurements["max_rss_bytes"] > 64 * 2**20
