"""Fail where a class name is defined in two modules, or a loop variable is called `one` instead of what it holds."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"


def shared_names(folder: Path) -> Mapping[str, list[Path]]:
    places: defaultdict[str, list[Path]] = defaultdict(list)
    for file in sorted(folder.rglob("*.py")):
        for name in _classes_in(file):
            places[name].append(file.relative_to(folder))
    return {name: files for name, files in places.items() if len(files) > 1}


def _classes_in(file: Path) -> Iterator[str]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name


def nameless_loops(folder: Path) -> list[tuple[Path, int]]:
    """File and line of each loop and comprehension whose variable is called `one`."""
    return [
        (file.relative_to(folder), line)
        for file in sorted(folder.rglob("*.py"))
        for line in _nameless_loops_in(file)
    ]


def _nameless_loops_in(file: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name) and target.id == "one":
                    yield target.lineno


def main() -> None:
    told = [
        f"The class name '{name}' is defined in {', '.join(map(str, files))}. Give each a name of its own."
        for name, files in sorted(shared_names(SOURCES).items())
    ]
    told += [
        f"{file}:{line}: a loop variable is called 'one'. Name it after what it holds: trial, case, row."
        for file, line in nameless_loops(SOURCES)
    ]
    sys.exit("\n".join(told) or None)


if __name__ == "__main__":
    main()
