"""Writes the reference pages from the code; with --check, says which are out of date and exits with 1."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from assay import errors
from assay.cli.main import COMMANDS, assay
from assay.plugin import lookup
from assay.spec.schema import (
    Entry,
    IterationsSection,
    LimitsSection,
    RunSection,
    UntilDecidedSection,
    UntilSection,
)

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py (make docs). Changes belong in the code. -->\n"


def main() -> int:
    pages = {
        "cli.md": cli_page(),
        "spec.md": spec_page(),
        "metrics.md": metrics_page(),
        "errors.md": errors_page(),
    }
    if "--check" in sys.argv:
        stale = [name for name, text in pages.items() if not _is_current(FOLDER / name, text)]
        for name in stale:
            print(f"docs/reference/{name} is out of date: make docs")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def cli_page() -> str:
    return NOTE + "\n# Command line\n\n" + "\n".join(_command_sections())


def _command_sections() -> Iterator[str]:
    root = click.Context(assay, info_name="assay")
    for name in COMMANDS:
        command = assay.get_command(root, name)
        assert command is not None
        yield from _sections(command, click.Context(command, info_name=name, parent=root))


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _sections(inner, click.Context(inner, info_name=name, parent=context))
        return
    context.max_content_width = 110
    context.terminal_width = 110
    usage = command.get_help(context).replace("Usage: ", "", 1)
    yield f"## {context.command_path}\n\n```text\n{usage}\n```\n"


def spec_page() -> str:
    lines = [NOTE, "# Spec file\n", "YAML or JSON. Paths are relative to the file that names them.\n"]
    for title, model in (
        ("What to run", Entry),
        ("The run as a whole", RunSection),
        ("until", UntilDecidedSection),
        ("iterations", IterationsSection),
        ("iterations.until", UntilSection),
        ("limits", LimitsSection),
    ):
        lines += [f"## {title}\n", "| key | type | default | meaning |", "|---|---|---|---|"]
        lines += [_field_row(name, field) for name, field in model.model_json_schema()["properties"].items()]
        lines.append("")
    lines.append(
        "Several experiments in one file: `experiments: [{experiment: …}, …]`, the other keys being their defaults.\n"
    )
    lines.append(
        "A list under `params` is an axis when the param takes one value, and a value when the param takes a list.\n"
    )
    return "\n".join(lines)


def _field_row(name: str, field: dict[str, Any]) -> str:
    default = field.get("default")
    shown = "" if default in (None, [], {}) else f"`{default}`"
    return f"| `{name}` | {_kind(field)} | {shown} | {field.get('description', '')} |"


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(one) for one in field["anyOf"] if one.get("type") != "null"))
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return "mapping"
    kinds = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "array": "list",
        "object": "mapping",
    }
    return kinds.get(field.get("type", ""), "anything")


def metrics_page() -> str:
    lines = [
        NOTE,
        "# Metrics\n",
        "`seconds`, the time of one call, is always measured. Instruments add theirs.\n",
    ]
    for name in lookup.known("instruments"):
        instrument = lookup.find("instruments", name)
        about = (inspect.getdoc(instrument) or "").splitlines()[0]
        slow = " Runs in executions of its own, because it slows its subject." if instrument.slows else ""
        lines += [f"## {name}\n", about + slow + "\n", "| metric | unit | better |", "|---|---|---|"]
        lines += [f"| `{m.name}` | {m.unit or '–'} | {m.better} |" for m in instrument.metrics.values()]
        lines.append("")
    return "\n".join(lines)


def errors_page() -> str:
    tree = inspect.getdoc(errors) or ""
    return f"{NOTE}\n# Errors\n\nA mistake of the user's ends a command with one message and exit code 2.\n\n```text\n{tree}\n```\n"


if __name__ == "__main__":
    sys.exit(main())
