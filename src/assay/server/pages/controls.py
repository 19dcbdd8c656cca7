"""The form at the head of a page, which says what the page shows; sending it changes the address of the page and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

_SELECT, _SEVERAL, _NUMBER, _WORD, _KEPT = "select", "several", "number", "word", "kept"


@dataclass(frozen=True, slots=True)
class Control:
    """A field of the form."""

    name: str
    label: str
    value: str
    kind: str = _SELECT
    options: Sequence[tuple[str, str]] = ()
    """Values, each with what is shown for it; of a word, what may be meant."""
    low: int = 0
    high: int = 0
    values: Collection[str] = ()
    """What is chosen, where that may be several."""
    placeholder: str = ""


def choose_one(
    name: str, label: str, value: str | None, options: Iterable[str], none: str | None = None
) -> Control:
    """A choice among names; `none` says what it means to choose none of them."""
    names = list(dict.fromkeys([*([value] if value else []), *options] if none is None else options))
    pairs = [(option, option.replace("_", " ")) for option in names]
    return Control(name, label, value or "", options=[*([("", none)] if none is not None else []), *pairs])


def choose_several(name: str, label: str, values: Sequence[str], options: Iterable[str]) -> Control:
    """A choice of any number of names, behind a line that says how many they are."""
    names = list(dict.fromkeys([*options, *values]))
    summary = f"{len(values)} of {len(names)} chosen" if values else "the best"
    return Control(name, label, summary, _SEVERAL, [(option, option) for option in names], values=values)


def choose_number(name: str, label: str, value: int, low: int, high: int) -> Control:
    return Control(name, label, str(value), _NUMBER, low=low, high=high)


def choose_word(
    name: str, label: str, value: str | None, known: Iterable[tuple[str, str]] = (), placeholder: str = ""
) -> Control:
    """A word that may be typed, with suggestions; the placeholder says what it means to give none."""
    return Control(name, label, value or "", _WORD, list(known), placeholder=placeholder)


def keep(name: str, value: str) -> Control:
    """Something that the form does not change."""
    return Control(name, "", value, _KEPT)


def write_address(path: str, **query: object) -> str:
    """The address of a view; what is empty is left out."""
    kept = {name: value for name, value in query.items() if value not in (None, "", 0, False)}
    return f"{path}?{urlencode(kept, doseq=True)}" if kept else path


def page_links(path: str, page: int, *, has_more: bool, anchor: str = "", **query: object) -> dict[str, str]:
    """The addresses of the first page of a list and of the following one; empty where there is none."""
    return {
        "first": write_address(path, **query) + anchor if page > 1 else "",
        "following": write_address(path, **query, page=page + 1) + anchor if has_more else "",
    }


@dataclass(frozen=True, slots=True)
class Pager:
    """Links to the parts of a list before and after the one that is shown; empty where there is none."""

    before: str = ""
    after: str = ""
    text: str = ""
