"""The real server for tests: `assay serve` in a process of its own, on a free port."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.command import COMMAND, environment, heeding_signals

_HANGS_AFTER = 120


@dataclass(frozen=True)
class Answer:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def document(self) -> Any:
        """Of a request that went well."""
        assert self.status == 200, self.body.decode()
        return self.json


@dataclass
class Service:
    """A server that runs; every request has a connection of its own."""

    url: str
    process: subprocess.Popen[str]
    headers: dict[str, str] = field(default_factory=dict)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        place = urlsplit(self.url)
        assert place.hostname
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=_HANGS_AFTER)
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, /, **query: object) -> Answer:
        asked = f"?{urlencode(query, doseq=True)}" if query else ""
        return self.request("GET", path + asked)

    def post(self, path: str, /, **document: object) -> Answer:
        return self.request("POST", path, json.dumps(document).encode(), {"content-type": "application/json"})

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(_HANGS_AFTER)


@contextmanager
def serving(folder: Path, *options: str, **variables: str) -> Iterator[Service]:
    """`assay serve` in a folder, until the block is left."""
    process = subprocess.Popen(
        [COMMAND, "serve", "--port", "0", "--json", *options],
        cwd=folder,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heeding_signals,
    )
    assert process.stdout is not None
    try:
        told = process.stdout.readline()
        assert told, "the server did not start"
        yield Service(json.loads(told)["url"], process)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
