"""The process that writes a run. The store keeps it with the lease, and asks whether it is alive before another takes over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that carries out a run."""

    host: str
    pid: int
    machine: str = ""
    """Which kernel counts the pid: the boot and the PID namespace; a pid means nothing on another one."""
    process_started: str = ""
    """When the process started, as its kernel counts; a reused pid has another start."""
    folder: str = ""
    """The working folder, where results that could not be stored are kept."""

    def __str__(self) -> str:
        return f"{self.host} process {self.pid}"
