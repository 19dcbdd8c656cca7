"""Calls between two processes that do not trust each other, as lines of JSON.

A message is a list. `["ask", operation, number, arguments, options]` asks the other end to do something with the object
that it has exported under that number, or with itself where the number is null. It is answered by
`["value", result, changes, printed]` or `["raise", error, changes, printed]`: `changes` are the lists, dicts and sets among
the arguments that the call has changed, and `printed` is what it wrote to standard output. While one end waits for an
answer it serves what the other asks, so calls nest like those of functions.

Plain data is sent by value. Of any other object the receiver gets a stand-in, which sends calls, attributes and operators
back to the process that has the object. Two rules keep the code under judgement honest:

- Verdicts are reached where the stand-in is: see `stand_in`.
- `serve` of each process decides what the other one may do with its objects.
"""

from __future__ import annotations

import builtins
import os
import sys

from .fast_json import dumps, loads
from .stand_in import (
    FORWARDED,
    QUESTIONS,
    StandIn,
    StandInClass,
    error_members,
    make_class,
    make_stand_in,
    number_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Importing typing takes longer than most tests.
    from collections.abc import Callable, Mapping
    from typing import Any, BinaryIO

    Serve = Callable[[str, int | None, list[Any], dict[str, Any]], Any]

MOST_BYTES = 16 * 2**20
_SMALL = 2**62
_PARTS = {"ask": 5, "value": 4, "raise": 4}

_PLAIN_BASES = (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)
_SAFE_TYPES = (*_PLAIN_BASES, object, range, slice)
_CONSTRUCTED: Mapping[str, tuple[Callable[[Any], list[Any]], str]] = {
    "decimal.Decimal": (lambda value: [str(value)], ""),
    "fractions.Fraction": (lambda value: [value.numerator, value.denominator], ""),
    "datetime.date": (lambda value: [value.isoformat()], "fromisoformat"),
    "datetime.datetime": (lambda value: [value.isoformat()], "fromisoformat"),
    "datetime.timedelta": (lambda value: [value.days, value.seconds, value.microseconds], ""),
    "datetime.time": (lambda value: [value.isoformat()], "fromisoformat"),
    "collections.deque": (lambda value: [list(value), value.maxlen], ""),
    "collections.Counter": (lambda value: [dict(value)], ""),
    "collections.OrderedDict": (lambda value: [list(value.items())], ""),
    "collections.defaultdict": (lambda value: [value.default_factory, dict(value)], ""),
    "pathlib.PosixPath": (lambda value: [str(value)], ""),
    "pathlib.PurePosixPath": (lambda value: [str(value)], ""),
    "uuid.UUID": (lambda value: [value.hex], ""),
}
"""Values of the standard library that are sent by value: the arguments to make them again, and with what."""


class Link:
    """One end of the link between the tester and the code under judgement.

    `serve(op, target, args)` does what the other end asks for. Plain values travel as copies, other
    objects as numbers: the other end gets a stand-in, and every use of it comes back here as a question.
    While an end waits for an answer it serves questions, so that calls may nest.

    The code under judgement may send anything. From it the tester's end accepts only plain data, types,
    and values of the standard library in a fixed list (`_CONSTRUCTED`): no name that was sent is ever
    imported or called.
    """

    def __init__(self, reader: BinaryIO, writer: BinaryIO, serve: Serve, is_judged: bool) -> None:
        self._reader, self._writer, self._serve, self.is_judged = reader, writer, serve, is_judged
        self.offered: set[int] = set()
        """Objects that were sent as values, and not only described."""
        self.named_classes: set[int] = set()
        """Classes of the other process that the tests call by a capitalised name."""
        self._exports: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._described: set[int] = set()
        self._classes: dict[int, type] = {}
        self._stand_ins: dict[int, Any] = {}
        self.take_printed: Callable[[], str] = str
        self.may_stop_iteration = True
        """Whether any function of the other process may raise StopIteration, and not only `__next__`."""

    def ask(self, op: str, number: int | None = None, /, *args: Any, **options: Any) -> Any:
        """Have the other end do something, and serve what it asks for meanwhile; raises what was raised there."""
        named = {name: self.encode(value) for name, value in options.items()}
        self._send(["ask", op, number, self.encode(list(args)), named])
        while True:
            kind, *content = self._receive()
            if kind == "ask":
                self._answer(*content)
                continue
            value, changes, printed = content
            if printed:
                sys.stdout.write(str(printed))
            for place, changed in changes:
                _update(options[place] if isinstance(place, str) else args[place], self.decode(changed))
            if kind == "raise":
                error = self._exception(value)
                is_next = op == "method" and args[:1] == ("__next__",)
                if isinstance(error, StopIteration) and not (is_next or self.may_stop_iteration):
                    # It would end a `map` of the tests early, without a failure.
                    raise RuntimeError("the code raised StopIteration") from None
                raise error
            return self.decode(value)

    def serve_forever(self) -> None:
        while True:
            kind, *content = self._receive()
            if kind == "ask":
                self._answer(*content)

    def _answer(self, op: str, number: int | None, given: list[Any], named: dict[str, Any]) -> None:
        """Do what the other end asks for, and answer in any case: while it waits, it does nothing else.

        Arguments came as copies. What the call changed in them is sent back, as the caller expects of its own objects.
        """
        kind, found = "value", None
        changes: list[Any] = []
        try:
            args = [self.decode(part) for part in given]
            options = {name: self.decode(part) for name, part in named.items()}
            try:
                found = self.encode(self._serve(op, number, args, options))
            finally:
                changes = self._changes([*enumerate(args), *options.items()], [*given, *named.values()])
        except BaseException as error:
            kind, found = "raise", self._encode_exception(error)
        self._send([kind, found, changes, self.take_printed()])

    def _changes(self, values: list[tuple[Any, Any]], sent: list[Any]) -> list[Any]:
        """Return the lists, dicts and sets among the arguments that the call has changed.

        The other process has copies of the arguments, so changes have to be sent back.
        """
        found = []
        for (place, value), before in zip(values, sent, strict=True):
            if isinstance(value, list | dict | set | bytearray):
                now = self.encode(value)
                if now != before:
                    found.append([place, now])
        return found

    def _send(self, message: list[Any]) -> None:
        try:
            line = dumps(message).encode() + b"\n"
        except (RecursionError, MemoryError, ValueError) as error:
            line = dumps(["raise", self._encode_exception(error), [], ""]).encode() + b"\n"
        try:
            self._writer.write(line)
            self._writer.flush()
        except OSError:
            os._exit(0)

    def _receive(self) -> list[Any]:
        """The next message. Without the other process this process cannot continue, whatever exception is caught."""
        try:
            message = loads(self._reader.readline(MOST_BYTES).decode())
            if len(message) == _PARTS[message[0]]:
                return message  # type: ignore[no-any-return]
        except (OSError, ValueError, TypeError, LookupError, RecursionError, MemoryError):
            pass
        os._exit(0)

    # ---- values

    def encode(self, value: Any) -> Any:
        """A value as JSON. Numbers, text, null and lists stand for themselves; anything else is an object with a single key,
        its tag, which says how `decode` makes the value again (see `_DECODERS`)."""
        kind = type(value)
        if value is None or kind in (bool, float, str):
            return value
        if kind is int:
            return value if -_SMALL < value < _SMALL else {"int": hex(value)}
        if kind is list:
            return [self.encode(item) for item in value]
        if kind in (tuple, set, frozenset):
            return {kind.__name__: [self.encode(item) for item in value]}
        if kind is dict:
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if kind in (bytes, bytearray):
            return {kind.__name__: value.hex()}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if kind in (range, slice):
            return {kind.__name__: [self.encode(part) for part in (value.start, value.stop, value.step)]}
        return self._encode_object(value, kind)

    def _encode_object(self, value: Any, kind: type) -> Any:
        if isinstance(value, StandIn | StandInClass):
            return {"own": number_of(value)}
        if value is NotImplemented or value is Ellipsis:
            return {"constant": repr(value)}
        # By the exact type: a subclass may answer for its base, and is then an object that stays where it is.
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in _CONSTRUCTED:
            return {"made": [name, [self.encode(part) for part in _CONSTRUCTED[name][0](value)]]}
        if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
            return {"named": [kind.__name__, list(kind._fields), [self.encode(item) for item in value]]}  # type: ignore[attr-defined]
        if isinstance(value, BaseException):
            return {"error": self._encode_exception(value)}
        built_in = getattr(value, "__name__", None)
        is_built_in = isinstance(built_in, str) and getattr(builtins, built_in, None) is value
        if is_built_in and (not self.is_judged or _is_safe(value)):
            # The other end has it, too, and takes it from us.
            return {"builtin": built_in}
        number = self._export(value)
        self.offered.add(number)
        if kind.__name__ == "coroutine":
            return {"coroutine": number}
        if isinstance(value, type):
            return {"class": self._describe(value)}
        return {"object": [number, self._describe(kind)]}

    def _export(self, value: Any) -> int:
        number = self._numbers.setdefault(id(value), len(self._numbers))
        self._exports[number] = value  # keeps it alive, so that no other object gets its id
        return number

    def get_export(self, number: Any) -> Any:
        return self._exports[number]

    def _describe(self, kind: type) -> Any:
        """A class as [number, name, module, special methods, bases], and later as [number] alone: the other end keeps it."""
        number = self._export(kind)
        if number in self._described:
            return [number]
        self._described.add(number)
        # Not getattr: it would find what the metaclass has.
        special = sorted(FORWARDED.intersection(name for base in kind.__mro__ for name in vars(base)))
        bases = [
            base.__name__ if base.__module__ == "builtins" else self._describe(base)
            for base in kind.__bases__
        ]
        return [number, kind.__name__, kind.__module__, special, bases]

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((tag, content),) = value.items()
        return _DECODERS[tag](self, content)

    def _decode_made(self, content: Any) -> Any:
        name, parts = content
        if name not in _CONSTRUCTED:
            raise ValueError(f"{name} is not plain data")
        module, _, kind = name.rpartition(".")
        kind_class = getattr(__import__(module), kind)
        function = _CONSTRUCTED[name][1]
        return (getattr(kind_class, function) if function else kind_class)(
            *(self.decode(part) for part in parts)
        )

    def _decode_named(self, content: Any) -> Any:
        from collections import namedtuple

        name, fields, values = content
        if not self.is_judged and not QUESTIONS.isdisjoint(fields):
            raise TypeError("a named tuple has no such fields here: they would answer for plain data")
        return namedtuple(name, fields)(*(self.decode(item) for item in values))

    def _decode_builtin(self, name: str) -> Any:
        """Look up a built-in name that the other process sent.

        From a process under judgement only types are accepted: its `eval` would run in ours.
        """
        found = getattr(builtins, name)
        if self.is_judged or _is_safe(found):
            return found
        raise ValueError(f"the built-in function {name} cannot be sent")

    def _decode_coroutine(self, number: int) -> Any:
        async def wait() -> Any:
            return self.ask("await", number)

        return wait()

    def _decode_object(self, content: Any) -> Any:
        number, description = content
        if number not in self._stand_ins:
            kind = self._class(description)
            self._stand_ins[number] = make_stand_in(kind, self, number)
        return self._stand_ins[number]

    def _class(self, description: Any) -> Any:
        number, *rest = description
        if number not in self._classes:
            name, module, special, bases = rest
            known = _standard_exception(module, name)
            self._classes[number] = known or self._new_class(number, name, special, bases)
        return self._classes[number]

    def _new_class(self, number: int, name: str, special: list[str], bases: list[Any]) -> type:
        """A class of stand-ins with the same inheritance, so that `isinstance` and `except` work in the tests."""
        parents = [
            _standard_exception("builtins", base) if isinstance(base, str) else self._class(base)
            for base in bases
        ]
        errors = [parent for parent in parents if parent and issubclass(parent, BaseException)]
        if errors:
            kinds = tuple(error if issubclass(error, Exception) else Exception for error in errors)
            return type(name, kinds, error_members())
        return make_class(name, tuple(parent for parent in parents if parent), special, (self, number))

    # ---- exceptions

    def _encode_exception(self, error: BaseException) -> Any:
        """An exception as [class, args, text, number]; it never raises, whatever the exception's own methods do."""
        try:
            text = str(error)[:1000]
            return [
                self._describe(type(error)),
                [self.encode(arg) for arg in error.args],
                text,
                self._export(error),
            ]
        except BaseException:
            return [self._describe(RuntimeError), [], "an error that cannot be shown", -1]

    def _exception(self, content: Any) -> Exception:
        """The exception to raise here; what is no Exception there, such as SystemExit, becomes a RuntimeError."""
        description, args, text, number = content
        kind = self._class(description)
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            return RuntimeError(f"{getattr(kind, '__name__', 'an exit')} was raised")
        try:
            error: Exception = kind(*(self.decode(arg) for arg in args))
        except Exception:
            error = kind.__new__(kind)
        error.__dict__.update(_shown=str(text), _standin_link=self, _standin_number=number)
        return error


def _is_safe(value: Any) -> bool:
    """Whether a built-in may come from the process under judgement: plain types and exceptions, but no functions."""
    return isinstance(value, type) and (value in _SAFE_TYPES or issubclass(value, Exception))


def _standard_exception(module: str, name: str) -> Any:
    """The exception of that name that this process has itself, so that `except` finds it."""
    if module.partition(".")[0] not in sys.stdlib_module_names or module.startswith("unittest"):
        # Code does not raise what skips a test.
        return None
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def plain_data(value: Any) -> list[Any]:
    """Return, for `plain`, what an object holds as one of the built-in types.

    The value is in a list, which is empty for other objects: None may itself be a value.
    """
    base: Any
    for base in _PLAIN_BASES:
        if issubclass(type(value), base):
            return [base(value)]
    if isinstance(value, type({}.keys()) | type({}.items())):
        return [set(value)]
    return []


def _update(old: Any, new: Any) -> None:
    """Make a list, dict or set of ours what the other process has made of its copy."""
    if isinstance(old, list) and isinstance(new, list):
        if len(old) == len(new):
            new = [_merge(before, after) for before, after in zip(old, new, strict=True)]
        old[:] = new
    elif isinstance(old, dict) and isinstance(new, dict):
        merged = {key: _merge(old.get(key), item) for key, item in new.items()}
        old.clear()
        old.update(merged)
    elif isinstance(old, set) and isinstance(new, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray) and isinstance(new, bytearray):
        old[:] = new


def _merge(old: Any, new: Any) -> Any:
    if type(old) is type(new) and type(old) in (list, dict, set, bytearray):
        _update(old, new)
        return old
    return new


_DECODERS: Mapping[str, Callable[[Link, Any], Any]] = {
    "int": lambda link, content: int(content, 16),
    "tuple": lambda link, content: tuple(link.decode(content)),
    "set": lambda link, content: set(link.decode(content)),
    "frozenset": lambda link, content: frozenset(link.decode(content)),
    "dict": lambda link, content: {link.decode(key): link.decode(item) for key, item in content},
    "bytes": lambda link, content: bytes.fromhex(content),
    "bytearray": lambda link, content: bytearray.fromhex(content),
    "complex": lambda link, content: complex(*content),
    "range": lambda link, content: range(*link.decode(content)),
    "slice": lambda link, content: slice(*link.decode(content)),
    "constant": lambda link, content: {"NotImplemented": NotImplemented, "Ellipsis": Ellipsis}[content],
    "made": Link._decode_made,
    "named": Link._decode_named,
    "builtin": Link._decode_builtin,
    "coroutine": Link._decode_coroutine,
    "error": lambda link, content: link._exception(content),
    "own": Link.get_export,
    "class": Link._class,
    "object": Link._decode_object,
}
