"""A spec file, or what stands in for one, becomes a `Spec`.

A spec comes from a file (`load_spec`) or from names on the command line (`spec_of`). In both cases options such as `--set` are laid over
its keys before anything is checked, so that there is one set of rules. A file may hold several experiments; the keys outside
`experiments` are then the defaults of each. A mistake is reported where the value was written, which `KeyOrigin` keeps track of:
in the experiment's own part of the file, among the common keys, or in the request.

`validate_model` is what the readers of suites, teams and agents use, too: it checks a mapping with a pydantic model and translates
pydantic's errors to mistakes with lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.errors import Mistake, SpecError, known_names
from assay.plugin.model_fields import find_siblings
from assay.plugin.validation_messages import group_by_place, problem_and_hint
from assay.spec.document import Document, Place, read_document
from assay.spec.schema import (
    ENTRY_KEYS,
    RUN_KEYS,
    SPEC_KEYS,
    ExperimentEntry,
    OwnEntry,
    RunSection,
)

REQUEST = "request"
"""Stands for the file in mistakes of what was given beside it, by options or arguments."""


@dataclass(frozen=True, slots=True)
class KeyOrigin:
    """Where the keys of a section were written: in the request, in its own part of the file, or among the common keys."""

    document: Document
    prefix: Place = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[Place, Place] = field(default_factory=dict)
    """By the place of a key, where it was written, if that is elsewhere: under the name of a list, for one."""

    def mistake(self, place: Place, problem: str, hint: str = "") -> Mistake:
        """A mistake at a place of this section, reported where its value was really written: in the request, in the section
        itself, or among the common keys of the file."""
        place = self.written.get(place, place)
        if place and _holds(self.changes, place):
            return Mistake(REQUEST, None, ".".join(map(str, place)), problem, hint)
        own, lines = (*self.prefix, *place), self.document.lines
        # A key that the section does not have itself was written among the common keys, if it was written at all. If it was
        # written nowhere, the mistake is that it is missing, and is shown at the section.
        is_common = own not in lines and (place in lines or own[: len(self.prefix) + 1] not in lines)
        return self.document.mistake(place if is_common and place[:1] in lines else own, problem, hint)


def _holds(changes: Any, place: Place) -> bool:
    """Whether the value at a place comes from the changes, at that key or at a key above it."""
    for part in place:
        if not isinstance(changes, Mapping):
            return True
        if part not in changes:
            return False
        changes = changes[part]
    return True


@dataclass(frozen=True, slots=True)
class LocatedEntry:
    """One entry and where its keys were written."""

    entry: ExperimentEntry
    origin: KeyOrigin


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run, with the mistakes found so far: planning adds its own, so that all are told at once."""

    run: RunSection
    entries: tuple[LocatedEntry, ...]
    source: Mapping[str, Any]
    folder: Path
    origin: KeyOrigin
    mistakes: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryChanges:
    """What is laid over one experiment of the file."""

    keys: Mapping[str, Any] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    """Params and axes of the file of which `keys` has others, maybe under another name, such as `size` for `sizes`."""

    def overlay(self, base: Mapping[str, Any]) -> dict[str, Any]:
        return overlay_keys(self.drop_replaced(base), self.keys)

    def drop_replaced(self, base: Mapping[str, Any]) -> dict[str, Any]:
        return {
            section: {name: value for name, value in own.items() if name not in self.replaced}
            if self.replaced and section in ("params", "sweep") and isinstance(own, Mapping)
            else own
            for section, own in base.items()
        }


OwnChanges = Mapping[int, EntryChanges]
"""Keys that are laid over one of the experiments only, by its place in the file."""
_NO_CHANGES = EntryChanges()
_NONE: OwnChanges = {}


def load_spec(path: Path, changes: Mapping[str, Any] | None = None, own: OwnChanges = _NONE) -> Spec:
    """Read a spec file; `changes` are laid over its keys, mapping by mapping, then those of each experiment's `own`."""
    document = read_document(path)
    if not isinstance(document.value, dict):
        problem = "has no keys. A spec starts with experiment: NAME, a suite with suite: NAME"
        raise SpecError([*document.mistakes, Mistake(str(path), 1, "", problem)])
    return _spec(document, path.resolve().parent, changes or {}, own)


def spec_of(
    experiments: Iterable[str],
    folder: Path,
    changes: Mapping[str, Any] | None = None,
    own: OwnChanges = _NONE,
) -> Spec:
    """The spec that a bare list of experiments stands for."""
    names = list(experiments)
    value: dict[str, Any] = (
        {"experiment": names[0]} if len(names) == 1 else {"experiments": [{"experiment": n} for n in names]}
    )
    return _spec(Document(REQUEST, value), folder, changes or {}, own)


def _spec(document: Document, folder: Path, changes: Mapping[str, Any], own_changes: OwnChanges) -> Spec:
    """The spec with every mistake found; what remains of it is planned all the same, to find the mistakes there as well."""
    # Three layers, each over the one before: the common keys of the file, the experiment's own keys, and the request. They are
    # laid over each other as plain data and only the result is validated, so that a key which the request replaces may be wrong
    # in the file, and a required one may come from anywhere.
    changes = _from_here(changes)
    origin = KeyOrigin(document, (), changes)
    file = _drop_empty_keys(document.value)
    source = overlay_keys(file, changes) | _merge_lists(file, changes)
    mistakes = [*document.mistakes, *find_unknown_keys(source, SPEC_KEYS, origin)]
    run = validate_model(
        RunSection, {**select_keys(source, RUN_KEYS), **_merge_own_tags(source)}, origin, mistakes
    )
    entries = []
    for own, place in _list_experiments(source, origin, mistakes):
        own_change = own_changes.get(int(place.prefix[1]) if place.prefix else 0, _NO_CHANGES)
        request = {**changes, **own_change.keys}
        written = own_change.drop_replaced(overlay_keys(select_keys(file, ENTRY_KEYS), own))
        keys = overlay_keys(written, select_keys(request, ENTRY_KEYS))
        place = replace(place, changes=request)
        entry = validate_model(ExperimentEntry, keys, place, mistakes)
        if entry is not None:
            entries.append(LocatedEntry(entry, place))
    # Planning continues with defaults in the place of what is wrong, and adds the mistakes that it finds. Nothing is run.
    run = run or RunSection.model_validate({})
    return Spec(
        run, tuple(entries), _build_stored_source(source, own_changes), folder, origin, tuple(mistakes)
    )


def _build_stored_source(source: dict[str, Any], own_changes: OwnChanges) -> dict[str, Any]:
    """The keys as they are kept with the run: with what was given for single experiments."""
    if "experiments" not in source:
        return own_changes.get(0, _NO_CHANGES).overlay(source)
    if not isinstance(source["experiments"], list):
        return source
    parts = [
        own_changes.get(index, _NO_CHANGES).overlay(part) if isinstance(part, dict) else part
        for index, part in enumerate(source["experiments"])
    ]
    return {**source, "experiments": parts}


def _merge_lists(file: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Files to load and tags that are given come on top of those that the file names."""
    lists = {key: (_as_list(file.get(key, [])), _as_list(changes.get(key, []))) for key in ("load", "tags")}
    return {
        key: [*own, *(item for item in added if item not in own)]
        for key, (own, added) in lists.items()
        if added and isinstance(own, list) and isinstance(added, list)
    }


def _merge_own_tags(source: Mapping[str, Any]) -> dict[str, Any]:
    """The tags of the run with those of its experiments."""
    parts = source.get("experiments")
    own = [part.get("tags") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    tag_lists = [_as_list(tags) for tags in (source.get("tags"), *own) if tags]
    if len(tag_lists) < 2 or not all(isinstance(tags, list) for tags in tag_lists):
        return {"tags": tag_lists[0]} if tag_lists else {}
    return {"tags": list(dict.fromkeys(tag for tags in tag_lists for tag in tags))}


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _from_here(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Paths in a file count from the file; those given beside it from the current folder."""
    absolute = _drop_empty_keys(changes)
    if isinstance(absolute.get("output_dir"), (str, Path)):
        absolute["output_dir"] = str(Path(absolute["output_dir"]).absolute())
    if isinstance(load := absolute.get("load"), (str, Path, list, tuple)):
        files = [load] if isinstance(load, (str, Path)) else load
        absolute["load"] = [str(Path(file).absolute()) for file in files]
    return absolute


def _drop_empty_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """A key without a value is as good as none."""
    return {key: item for key, item in value.items() if item is not None}


def select_keys(value: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key in keys}


def find_unknown_keys(value: Mapping[str, Any], known: Collection[str], origin: KeyOrigin) -> list[Mistake]:
    return [
        origin.mistake((key,), "is an unknown key.", known_names(key, known))
        for key in value
        if key not in known
    ]


def _list_experiments(
    value: dict[str, Any], origin: KeyOrigin, mistakes: list[Mistake]
) -> list[tuple[dict[str, Any], KeyOrigin]]:
    """Each experiment that the file names: its own keys, and where they stand."""
    if "experiments" in value:
        parts = list_parts(value, "experiment", tuple(OwnEntry.model_fields), origin, mistakes)
        return [(select_keys(own, ENTRY_KEYS), place) for own, place in parts]
    if "experiment" in value:
        return [({}, origin)]
    hint = "Add: experiment: NAME (see: assay list experiments)"
    mistakes.append(origin.mistake((), "names no experiment.", hint))
    return []


_SHORTEST = {"experiment": "{experiment: NAME}", "team": "{team: NAME, …}"}
"""How the shortest one is written."""


def list_parts(
    value: Mapping[str, Any],
    noun: str,
    known: Collection[str],
    origin: KeyOrigin,
    mistakes: list[Mistake],
) -> list[tuple[dict[str, Any], KeyOrigin]]:
    """The own keys of each experiment or team of a file that has several, and where they stand."""
    several = value[f"{noun}s"]
    if not isinstance(several, list) or not several:
        mistakes.append(origin.mistake((f"{noun}s",), f"must be a list of at least one {noun}."))
        return []
    parts = []
    for index, item in enumerate(several):
        place = KeyOrigin(origin.document, (f"{noun}s", index), origin.changes)
        if isinstance(item, dict):
            mistakes += find_unknown_keys(item, known, place)
            parts.append((_drop_empty_keys(item), place))
        else:
            mistakes.append(place.mistake((), "must be a mapping.", f"Write: {_SHORTEST[noun]}"))
    return parts


def overlay_keys(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`, mapping by mapping; a param that `over` fixes is no longer swept, nor a count automatic.

    Without these exceptions `--set size=10` on a spec that sweeps `size` would be refused as given twice, and a number of
    `--repetitions` would contradict the `until` of the file, though what the user means is clear.
    """
    result = merge_mappings(base, over)
    if isinstance(iterations := over.get("iterations"), Mapping) and "measured" in iterations:
        result["iterations"] = {
            k: v for k, v in result["iterations"].items() if k != "until" or k in iterations
        }
    params, sweep = over.get("params"), result.get("sweep")
    if isinstance(params, Mapping) and isinstance(sweep, dict):
        swept_anew = over.get("sweep") or {}
        result["sweep"] = {
            name: axis for name, axis in sweep.items() if name not in params or name in swept_anew
        }
    return result


def merge_mappings(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`: mappings are merged, everything else is replaced, lists as a whole among it."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = (
            merge_mappings(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
        )
    return result


def validate_model(
    model: type[Any], value: Mapping[str, Any], origin: KeyOrigin, mistakes: list[Mistake]
) -> Any:
    """An instance of a pydantic model, as far as the value allows.

    Every error is added to `mistakes` with the line of its key. If keys are wrong, they are left out and the rest is validated again,
    so that the caller can continue and find further mistakes; None if a required key is among them.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = group_by_place(error, value)
    for place, at_place in faults.items():
        mistake = origin.mistake(place, *problem_and_hint(at_place, find_siblings(model, place)))
        if mistake not in mistakes:
            mistakes.append(mistake)
    rest = dict(value)
    for place in faults:
        rest = _without(rest, place)
    try:
        return model.model_validate(rest)
    except ValidationError:
        return None


def _without(value: dict[str, Any], place: Place) -> dict[str, Any]:
    """The value without what stands at that place; a list goes as a whole."""
    if not place:
        return value
    key, rest = str(place[0]), place[1:]
    inner = value.get(key)
    if rest and isinstance(inner, dict) and rest[0] in inner:
        return {**value, key: _without(inner, rest)}
    return {name: item for name, item in value.items() if name != key}
