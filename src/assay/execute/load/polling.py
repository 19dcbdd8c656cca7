"""Waiting for sockets where the system has no epoll."""

from __future__ import annotations

import selectors

_IN, _OUT = 1, 4


class Poll:
    """As much of `select.epoll` as a worker needs."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, events: int) -> None:
        self._selector.register(fd, _wanted(events))

    def modify(self, fd: int, events: int) -> None:
        self._selector.modify(fd, _wanted(events))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        return [(key.fd, _told(events)) for key, events in self._selector.select(timeout)]


def _wanted(events: int) -> int:
    return (selectors.EVENT_READ if events & _IN else 0) | (selectors.EVENT_WRITE if events & _OUT else 0)


def _told(events: int) -> int:
    return (_IN if events & selectors.EVENT_READ else 0) | (_OUT if events & selectors.EVENT_WRITE else 0)
