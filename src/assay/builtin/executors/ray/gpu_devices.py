"""Which GPUs of a node belong to which job, so that two jobs that ask for one each do not use the same one."""

from __future__ import annotations

from collections.abc import Sequence


class GpuDevices:
    """The devices of a node by their names, and how much of each is free."""

    def __init__(self, names: Sequence[str]) -> None:
        self._free = dict.fromkeys(names, 1.0)
        self._taken: dict[int, dict[str, float]] = {}

    def take(self, number: int, amount: float, after: int = 0) -> tuple[str, ...]:
        """Devices for a job, by its number; one that takes over the slots of another takes over its devices, too.

        Jobs that ask for less than one share a device. The driver sends no more jobs than fit; if that ever fails, the job
        sees all devices.

        >>> devices = GpuDevices(["0", "1"])
        >>> devices.take(1, 1), devices.take(2, 0.5), devices.take(3, 0.5)
        (('0',), ('1',), ('1',))
        >>> devices.release(1)
        >>> devices.take(4, 1)
        ('0',)
        """
        if amount <= 0 or not self._free:
            return ()
        if after and after in self._taken:
            self._taken[number] = self._taken[after]
            return tuple(self._taken[after])
        # The fullest that has room comes first, so that whole devices stay free.
        per_device = min(amount, 1.0)
        fitting = sorted(
            (name for name, free in self._free.items() if free >= per_device - 1e-9),
            key=lambda name: self._free[name],
        )
        wanted = fitting[: max(1, round(amount))]
        if len(wanted) < max(1, round(amount)):
            return tuple(self._free)
        self._taken[number] = dict.fromkeys(wanted, per_device)
        for name in wanted:
            self._free[name] -= per_device
        return tuple(wanted)

    def release(self, number: int) -> None:
        """The job is done; its devices are free unless another one has taken them over."""
        taken = self._taken.pop(number, None)
        if taken is None or any(other is taken for other in self._taken.values()):
            return
        for name, amount in taken.items():
            self._free[name] += amount
