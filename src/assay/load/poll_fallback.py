"""Waiting for sockets where the system has no epoll, as on macOS.

`worker.poller` imports it only there.
"""

from __future__ import annotations

import selectors

_IN, _OUT = 1, 4


class Poll:
    """As much of `select.epoll` as a worker needs."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, events: int) -> None:
        self._selector.register(fd, _to_selector_events(events))

    def modify(self, fd: int, events: int) -> None:
        self._selector.modify(fd, _to_selector_events(events))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        return [
            (
                key.fd,
                (_IN if events & selectors.EVENT_READ else 0)
                | (_OUT if events & selectors.EVENT_WRITE else 0),
            )
            for key, events in self._selector.select(timeout)
        ]


def _to_selector_events(events: int) -> int:
    return (selectors.EVENT_READ if events & _IN else 0) | (selectors.EVENT_WRITE if events & _OUT else 0)
