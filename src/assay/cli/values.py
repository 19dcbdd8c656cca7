"""Values given on the command line, read as YAML would read them."""

from __future__ import annotations

from typing import Any

import click

from assay.errors import SpecError
from assay.spec.document import parse


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
    parts, depth, start = [], 0, 0
    for place, character in enumerate(values):
        depth += (character in "[{") - (character in "]}")
        if character == "," and not depth:
            parts.append(values[start:place])
            start = place + 1
    return [*parts, values[start:]]


def value_of(text: str) -> Any:
    try:
        return parse(text, "command line").value
    except SpecError:
        return text
