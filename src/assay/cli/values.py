"""Values given on the command line: shares such as 5%, and settings, which are read as YAML would read them."""

from __future__ import annotations

from typing import Any

import click

from assay.errors import SpecError


def setting(text: str) -> tuple[str, Any]:
    """
    >>> setting("num_records=500"), setting("name=a b")
    (('num_records', 500), ('name', 'a b'))
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise click.UsageError(f"'{text}' is not KEY=VALUE.")
    return key, value_of(value)


def axis(text: str) -> tuple[str, list[Any]]:
    """
    >>> axis("size=1,2,5")
    ('size', [1, 2, 5])
    """
    key, sign, values = text.partition("=")
    if not sign or not key or not values:
        raise click.UsageError(f"'{text}' is not KEY=V1,V2,…")
    return key, [value_of(value) for value in _parts(values)]


def _parts(values: str) -> list[str]:
    """Split at commas that are not inside brackets."""
    # One value of a sweep may itself be a list or a mapping: `--sweep sizes=[1,2],[3,4]` has two values.
    parts, depth, start = [], 0, 0
    for place, character in enumerate(values):
        depth += (character in "[{") - (character in "]}")
        if character == "," and not depth:
            parts.append(values[start:place])
            start = place + 1
    return [*parts, values[start:]]


def value_of(text: str) -> Any:
    """A number, true, false, null, text in quotes, [a list] or {a mapping}; anything else is the text itself.

    >>> value_of("1e3"), value_of("[1, x]"), value_of("'1'"), value_of("a: b # c"), value_of("")
    (1000.0, [1, 'x'], '1', 'a: b # c', '')
    """
    from assay.spec.yaml_text import parse

    try:
        document = parse(text, "command line")
    except SpecError:
        return text
    is_structured = text.lstrip()[:1] in ("[", "{", "'", '"')
    is_plain = not document.mistakes and (is_structured or not isinstance(document.value, (str, list, dict)))
    # YAML reads a comment as nothing, but a command line has no comments: `#1` is a text.
    is_comment = not text.strip() or text.lstrip().startswith("#")
    return document.value if is_plain and not is_comment else text


def share_of(text: str, option: str) -> float:
    """
    >>> share_of("5%", "--tolerance"), share_of("0.1", "--threshold")
    (0.05, 0.1)
    """
    try:
        value = float(text.rstrip("%").strip()) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise click.UsageError(
            f"{option} '{text}' is neither a percentage nor a number. Write 5% or 0.05."
        ) from None
    if not 0 <= value < 1:
        raise click.UsageError(f"{option} '{text}' must be from 0 to less than 100 %. Write 5% or 0.05.")
    return value
