"""`assay list`: what is built in, what plug-ins add, and what the project's own files define.

Built-in members and plug-ins are listed from the registry and from entry points without importing them, so the list is
fast and shows plug-ins that cannot be imported here. `--params` has to import them, because their options are in the code.
"""

from __future__ import annotations

from typing import Any

import click

from assay.cli.options import shared_option
from assay.cli.output import echo, style_text
from assay.cli.session import Session, common
from assay.plugin.lookup import KINDS

WHATS = (*KINDS, "specs", "suites", "teams", "runs")
_LONGEST_DEFAULT = 60
"""Characters; a longer default would hide the other facts of its line."""


@click.command("list")
@click.argument("what", metavar="[KIND]", required=False, type=click.Choice(WHATS))
@click.option(
    "--params",
    is_flag=True,
    help="Also list options with types and defaults (imports the plug-ins).",
)
@shared_option("--load", "Also list what this file defines.")
@common
def list_(session: Session, what: str | None, params: bool, load: tuple[str, ...]) -> None:
    """List experiments, agents, scorers, instruments and other plug-ins, specs, suites, teams or runs.

    KIND is agents, experiments, findings, instruments, scorers, executors, reporters, scenarios, sandboxes, specs,
    suites, teams or runs.

    \b
    assay list
    assay list scorers --params
    """
    if what == "runs":
        from assay.cli.runs import print_list

        print_list(session)
        return
    _load_files(session, load)
    from assay.report.documents.answers import plugins_document

    listed = {
        kind: plugins_document(kind, with_params=params)
        for kind in WHATS
        if kind != "runs" and what in (None, kind)
    }
    if session.is_json:
        session.emit(listed if what is None else listed[what])
        return
    for kind, entries in listed.items():
        # There are many teams, which would push everything else off the screen.
        if what is None and kind == "teams":
            echo(style_text(kind, bold=True))
            echo(f"  {len(entries)}: assay list teams")
        elif entries or what:
            echo(style_text(kind, bold=True))
            _print_entries(entries)
    session.next(*_next(what, params))


def _next(what: str | None, params: bool) -> tuple[str, ...]:
    """What to do with the things that were listed."""
    if what == "teams":
        return ("assay team NAME",)
    if what == "suites":
        return "assay run NAME", "assay suite list"
    if what == "agents":
        return "assay agent list", "assay run SUITE --agent NAME"
    if what in ("experiments", None) and not params:
        return "assay run NAME", "assay list experiments --params"
    return ("assay run NAME",)


def _load_files(session: Session, load: tuple[str, ...]) -> None:
    """Import the files of the project, so that what they define is listed. One that fails is reported, and the rest is listed."""
    from pathlib import Path

    from assay.errors import AssayError
    from assay.plugin.lookup import load_file

    for file in session.settings.files_to_load():
        try:
            load_file(file)
        except AssayError as error:
            session.say(str(error))
    for name in load:
        load_file(Path(name))


def _facts(field: dict[str, Any]) -> str:
    """Type, limits and default of an option, on one line."""
    facts = [str(field["type"])] if "type" in field else []
    if "enum" in field:
        facts.append(f"one of {', '.join(map(str, field['enum']))}")
    if "minimum" in field:
        facts.append(f"at least {field['minimum']}")
    if "exclusiveMinimum" in field:
        facts.append(f"more than {field['exclusiveMinimum']}")
    if field.get("required"):
        facts.append("required")
    elif field.get("default") not in (None, "", [], {}) and len(str(field["default"])) <= _LONGEST_DEFAULT:
        default = field["default"]
        # Truth values as a spec has them: `true`, not Python's `True`.
        facts.append(f"default {str(default).lower() if isinstance(default, bool) else default}")
    return ", ".join(facts)


def _print_entries(entries: list[dict[str, Any]]) -> None:
    """Name, source, description and options of each; the error of a plug-in that cannot be imported."""
    width = max((len(entry["name"]) for entry in entries), default=0)
    for entry in entries:
        echo(f"  {entry['name']:<{width}}  ", style_text(entry["source"], dim=True))
        _print_indented(entry.get("description", ""), 4)
        for name, field in entry.get("params", {}).items():
            echo(f"    {name}: ", style_text(_facts(field), dim=True))
            _print_indented(field.get("description", ""), 8)
        if "error" in entry:
            echo(f"  {'':<{width}}    {entry['error']}")
    if not entries:
        echo("  none")


def _print_indented(text: str, columns: int) -> None:
    if text:
        indent = " " * columns
        echo(click.wrap_text(text, 80, initial_indent=indent, subsequent_indent=indent))
