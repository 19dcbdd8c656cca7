"""What a simulation takes from the machine while it runs: CPU, memory, disk and network, sampled in a thread."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

import psutil
from pydantic import Field

from assay.builtin.experiments.scratch_folder import ScratchExperiment
from assay.builtin.experiments.simulation_params import Count, WorldParams
from assay.builtin.instruments.sampling import Row, Sampler, Samples
from assay.model import Better, Kind, Metric, describe_metrics
from assay.plugin.experiment import ExperimentContext
from assay.simulation.run import SimulationResult, simulate

MB, KB = 1e6, 1e3
FEW_SAMPLES = 10
_MOST_SAMPLES = 2000


class SystemProfilerParams(WorldParams):
    """A simulation, and what is watched while it runs."""

    num_agents: int = Field(default=200, description="Agents, a third of each kind; at most one per cell.")
    steps: Count = Field(default=150, description="Steps to simulate.")
    monitor_cpu: bool = Field(default=True, description="CPU time of the process.")
    monitor_memory: bool = Field(default=True, description="Resident memory of the process.")
    monitor_disk: bool = Field(
        default=True, description="Bytes that the process reads from and writes to disks."
    )
    monitor_network: bool = Field(
        default=False,
        description="Bytes over the network, of the whole machine: processes have no such counter.",
    )
    sampling_interval: float = Field(
        default=0.01, ge=0.001, le=60, description="Seconds between two samples."
    )
    use_in_memory_db: bool = Field(default=True, description="Log to memory instead of a file.")
    persist_db_on_completion: bool = Field(
        default=False, description="Copy a log in memory to a file when the simulation ends."
    )


class SystemProfiler(ScratchExperiment):
    """One simulation with its log, watched while it runs.

    Samples are taken in a thread from the first step to the last. What taking them costs is measured as well: `sampling_percent` is the share of
    `duration` that the thread worked. A run with fewer than ten samples gets a warning.
    """

    Params = SystemProfilerParams
    workload_params: ClassVar[Sequence[str]] = ("width", "height", "num_agents", "initial_resources", "steps")
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("duration", "s", Better.LOWER),
        Metric("steps_per_second", "1/s", Better.HIGHER),
        Metric("agent_steps_per_second", "1/s", Better.HIGHER),
        Metric("avg_step_time", "s", Better.LOWER),
        Metric("final_agent_count"),
        Metric("cpu_percent", "%"),
        Metric("cpu_percent_max", "%"),
        Metric("memory_before_mb", "MB"),
        Metric("memory_after_mb", "MB"),
        Metric("memory_peak_mb", "MB", Better.LOWER),
        Metric("memory_growth_mb", "MB", Better.LOWER),
        Metric("memory_per_agent_kb", "kB", Better.LOWER, Kind.DERIVED),
        Metric("disk_read_bytes", "bytes", Better.LOWER),
        Metric("disk_write_bytes", "bytes", Better.LOWER),
        Metric("machine_network_bytes", "bytes"),
        Metric("samples"),
        Metric("sampling_percent", "%", Better.LOWER),
    )

    params: SystemProfilerParams

    def prepare_once(self, context: ExperimentContext) -> None:
        """Remove the log of the execution before."""
        self.delete_files()

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        params = self.params
        config = params.world_config(
            simulation_steps=params.steps,
            seed=context.seed,
            use_in_memory_db=params.use_in_memory_db,
            persist_db_on_completion=params.persist_db_on_completion,
        )
        watch = SystemWatch(params)
        sampler = Sampler(watch.take(), watch.take, params.sampling_interval, _MOST_SAMPLES).start()
        try:
            result = simulate(config, self.folder / "simulation.db")
        finally:
            samples = sampler.stop()
        mode = str(result.settings["mode"])
        context.read_back(
            use_in_memory_db=mode != "disk",
            steps=len(result.history),
            num_agents=result.history[0].num_agents + result.history[0].deaths - result.history[0].births,
        )
        if mode != "disk":  # a log in a file has nothing to copy, whatever was asked for
            context.read_back(persist_db_on_completion=mode == "memory_persist")
        if samples.taken < FEW_SAMPLES:
            context.remark(
                f"Fewer than {FEW_SAMPLES} samples were taken in an execution: use a shorter sampling_interval or more steps."
            )
        return {**_compute_pace(result), **watch.compute(samples, config.num_agents)}


class SystemWatch:
    """Takes samples of this process and of the machine's network, as the params ask, and knows what that costs."""

    def __init__(self, params: SystemProfilerParams) -> None:
        self._params, self._process = params, psutil.Process()
        self._spent = 0.0
        self._last: Row = {}
        self._cpu_max = 0.0
        self._rss_max = 0
        """Over all samples: of those that are kept, every other one goes when there are many."""

    def take(self) -> Row:
        began, params = time.thread_time(), self._params
        row: Row = {"at": time.perf_counter(), "cpu": time.process_time()}
        if params.monitor_memory:
            row["rss"] = self._process.memory_info().rss
            self._rss_max = max(self._rss_max, row["rss"])
        if params.monitor_disk and hasattr(self._process, "io_counters"):  # macOS has none
            counters = self._process.io_counters()
            row["read"], row["written"] = counters.read_bytes, counters.write_bytes
        if params.monitor_network:
            network = psutil.net_io_counters()
            row["network"] = network.bytes_sent + network.bytes_recv
        if self._last and row["at"] > self._last["at"]:
            used = (row["cpu"] - self._last["cpu"]) / (row["at"] - self._last["at"])
            self._cpu_max = max(self._cpu_max, 100 * used)
        self._last = row
        self._spent += time.thread_time() - began
        return row

    def compute(self, samples: Samples, agents: int) -> dict[str, float]:
        rows, params = samples.rows, self._params
        first, last = rows[0], rows[-1]
        passed = last["at"] - first["at"]
        figures = {"samples": float(samples.taken), "sampling_percent": 100 * self._spent / passed}
        if params.monitor_cpu:
            figures["cpu_percent"] = 100 * (last["cpu"] - first["cpu"]) / passed
            figures["cpu_percent_max"] = self._cpu_max
        if params.monitor_memory:
            before, after, peak = (rss / MB for rss in (first["rss"], last["rss"], self._rss_max))
            figures["memory_before_mb"], figures["memory_after_mb"] = before, after
            figures["memory_peak_mb"] = peak
            figures["memory_growth_mb"] = after - before
            figures["memory_per_agent_kb"] = (peak - before) * MB / KB / agents
        if "read" in first:
            figures["disk_read_bytes"] = last["read"] - first["read"]
            figures["disk_write_bytes"] = last["written"] - first["written"]
        if params.monitor_network:
            figures["machine_network_bytes"] = last["network"] - first["network"]
        return figures


def _compute_pace(result: SimulationResult) -> dict[str, float]:
    steps = len(result.history)
    return {
        "duration": result.seconds,
        "steps_per_second": steps / result.seconds,
        "agent_steps_per_second": result.agent_steps / result.seconds,
        "avg_step_time": result.seconds / steps,
        "final_agent_count": result.history[-1].num_agents,
    }
