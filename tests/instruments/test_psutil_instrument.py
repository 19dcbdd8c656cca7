from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from itertools import count

import pytest

from assay.builtin.instruments.psutil import Psutil
from assay.builtin.instruments.sampling import Sampler
from assay.errors import PlanError
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import Instrument, Reading

MB = 2**20
A_WHILE = 1.2
"""Seconds in which a sampler takes many samples, even where its thread is held up for a second."""


def busy(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))


class Stint:
    """Processor time and time on the wall of a stretch of this test."""

    def __init__(self) -> None:
        self._began = time.process_time(), time.perf_counter()

    def end(self) -> None:
        self.worked, self.lasted = (
            now - began
            for now, began in zip((time.process_time(), time.perf_counter()), self._began, strict=True)
        )


def rows_of(reading: Reading) -> list[dict[str, object]]:
    return [json.loads(line) for line in reading.files[0].content.splitlines()]


def test_it_fits_the_protocol():
    assert isinstance(Psutil(), Instrument)


def test_even_an_empty_execution_has_a_sample_at_each_end(context: ExperimentContext):
    instrument = Psutil()
    reading = instrument.stop(instrument.start(context))
    assert reading.measurements["psutil_samples"] == 2
    assert reading.measurements["rss_max_bytes"] > MB
    assert set(reading.measurements) <= set(Psutil.metrics)


def test_it_sees_an_allocation_of_50_megabytes(context: ExperimentContext):
    instrument = Psutil(interval_ms=10)
    state = instrument.start(context)
    block = bytearray(50 * MB)
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(A_WHILE)
    del block
    reading = instrument.stop(state)
    first = rows_of(reading)[0]["rss_bytes"]
    assert isinstance(first, int)
    assert 45 * MB < reading.measurements["rss_max_bytes"] - first < 60 * MB


def test_a_busy_process_uses_about_one_processor(context: ExperimentContext):
    instrument = Psutil(interval_ms=20)
    outer = Stint()
    state = instrument.start(context)
    inner = Stint()
    busy(0.3)
    inner.end()
    cpu = instrument.stop(state).measurements["cpu_percent"] / 100
    outer.end()
    # Against the share that a busy machine left for this process, not against 1; the kernel counts in ticks of 10 ms.
    assert cpu <= (outer.worked + 0.03) / inner.lasted
    assert cpu >= (inner.worked - 0.03) / outer.lasted


def test_an_idle_process_uses_next_to_no_processor(context: ExperimentContext):
    instrument = Psutil(interval_ms=50)
    state = instrument.start(context)
    time.sleep(0.5)
    assert instrument.stop(state).measurements["cpu_percent"] < 30


@pytest.mark.parametrize("is_reaped", [True, False], ids=["ended", "still running"])
def test_the_work_and_memory_of_a_child_count(context: ExperimentContext, is_reaped: bool):
    code = "import sys; b = bytearray(30 * 2**20); b[::4096] = b'x' * len(b[::4096]); n = sum(range(4_000_000)); "
    code += "print(flush=True); sys.stdin.read()"
    instrument = Psutil(interval_ms=10)
    state = instrument.start(context)
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(A_WHILE)
    if is_reaped:
        child.communicate()
    reading = instrument.stop(state)
    child.communicate()
    rows = rows_of(reading)
    seconds = float(str(rows[-1]["ts"])) - float(str(rows[0]["ts"]))
    worked = reading.measurements["cpu_percent"] / 100 * seconds
    assert worked > 0.03
    assert reading.measurements["rss_max_bytes"] > int(str(rows[0]["rss_bytes"])) + 25 * MB


def test_bytes_that_reach_the_disk_count(context: ExperimentContext):
    instrument = Psutil()
    state = instrument.start(context)
    with (context.run_dir / "written").open("wb") as file:
        file.write(os.urandom(4 * MB))
        file.flush()
        os.fsync(file.fileno())
    written = instrument.stop(state).measurements.get("write_bytes")
    if not written:
        pytest.skip("this file system does not account for what is written")
    assert written >= 4 * MB


def test_rows_say_of_which_execution_they_are(context: ExperimentContext):
    instrument = Psutil()
    for row in rows_of(instrument.stop(instrument.start(context))):
        assert (row["phase"], row["process"], row["repetition"], row["stride"]) == ("measured", 2, 3, 1)
        assert {"ts", "cpu_percent", "rss_bytes", "read_bytes", "write_bytes"} < set(row)


def test_stopping_does_not_wait_for_the_next_sample(context: ExperimentContext):
    instrument = Psutil(interval_ms=60_000)
    state = instrument.start(context)
    begin = time.perf_counter()
    instrument.stop(state)
    assert time.perf_counter() - begin < 30


def test_no_thread_is_left_behind(context: ExperimentContext):
    before = set(threading.enumerate())
    instrument = Psutil(interval_ms=1)
    instrument.stop(instrument.start(context))
    assert set(threading.enumerate()) <= before


def test_a_flood_of_samples_stays_bounded_and_covers_the_whole_execution(context: ExperimentContext):
    instrument = Psutil(interval_ms=1, max_samples=8)
    state = instrument.start(context)
    time.sleep(A_WHILE)
    reading = instrument.stop(state)
    rows = rows_of(reading)
    assert reading.measurements["psutil_samples"] > 16
    assert 4 <= len(rows) <= 8
    assert int(str(rows[0]["stride"])) >= 2
    assert float(str(rows[-1]["ts"])) - float(str(rows[0]["ts"])) > 0.9 * A_WHILE


@pytest.mark.parametrize("most", [2, 3, 5, 8])
@pytest.mark.parametrize("least", [1, 4, 7, 100])
def test_thinned_samples_are_evenly_spaced_and_end_with_the_last(most: int, least: int):
    numbers = count(1)
    enough = threading.Event()

    def take() -> dict[str, int]:
        number = next(numbers)
        if number >= least:
            enough.set()
        return {"number": number}

    sampler = Sampler({"number": 0}, take, 1e-4, most).start()
    assert enough.wait(60)
    samples = sampler.stop()
    kept = [row["number"] for row in samples.rows]
    assert len(kept) <= most
    assert kept[:-1] == list(range(0, kept[-2] + 1, samples.rows[0]["stride"]))
    assert kept[-1] == samples.taken - 1 >= least


def test_a_failure_of_the_sampling_thread_is_not_swallowed():
    def take() -> dict[str, int]:
        raise RuntimeError("device lost")

    sampler = Sampler({}, take, 1e-3, 10).start()
    time.sleep(0.05)
    with pytest.raises(RuntimeError, match="device lost"):
        sampler.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval_ms": 0}, "Instrument 'psutil': interval_ms must be at least 1, not 0."),
        ({"interval_ms": "fast"}, "Instrument 'psutil': interval_ms must be a number, not 'fast'."),
        ({"interval_ms": float("nan")}, "Instrument 'psutil': interval_ms must be at least 1, not nan."),
        ({"max_samples": 1}, "Instrument 'psutil': max_samples must be at least 2, not 1."),
        ({"max_samples": 2.5}, "Instrument 'psutil': max_samples must be a whole number, not 2.5."),
        ({"max_samples": True}, "Instrument 'psutil': max_samples must be a whole number, not True."),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], message: str):
    with pytest.raises(PlanError) as raised:
        Psutil(**options)  # type: ignore[arg-type]
    assert str(raised.value) == message
