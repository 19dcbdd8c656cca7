"""What a docstring says about a plug-in: a description, its arguments and an example.

Docstrings follow the style that Google's guide describes: sections `Args:` and `Example:` whose lines are indented.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_HEADING = re.compile(r"^(Args|Example):[ \t]*$", re.MULTILINE)
_ARGUMENT = re.compile(r"^(\w+): (.*)$")


@dataclass(frozen=True, slots=True)
class Documentation:
    """The parts of a docstring."""

    text: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    example: str = ""

    @property
    def summary(self) -> str:
        """The first paragraph on one line."""
        return " ".join(self.text.partition("\n\n")[0].split())


def documentation_of(member: Any) -> Documentation:
    """Read the documentation of a class or function.

    Arguments that a class does not describe are described by its bases or its constructor.
    """
    if not inspect.isclass(member):
        return parse_docstring(inspect.getdoc(member) or "")
    arguments: dict[str, str] = {}
    for base in reversed(member.__mro__[:-1]):
        for owner in (vars(base).get("__init__"), base):
            own = getattr(owner, "__doc__", None)
            arguments |= parse_docstring(inspect.cleandoc(own)).arguments if own else {}
    own = parse_docstring(inspect.cleandoc(member.__doc__)) if member.__doc__ else Documentation()
    return Documentation(own.text, arguments, own.example)


def parse_docstring(text: str) -> Documentation:
    """
    >>> found = parse_docstring("Adds.\\n\\nArgs:\\n    a: One\\n        number.\\n\\nExample:\\n    add(1)")
    >>> found.text, found.arguments, found.example
    ('Adds.', {'a': 'One number.'}, 'add(1)')
    """
    parts = _HEADING.split(text)
    sections = {
        heading: textwrap.dedent(body).strip("\n")
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    return Documentation(
        parts[0].strip(), _arguments(sections.get("Args", "")), sections.get("Example", "").rstrip()
    )


def _arguments(section: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if match := _ARGUMENT.match(line):
            name = match[1]
            found[name] = match[2].strip()
        elif name and line.strip():
            found[name] = f"{found[name]} {line.strip()}"
    return found


def attributes_of(owner: type) -> dict[str, str]:
    """The texts that stand below the attributes of a class in its source, by attribute."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        before.target.id: inspect.cleandoc(after.value.value)
        for before, after in itertools.pairwise(body)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }
