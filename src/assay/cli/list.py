"""`assay list`: what there is, built-in and plug-ins, without importing any of it."""

from __future__ import annotations

from typing import Any

import click

from assay.cli.session import Session, common
from assay.plugin.lookup import KINDS

WHATS = (*KINDS, "specs", "teams", "runs")


@click.command("list")
@click.argument("what", required=False, type=click.Choice(WHATS))
@click.option("--params", is_flag=True, help="Params of experiments, too (this imports them).")
@click.option("--load", metavar="FILE.py", multiple=True, help="Make what this file defines known by name.")
@common
def list_(session: Session, what: str | None, params: bool, load: tuple[str, ...]) -> None:
    """Experiments, instruments, executors, reporters, specs, runs, and what plug-ins add to them."""
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
        if entries or what:
            click.echo(click.style(kind, bold=True))
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
    if kind == "specs":
        from assay.spec.shipped import shipped_specs

        return [{"name": name, "source": "assay"} for name in shipped_specs()]
    if kind == "teams":
        from assay.spec.shipped import shipped_teams

        return [{"name": name, "source": "assay"} for name in shipped_teams()]
    from assay.plugin.lookup import sources

    return [
        {"name": source.name, "source": source.origin} | (_params(kind, source.name) if with_params else {})
        for source in sources(kind)
    ]


def _params(kind: str, name: str) -> dict[str, Any]:
    from assay.errors import AssayError
    from assay.plugin.lookup import find

    if kind != "experiments":
        return {}
    from assay.plugin.params import param_schema

    try:
        properties = param_schema(find(kind, name)).get("properties", {})
    except AssayError as error:
        return {"error": str(error)}
    return {"params": {key: _param(field) for key, field in properties.items()}}


def _param(field: dict[str, Any]) -> dict[str, Any]:
    known = {**_told_by_parts(field), **field}
    return {
        key: known[key]
        for key in ("type", "enum", "default", "minimum", "exclusiveMinimum", "description")
        if key in known
    }


def _told_by_parts(field: dict[str, Any]) -> dict[str, Any]:
    """Type, choices and limits of a param that may also be left out, or be of several types."""
    parts = [part for part in field.get("anyOf", ()) if part.get("type") != "null"]
    types = dict.fromkeys(part["type"] for part in parts if "type" in part)
    merged = {key: value for part in parts for key, value in part.items()}
    return {**merged, "type": " or ".join(types)} if types else {}


def _fact(key: str, value: Any) -> str:
    match key:
        case "type":
            return str(value)
        case "enum":
            return f"one of {', '.join(map(str, value))}"
        case "minimum":
            return f"at least {value}"
        case "exclusiveMinimum":
            return f"more than {value}"
        case "description":
            return str(value)
        case _:
            return f"{key} {value}"


def _print_entries(entries: list[dict[str, Any]]) -> None:
    width = max((len(entry["name"]) for entry in entries), default=0)
    for entry in entries:
        click.echo(f"  {entry['name']:<{width}}  " + click.style(entry["source"], dim=True))
        for name, field in entry.get("params", {}).items():
            told = ", ".join(_fact(key, value) for key, value in field.items() if value is not None)
            click.echo(f"  {'':<{width}}    {name}: " + click.style(told, dim=True))
        if "error" in entry:
            click.echo(f"  {'':<{width}}    {entry['error']}")
    if not entries:
        click.echo("  none")
