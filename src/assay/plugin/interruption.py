"""Tells whether the user interrupted the code under test, or the code ended itself.

Agents and experiments may raise anything, also what Python uses to end programs and tasks: SystemExit,
KeyboardInterrupt, asyncio.CancelledError. That is their failure. Only the two exceptions below come from the user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class Cancelled(BaseException):
    """Raised in a worker that is asked to end: the execution under way is recorded as cancelled."""


class UserInterrupt(KeyboardInterrupt):
    """Raised in the runner at the second Ctrl-C; a plain KeyboardInterrupt is one that the code under test raised."""


BY_USER = (Cancelled, UserInterrupt)


class _Ending:
    """How a coroutine ended. No dataclass: asyncio prints results, and an exception may raise when it is printed."""

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self.result, self.error = result, error


def run_coroutine(runner: asyncio.Runner, awaitable: Awaitable[Any]) -> Any:
    """The result of what is awaited, or the exception that it raised, which passes the event loop as a value."""

    async def guard() -> _Ending:
        try:
            return _Ending(await awaitable)
        except BaseException as error:
            return _Ending(error=error)

    ending = _run_to_end(runner, guard())
    if ending.error is not None:
        raise ending.error
    return ending.result


def _run_to_end(runner: asyncio.Runner, coroutine: Coroutine[Any, Any, _Ending]) -> _Ending:
    """SystemExit and KeyboardInterrupt in a task that the coroutine started leave the loop at once.

    The loop then continues, so that the coroutine, which awaits that task, gets the exception too.
    """
    try:
        # Not `runner.run`, which watches for Ctrl-C itself and prints its tasks as it does so.
        return runner.get_loop().run_until_complete(coroutine)
    except UserInterrupt:
        raise
    except (SystemExit, KeyboardInterrupt):
        import asyncio

        unfinished = (task for task in asyncio.all_tasks(runner.get_loop()) if task.get_coro() is coroutine)
        if (task := next(unfinished, None)) is None:
            raise

        async def wait() -> _Ending:
            ending: _Ending = await task
            return ending

        return _run_to_end(runner, wait())
