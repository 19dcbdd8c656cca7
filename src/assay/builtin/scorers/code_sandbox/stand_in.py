"""Stand-ins for objects of another process, which keep the code under judgement from judging itself.

What the tests compare a result with must not reach the process that made the result: an object there could say yes to
anything. So for an object of the code under judgement,

- `==` and order with plain data look at the plain data that it holds (of a subclass of int, list and so on); an object that
  holds none equals none. Only two objects of that process are compared by asking it.
- `in` looks at the items one by one where the object is not asked.
- arithmetic with plain data also uses the plain data, as in `abs(f(x) - 1.5) < 0.01`. The object itself is asked only where
  the tests made it with a class that they call by a capitalised name, as in `Vector(1, 2) * 3`.
- `in`, and questions that plain data answers with yes or no, as `startswith`, are sent only to such objects, too.
- `__exit__` may swallow only what a test raises with `raise`, never a failed assertion.
"""

from __future__ import annotations

import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Importing typing takes longer than most tests.
    from collections.abc import Callable
    from typing import Any

    from .link import Link

_OPERATORS = [
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "divmod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
]
_ARITHMETIC = frozenset(f"__{before}{name}__" for name in _OPERATORS for before in ("", "r", "i"))
FORWARDED = _ARITHMETIC | {
    f"__{name}__"
    for name in (
        "call", "len", "getitem", "setitem", "delitem", "iter", "next", "reversed", "enter", "exit", "bool", "int", "float",
        "complex", "index", "round", "aiter", "anext", "aenter", "aexit", "trunc", "floor", "ceil", "neg", "pos", "abs", "invert", "str", "repr", "format", "hash",
    )
}  # fmt: skip
"""Special methods that a stand-in has where the object's class has them. Comparisons are not among them."""
QUESTIONS = frozenset({
    "startswith", "endswith", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric",
    "isprintable", "isspace", "istitle", "isupper", "issubset", "issuperset", "isdisjoint", "is_integer",
})  # fmt: skip
_NOT_PLAIN = object()


class StandInClass(type):
    """A class of the other process: calling it makes an object there."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if "_place" not in cls.__dict__:
            raise TypeError("a class of the tests cannot extend a class of the code under judgement")
        link, number = cls.__dict__["_place"]
        instance = link.ask("call", number, *args, **options)
        if number in link.named_classes and type(instance) is cls:
            object.__setattr__(instance, "_standin_is_made", True)
        return instance

    def __getattr__(cls, name: str) -> Any:
        if "_place" not in cls.__dict__ or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        link, number = cls.__dict__["_place"]
        if name in QUESTIONS and not link.is_judged and number not in link.named_classes:
            raise AttributeError(f"{name} is asked of a class of the code under judgement, not of plain data")
        return link.ask("getattr", number, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        link, number = cls.__dict__["_place"]
        link.ask("setattr", number, name, value)

    def __iter__(cls) -> Any:
        link, number = cls.__dict__["_place"]
        return iter(link.ask("list", number))

    def __len__(cls) -> int:
        return sum(1 for _ in cls)

    def __getitem__(cls, key: Any) -> Any:
        link, number = cls.__dict__["_place"]
        return link.ask("item", number, key)

    def __bool__(cls) -> bool:
        return True


class StandIn:
    """An object of the other process; every use of it is executed there.

    Two stand-ins are compared there as well. With a value of this process it is compared here, by the
    plain value that it stands for: an object that says that it equals everything would otherwise pass
    every test.
    """

    __slots__ = ("__weakref__", "_standin_is_made", "_standin_link", "_standin_number")
    _standin_link: Link
    _standin_number: int
    _standin_is_made: bool

    def __getattr__(self, name: str) -> Any:
        if name in QUESTIONS and not self._standin_link.is_judged and not self._standin_is_made:
            return getattr(_require_plain(self, name), name)
        return self._standin_link.ask("getattr", self._standin_number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._standin_link.ask("setattr", self._standin_number, name, value)

    def __delattr__(self, name: str) -> None:
        self._standin_link.ask("delattr", self._standin_number, name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, StandIn):
            return bool(self._standin_link.ask("compare", self._standin_number, "eq", other))
        return bool(plain_of(self) == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return _compare_order(self, "lt", other)

    def __le__(self, other: Any) -> bool:
        return _compare_order(self, "le", other)

    def __gt__(self, other: Any) -> bool:
        return _compare_order(self, "gt", other)

    def __ge__(self, other: Any) -> bool:
        return _compare_order(self, "ge", other)

    def __contains__(self, item: Any) -> bool:
        if isinstance(item, StandIn) or self._standin_is_made:
            return bool(self._standin_link.ask("compare", self._standin_number, "contains", item))
        return any(item == found for found in iter(self))

    def __hash__(self) -> int:
        return hash(self._standin_number)


def make_class(name: str, parents: tuple[Any, ...], special: list[str], place: tuple[Link, int]) -> type:
    members = {method: _special_method(method) for method in special if method in FORWARDED}
    stand_in_class = StandInClass(
        name, parents or (StandIn,), {"__slots__": (), "__doc__": _Doc(), **members}
    )
    type.__setattr__(stand_in_class, "_place", place)
    return stand_in_class


class _Doc:
    """The docstring of the object or the class in the other process, not the one of the stand-in."""

    def __get__(self, stand_in: Any, kind: Any) -> Any:
        link, number = kind.__dict__["_place"]
        return link.ask("getattr", number if stand_in is None else stand_in._standin_number, "__doc__")


def make_stand_in(kind: Any, link: Link, number: int) -> Any:
    # Past `__setattr__`, which sends every attribute to the other process.
    stand_in = object.__new__(kind)
    object.__setattr__(stand_in, "_standin_link", link)
    object.__setattr__(stand_in, "_standin_number", number)
    object.__setattr__(stand_in, "_standin_is_made", False)
    return stand_in


def number_of(value: Any) -> Any:
    return value.__dict__["_place"][1] if isinstance(value, StandInClass) else value._standin_number


def _special_method(name: str) -> Callable[..., Any]:
    """The method of that name for a class of stand-ins, by the rules of this module."""

    def method(self: StandIn, *args: Any, **options: Any) -> Any:
        return self._standin_link.ask("method", self._standin_number, name, *args, **options)

    def arithmetic(self: StandIn, *args: Any) -> Any:
        is_asked = self._standin_link.is_judged or self._standin_is_made
        if is_asked or all(isinstance(arg, StandIn) for arg in args):
            return method(self, *args)
        plain = plain_of(self)
        own: Callable[..., Any] | None = None if plain is _NOT_PLAIN else getattr(plain, name, None)
        return NotImplemented if own is None else own(*args)

    def leave(self: StandIn, kind: Any, error: Any, trace: Any) -> bool:
        return bool(method(self, kind, error, None)) and _is_raised_by_tests(error, trace)

    async def wait(self: StandIn, *args: Any) -> Any:
        return self._standin_link.ask("await_method", self._standin_number, name, *args)

    async def leave_later(self: StandIn, kind: Any, error: Any, trace: Any) -> bool:
        return bool(await wait(self, kind, error, None)) and _is_raised_by_tests(error, trace)

    others: dict[str, Callable[..., Any]] = {
        "__exit__": leave,
        "__aexit__": leave_later,
        "__anext__": wait,
        "__aenter__": wait,
    }
    return arithmetic if name in _ARITHMETIC else others.get(name, method)


def _is_raised_by_tests(error: Any, trace: Any) -> bool:
    """Say whether the tests raised this error themselves, by a `raise`.

    Otherwise something that the code returned went wrong, and the code is to blame.
    """
    if trace is None or isinstance(error, AssertionError):
        return False
    # By the instruction that raised: an error that came out of a call, or of an operator on a stand-in, is the code's.
    import opcode

    while trace.tb_next is not None:
        trace = trace.tb_next
    return bool(trace.tb_frame.f_code.co_code[trace.tb_lasti] == opcode.opmap["RAISE_VARARGS"]) and (
        trace.tb_frame.f_code.co_filename == "<test>"
    )


def plain_of(stand_in: StandIn) -> Any:
    """The plain data in an object of a subclass of int, list and so on."""
    found = stand_in._standin_link.ask("plain", stand_in._standin_number)
    return found[0] if isinstance(found, list) and found else _NOT_PLAIN


def _require_plain(stand_in: StandIn, question: str) -> Any:
    if (plain := plain_of(stand_in)) is _NOT_PLAIN:
        raise TypeError(f"{question} is asked of an object of the code under judgement, not of plain data")
    return plain


def _compare_order(stand_in: StandIn, name: str, other: Any) -> bool:
    if isinstance(other, StandIn):
        return bool(stand_in._standin_link.ask("compare", stand_in._standin_number, name, other))
    return bool(getattr(operator, name)(_require_plain(stand_in, "order"), other))


def error_members() -> dict[str, Any]:
    """Return the members of the exception classes that stand for those of the other process."""
    return {"__str__": _error_text, "__getattr__": _error_attribute}


def _error_text(self: Any) -> str:
    return str(self.__dict__.get("_shown", Exception.__str__(self)))


def _error_attribute(self: Any, name: str) -> Any:
    if name.startswith("_") or name in QUESTIONS or "_standin_link" not in self.__dict__:
        raise AttributeError(name)
    return self._standin_link.ask("getattr", self._standin_number, name)
