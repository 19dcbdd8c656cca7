"""Every example in a docstring is run: one that no longer holds misleads whoever reads it."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if "\n    >>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_of_a_module_hold(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) > 50
