"""The instrument that samples an execution from outside: which lines its threads are in, and why they wait.

A program of its own (`process_sampler`) starts py-spy and reads the states of all threads; `profile_merge` joins both into one file in
the format of speedscope. The worker only waits until sampling has begun, and afterwards reads what was seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, ClassVar

from assay.builtin.instruments import process_sampler
from assay.builtin.instruments.options import at_least
from assay.builtin.instruments.profile_merge import merge_samples
from assay.model import Better, Metric
from assay.plugin import ExperimentContext, File, Reading

_PR_SET_PTRACER = 0x59616D61
_ANCHOR_SECONDS = 0.03
"""How long `await_sampler` continues after sampling has begun, so that a few samples show it."""


class SamplingProfiler:
    """Where the time of all threads went, line by line: computing, sleeping, waiting for locks, for input and output.

    py-spy samples the process from outside, which needs the extra `profile` and the permission to read the process's memory. Without
    it, the CPU, memory and I/O of each span are still known. `assay profile` uses this instrument.

    Args:
        rate: Samples per second.
        py_spy: The program py-spy, if it is not the one that is installed with Assay.

    Example:
        instrumentation: [timing, profile]
    """

    slows: ClassVar[bool] = True
    has_cost: ClassVar[bool] = False
    metrics: ClassVar[Mapping[str, Metric]] = {
        "profile_samples": Metric("profile_samples", "samples", Better.HIGHER)
    }

    def __init__(self, *, rate: float = 100, py_spy: str = "") -> None:
        self._interval = 1 / at_least("profile", "rate", rate, 1)
        self._py_spy = py_spy or find_py_spy()

    def start(self, context: ExperimentContext) -> _Sampling:
        # The folder of the trial goes with the run, also where the worker is killed.
        parent = context.run_dir if context.run_dir.is_dir() else None
        folder = tempfile.mkdtemp(prefix="assay-profile-", dir=parent)
        trace = str(Path(folder, "trace.json"))
        # An agent that is a program of its own is the one to be watched.
        pid = next(process_sampler.list_children(os.getpid()), os.getpid())
        command = [
            sys.executable,
            "-I",
            "-S",
            process_sampler.__file__,
            str(pid),
            str(self._interval),
            trace,
            self._py_spy,
        ]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        _allow_tracing(process.pid)
        problem = await_sampler(process)
        return _Sampling(context, process, folder, problem, monotonic())

    def stop(self, state: _Sampling) -> Reading:
        ended = monotonic()
        try:
            with contextlib.suppress(BrokenPipeError):
                output, _ = state.process.communicate(b"stop\n", timeout=30)
            seen = json.loads(output)
            trace = _read_trace(Path(state.folder, "trace.json"))
        except (ValueError, subprocess.TimeoutExpired, UnboundLocalError):
            state.process.kill()
            seen, trace = {"rows": [], "began": state.began}, []
        finally:
            shutil.rmtree(state.folder, ignore_errors=True)
        merged = merge_samples(trace, seen, state.began, ended)
        repetition = state.context.execution
        name = f"{repetition:03d}"
        record = {
            "repetition": repetition,
            "seconds": ended - state.began,
            "problem": state.problem,
            "samples": merged.samples,
            "cores": len(os.sched_getaffinity(0)),
            "rows": merged.rows,
        }
        files = [File(f"profile-{name}.json", "profile", json.dumps(record).encode())]
        if merged.samples:
            content = json.dumps(merged.speedscope(f"execution {repetition}")).encode()
            files.append(File(f"profile-{name}.speedscope.json", "speedscope", content))
        return Reading({"profile_samples": float(merged.samples)}, tuple(files))


@dataclass(frozen=True, slots=True)
class _Sampling:
    context: ExperimentContext
    process: subprocess.Popen[bytes]
    folder: str
    problem: str
    began: float


def find_py_spy() -> str:
    """The program next to this Python, or on the path; empty where there is none."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.is_file() else shutil.which("py-spy") or ""


def await_sampler(process: subprocess.Popen[bytes]) -> str:
    """Wait until sampling has begun; returns why it has not. The samples in which this function stands mark the beginning."""
    assert process.stdout is not None
    try:
        problem = str(
            json.loads(process.stdout.readline() or b"{}").get("problem", "the sampler did not start")
        )
    except ValueError:
        return "the sampler did not start"
    sleep(_ANCHOR_SECONDS)
    return problem


def _allow_tracing(pid: int) -> None:
    """Let a child read this process's memory where the kernel (Yama) allows that only to parents."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, pid, 0, 0, 0)


def _read_trace(file: Path) -> list[dict[str, Any]]:
    if not file.is_file() or not file.stat().st_size:
        return []
    found = json.loads(file.read_bytes())
    return list(found["traceEvents"] if isinstance(found, dict) else found)
