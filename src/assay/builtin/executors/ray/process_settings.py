"""Undoes what Ray changes about the processes that it starts: measured code must run as it does on one machine.

Ray gives its workers a lower priority (15 of at most 19), which their children inherit. It sets OMP_NUM_THREADS to 1 where no user has set
it, and hides the GPUs from an actor that did not ask for any.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.builtin.executors.ray.cluster import Cluster

GPU_VARIABLE = "CUDA_VISIBLE_DEVICES"
_VARIABLES = ("OMP_NUM_THREADS", GPU_VARIABLE)
OWN_CLUSTER = {"RAY_worker_niceness": "0"}
"""Variables of a cluster that Assay starts itself, after which nothing has to be undone for each actor."""


def choose_actor_settings(cluster: Cluster) -> dict[str, Any]:
    """Options of every actor that starts processes which are measured, or which measure."""
    # Without a CPU of its own: it waits for nothing, and the slots of the node are for its workers.
    settings: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0}
    if not cluster.is_started_here and not _may_raise_priority():
        # Ray sets the priority where it starts the process: it cannot be raised afterwards without privileges. An environment of
        # its own costs each node a second or two, as Ray cannot use a process for it that it has kept ready.
        settings["runtime_env"] = {"env_vars": dict(OWN_CLUSTER)}
    return settings


def _may_raise_priority() -> bool:
    """Here, and so on the nodes, as one user starts all of Ray."""
    return os.geteuid() == 0


def undo_changes() -> None:
    """Give this process the priority and the variables that it would have without Ray: those of the process that started it."""
    _undo_priority()
    given = _read_given_variables()
    if given is None:
        return
    for name in _VARIABLES:
        if name in given:
            os.environ[name] = given[name]
        else:
            os.environ.pop(name, None)
    for name in OWN_CLUSTER:
        if name not in given:
            os.environ.pop(name, None)


def _undo_priority() -> None:
    """Undo the priority of all threads: each has its own, which the threads and processes that it starts inherit."""
    import ray

    if not ray.is_initialized() or not _may_raise_priority():
        return
    given = os.getpriority(os.PRIO_PROCESS, os.getppid())
    for thread in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.setpriority(os.PRIO_PROCESS, int(thread.name), given)


def _read_given_variables() -> dict[str, str] | None:
    """Read the variables of the raylet, with what the user has set for a job of Ray; None where they cannot be read."""
    import ray

    # Outside of Ray there is nothing to undo; merely to ask would start a cluster.
    if not ray.is_initialized():
        return None
    try:
        content = Path(f"/proc/{os.getppid()}/environ").read_bytes()
    except OSError:
        return None
    pairs = (os.fsdecode(line).partition("=") for line in content.split(b"\0") if line)
    chosen = ray.get_runtime_context().runtime_env.get("env_vars") or {}
    return {name: value for name, _, value in pairs} | {
        name: value for name, value in chosen.items() if name not in OWN_CLUSTER
    }
