"""YAML and JSON text as plain data that remembers on which line each key stood."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from assay.errors import Mistake, SpecError

MAX_BYTES = 8 * 2**20
MAX_DEPTH = 60
MAX_VALUES = 300_000

Place = tuple[str | int, ...]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Document:
    """A file's content and the line of every key in it."""

    file: str
    value: Any
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int | None:
        """The line of the nearest enclosing key that the file really has."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)

    def mistake(self, place: Place, problem: str, hint: str = "") -> Mistake:
        return Mistake(self.file, self.line(place), ".".join(map(str, place)), problem, hint)


def read_document(path: Path) -> Document:
    return parse(read_text(path), str(path))


def read_text(path: Path) -> str:
    """The text of a file, or a SpecError that says why there is none."""

    def refuse(problem: str) -> SpecError:
        return SpecError([Mistake(str(path), None, "", problem)])

    if path.is_dir():
        raise refuse("is a folder, not a file.")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise refuse(
                f"is larger than {MAX_BYTES // 2**20} MiB: too large for a spec. Put data in files of its own."
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise refuse("does not exist.") from None
    except UnicodeDecodeError as error:
        raise refuse(f"is not UTF-8 text (byte {error.start}).") from None
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}.") from None


def parse(text: str, file: str) -> Document:
    document = Document(file, None)
    try:
        _check_depth(text, file)
        node = yaml.compose(text, Loader=_Loader)
        document.value = _Builder(document).build(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        raise SpecError([_syntax(error, file)]) from None
    except yaml.YAMLError as error:
        raise SpecError([Mistake(file, None, "", f"is not YAML or JSON: {error}")]) from None
    return document


def _syntax(error: yaml.MarkedYAMLError, file: str) -> Mistake:
    mark: Any = error.problem_mark or error.context_mark
    context = f" ({error.context})" if error.context else ""
    return Mistake(
        file, mark.line + 1 if mark else None, "", f"is not valid YAML or JSON: {error.problem}{context}."
    )


def _check_depth(text: str, file: str) -> None:
    """Composing is recursive: text nested deeper than a spec can be is refused before it."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1
                raise SpecError([Mistake(file, line, "", f"is nested deeper than {MAX_DEPTH} levels.")])
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1


class _Builder:
    """Turns nodes into data; aliases are followed, but not beyond a sane number of values."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._scalars = _Loader("")
        self._values = 0

    def build(self, node: yaml.Node, place: Place) -> Any:
        self._values += 1
        if self._values > MAX_VALUES or len(place) > MAX_DEPTH:
            raise SpecError(
                [Mistake(self._document.file, node.start_mark.line + 1, "", "holds too many values.")]
            )
        self._document.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._scalars.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        self._scalars.flatten_mapping(node)
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            inner = (*place, key)
            if key in result:
                raise SpecError(
                    [Mistake(self._document.file, key_node.start_mark.line + 1, key, "stands twice.")]
                )
            self._document.lines[inner] = key_node.start_mark.line + 1
            result[key] = self.build(value_node, inner)
        return result
