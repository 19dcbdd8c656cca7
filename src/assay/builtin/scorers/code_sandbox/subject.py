"""Runs the code under judgement, and does what the tests ask of it. It never sees a test or an expected value.

It reads requests from its standard input and writes replies to its standard output, which are taken away from the code
before any of it is executed: what the code prints is collected and sent along with the next reply.
"""

from __future__ import annotations

import io
import operator
import os
import sys
from types import ModuleType

from .limits import describe_error, limit_resources, take_streams
from .link import Link, plain_data
from .stand_in import FORWARDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Importing typing takes longer than most tests.
    from typing import Any

_FORBIDDEN = frozenset({
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.kill", "os.killpg",
    "subprocess.Popen", "pty.spawn", "signal.pthread_kill", "ctypes.dlopen", "ctypes.dlsym",
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
})  # fmt: skip
_OF_ONE_PATH = frozenset({
    "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.truncate", "os.chdir", "shutil.rmtree",
})  # fmt: skip
_OF_TWO_PATHS = frozenset({"os.rename", "os.link", "os.symlink", "shutil.move"})
_MOST_PRINTED = 100_000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    seconds, memory_bytes = float(sys.argv[1]), int(sys.argv[2])
    requests, replies = take_streams()
    limit_resources(seconds, memory_bytes)
    subject = _Subject()
    link = Link(os.fdopen(requests, "rb"), os.fdopen(replies, "wb"), subject.serve, is_judged=True)
    subject.link = link
    link.take_printed = subject.take_printed
    sys.addaudithook(_Fence(os.path.realpath(".")))
    link.serve_forever()


class _Subject:
    """The module of the code, and what may be done with it and its objects, which is everything.

    Nothing that the tests ask for is refused here: they are trusted, and it is this process that is
    confined.
    """

    link: Link

    def __init__(self) -> None:
        self._module = ModuleType("answer")
        sys.modules["answer"] = self._module
        self._printed = _Printed()
        self._loop: Any = None
        sys.stdout = io.TextIOWrapper(self._printed, "utf-8", "replace", write_through=True)

    def take_printed(self) -> str:
        """What was printed since the last time."""
        if self._printed.closed:
            return ""
        text = self._printed.getvalue().decode("utf-8", "replace")
        self._printed.seek(0)
        self._printed.truncate()
        return text

    def serve(self, op: str, number: int | None, args: list[Any], options: dict[str, Any]) -> Any:
        """Do what the tester asks: without a number one of the `_do_…` methods, else something with an exported object."""
        if number is None:
            return getattr(self, f"_do_{op}")(*args)
        target = self.link.get_export(number)
        match op:
            case "call":
                return target(*args, **options)
            case "method" if args[0] in FORWARDED:
                return getattr(type(target), args[0])(target, *args[1:], **options)
            case "getattr" | "setattr" | "delattr":
                return {"getattr": getattr, "setattr": setattr, "delattr": delattr}[op](target, *args)  # type: ignore[operator]
            case "compare":
                return getattr(operator, args[0])(target, args[1])
            case "plain":
                return plain_data(target)
            case "list":
                return list(target)
            case "item":
                return target[args[0]]
            case "await":
                return self._wait_for(target)
            case "await_method" if args[0] in FORWARDED:
                return self._wait_for(getattr(type(target), args[0])(target, *args[1:]))
        raise ValueError(f"there is no operation {op}")

    def _wait_for(self, awaitable: Any) -> Any:
        import asyncio

        async def wait() -> Any:
            return await awaitable

        if self._loop is None:
            # One for all: the end of a loop closes the asynchronous generators that began in it.
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(wait())

    def _do_load(self, sources: list[str]) -> list[str]:
        return [self._execute(source) for source in sources]

    def _do_import(self, sources: list[str]) -> None:
        """What the tests import, the code may use: it used to be one module."""
        for source in sources:
            self._execute(source)

    def _do_eval(self, expression: str) -> Any:
        return eval(compile(expression, "<test>", "eval", dont_inherit=True), self._module.__dict__)  # noqa: S307

    def _do_name(self, name: str) -> Any:
        """Return the object of this name in a list, which is empty if the module has no such name."""
        found = self._module.__dict__
        return [found[name]] if name in found else []

    def _do_names(self) -> list[str]:
        return [name for name in self._module.__dict__ if not name.startswith("_")]

    def _do_assign(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def _execute(self, source: str) -> str:
        """The error as text, or nothing; whatever the code raises is its own business."""
        try:
            exec(compile(source, "<answer>", "exec", dont_inherit=True), self._module.__dict__)  # noqa: S102
        except BaseException as error:
            return describe_error(error)
        return ""


class _Printed(io.BytesIO):
    """Standard output of the code, of which the first part is kept."""

    def write(self, data: Any) -> int:
        if self.tell() < _MOST_PRINTED:
            super().write(bytes(data)[:_MOST_PRINTED])
        return len(data)


class _Fence:
    """An audit hook: no new processes, no signals, no sockets, no writing outside the working folder.

    It stops mistakes, with a clear message, also where there is no sandbox. Code that wants out will find a way around it.
    """

    def __init__(self, home: str) -> None:
        self._home = home + os.sep

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            raise PermissionError(f"{event} is not allowed here")
        if event in _OF_TWO_PATHS:
            changed = arguments[:2]
        elif event in _OF_ONE_PATH or (event == "open" and (arguments[2] or 0) & _WRITING):
            changed = arguments[:1]
        else:
            return
        for path in changed:
            if not isinstance(path, str | bytes | os.PathLike) or os.fsdecode(path) == os.devnull:
                continue
            if not (os.path.realpath(os.fsdecode(path)) + os.sep).startswith(self._home):
                raise PermissionError(f"{event} is not allowed outside the working folder")
