"""The process behind a local URL: who listens there, and what it uses."""

from __future__ import annotations

from urllib.parse import urlsplit

import psutil

from assay.builtin.experiments.serving_params import is_loopback

_PORTS = {"http": 80, "https": 443}


class ServerProcess:
    """A server with the processes that it started; `begin` before a request, `taken` after it."""

    def __init__(self, url: str) -> None:
        self.problem = ""
        """Why there is nothing to measure; empty where there is."""
        self._process = self._found(url)
        self._before: dict[int, float] = {}

    def _found(self, url: str) -> psutil.Process | None:
        place = urlsplit(url)
        if not is_loopback(place.hostname or ""):
            self.problem = (
                f"CPU and memory of the server are not measured: '{place.hostname}' is another machine."
            )
            return None
        port = place.port or _PORTS[place.scheme]
        try:
            return psutil.Process(self._listener(port))
        except (psutil.Error, LookupError) as error:
            why = str(error) if isinstance(error, LookupError) else type(error).__name__
            self.problem = f"CPU and memory of the server are not measured: {why}."
            return None

    @staticmethod
    def _listener(port: int) -> int:
        listening = [
            one
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
        ]
        if not listening:
            raise LookupError(f"nothing on this machine listens on port {port}")
        pids = [one.pid for one in listening if one.pid is not None]
        if not pids:
            raise LookupError(f"the process that listens on port {port} is another user's")
        return pids[0]

    def begin(self) -> None:
        self._before = self._cpu_seconds()

    def taken(self) -> dict[str, float]:
        """CPU time since `begin`, and the memory held now; of the whole tree, because a server may load into children."""
        if self._process is None:
            return {}
        now = self._cpu_seconds()
        if not now:
            return {}
        spent = sum(seconds - self._before.get(pid, 0.0) for pid, seconds in now.items())
        return {"server_cpu_seconds": spent, "server_memory_bytes": float(self._memory())}

    def _cpu_seconds(self) -> dict[int, float]:
        found = {}
        for process in self._tree():
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            found[process.pid] = times.user + times.system
        return found

    def _memory(self) -> int:
        total = 0
        for process in self._tree():
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        return total

    def _tree(self) -> list[psutil.Process]:
        if self._process is None:
            return []
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.Error:
            return []
