"""Mutants of files: the same text, structure or kind of file with one thing or a few things wrong."""

from __future__ import annotations

import copy
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_NUMBERS = (
    "-1",
    "0",
    "1e999",
    "-1e999",
    "NaN",
    ".nan",
    ".inf",
    "1" + "0" * 400,
    "0x1f",
    "1_000",
    "00",
    "1e-320",
    "9" * 19,
)
_TEXTS = (
    "", " ", "x" * 300, "x" * 100_000, "a\x00b", "\x1b[31mred\x1b]0;t\x07", "../../../etc/passwd", "/dev/zero", "/dev/full", "/",
    "http://a..b/", "http://[::1", "http://:99999/", "file:///etc/passwd", "${MISSING}", "${", "${A:-${B}}", "*", "**", "::", "a:b:c",
    "nul\u0000", "\ufeff", "\u202e\u2066", "é" * 200, "\U0001f600", "%s%n", "{}", "{0.__class__}", "'; DROP TABLE runs; --", "-", "--help",
    "yes", "null", "~", "1", "2026-13-45", "!!python/object/apply:os.system [true]",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 3.7, 10**30, -(10**30), 1e308, float("inf"), float("nan"), "", "x", [], {}, [[]], [None], {"": None},
    {"a": {"b": {"c": [1]}}}, [1, "a", None, {}], "x" * 5000, ["x"] * 2000, 10**400,
)  # fmt: skip
_BYTES = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\r\n", b"\r", b"\x85", b"\xe2\x80\xa8", b"\t", b"'", b'"', b"{", b"}", b"[", b"]", b":", b"- ", b"&a ", b"*a ", b"<<: ", b"%", b"#", b"\\", b"\\u0000", b"\\ud800", b"!!", b"|", b">")  # fmt: skip


def mutate(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """What was done, and the mutant; it may happen to be as good as the original."""
    if chance.random() < 0.45 and (mutant := _mutate_structure(content, chance)) is not None:
        return mutant
    name = chance.choice(list(_WAYS))
    return name, _WAYS[name](content, chance)


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 20))):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(content: bytes, chance: random.Random) -> bytes:
    start, end = sorted((chance.randint(0, len(content)), chance.randint(0, len(content))))
    return content[:start] + content[min(end, start + 200) :]


def _double(content: bytes, chance: random.Random) -> bytes:
    start = chance.randint(0, len(content))
    piece = content[start : start + chance.choice((1, 10, 100))]
    return content[:start] + piece * chance.choice((2, 3, 300)) + content[start:]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(content))
    return content[:at] + chance.choice(_BYTES) * chance.choice((1, 1, 3, 2000)) + content[at:]


def _end_early(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randint(0, len(content))]


def _shuffle_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        first, second = chance.sample(range(len(lines)), 2)
        lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def _drop_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def _indent(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        at = chance.randrange(len(lines))
        lines[at] = chance.choice((b"\t", b" ", b"      ")) + lines[at]
    return b"".join(lines)


def _encode(content: bytes, chance: random.Random) -> bytes:
    return content.decode("utf-8", "replace").encode(
        chance.choice(("utf-16", "utf-32", "utf-7", "utf-8-sig", "latin-1")), "replace"
    )


def _replace_number(content: bytes, chance: random.Random) -> bytes:
    return _replace(rb"(?<![\w.])-?\d+(\.\d+)?", chance.choice(_NUMBERS), content, chance)


def _replace_text(content: bytes, chance: random.Random) -> bytes:
    return _replace(rb"[A-Za-z_][\w./-]*", chance.choice(_TEXTS), content, chance)


def _replace(pattern: bytes, text: str, content: bytes, chance: random.Random) -> bytes:
    if not (found := list(re.finditer(pattern, content))):
        return content + text.encode("utf-8", "surrogatepass")
    place = chance.choice(found)
    return content[: place.start()] + text.encode("utf-8", "surrogatepass") + content[place.end() :]


def _bomb(content: bytes, chance: random.Random) -> bytes:
    return chance.choice(
        (
            b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(b"%c: &%c [%b]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)),
            b"&a [*a]\n",
            b"suite: &a {<<: *a}\n",
            b"[" * 50_000,
            b'{"a":' * 50_000,
            b"- " * 20_000,
            b"? " * 5_000,
            b"",
            b"\n" * 100_000,
            b"null\n",
            b"[]",
            b"0",
            b"--- a\n--- b\n",
            b"\x00" * 1000,
            bytes(range(256)),
        )
    )  # fmt: skip


_WAYS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bits flipped": _flip,
    "a piece cut out": _cut,
    "a piece repeated": _double,
    "odd bytes inserted": _insert,
    "cut short": _end_early,
    "lines swapped": _shuffle_lines,
    "a line dropped": _drop_line,
    "a line indented": _indent,
    "another encoding": _encode,
    "an odd number": _replace_number,
    "an odd word": _replace_text,
    "other content": _bomb,
}


def _mutate_structure(content: bytes, chance: random.Random) -> tuple[str, bytes] | None:
    """One value or key of a JSON or YAML document, or of one line of it, changed."""
    for read, write in ((_read_json, _write_json), (_read_lines, _write_lines), (_read_yaml, _write_json)):
        try:
            document = read(content)
        except Exception:
            continue
        places = list(_places(document))
        if not places:
            return None
        changed = copy.deepcopy(document)
        where = chance.choice(places)
        what = _change(changed, where, chance)
        return f"{what} at {'.'.join(map(str, where))[:60]}", write(changed)
    return None


def _change(document: Any, where: tuple[Any, ...], chance: random.Random) -> str:
    holder = document
    for step in where[:-1]:
        holder = holder[step]
    match chance.randrange(6):
        case 0 | 1 | 2:
            value = chance.choice(_VALUES)
            holder[where[-1]] = value
            return f"{str(value)[:20]!r}"
        case 3:
            holder[where[-1]] = chance.choice(_TEXTS)
            return "odd text"
        case 4:
            del holder[where[-1]]
            return "nothing"
        case _:
            if isinstance(holder, dict):
                holder[chance.choice(_TEXTS)] = holder.pop(where[-1])
                return "an odd key"
            holder.append(copy.deepcopy(holder[where[-1]]))
            return "a double"


def _places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in inner:
        yield (*path, key)
        yield from _places(value, (*path, key))


def _read_json(content: bytes) -> Any:
    document = json.loads(content)
    if not isinstance(document, (dict, list)):
        raise ValueError(content)
    return document


def _write_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _read_lines(content: bytes) -> Any:
    lines = [json.loads(line) for line in content.splitlines() if line.strip()]
    if len(lines) < 2:
        raise ValueError(content)
    return lines


def _write_lines(document: Any) -> bytes:
    return b"".join(_write_json(line) + b"\n" for line in document)


def _read_yaml(content: bytes) -> Any:
    import yaml

    document = yaml.safe_load(content)
    if not isinstance(document, dict):
        raise ValueError(content)
    return document


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


KINDS_OF_FILE: dict[str, Callable[[Path], None]] = {
    "a folder": Path.mkdir,
    "a fifo": lambda path: os.mkfifo(path),
    "a link to itself": _loop,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to nowhere": lambda path: path.symlink_to("/nowhere/at/all"),
    "a file that may not be read": lambda path: (path.touch(), path.chmod(0))[0],
    "nothing at all": lambda path: None,
}
"""What may stand in a file's place."""
