"""`assay doctor`: check whether Assay can work on this machine.

The document has the environment that every run stores, the state of the database and of the sandbox, and the optional
packages. Only a database that cannot be opened makes the command fail (exit code 2): everything else is optional.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli.output import echo, style_text
from assay.cli.session import Session, common


@click.command()
@common
def doctor(session: Session) -> int:
    """Check versions, extras and how to install them, the database, the machine's noise and clock."""
    from assay.execute.environment import environment
    from assay.report.documents.answers import machine_document

    # The same probe that every run makes, so that what is shown here is what results will be stored with.
    found = environment(Path.cwd(), packages=False)
    document = machine_document(found, _database(session), _sandbox())
    if session.is_json:
        session.emit(document)
    else:
        _print(document)
        session.next("assay run noop", "assay list")
    # Everything but the database is optional, or only limits what can be measured.
    return 0 if document["database"]["ok"] else 2


def _database(session: Session) -> dict[str, Any]:
    """Whether the database can be opened, with its facts or the reason why not.

    This creates it if it does not exist, as any command would.
    """
    from assay.errors import AssayError

    try:
        with session.store() as store:
            return {"ok": True, **store.info()}
    except AssayError as error:
        return {"ok": False, "error": str(error)}


def _sandbox() -> dict[str, Any]:
    """Whether a sandbox works here; without one, what runs commands and code of models refuses to."""
    from assay.plugin import lookup
    from assay.plugin.sandbox import UNCONFINED, Sandbox

    found: dict[str, dict[str, Any]] = {}
    for name in lookup.known("sandboxes"):
        if name != UNCONFINED:
            sandbox: Sandbox = lookup.find("sandboxes", name)()
            problem = sandbox.problem()
            found[name] = {"ok": not problem, "version": sandbox.version(), "error": problem or None}
    ours = found["bubblewrap"]
    if ours["ok"]:
        return {"ok": True, "bubblewrap": ours["version"], "all": found}
    install = "apt-get install bubblewrap"
    return {"ok": False, "bubblewrap": None, "error": ours["error"], "install": install, "all": found}


def _print(document: dict[str, Any]) -> None:
    """A row for each fact: ✓ if it is fine, – if it is missing or limits what can be measured."""
    facts = document["environment"]
    _row("assay", document["assay"], True)
    for key in ("os", "python", "cpu", "memory", "clock"):
        _row(key, _format_facts(key, facts.get(key)), True)
    is_noisy = any("noisy" in warning for warning in document["warnings"])
    _row("noise", _format_facts("noise", facts.get("noise")), not is_noisy)
    database = document["database"]
    _row("database", database.get("url") or database.get("error"), database["ok"])
    sandbox = document["sandbox"]
    found = (
        f"bubblewrap {sandbox['bubblewrap']}"
        if sandbox["ok"]
        else f"{sandbox['error']}: {sandbox['install']}"
    )
    _row("sandbox", f"{found} (for commands and code of models, and sandboxed agents)", sandbox["ok"])
    for name, extra in document["extras"].items():
        _row(
            name,
            extra["for"] if extra["installed"] else f"not installed: {extra['install']}",
            extra["installed"],
        )
    for warning in document["warnings"]:
        echo(style_text("  ! ", fg="yellow"), warning)


def _row(name: str, text: object, is_fine: bool) -> None:
    mark = style_text("✓", fg="green") if is_fine else style_text("–", fg="yellow")
    echo(mark, f" {name:<10} {text}")


def _format_facts(key: str, value: Any) -> str:
    """One line for each group of facts."""
    from assay import units

    if not isinstance(value, dict):
        return str(value)
    match key:
        case "os":
            return f"{value.get('distribution') or value.get('system')}, {value.get('system')} {value.get('release')}"
        case "python":
            return f"{value.get('implementation', '')} {value.get('version')}"
        case "cpu":
            return f"{value.get('model')}, {value.get('cores_logical')} cores"
        case "memory":
            return f"{units.size(value['available_bytes'])} free of {units.size(value['total_bytes'])}"
        case "clock":
            step, cost = (units.seconds(value[name]) for name in ("step_s", "cost_s"))
            return f"steps of {step}, {cost} to read"
        case _:
            return (
                f"times of equal work spread by {units.percent(value['spread'])}, "
                f"{units.percent(value['lost'])} of the time went to other programs"
            )
