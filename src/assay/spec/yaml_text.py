"""YAML and JSON text becomes a `Document`.

JSON is read as YAML, of which it is nearly a subset, so that lines are known for both. PyYAML's own constructors are not used: nodes are
turned into plain data here, with the line of each key, by the rules of YAML 1.2, and anything that is not plain data
is a mistake. Text that is nested too deeply or expands to too many values (by aliases) is refused.

It is a module of its own because it loads PyYAML, which a run of an experiment that is named on the command line can do without.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from assay.errors import Mistake, SpecError
from assay.spec.document import Document, Place

MAX_DEPTH = 60
MAX_VALUES = 100_000

_CORE = "tag:yaml.org,2002:"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads plain words as YAML 1.2 and JSON do: `off`, `2024-05-01` and `1:30` are text, `1e3` is a number."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


# YAML 1.1, which PyYAML reads, turns `no` into false (the country code of Norway), `2024-05-01` into a date and `1:30` into the
# number 90. The core schema of YAML 1.2 (section 10.3) has none of these, and JSON agrees with it. The third column has the
# characters that such a word may begin with, by which PyYAML picks the patterns to try.
for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+(_[0-9]+)*|0x[0-9a-fA-F]+|0o[0-7]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.")),
    ("merge", "<<", ["<"]),
):
    _Loader.add_implicit_resolver(_CORE + _name, re.compile(f"(?:{_pattern})$"), _first)


def _whole(text: str) -> int:
    """
    >>> _whole("10_000"), _whole("0x1F"), _whole("010")
    (10000, 31, 10)
    """
    return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))


_READ: dict[str, Callable[[str], Any]] = {
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": _whole,
    "float": lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    "str": str,
}
_KINDS = {"null": "null", "bool": "true or false", "int": "a whole number", "float": "a number"}


def _json_as_yaml(text: str) -> str:
    r"""JSON writes characters beyond 16 bits as two escapes, which YAML does not know.

    >>> _json_as_yaml(r'"\ud83d\ude00"')
    '"\\U0001f600"'
    """

    def join_surrogates(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        return f"\\U{0x10000 + ((int(match[1], 16) & 0x3FF) << 10) + (int(match[2], 16) & 0x3FF):08x}"

    return re.sub(r"\\\\|\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)", join_surrogates, text)


def parse_json(text: str, file: str) -> Document:
    return parse(_json_as_yaml(text), file)


def parse(text: str, file: str) -> Document:
    """The text as data with lines. SpecError where the syntax is wrong; other faults are kept in the document.

    Composing gives nodes with their marks and makes no objects, so there is no tag that could run code.
    """
    document = Document(file, None)
    try:
        _check_size(text, file)
        node = yaml.compose(text, Loader=_Loader)
        document.value = _Builder(document).build(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        raise SpecError([_syntax(error, text, file)]) from None
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        line = text.encode()[: error.position].count(b"\n") + 1
        problem = f"contains a character that is not allowed in text (U+{code:04X})."
        raise SpecError([Mistake(file, line, "", problem)]) from None
    return document


def _syntax(error: Any, text: str, file: str) -> Mistake:
    """What is wrong with the syntax, at its line. PyYAML counts lines from 0."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Mistake(file, None, "", f"is not valid YAML or JSON: {error.problem}.")
    line = text.splitlines()[mark.line] if mark.line < len(text.splitlines()) else ""
    # PyYAML's own message for the most frequent mistake, a tab, is about tokens that cannot start.
    if line[mark.column : mark.column + 1] == "\t":
        return Mistake(file, mark.line + 1, "", "is indented with a tab.", "Use spaces.")
    context = f"{error.context}, " if error.context else ""
    return Mistake(file, mark.line + 1, "", f"is not valid YAML or JSON: {context}{error.problem}.")


def _check_size(text: str, file: str) -> None:
    """Composing is recursive and slow: text nested deeper, or larger, than a spec can be is refused before it."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        if depth > MAX_DEPTH or number > MAX_VALUES:
            raise SpecError([_excess(file, depth > MAX_DEPTH, event)])


def _excess(file: str, is_deep: bool, at: Any) -> Mistake:
    line = at.start_mark.line + 1 if at.start_mark else None
    if is_deep:
        return Mistake(file, line, "", f"is nested deeper than {MAX_DEPTH} levels.")
    return Mistake(file, line, "", f"has more than {MAX_VALUES:,} values.", "Put data in separate files.")


class _Builder:
    """Turns nodes into data; aliases are followed, up to `MAX_VALUES` values in all.

    A value that cannot be read is reported and becomes None, so that one look finds every fault of the file.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._values = 0
        self._depth = 0

    def build(self, node: Any, place: Place) -> Any:
        """The data of a node. Every visit counts, also of a node that an alias repeats: nine lists of nine aliases each would
        otherwise become a billion values ("billion laughs")."""
        self._values += 1
        self._depth += 1
        if self._values > MAX_VALUES or self._depth > MAX_DEPTH:
            raise SpecError([_excess(self._document.file, self._depth > MAX_DEPTH, node)])
        # The line of the key wins where there is one: a value may begin lines below it, and people look for the key.
        self._document.lines.setdefault(place, node.start_mark.line + 1)
        value = self._build_value(node, place)
        self._depth -= 1
        return value

    def _build_value(self, node: Any, place: Place) -> Any:
        """The data of one node by its tag. A tag that is not of the core schema, such as `!!python/object`, is a fault."""
        kind = node.tag.removeprefix(_CORE)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and kind in _READ:
            return self._scalar(node, kind, place)
        if node.value == "<<":
            return "<<"
        self._fault(node, place, f"has the tag '{node.tag.replace(_CORE, '!!')}'.", "Use plain values only.")
        return None

    def _scalar(self, node: Any, kind: str, place: Place) -> Any:
        # Databases cut a text at this character; a case may ask about it all the same.
        if "\0" in node.value and "cases" not in place:
            self._fault(node, place, "contains a NUL character.", "Remove it.")
        try:
            return _READ[kind](node.value)
        except ValueError:
            excerpt = node.value if len(node.value) <= 40 else node.value[:37] + "…"
            self._fault(node, place, f"'{excerpt}' cannot be read as {_KINDS[kind]}.")
            return None

    def _mapping(self, node: Any, place: Place) -> dict[str, Any]:
        """A mapping with the line of each of its keys. What `<<` merges in comes below the mapping's own keys."""
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _CORE + "merge":
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(key_node, place, "has a key that is not text.")
                continue
            inner = (*place, key_node.value)
            # PyYAML would silently keep the last one, which hides a whole section that was pasted twice.
            if key_node.value in result:
                self._fault(key_node, inner, "appears twice.", "Keep one of them.")
            self._document.lines[inner] = key_node.start_mark.line + 1
            result[key_node.value] = self.build(value_node, inner)
        return self._build_merged_mapping(node, place) | result if self._merges(node) else result

    def _merges(self, node: Any) -> list[Any]:
        return [value for key, value in node.value if key.tag == _CORE + "merge"]

    def _build_merged_mapping(self, node: Any, place: Place) -> dict[str, Any]:
        """What `<<` brings in: of several mappings the first one counts."""
        result: dict[str, Any] = {}
        for source in self._merges(node):
            for merged in source.value if isinstance(source, yaml.SequenceNode) else [source]:
                if isinstance(merged, yaml.MappingNode):
                    result = self.build(merged, place) | result
                else:
                    self._fault(merged, (*place, "<<"), "must name a mapping, or a list of mappings.")
        return result

    def _fault(self, node: Any, place: Place, problem: str, hint: str = "") -> None:
        key = ".".join(map(str, place))
        self._document.mistakes.append(
            Mistake(self._document.file, node.start_mark.line + 1, key, problem, hint)
        )
