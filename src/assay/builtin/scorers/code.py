from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.builtin.scorers.fences import fenced_blocks
from assay.builtin.scorers.options import flag, number
from assay.builtin.scorers.texts import NO_OUTPUT, RIGHT, text_of
from assay.execute.tree import MARK
from assay.model import Case
from assay.plugin.scorer import Judged, Judgement

_CHILD = Path(__file__).with_name("code_child.py")
_MOST_SOURCE = 200_000
_MOST_REPORT = 1_000_000
_PYTHON = ("python", "py", "python3", "")

Test = Mapping[str, Any]


class Code:
    """The Python code in the output passes the tests of the case.

    Tests stand under `tests` of the case, or else under `expected`: Python source with asserts or test functions, or a list
    of {call, expected}. The code runs in a process group of its own with limits on time, memory and files, in an empty
    folder and with an empty environment. This contains mistakes; it is not a sandbox against hostile code, and the network
    is reachable.

    Args:
        seconds: The most time that the tests of a case may take.
        memory_mb: The most memory that the code may use.
        partial: Whether the score is the share of tests that pass, instead of 0 or 1.

    Example:
        scorer: {name: code, seconds: 5, partial: true}
    """

    needs_one_of: ClassVar[tuple[str, ...]] = ("expected", "tests")
    reads: ClassVar[tuple[str, ...]] = ("tests", "entry_point")

    def __init__(self, *, seconds: float = 10.0, memory_mb: float = 512.0, partial: bool = False) -> None:
        self._seconds = number("code", "seconds", seconds, 0.1, 3600)
        self._memory_bytes = int(number("code", "memory_mb", memory_mb, 32, 2**20) * 2**20)
        self._partial = flag("code", "partial", partial)

    def score(self, judged: Judged) -> Judgement | Awaitable[Judgement]:
        """Off the event loop where there is one: others are being timed on it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._judge(judged)
        return asyncio.to_thread(self._judge, judged)

    def _judge(self, judged: Judged) -> Judgement:
        try:
            tests = tests_of(judged)
        except ValueError as problem:
            return Judgement(None, str(problem))
        if judged.output is None:
            return NO_OUTPUT
        text = text_of(judged.output)
        if len(text) > _MOST_SOURCE:
            return Judgement(0.0, f"the output is longer than {_MOST_SOURCE:,} characters")
        result = _Attempt(sources_in(text), tests, self._seconds, self._memory_bytes).result()
        return self._judgement(result, sum(not test.get("is_setup") for test in tests))

    def example(self, expected: object, case: Case) -> object:
        """The expected output, unless that is the tests: code that passes them cannot be constructed."""
        return expected if "tests" in case.metadata else None

    def _judgement(self, result: _Result, total: int) -> Judgement:
        passed = sum(not error for error in result.errors)
        if passed == total and not result.setup_errors:
            return RIGHT
        reason = f"{passed} of {total} tests passed; {result.explanation()}"
        return Judgement(passed / total if self._partial else 0.0, reason)


def sources_in(text: str) -> list[str]:
    """Python blocks in their order, those that are Python; without any fence, the whole text."""
    blocks = [block for block in fenced_blocks(text) if block.language in _PYTHON]
    named = [block.content for block in blocks if block.language] or [block.content for block in blocks]
    return [source for source in named if _is_python(source)] or named or [text]


def _is_python(source: str) -> bool:
    return _syntax(source) is not None


def _syntax(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tests_of(judged: Judged) -> list[Test]:
    """The case's tests, one by one; ValueError when there are none that can be run."""
    given = judged.case.metadata.get("tests", judged.expected)
    if isinstance(given, str):
        tests = _in_source(given, judged.case.metadata.get("entry_point"))
    elif isinstance(given, list | tuple):
        tests = [_listed(one) for one in given]
    else:
        raise ValueError("the case has no tests: Python source with asserts, or a list of {call, expected}")
    if not any(not test.get("is_setup") for test in tests):
        raise ValueError("the case's tests hold no test")
    return tests


def _listed(test: object) -> Test:
    if isinstance(test, str):
        return {"source": _python(test)}
    if isinstance(test, Mapping) and isinstance(test.get("call"), str) and "expected" in test:
        return {"call": test["call"], "expected": test["expected"]}
    raise ValueError("a test is neither Python source nor {call, expected}")


def _python(source: str) -> str:
    if not _is_python(source):
        raise ValueError("the case's tests are not Python")
    return source


def _in_source(source: str, entry_point: object) -> list[Test]:
    """Each assert at the top and each `test…` function is one test."""
    tree = _syntax(source)
    if tree is None:
        raise ValueError("the case's tests are not Python")
    if isinstance(entry_point, str) and entry_point.isidentifier() and "check" in _functions(tree):
        return [{"source": source, "is_setup": True}, {"source": f"check({entry_point})"}]
    steps: list[Test] = [{"source": ast.unparse(node), "is_setup": not _is_test(node)} for node in tree.body]
    return steps + [{"source": f"{name}()"} for name in _functions(tree) if name.startswith("test")]


def _is_test(node: ast.stmt) -> bool:
    """An assert, or a statement that calls or asserts something; definitions and assignments only prepare."""
    may_be = isinstance(node, ast.Assert | ast.Expr | ast.For | ast.While | ast.With | ast.Try)
    return may_be and any(isinstance(part, ast.Assert | ast.Call) for part in ast.walk(node))


def _functions(tree: ast.Module) -> list[str]:
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


@dataclass(frozen=True, slots=True)
class _Result:
    errors: Sequence[str]
    """One for each test that was reached, empty for one that passed."""
    code_errors: Sequence[str]
    """Of the code itself: they matter only where a test fails for them."""
    setup_errors: Sequence[str]
    ending: str
    """Why it ended early."""

    def explanation(self) -> str:
        failures = [error for error in self.errors if error]
        return self.ending or next(
            iter([*self.code_errors, *self.setup_errors, *failures]), "it ended before the last test"
        )


@dataclass(frozen=True, slots=True)
class _Attempt:
    sources: Sequence[str]
    tests: Sequence[Test]
    seconds: float
    memory_bytes: int

    def result(self) -> _Result:
        token = secrets.token_hex(16)
        order = {
            "token": token,
            "sources": self.sources,
            "tests": self.tests,
            "seconds": self.seconds,
            "memory_bytes": self.memory_bytes,
        }
        report, ending = self._run(json.dumps(order, default=str).encode())
        told = _told(report, token)
        failed = {kind: [error for one, error in told if one == kind and error] for kind in ("code", "setup")}
        return _Result(
            [error for kind, error in told if kind == "test"], failed["code"], failed["setup"], ending
        )

    def _run(self, order: bytes) -> tuple[bytes, str]:
        with tempfile.TemporaryDirectory(prefix="assay-code-", ignore_cleanup_errors=True) as folder:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=_environment(folder),
                start_new_session=True,
            )
            try:
                return _exchanged(process, order, time.monotonic() + self.seconds)
            finally:
                _end(process)


def _environment(folder: str) -> dict[str, str]:
    """Nothing of ours but the mark by which a worker's descendants are found when it is ended."""
    marks = {MARK: os.environ[MARK]} if MARK in os.environ else {}
    return {"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", **marks}


def _exchanged(process: subprocess.Popen[bytes], order: bytes, deadline: float) -> tuple[bytes, str]:
    """What it reports until it closes its end, says too much, or its time is up."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(order)
        process.stdin.close()
    report = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(report) < _MOST_REPORT:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return bytes(report), "it took too long"
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                return bytes(report), _cause(process)
            report += piece
    return bytes(report), "it reported too much"


def _cause(process: subprocess.Popen[bytes]) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = process.wait(1)
        return f"it was ended by {signal.Signals(-code).name}" if code < 0 else ""
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _told(report: bytes, token: str) -> list[tuple[str, str]]:
    """Lines that carry the token; what else the code wrote there is nothing to us."""
    told = []
    for line in report.splitlines():
        with contextlib.suppress(ValueError, TypeError):
            mark, kind, error = json.loads(line)
            if mark == token:
                told.append((kind, str(error)))
    return told
