"""Retries of judges: the caller of a scorer can learn that a judge's request is sent again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

_on_retry: ContextVar[Callable[[], None] | None] = ContextVar("on_judge_retry", default=None)


def is_judging() -> bool:
    """Whether the current task asks a judge rather than the agent under test."""
    return _on_retry.get() is not None


def report_judge_retry() -> None:
    """Called by clients before they send a request again; does nothing for the agent under test."""
    if (on_retry := _on_retry.get()) is not None:
        on_retry()


async def report_retries_of(judging: Awaitable[None], on_retry: Callable[[], None]) -> None:
    """Await a judgement; `on_retry` is called for each request of a judge that is sent again."""
    # Set in here and not by the caller, because a loop that is kept between runs has a context of its own.
    token = _on_retry.set(on_retry)
    try:
        await judging
    finally:
        _on_retry.reset(token)
