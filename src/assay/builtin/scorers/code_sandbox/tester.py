"""Runs the tests of a case. The names of the code under judgement stand for objects of the process that runs it.

Each test is executed here, with global names that fall back to the code's (`_Names`). Comparisons and assertions are thus
decided in this process, where the code cannot reach them.
"""

from __future__ import annotations

import builtins
import io
import math
import os
import sys
from types import ModuleType

from .fast_json import dumps, loads
from .limits import describe_error, limit_resources, take_streams
from .link import Link, plain_data
from .stand_in import FORWARDED, StandIn, StandInClass, number_of, plain_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Importing typing takes longer than most tests.
    from typing import Any

_MODULE = "tests"
_LEAST_MEMORY = 512 * 2**20
_SHARED = (io.StringIO, io.BytesIO)
"""Files in memory, which tests hand to the code to read or to write."""
_LABELS = ("__name__", "__qualname__", "__doc__")
"""What functools.wraps copies."""


def main() -> None:
    """Reads the tests from standard input, and reports each as a line on standard output."""
    source, report = take_streams()
    order = loads(os.fdopen(source, "rb").read().decode())
    limit_resources(order["seconds"], max(_LEAST_MEMORY, order["memory_bytes"]))
    _Tester(report, order).run()
    os._exit(0)


class _Tester:
    """Runs the tests one by one, and reports each as soon as it is done.

    A report that is cut short, because the time was up or the code ended the process, so still counts for
    the tests that were done.
    """

    def __init__(self, report: int, order: dict[str, Any]) -> None:
        requests, replies = (int(argument) for argument in sys.argv[1:3])
        self._report, self._order = report, order
        self._failed_inside = ""
        self._link = Link(os.fdopen(replies, "rb"), os.fdopen(requests, "wb"), self._serve, is_judged=False)
        self._names = _Names(self._link, frozenset(order["tested_builtins"]))
        sys.modules["answer"] = _AnswerModule(self._link)

    def run(self) -> None:
        self._link.ask("import", None, self._order["imports"])
        for error in self._link.ask("load", None, self._order["sources"]):
            self._tell("code", str(error))
        for test in self._order["tests"]:
            self._tell("setup" if test.get("is_setup") else "test", self._try(test))

    def _try(self, test: dict[str, Any]) -> str:
        """The error as text, or nothing."""
        self._failed_inside = ""
        self._link.may_stop_iteration = "StopIteration" in test.get("source", "")
        try:
            if "call" not in test:
                exec(compile(test["source"], "<test>", "exec", dont_inherit=True), self._names)  # noqa: S102
                return self._failed_inside
            given = self._link.ask("eval", None, test["call"])
            return (
                "" if _is_same(given, test["expected"]) else f"{test['call'][:60]} gave {repr(given)[:100]}"
            )
        except BaseException as error:
            self._names.failed.update(test.get("binds", ()))
            return describe_error(error)

    def _serve(self, op: str, number: int | None, args: list[Any], options: dict[str, Any]) -> Any:
        try:
            return self._use(op, number, args, options)
        except AssertionError as error:
            # The code was given a function that asserts, and may keep the failure to itself.
            self._failed_inside = describe_error(error)
            raise

    def _use(self, op: str, number: int | None, args: list[Any], options: dict[str, Any]) -> Any:
        """What the code under judgement may do with objects of the tests that it was given: call and use them, not look inside."""
        if number not in self._link.offered:
            raise PermissionError("the tests did not hand out this object")
        target = self._link.get_export(number)
        is_own = type(target).__module__ == _MODULE
        is_shared = is_own or type(target) in _SHARED
        match op:
            case "call" if callable(target):
                return target(*args, **options)
            case "method" if args[0] in FORWARDED:
                return getattr(type(target), args[0])(target, *args[1:], **options)
            case "getattr" if (is_shared and not args[0].startswith("_")) or args[0] in _LABELS:
                return getattr(target, args[0])
            case "setattr" if is_own and not args[0].startswith("_"):
                return setattr(target, args[0], args[1])
            case "plain":
                return plain_data(target)
        raise AttributeError(f"{op} {args[:1]} is not possible with an object of the tests")

    def _tell(self, kind: str, error: str) -> None:
        line = dumps([kind, error]).encode() + b"\n"
        while line:
            line = line[os.write(self._report, line) :]


class _Names(dict):  # type: ignore[type-arg]
    """The global names of the tests: their own, then built-in ones, then those of the code under judgement.

    Built-in names go first: code that defines its own `abs` or `all` must not take part in judging itself. `tested` are
    the exceptions, built-in names that the tests are about.
    """

    def __init__(self, link: Link, tested: frozenset[str]) -> None:
        super().__init__(__name__=_MODULE, __builtins__=builtins)
        self._link, self._tested = link, tested
        self.failed: set[str] = set()
        """What the tests meant to define and could not: the code under judgement must not define it for them."""

    def __missing__(self, name: str) -> Any:
        if name in self.failed or (hasattr(builtins, name) and name not in self._tested):
            raise KeyError(name)
        found = _find_by_name(self._link, name)
        if not found:
            raise KeyError(name)
        if isinstance(found[0], StandInClass) or type(found[0]).__name__ == "function":
            # Asked for once: other values can change, and these make most of the calls.
            self[name] = found[0]
        return found[0]


def _find_by_name(link: Link, name: str) -> list[Any]:
    """What the code calls so, in a list, or an empty list."""
    found: list[Any] = link.ask("name", None, name)
    if found and isinstance(found[0], StandInClass) and name[0].isupper():
        link.named_classes.add(number_of(found[0]))
    return found


class _AnswerModule(ModuleType):
    """A stand-in module for tests that import the code under judgement."""

    def __init__(self, link: Link) -> None:
        super().__init__("answer")
        self.__dict__["_link"] = link

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            # Built-in names stay ours, as in `_Names`.
            return [name for name in self._link.ask("names") if not hasattr(builtins, name)]
        found = _find_by_name(self._link, name) if not name.startswith("__") else []
        if not found:
            raise AttributeError(f"the code defines no {name}")
        return found[0]

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.ask("assign", None, name, value)


def _is_same(given: Any, expected: Any) -> bool:
    """Whether a result is what JSON says it should be: tuples are lists, keys are texts, floats are equal but for rounding."""
    if isinstance(given, StandIn):
        given = plain_of(given)
    if isinstance(given, float) or isinstance(expected, float):
        are_numbers = isinstance(given, int | float) and isinstance(expected, int | float)
        return are_numbers and math.isclose(given, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(given, list | tuple) and isinstance(expected, list):
        return len(given) == len(expected) and all(map(_is_same, given, expected))
    if isinstance(given, dict) and isinstance(expected, dict):
        # The expected value came as JSON, in which all keys are texts.
        named = {str(key) if type(key) is int else key: item for key, item in given.items()}
        return (
            len(given) == len(expected)
            and named.keys() == expected.keys()
            and all(_is_same(named[key], expected[key]) for key in expected)
        )
    return bool(given == expected)
