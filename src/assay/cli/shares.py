"""Shares given on the command line: 5% or 0.05."""

from __future__ import annotations

import click


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
