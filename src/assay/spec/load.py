"""A spec file, or what stands in for one, becomes a Spec."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from assay.errors import Mistake, SpecError, did_you_mean
from assay.spec.document import Document, Place, read_document
from assay.spec.schema import ENTRY_KEYS, RUN_KEYS, Entry, RunSection


@dataclass(frozen=True, slots=True)
class Located:
    """One entry and where in the document each of its keys stands."""

    entry: Entry
    document: Document
    prefix: Place

    def mistake(self, place: Place, problem: str, hint: str = "") -> Mistake:
        own = (*self.prefix, *place)
        return self.document.mistake(
            own if own[: len(self.prefix) + 1] in self.document.lines else place, problem, hint
        )


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run, with the mistakes found so far: planning adds its own, so that all are told at once."""

    run: RunSection
    entries: tuple[Located, ...]
    source: Mapping[str, Any]
    folder: Path
    mistakes: tuple[Mistake, ...] = ()


def load_spec(path: Path, changes: Mapping[str, Any] | None = None) -> Spec:
    """Read a spec file; `changes` are laid over its keys, mapping by mapping."""
    document = read_document(path)
    if not isinstance(document.value, dict):
        raise SpecError(
            [Mistake(str(path), 1, "", "holds no keys. A spec is a mapping that begins: experiment: NAME")]
        )
    return _spec(document, path.resolve().parent, changes or {})


def spec_of(experiments: Iterable[str], folder: Path, changes: Mapping[str, Any] | None = None) -> Spec:
    """The spec that a bare list of experiments stands for."""
    names = list(experiments)
    value: dict[str, Any] = (
        {"experiment": names[0]} if len(names) == 1 else {"experiments": [{"experiment": n} for n in names]}
    )
    return _spec(Document("command line", value), folder, changes or {})


def _spec(document: Document, folder: Path, changes: Mapping[str, Any]) -> Spec:
    value = overlaid(document.value, changes)
    mistakes = [
        _unknown(document, key) for key in value if key not in RUN_KEYS | ENTRY_KEYS | {"experiments"}
    ]
    run = _validated(RunSection, {k: v for k, v in value.items() if k in RUN_KEYS}, document, (), mistakes)
    common = {k: v for k, v in value.items() if k in ENTRY_KEYS}
    entries = []
    for prefix, own in _own_parts(document, value, mistakes):
        entry = _validated(Entry, overlaid(common, own), document, prefix, mistakes)
        if entry is not None:
            entries.append(Located(entry, document, prefix))
    return Spec(run or RunSection.model_validate({}), tuple(entries), value, folder, tuple(mistakes))


def _own_parts(
    document: Document, value: dict[str, Any], mistakes: list[Mistake]
) -> list[tuple[Place, dict[str, Any]]]:
    """Place and own keys of each experiment that the file names."""
    several = value.get("experiments")
    if several is None:
        if "experiment" in value:
            return [((), {})]
        mistakes.append(
            document.mistake(
                (), "names no experiment.", "Add: experiment: NAME (see: assay list experiments)"
            )
        )
        return []
    if not isinstance(several, list) or not several or not all(isinstance(item, dict) for item in several):
        mistakes.append(
            document.mistake(("experiments",), "must be a list of mappings, each with 'experiment'.")
        )
        return []
    parts: list[tuple[Place, dict[str, Any]]] = []
    for index, item in enumerate(several):
        place: Place = ("experiments", index)
        mistakes += [_unknown(document, key, place) for key in item if key not in ENTRY_KEYS]
        parts.append((place, {key: own for key, own in item.items() if key in ENTRY_KEYS}))
    return parts


def overlaid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`; mappings are merged key by key."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = (
            overlaid(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
        )
    return result


def _validated(
    model: type[Any], value: Mapping[str, Any], document: Document, prefix: Place, mistakes: list[Mistake]
) -> Any:
    """An instance, or, with the mistakes noted, an instance without the keys that are wrong, or None."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        locations = []
        for fault in error.errors():
            place = tuple(part for part in fault["loc"] if not _is_branch(part))
            own = (*prefix, *place)
            known = own if prefix and own[: len(prefix) + 1] in document.lines else place if prefix else own
            mistake = document.mistake(known, *_told(fault, model, place))
            if mistake not in mistakes:
                mistakes.append(mistake)
            locations.append(place)
    rest = {key: item for key, item in value.items() if not any(place[:1] == (key,) for place in locations)}
    if len(rest) == len(value):
        return None
    try:
        return model.model_validate(rest)
    except ValidationError:
        return None


def _is_branch(part: str | int) -> bool:
    """Pydantic names the branch of a union in the location; a file has no such key."""
    return isinstance(part, str) and bool(
        re.match(r"(literal|constrained|function|int$|float$|str$|list\[|dict\[)", part)
    )


def _unknown(document: Document, key: str, prefix: Place = ()) -> Mistake:
    near = did_you_mean(key, RUN_KEYS | ENTRY_KEYS | {"experiments"})
    return document.mistake((*prefix, key), "is not a key of a spec.", near)


_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "bool_type": "true or false",
}


def _told(fault: Any, model: type[BaseModel], place: Place) -> tuple[str, str]:
    """Problem and hint of one pydantic fault, in our words."""
    kind, value = fault["type"], fault.get("input")
    if kind == "extra_forbidden":
        return "is not known here.", did_you_mean(str(place[-1]), _siblings(model, place))
    if kind == "missing":
        return "is missing.", ""
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {described(value)}.", ""
    if kind == "literal_error":
        expected = fault["ctx"]["expected"]
        return f"must be {expected}, not {described(value)}.", did_you_mean(
            str(value), re.findall(r"'([^']+)'", expected)
        )
    if kind == "value_error":
        return str(fault["ctx"]["error"]), ""
    return f"{fault['msg'].removeprefix('Input ')}, not {described(value)}.".replace("should", "must"), ""


def _siblings(model: type[BaseModel], place: Place) -> list[str]:
    for part in place[:-1]:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def described(value: Any) -> str:
    """A value as a message shows it: short, with its kind where that is not plain."""
    text = repr(value)
    text = text if len(text) <= 60 else text[:57] + "…"
    kind = {"str": "text", "list": "a list", "dict": "a mapping"}.get(type(value).__name__)
    return f"{text} ({kind})" if kind else text
