"""`assay list`: what there is, built-in and plug-ins, without importing any of it."""

from __future__ import annotations

from typing import Any

import click

from assay.cli.output import echo, styled
from assay.cli.session import Session, common
from assay.plugin.lookup import KINDS

WHATS = (*KINDS, "specs", "teams", "runs")
_LONGEST_DEFAULT = 60


@click.command("list")
@click.argument("what", required=False, type=click.Choice(WHATS))
@click.option(
    "--params",
    is_flag=True,
    help="Also options with types and defaults (this imports the plug-ins).",
)
@click.option("--load", metavar="FILE.py", multiple=True, help="Also list what this file defines.")
@common
def list_(session: Session, what: str | None, params: bool, load: tuple[str, ...]) -> None:
    """List experiments, agents, scorers, instruments and other plug-ins, specs, teams or runs.

    \b
    assay list
    assay list scorers --params
    """
    if what == "runs":
        from assay.cli.runs import print_list

        print_list(session)
        return
    _load_files(session, load)
    listed = {kind: _entries(kind, params) for kind in WHATS if kind != "runs" and what in (None, kind)}
    if session.is_json:
        session.emit(listed if what is None else listed[what])
        return
    for kind, entries in listed.items():
        if what is None and kind == "teams":
            echo(styled(kind, bold=True))
            echo(f"  {len(entries)}: assay list teams")
        elif entries or what:
            echo(styled(kind, bold=True))
            _print_entries(entries)
    session.next(*_next(what, params))


def _next(what: str | None, params: bool) -> tuple[str, ...]:
    if what == "teams":
        return ("assay team NAME",)
    if what == "agents":
        return "assay agent list", "assay run SUITE --agent NAME"
    if what in ("experiments", None) and not params:
        return "assay run NAME", "assay list experiments --params"
    return ("assay run NAME",)


def _load_files(session: Session, load: tuple[str, ...]) -> None:
    """What the project's own files define belongs in the list; one that fails is told, and the rest is listed."""
    from pathlib import Path

    from assay.errors import AssayError
    from assay.plugin.lookup import load_file

    for file in session.settings.loaded_files():
        try:
            load_file(file)
        except AssayError as error:
            session.say(str(error))
    for name in load:
        load_file(Path(name))


def _entries(kind: str, with_params: bool) -> list[dict[str, Any]]:
    if kind in ("specs", "teams"):
        from assay.spec import shipped

        files = shipped.shipped_specs() if kind == "specs" else shipped.shipped_teams()
        return [
            {"name": name, "source": "assay", "description": shipped.description_of(file)}
            for name, file in files.items()
        ]
    from assay.plugin.lookup import sources

    return [
        {"name": source.name, "source": source.origin} | (_params(kind, source.name) if with_params else {})
        for source in sources(kind)
    ]


def _params(kind: str, name: str) -> dict[str, Any]:
    """What it is for, and its options as far as files can set them."""
    from assay.errors import AssayError
    from assay.plugin.documentation import documentation_of
    from assay.plugin.lookup import find
    from assay.plugin.options import KINDS, option_schema

    if kind not in KINDS:
        return {}
    try:
        member = find(kind, name)
        schema = option_schema(kind, member)
    except AssayError as error:
        return {"error": str(error)}
    needed = schema.get("required", ())
    params = {key: _param(field, key in needed) for key, field in schema.get("properties", {}).items()}
    return {"description": documentation_of(member).summary, "params": params}


def _param(field: dict[str, Any], is_required: bool) -> dict[str, Any]:
    known = {**_told_by_parts(field), **field, **({"required": True} if is_required else {})}
    names = ("type", "enum", "default", "minimum", "exclusiveMinimum", "description", "required")
    return {key: known[key] for key in names if key in known}


def _told_by_parts(field: dict[str, Any]) -> dict[str, Any]:
    """Type, choices and limits of a param that may also be left out, or be of several types."""
    parts = [part for part in field.get("anyOf", ()) if part.get("type") != "null"]
    types = dict.fromkeys(part["type"] for part in parts if "type" in part)
    merged = {key: value for part in parts for key, value in part.items()}
    return {**merged, "type": " or ".join(types)} if types else {}


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
        facts.append(f"default {_yaml(field['default'])}")
    return ", ".join(facts)


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _print_entries(entries: list[dict[str, Any]]) -> None:
    width = max((len(entry["name"]) for entry in entries), default=0)
    for entry in entries:
        echo(f"  {entry['name']:<{width}}  ", styled(entry["source"], dim=True))
        _print_indented(entry.get("description", ""), 4)
        for name, field in entry.get("params", {}).items():
            echo(f"    {name}: ", styled(_facts(field), dim=True))
            _print_indented(field.get("description", ""), 8)
        if "error" in entry:
            echo(f"  {'':<{width}}    {entry['error']}")
    if not entries:
        echo("  none")


def _print_indented(text: str, columns: int) -> None:
    if text:
        indent = " " * columns
        echo(click.wrap_text(text, 80, initial_indent=indent, subsequent_indent=indent))
