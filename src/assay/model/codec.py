"""The one codec between dataclasses and plain data: what a worker is sent, what the store keeps, what a document holds.

Plain data is what JSON can hold. A dataclass becomes a mapping of its fields in their order, a tuple or a set a list, an enum its
value, a datetime its ISO text, bytes base64. What a field of type `object` holds is passed on as it is.

The way back follows the annotations. A missing key takes the default of its field, so that data of older versions can be read;
an unknown key, a missing field without a default or a value of a different type raises `UnreadableData`. A list in the place of a
dataclass holds its fields in their order. The items of lists and mappings of texts or numbers are not checked, and a whole number stays
one where a float is expected: the hash of a suite must not depend on whether the suite was stored in between. Where a float is expected,
text such as `nan` is read as a number and null stays null, because the store and documents write so what JSON has no number for.

Only the standard library is used here: every job starts a worker process, and docs/decisions/0015 shows what a package would cost.
"""

from __future__ import annotations

import binascii
import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Noun = TypeVar("Noun")
Convert = Callable[[Any], Any]


class UnreadableData(ValueError):
    """Plain data that has not the form of the dataclass that it should become."""


def to_plain(value: object) -> Any:
    """
    >>> from assay.model import Cleanup
    >>> to_plain(Cleanup(("make", "clean"), "/project"))
    {'command': ['make', 'clean'], 'folder': '/project'}
    """
    if is_dataclass(value):
        kind: Any = type(value)
        return _dataclass_encoder(kind)(value)
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value.value if isinstance(value, Enum) else value


def from_plain(kind: type[Noun], data: object) -> Noun:
    """
    >>> from assay.model import Cleanup
    >>> from_plain(Cleanup, {"command": ["make", "clean"], "folder": "/project"})
    Cleanup(command=('make', 'clean'), folder='/project')
    """
    dataclass: Any = kind
    decoded: Noun = _dataclass_decoder(dataclass)(data)
    return decoded


def to_json(value: object) -> str:
    """Compact JSON; a value that JSON cannot hold, such as a date among the params, becomes its text."""
    return _dumps(value)


def from_json(kind: type[Noun], written: str | bytes) -> Noun:
    return from_plain(kind, json.loads(written))


def _convert_unknown(value: object) -> object:
    """Convert a value that `json` does not know."""
    plain = to_plain(value)
    return str(value) if plain is value else plain


_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_convert_unknown).encode


@cache
def _field_types(kind: type) -> dict[str, Any]:
    """Return the types of the fields, in their order.

    They are looked up when the first value comes: a worker needs few of the types, and each lookup costs
    time at its start.
    """
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _of_fields(kind: type, choose: Callable[[Any], Convert | None]) -> list[tuple[str, Convert]]:
    """The fields whose values have to be converted, and how."""
    chosen = ((name, choose(hint)) for name, hint in _field_types(kind).items())
    return [(name, convert) for name, convert in chosen if convert]


def _of_optional(hint: Any, choose: Callable[[Any], Convert | None]) -> Convert | None:
    """Build the converter for `X | None`; a value that may be of several other types stays as it is."""
    kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
    convert = choose(kinds[0]) if len(kinds) == 1 else None
    return convert and (lambda value: None if value is None else convert(value))


def _keep(value: Any) -> Any:
    return value


_UNIONS = (Union, types.UnionType)
_SEQUENCES = (Sequence, Iterable)


# Encoders; None is for a type whose values are plain already.


@cache
def _dataclass_encoder(kind: type) -> Convert:
    """The encoder of a dataclass, built once: which fields need converting follows from the annotations alone."""
    names = tuple(_field_types(kind))
    converted = _of_fields(kind, _encoder)

    def encode(noun: Any) -> dict[str, Any]:
        plain = {name: getattr(noun, name) for name in names}
        for name, convert in converted:
            plain[name] = convert(plain[name])
        return plain

    return encode


def _encoder(hint: Any) -> Convert | None:
    """How values of an annotated type become plain.

    The work is done once for each type and not for each value. A field whose type is plain already, as most are, costs
    nothing at all when a noun is encoded: the store and the pipes to workers do this for every execution.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return _of_optional(hint, _encoder)
    if origin is frozenset:
        return sorted
    if origin is tuple and len(arguments) > 1 and arguments[1] is not ...:
        encoders = [_encoder(argument) or _keep for argument in arguments]
        return lambda items: [encode(item) for encode, item in zip(encoders, items, strict=True)]
    if origin is tuple or origin in _SEQUENCES:
        encode_item = _encoder(arguments[0])
        return (lambda items: [encode_item(item) for item in items]) if encode_item else list
    if origin is Mapping:
        encode_value = _encoder(arguments[1])
        return encode_value and (lambda mapping: {k: encode_value(v) for k, v in mapping.items()})
    if not isinstance(hint, type):
        return None
    if is_dataclass(hint):
        return to_plain
    if issubclass(hint, Enum):
        return lambda member: member.value
    return _ENCODERS.get(hint.__name__)


_ENCODERS: dict[str, Convert] = {
    "bytes": lambda content: binascii.b2a_base64(content, newline=False).decode(),
    "datetime": lambda moment: moment.isoformat(),
}
"""By the name of the type: a worker does without `datetime` as long as it can."""


# Decoders; None is for a type whose values are taken as they are.


@cache
def _dataclass_decoder(kind: type) -> Convert:
    """The decoder of a dataclass, built once. It adds the name of the field to the error of a value that cannot be read."""
    names = tuple(_field_types(kind))
    converted = _of_fields(kind, _decoder)

    def decode(data: Any) -> Any:
        # Nested nouns may be there already, as where a row of the database is completed by hand.
        if type(data) is kind:
            return data
        if type(data) is list and len(data) <= len(names):
            values = dict(zip(names, data, strict=False))
        else:
            values = dict(_mapping(data))
        for name, convert in converted:
            if name in values:
                try:
                    values[name] = convert(values[name])
                except (ValueError, TypeError) as error:
                    raise UnreadableData(f"{name}: {error}") from error
        # The constructor itself finds unknown keys and missing fields, so these need no check of their own.
        try:
            return kind(**values)
        except TypeError as error:
            raise UnreadableData(str(error)) from error

    return decode


def _decoder(hint: Any) -> Convert | None:
    """How plain data becomes a value of an annotated type; the mirror of `_encoder`, with checks.

    The order of the questions follows from the annotations: a union and a container are known by their origin, and only
    what has none is a class. Sequences of plain values stay lists, since decoded data is never changed.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return _of_optional(hint, _decoder)
    if origin is frozenset:
        return lambda data: frozenset(_items(data))
    if origin in _SEQUENCES and not is_dataclass(arguments[0]):
        return None
    if origin is tuple or origin in _SEQUENCES:
        return _sequence_decoder(arguments)
    if origin is Mapping:
        decode = _item_decoder(arguments[1])
        if arguments[0] is int:
            # JSON has no keys other than text.
            return lambda data: {int(k): decode(v) if decode else v for k, v in _mapping(data).items()}
        return (lambda data: {k: decode(v) for k, v in _mapping(data).items()}) if decode else _mapping
    if not isinstance(hint, type):
        return None
    if is_dataclass(hint):
        # Looked up when the first value comes: most workers never see a checkout or a cleanup command.
        return lambda data: _dataclass_decoder(hint)(data)
    return hint if issubclass(hint, Enum) else _DECODERS.get(hint.__name__)


def _sequence_decoder(arguments: tuple[Any, ...]) -> Convert:
    """The decoder of a tuple: of fixed length with a type for each place, or of any length with one type for all."""
    decode_item = _item_decoder(arguments[0])
    if len(arguments) > 1 and arguments[1] is not ...:
        decoders = [_item_decoder(argument) or _keep for argument in arguments]
        return lambda data: tuple(decode(item) for decode, item in zip(decoders, _items(data), strict=True))
    if decode_item is None:
        return lambda data: tuple(_items(data))
    return lambda data: tuple([decode_item(item) for item in _items(data)])


def _item_decoder(hint: Any) -> Convert | None:
    return None if hint in (str, int, bool) else _decoder(hint)


def _mapping(data: Any) -> Mapping[Any, Any]:
    if type(data) is not dict and not isinstance(data, Mapping):
        raise UnreadableData(f"{type(data).__name__} where a mapping is expected")
    return data


def _items(data: Any) -> Sequence[Any]:
    if not isinstance(data, list | tuple):
        raise UnreadableData(f"{type(data).__name__} where a list is expected")
    return data


def _text(data: object) -> str:
    if not isinstance(data, str):
        raise UnreadableData(f"{type(data).__name__} where text is expected")
    return data


def _number(data: object) -> float:
    if not isinstance(data, int | float):
        raise UnreadableData(f"{type(data).__name__} where a number is expected")
    return data


def _float(data: Any) -> float | None:
    """A number, or text such as `inf`, or null: what the store writes where JSON has no number."""
    if type(data) is str:
        return float(data)
    return data if data is None else _number(data)


def _datetime(data: object) -> object:
    from datetime import datetime

    return datetime.fromisoformat(data) if isinstance(data, str) else data


_DECODERS: dict[str, Convert] = {
    "str": _text,
    "int": _number,
    "bool": lambda data: bool(_number(data)),
    "float": _float,
    "bytes": lambda data: data if type(data) is bytes else binascii.a2b_base64(data),
    "datetime": _datetime,
}
