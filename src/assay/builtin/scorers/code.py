"""The scorer that runs the code in an output against the tests of its case.

Nothing of the code runs in this process. For each output two processes are started in the sandbox: the *subject* executes
the code, the *tester* executes the tests and asks the subject for results (see `code_sandbox.link` for how). This process
only writes the order to the tester, reads its report line by line until the time is up, and ends both.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.builtin.scorers import code_sandbox
from assay.builtin.scorers.code_blocks import find_code_blocks
from assay.builtin.scorers.code_sandbox import subject, tester  # noqa: F401 - compiled and kept, which the sandbox cannot
from assay.builtin.scorers.options import flag, number
from assay.builtin.scorers.text_normalization import NO_OUTPUT, RIGHT, text_of
from assay.model import Case
from assay.plugin import Judged, Judgement, Program, Sandbox, find_sandbox, python_path
from assay.units import format_count, signal_name

_MOST_SOURCE = 200_000
_MOST_REPORT = 1_000_000
_PYTHON = ("python", "py", "python3", "")
_FOLDER = code_sandbox.__path__[0]
_INSIDE = "/sandbox"
_START = """import sys; sys.path.insert(0, {folder!r})
from code_sandbox import {role}; del sys.path[0]; {role}.main()"""

_NOT_PYTHON = "the case's tests are not Python"

Test = Mapping[str, Any]
"""As the tester gets it: {source} or {call, expected}; `is_setup` marks source that only prepares, and `binds` lists the
global names that it defines."""


class Code:
    """The Python code in the output passes the tests of the case.

    Tests stand under `tests` of the case, or else under `expected`: Python source with asserts or test functions, or a list
    of {call, expected}. The code runs in a sandbox (bubblewrap) without network, with a read-only system, an empty home and
    an empty environment, and with limits on time, memory and files. The tests run in another process: they get plain data
    from the code, and the code never sees the tests or what they expect. See docs/security.md for what this
    guarantees, and `--sandbox` for machines without bubblewrap.

    Args:
        seconds: Maximum seconds for the tests of a case.
        memory_mb: Maximum memory of the code, in MB.
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
        self._sandbox = find_sandbox("The scorer code")

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
        entry_point = judged.case.metadata.get("entry_point")
        attempt = _Attempt(
            self._sandbox, sources_in(text), tests, entry_point, self._seconds, self._memory_bytes
        )
        result = attempt.result()
        total = sum(not test.get("is_setup") for test in tests)
        passed = sum(not error for error in result.errors)
        if passed == total and not result.setup_errors:
            return RIGHT
        reason = f"{passed} of {format_count(total, 'test')} passed; {result.explanation()}"
        return Judgement(passed / total if self._partial else 0.0, reason)

    def example(self, expected: object, case: Case) -> object:
        """The expected output, unless that is the tests: code that passes them cannot be constructed."""
        return expected if "tests" in case.metadata else None


def sources_in(text: str) -> list[str]:
    """Python blocks in their order, those that are Python; without any fence, the whole text."""
    blocks = [block for block in find_code_blocks(text) if block.language in _PYTHON]
    named = [block.content for block in blocks if block.language] or [block.content for block in blocks]
    return [source for source in named if _parse_python(source)] or named or [text]


def _parse_python(source: str) -> ast.Module | None:
    """The syntax tree, or None for what is not Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tests_of(judged: Judged) -> list[Test]:
    """The case's tests, one by one; ValueError when there are none that can be run."""
    written = judged.case.metadata.get("tests", judged.expected)
    tests: list[Test] = []
    if isinstance(written, str):
        tests = _find_tests(written, judged.case.metadata.get("entry_point"))
    elif isinstance(written, list | tuple):
        for test in written:
            if isinstance(test, str):
                if not _parse_python(test):
                    raise ValueError(_NOT_PYTHON)
                tests.append({"source": test})
            elif isinstance(test, Mapping) and isinstance(test.get("call"), str) and "expected" in test:
                tests.append({"call": test["call"], "expected": test["expected"]})
            else:
                raise ValueError("a test is neither Python source nor {call, expected}")
    else:
        raise ValueError("the case has no tests: Python source with asserts, or a list of {call, expected}")
    if all(test.get("is_setup") for test in tests):
        raise ValueError("the case's tests hold no test")
    return tests


def _find_tests(source: str, entry_point: object) -> list[Test]:
    """Each assert at the top and each `test…` function is one test; other statements prepare them.

    HumanEval writes one function `check(candidate)` instead, which is called with the entry point of the case.
    """
    tree = _parse_python(source)
    if tree is None:
        raise ValueError(_NOT_PYTHON)
    if isinstance(entry_point, str) and entry_point.isidentifier() and "check" in _functions(tree):
        whole = {"source": source, "is_setup": True, "binds": _bound_names(tree.body)}
        return [whole, {"source": f"check({entry_point})"}]
    steps: list[Test] = [
        {"source": ast.unparse(node), "is_setup": not _is_test(node), "binds": _bound_names([node])}
        for node in tree.body
    ]
    return steps + [{"source": f"{name}()"} for name in _functions(tree) if name.startswith("test")]


def _bound_names(statements: Sequence[ast.stmt]) -> list[str]:
    """The global names that statements define."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
            continue
        parts = list(ast.walk(statement))
        names |= {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        names |= {
            (part.asname or part.name).partition(".")[0] for part in parts if isinstance(part, ast.alias)
        }
    return sorted(names)


def _is_test(node: ast.stmt) -> bool:
    """Whether a statement asserts or calls something; definitions and assignments only prepare."""
    may_be = isinstance(node, ast.Assert | ast.Expr | ast.For | ast.While | ast.With | ast.Try)
    return may_be and any(isinstance(part, ast.Assert | ast.Call) for part in ast.walk(node))


def _functions(tree: ast.Module) -> list[str]:
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


@dataclass(frozen=True, slots=True)
class _Result:
    """What the tester reported."""

    errors: Sequence[str]
    """One for each test that was reached, empty for one that passed."""
    code_errors: Sequence[str]
    """Errors of the code itself: they matter only where a test fails because of them."""
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
    """One try of code in two processes: the subject has the code, the tester has the tests and asks the
    subject.

    The code so cannot read the tests, replace the functions by which they compare, or report a success of
    its own.
    """

    sandbox: Sandbox
    sources: Sequence[str]
    tests: Sequence[Test]
    entry_point: object
    seconds: float
    memory_bytes: int

    def result(self) -> _Result:
        sources = (ast.parse(test["source"]) for test in self.tests if "source" in test)
        statements = (node for tree in sources for node in tree.body)
        imports = [ast.unparse(node) for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
        order = {
            "sources": self.sources,
            "tests": self.tests,
            # What the tests import at their top, the code may use, too.
            "imports": [statement for statement in imports if "answer" not in statement],
            "tested_builtins": _find_tested_builtins(self.tests, self.entry_point),
            "seconds": self.seconds,
            "memory_bytes": self.memory_bytes,
        }
        report, ending = self._run(json.dumps(order, default=str).encode())
        by_kind: dict[str, list[str]] = {"code": [], "setup": [], "test": []}
        for kind, error in _read_report(report):
            by_kind[kind].append(error)
        return _Result(
            by_kind["test"], list(filter(None, by_kind["code"])), list(filter(None, by_kind["setup"])), ending
        )

    def _run(self, order: bytes) -> tuple[bytes, str]:
        """The report of the tester, and why it ended early; empty where it did not."""
        deadline = time.monotonic() + self.seconds
        with contextlib.ExitStack() as stack:
            requests, replies = _pipe(stack), _pipe(stack)
            limits = [str(self.seconds), str(self.memory_bytes)]
            # The subject has nothing but the two pipes to the tester: neither the order nor the report passes through it.
            subject = self._start(stack, "subject", limits, stdin=requests.output, stdout=replies.input)
            ends = (requests.input, replies.output)
            piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "pass_fds": ends}
            tester = self._start(stack, "tester", list(map(str, ends)), **piped)
            # Ours, so that each process notices when the other one ends.
            for pipe in (requests, replies):
                pipe.close()
            report, ending = _exchange(tester, order, deadline)
            # A report of all sources and tests is complete, whatever became of the processes afterwards.
            is_whole = len(_read_report(report)) >= len(self.sources) + len(self.tests)
            return report, "" if is_whole else ending or _cause(subject) or _cause(tester)

    def _start(
        self, stack: contextlib.ExitStack, role: str, arguments: list[str], **streams: Any
    ) -> subprocess.Popen[bytes]:
        home: dict[str, str] = {}
        if self.sandbox.is_confining:
            files, folder = {f"{_INSIDE}/code_sandbox": _FOLDER}, _INSIDE
        else:
            own = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="assay-code-", ignore_cleanup_errors=True)
            )
            home = {"HOME": own, "TMPDIR": own}
            streams["cwd"] = own
            files, folder = {}, str(Path(_FOLDER).parent)
        start = _START.format(folder=folder, role=role)
        argv = [python_path(), "-I", "-S", "-B", "-c", start, *arguments]
        process = self.sandbox.start(
            Program(argv, files, environment=home), stderr=subprocess.DEVNULL, **streams
        )
        stack.callback(_end, process)
        return process


def _find_tested_builtins(tests: Sequence[Test], entry_point: object) -> list[str]:
    """Names of built-in functions that mean the code's: its entry point, and all where the tests name nothing else."""
    parts = [part for test in tests if "source" in test for part in ast.walk(ast.parse(test["source"]))]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    defined = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    defined |= {part.arg for part in parts if isinstance(part, ast.arg)}
    defined |= {part.name for part in parts if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    used = names - defined
    if any(isinstance(part, ast.Import | ast.ImportFrom) for part in parts) or not used <= set(dir(builtins)):
        used = set()
    return sorted(used | ({entry_point} if isinstance(entry_point, str) else set()))


@dataclass(frozen=True, slots=True)
class _Pipe:
    output: int
    input: int

    def close(self) -> None:
        for descriptor in (self.output, self.input):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _pipe(stack: contextlib.ExitStack) -> _Pipe:
    pipe = _Pipe(*os.pipe())
    stack.callback(pipe.close)
    return pipe


def _exchange(process: subprocess.Popen[bytes], order: bytes, deadline: float) -> tuple[bytes, str]:
    """What it reports until it closes its end, says too much, or its time is up; and why it ended early."""
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
                return bytes(report), "the time limit was exceeded"
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                return bytes(report), ""
            report += piece
    return bytes(report), "it reported too much"


def _cause(process: subprocess.Popen[bytes]) -> str:
    """The signal that ended a process; empty where it ended by itself, or has not within a second."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = process.wait(1)
        # Bubblewrap reports a signal the way a shell does.
        number = -code if code < 0 else code - 128
        if number > 0:
            return f"it was ended by {signal_name(number)}"
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _read_report(report: bytes) -> list[tuple[str, str]]:
    """Pairs of a kind (code, setup or test) and an error, which is empty for what passed; a line that was cut off is left out."""
    lines = report.splitlines(keepends=True)
    return [(kind, error) for kind, error in (json.loads(line) for line in lines if line.endswith(b"\n"))]
