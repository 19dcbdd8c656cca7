"""The instrument for NVIDIA devices, by the driver's management library (NVML).

It knows devices and not processes: on a machine that others use at the same time, their work is in the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assay.builtin.instruments.options import at_least, whole
from assay.builtin.instruments.sampling import Row, SampledState, Sampler
from assay.model import Better, Metric
from assay.plugin import ExperimentContext, NotMeasurable, Reading, SteadyClock


class Gpu:
    """Utilisation and memory of all NVIDIA devices of the machine, used by any process, sampled in a thread. Needs the extra `gpu`.

    Args:
        interval_ms: Milliseconds between two samples.
        max_samples: Maximum samples per execution; beyond it they are taken less often.

    Example:
        instrumentation: [timing, {name: gpu, interval_ms: 100}]
    """

    slows: ClassVar[bool] = False
    metrics: ClassVar[Mapping[str, Metric]] = {
        "gpu_percent": Metric("gpu_percent", "%"),
        "gpu_percent_max": Metric("gpu_percent_max", "%"),
        "gpu_memory_max_bytes": Metric("gpu_memory_max_bytes", "bytes", Better.LOWER),
        "gpu_samples": Metric("gpu_samples"),
    }

    def __init__(self, *, interval_ms: float = 200, max_samples: int = 1000) -> None:
        self._interval = at_least("gpu", "interval_ms", interval_ms, 1) / 1000
        self._max_samples = whole("gpu", "max_samples", max_samples, 2)
        self._nvml = _nvml()
        count = self._nvml.nvmlDeviceGetCount()
        self._devices = [self._nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        if not self._devices:
            raise NotMeasurable("This machine has no NVIDIA device.")

    def start(self, context: ExperimentContext) -> SampledState:
        devices = _Devices(self._nvml, self._devices)
        sampler = Sampler(devices.sample(), devices.sample, self._interval, self._max_samples)
        return SampledState(context, devices.measurements, sampler.start())

    def stop(self, state: SampledState) -> Reading:
        return state.stop("gpu")


@dataclass(slots=True)
class _Devices:
    """Utilisation is the mean of the devices, memory their sum; figures are over all samples."""

    nvml: Any
    handles: list[Any]
    percent_total: float = 0.0
    percent_max: float = 0.0
    memory_max: int = 0
    count: int = field(default=0)
    clock: SteadyClock = field(default_factory=SteadyClock)

    def sample(self) -> Row:
        busy = sum(self.nvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in self.handles)
        percent = busy / len(self.handles)
        memory = sum(self.nvml.nvmlDeviceGetMemoryInfo(handle).used for handle in self.handles)
        self.percent_total += percent
        self.percent_max = max(self.percent_max, percent)
        self.memory_max = max(self.memory_max, memory)
        self.count += 1
        return {"ts": self.clock.now().timestamp(), "gpu_percent": percent, "gpu_memory_bytes": memory}

    def measurements(self) -> dict[str, float]:
        return {
            "gpu_percent": self.percent_total / self.count,
            "gpu_percent_max": self.percent_max,
            "gpu_memory_max_bytes": self.memory_max,
        }


def _nvml() -> Any:
    """NVIDIA's management library, ready; stays so until the process ends."""
    try:
        import pynvml
    except ImportError:
        raise NotMeasurable("The package 'nvidia-ml-py' is missing: pip install 'assay-bench[gpu]'") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NotMeasurable(f"No NVIDIA driver works on this machine ({error}).") from None
    return pynvml
