"""Turns pydantic's validation errors into Assay's messages.

Specs, suites and params are checked by pydantic, whose messages speak of input and validators. Here they become sentences
that continue the name of a key: "must be a whole number, not 'x'.", with a hint where one helps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from assay.errors import did_you_mean, known_names

_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "bool": "true or false",
    "finite": "a finite number",
}


_BRANCH = re.compile(r"(literal|constrained|function|int$|float$|str$|list\[|dict\[)")
"""How pydantic names the branches of a union."""


def group_by_place(error: ValidationError, value: Any) -> dict[tuple[str | int, ...], list[Any]]:
    """All faults at one place of the value are one mistake: of a union pydantic reports one for each branch."""
    faults: dict[tuple[str | int, ...], list[Any]] = {}
    for fault in error.errors():
        faults.setdefault(_find_place(fault["loc"], value), []).append(fault)
    return faults


def _find_place(location: tuple[str | int, ...], value: Any) -> tuple[str | int, ...]:
    """Pydantic names the branch of a union in a location; the value has no such key."""
    place: list[str | int] = []
    for depth, part in enumerate(location, start=1):
        # A key that is missing is the last part; a branch may be named after a model.
        is_missing = depth == len(location) and not _BRANCH.match(str(part))
        if isinstance(value, Mapping) and (part in value or is_missing):
            place.append(part)
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            place.append(part)
            value = value[part] if part < len(value) else None
    return tuple(place)


def problem_and_hint(faults: list[Any], known: Iterable[str] = ()) -> tuple[str, str]:
    """One sentence for all faults of one value: the branches of a union each have their own."""
    # The other branches of a union may not have the key at all.
    faults = [fault for fault in faults if fault["type"] != "extra_forbidden"] or faults
    first = faults[0]
    value = first.get("input")
    if first["type"] == "missing":
        return "is missing.", ""
    if first["type"] in ("extra_forbidden", "no_such_attribute"):
        return "is an unknown key.", known_names(str(first["loc"][-1]), known)
    if first["type"] == "value_error":
        return str(first["ctx"]["error"]), ""
    wanted = " or ".join(dict.fromkeys(_describe_wanted(fault) for fault in faults))
    verb = "" if wanted.startswith(("be ", "have ", "match ")) else "be "
    problem = f"must {verb}{wanted}, not {format_value(value)}."
    if any(fault["type"] == "string_type" for fault in faults) and isinstance(value, (int, float)):
        return problem, "Put quotes around text that looks like a number or a boolean."
    literals = [fault["ctx"]["expected"] for fault in faults if fault["type"] == "literal_error"]
    return problem, did_you_mean(
        str(value), [name for text in literals for name in re.findall(r"'([^']+)'", text)]
    )


def _describe_wanted(fault: Any) -> str:
    kind = fault["type"].split("_")[0]
    if fault["type"] == "literal_error":
        return str(fault["ctx"]["expected"])
    if fault["type"].endswith("_parsing_size"):
        return "a number with fewer digits"
    if fault["type"] in ("int_from_float", "finite_number") or fault["type"].endswith(("_type", "_parsing")):
        return _WANTED.get(kind, _without_pydantics_words(fault["msg"]))
    return _without_pydantics_words(fault["msg"])


def _without_pydantics_words(message: str) -> str:
    """
    >>> _without_pydantics_words("Input should be greater than or equal to 0")
    'at least 0'
    >>> _without_pydantics_words("List should have at least 1 item after validation, not 0")
    'have at least 1 item'
    """
    text = re.sub(r"^.*? should (be )?", "", message)
    text = re.sub(r" after validation, not .*$", "", text)
    return text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")


def format_value(value: Any) -> str:
    """A value as a message shows it: short, with its kind where that is not plain."""
    if value is None or isinstance(value, bool):
        return {None: "empty", True: "true", False: "false"}[value]
    text = repr(value)
    text = text if len(text) <= 60 else text[:57] + "…"
    kind = {"list": "a list", "dict": "a mapping"}.get(type(value).__name__)
    return f"{text} ({kind})" if kind else text
