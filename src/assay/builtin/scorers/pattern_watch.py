"""Regular expressions matched in a process of their own, which is ended when a match takes too long.

A match in this process could not be stopped: `re` holds the interpreter until it is done. The child reads one question a
line, a JSON list of pattern, flags, mode and text, and answers each with a line `true` or `false`.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import subprocess
import sys
import weakref

_CHILD = """
import json, re, sys
print("ready", flush=True)
for line in sys.stdin:
    pattern, flags, mode, text = json.loads(line)
    found = getattr(re.compile(pattern, flags), mode)(text) is not None
    print(json.dumps(found), flush=True)
"""
_STARTING_SECONDS = 10.0


class TooSlow(Exception):
    """A match did not end in time; the message says so to the user."""


class PatternWatch:
    """One process for many matches; started when first needed, and again after one was ended."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._matcher: _Matcher | None = None

    def matches(self, pattern: str, flags: int, mode: str, text: str) -> bool:
        question = json.dumps([pattern, int(flags), mode, text]).encode() + b"\n"
        matcher = self._matcher or self._start_matcher()
        answer = matcher.ask(question, self._seconds)
        if answer is None:
            matcher.end()
            self._matcher = None
            raise TooSlow(f"the match took longer than {self._seconds:g} s")
        return answer.strip() == b"true"

    def _start_matcher(self) -> _Matcher:
        matcher = _Matcher()
        if matcher.ask(b"", _STARTING_SECONDS) is None:
            matcher.end()
            raise TooSlow("the process that matches patterns did not start")
        self._matcher = matcher
        return matcher


class _Matcher:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.end = weakref.finalize(self, _end_process, self._process)

    def ask(self, question: bytes, seconds: float) -> bytes | None:
        """The line that it answers with; None when it has none in that time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError), selectors.DefaultSelector() as selector:
            self._process.stdin.write(question)
            self._process.stdin.flush()
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if selector.select(seconds):
                return self._process.stdout.readline() or None
        return None


def _end_process(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()
