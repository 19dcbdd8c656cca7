"""The scorer `regex`, and the process in which it tries patterns that may take for ever.

A pattern may need exponential time (catastrophic backtracking), and a match in C cannot be interrupted by
a thread or a signal. So it runs in a process of its own that is killed when the time is up; the next
match starts another one.
"""

from __future__ import annotations

import contextlib
import json
import re
import selectors
import subprocess
import sys
import weakref
from typing import ClassVar, Literal

from assay.builtin.scorers.options import flag, number, one_of, option_error
from assay.builtin.scorers.text_normalization import NO_OUTPUT, RIGHT, alternatives, is_missing, text_of
from assay.model import Case
from assay.plugin import Judged, Judgement

_HARMLESS_STEPS = 1e7
_BRANCHINGS = "*+?{|"
_REPEATED_GROUP = re.compile(r"\)[*+?{]|\\[1-9]|\(\?P=|\(\?\(")
_CHILD = """
import json, re, sys
print("ready", flush=True)
for line in sys.stdin:
    pattern, flags, mode, text = json.loads(line)
    found = getattr(re.compile(pattern, flags), mode)(text) is not None
    print(json.dumps(found), flush=True)
"""
_STARTING_SECONDS = 10.0


class Regex:
    """The output matches a regular expression: that of the option, or else the expected output.

    A match that takes too long leaves the case unscored. It runs in a process of its own, because a match in this one
    could not be stopped.

    Args:
        pattern: Python regular expression. Default: the expected output of the case.
        mode: Whether the pattern may match anywhere, or must match the whole output.
        ignorecase: Whether capitals are ignored.
        seconds: Maximum seconds per match.

    Example:
        scorer: {name: regex, pattern: '\\d{4}-\\d{2}-\\d{2}', mode: fullmatch}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected", "pattern")

    def __init__(
        self,
        *,
        pattern: str | None = None,
        mode: Literal["search", "fullmatch"] = "search",
        ignorecase: bool = False,
        seconds: float = 1.0,
    ) -> None:
        self._mode = one_of("regex", "mode", mode, ("search", "fullmatch"))
        self._flags = re.IGNORECASE if flag("regex", "ignorecase", ignorecase) else 0
        self._watch = PatternWatch(number("regex", "seconds", seconds, 0.01, 60))
        self._pattern = None if pattern is None else self._check_pattern(pattern)

    def _check_pattern(self, pattern: object) -> str:
        if not isinstance(pattern, str):
            raise option_error("regex", "pattern", f"must be a text, not {pattern!r}.")
        try:
            re.compile(pattern, self._flags)
        except (re.error, RecursionError, OverflowError) as error:
            raise option_error("regex", "pattern", f"is not a regular expression: {error}.") from None
        return pattern

    def score(self, judged: Judged) -> Judgement:
        if self._pattern is None and is_missing(judged.expected):
            return Judgement(None, "there is no pattern: neither an option nor an expected output")
        if judged.output is None:
            return NO_OUTPUT
        patterns = [self._pattern] if self._pattern is not None else alternatives(judged.expected)
        text = text_of(judged.output)
        try:
            is_match = any(self._matches(text_of(pattern), text) for pattern in patterns)
        except re.error as error:
            return Judgement(None, f"the expected output is not a valid regular expression: {error}")
        except TooSlow as slow:
            return Judgement(None, str(slow))
        return RIGHT if is_match else Judgement(0.0, "no match")

    def example(self, expected: object, case: Case) -> str | None:
        """A pattern that matches itself, as plain words do; for others it is unknown what they match."""
        patterns = [self._pattern] if self._pattern is not None else alternatives(expected)
        for text in map(text_of, () if is_missing(patterns) or patterns == [None] else patterns):
            if self.score(Judged(text, text, case)).value == 1 and text:
                return text
        return None

    def _matches(self, pattern: str, text: str) -> bool:
        compiled = re.compile(pattern, self._flags)
        if _most_steps(pattern, len(text)) > _HARMLESS_STEPS:
            return self._watch.matches(pattern, self._flags, self._mode, text)
        return getattr(compiled, self._mode)(text) is not None


def _most_steps(pattern: str, length: int) -> float:
    """A bound on the work of a match: every branching may try every place; repeated groups have no bound.

    Signs are counted, not understood: one that stands in a class or after a backslash only makes us careful.
    """
    if _REPEATED_GROUP.search(pattern):
        return float("inf")
    branchings = sum(pattern.count(sign) for sign in _BRANCHINGS)
    return max(2.0, length) ** min(branchings + 1, 60) if branchings else length * 1.0


class TooSlow(Exception):
    """A match did not end in time; the message says so to the user."""


class PatternWatch:
    """Matches patterns in a process of its own, which is ended when a match takes too long.

    A match in this process could not be stopped: `re` holds the interpreter until it is done. The child reads one question a
    line, a JSON list of pattern, flags, mode and text, and answers each with a line `true` or `false`. It serves many
    matches; it is started when first needed, and again after one was ended.
    """

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
