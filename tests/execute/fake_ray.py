"""Ray as the driver of the executor `ray` sees it, without any process: actors whose calls a test answers, or leaves unanswered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import SimpleNamespace
from typing import Any

import pytest

from assay.builtin.executors.ray.node import NodeResults

FACTS: dict[str, Any] = {"facts": {}, "vcs": {}, "doubts": []}


class FakeActor:
    """Notes each call; `answers` has, by the name of a method, what is answered, or an exception that is raised."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, tuple[Any, ...], Future[Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *words: self._call(name, words))

    def _call(self, name: str, words: tuple[Any, ...]) -> Future[Any]:
        call: Future[Any] = Future()
        self.calls.append((name, words, call))
        if name in self.answers:
            answer(call, self.answers[name])
        return call

    def find(self, name: str) -> Future[Any]:
        """The latest call of a method."""
        return next(call for called, _, call in reversed(self.calls) if called == name)


def answer(call: Future[Any], value: Any) -> None:
    if isinstance(value, Exception):
        call.set_exception(value)
    else:
        call.set_result(value)


class FakeRay:
    """Takes the place of Ray's functions; `started` are the actors that the driver has started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import ray

        self.started: list[FakeActor] = []
        self.killed: list[Any] = []
        self.answers: dict[str, Any] = {"prepare": FACTS, "start": None, "stop": NodeResults([], [])}
        """Of the actors that are started from now on."""
        monkeypatch.setattr(ray, "wait", self._wait)
        monkeypatch.setattr(ray, "get", lambda call, timeout=None: call.result(0))
        monkeypatch.setattr(ray, "put", lambda value: value)
        monkeypatch.setattr(ray, "kill", self.killed.append)
        monkeypatch.setattr(ray, "remote", lambda _: SimpleNamespace(options=self._options))
        monkeypatch.setattr("ray.util.list_named_actors", self._list_named)
        self.named: list[dict[str, str]] = []
        self.listings = 0
        """How often the names of all actors were asked for."""

    def _list_named(self, all_namespaces: bool) -> list[dict[str, str]]:
        self.listings += 1
        return self.named

    def _wait(
        self, calls: Sequence[Future[Any]], num_returns: int = 1, timeout: float | None = None
    ) -> tuple[list[Future[Any]], list[Future[Any]]]:
        if num_returns == 1:
            wait(calls, timeout, FIRST_COMPLETED)
        done = [call for call in calls if call.done()][:num_returns]
        return done, [call for call in calls if call not in done]

    def _options(self, **_: object) -> Any:
        return SimpleNamespace(remote=self._start)

    def _start(self, *_: object) -> FakeActor:
        self.started.append(FakeActor(dict(self.answers)))
        return self.started[-1]


class FakeNodes:
    """In place of the connection to a cluster: its nodes are those in the list."""

    is_started_here = False

    def __init__(self, nodes: list[Any], check: Callable[[], None] = lambda: None) -> None:
        self.list, self._check = nodes, check
        self.is_connected = True

    def nodes(self) -> list[Any]:
        self._check()
        return list(self.list)

    def disconnect(self) -> None:
        self.is_connected = False
