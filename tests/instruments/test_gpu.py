from __future__ import annotations

import json
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from assay.builtin.instruments.gpu import Gpu
from assay.errors import PlanError
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import Instrument, NotMeasurable


class NVMLError(Exception):
    pass


def nvml(percents: list[list[int]], used: list[int]) -> ModuleType:
    """NVIDIA's library with devices whose utilisation follows a script; the last value stays."""
    module: Any = ModuleType("pynvml")

    def rates(device: int) -> SimpleNamespace:
        script = percents[device]
        return SimpleNamespace(gpu=script.pop(0) if len(script) > 1 else script[0])

    module.NVMLError = NVMLError
    module.nvmlInit = lambda: None
    module.nvmlDeviceGetCount = lambda: len(percents)
    module.nvmlDeviceGetHandleByIndex = lambda index: index
    module.nvmlDeviceGetUtilizationRates = rates
    module.nvmlDeviceGetMemoryInfo = lambda device: SimpleNamespace(used=used[device])
    return module  # type: ignore[no-any-return]


def has_driver() -> bool:
    try:
        Gpu()
    except NotMeasurable:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="this machine has a device")
def test_without_a_driver_there_is_nothing_to_measure():
    with pytest.raises(NotMeasurable, match="No NVIDIA driver"):
        Gpu()


def test_without_the_library_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NotMeasurable, match=r"pip install 'assay-bench\[gpu\]'"):
        Gpu()


def test_a_driver_without_a_device_is_nothing_to_measure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", nvml([], []))
    with pytest.raises(NotMeasurable, match="no NVIDIA device"):
        Gpu()


def test_utilisation_is_the_mean_of_the_devices_and_memory_their_sum(
    monkeypatch: pytest.MonkeyPatch, context: ExperimentContext
):
    monkeypatch.setitem(sys.modules, "pynvml", nvml([[0, 80], [0, 40]], [3000, 4000]))
    instrument = Gpu(interval_ms=60_000)
    reading = instrument.stop(instrument.start(context))
    assert reading.measurements == {
        "gpu_percent": 30, "gpu_percent_max": 60, "gpu_memory_max_bytes": 7000, "gpu_samples": 2,
    }  # fmt: skip
    assert set(reading.measurements) == set(Gpu.metrics)
    assert isinstance(instrument, Instrument)


def test_samples_are_taken_while_it_runs(monkeypatch: pytest.MonkeyPatch, context: ExperimentContext):
    monkeypatch.setitem(sys.modules, "pynvml", nvml([[50]], [1]))
    instrument = Gpu(interval_ms=20)
    state = instrument.start(context)
    time.sleep(1.2)
    reading = instrument.stop(state)
    rows = [json.loads(line) for line in reading.files[0].content.splitlines()]
    assert len(rows) == reading.measurements["gpu_samples"] > 3
    assert {row["gpu_percent"] for row in rows} == {50}


def test_a_wrong_option_is_named_before_the_hardware_is_asked():
    with pytest.raises(PlanError, match="Instrument 'gpu': interval_ms must be at least 1, not 0"):
        Gpu(interval_ms=0)
