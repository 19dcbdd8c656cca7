"""`assay doctor`: check whether Assay can work on this machine.

The document has the environment that every run stores, the state of the database and of the sandbox, and the optional
packages. Only a database that cannot be opened makes the command fail (exit code 2): everything else is optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from assay.cli.options import read_executor_settings
from assay.cli.output import echo, style_text
from assay.cli.session import Session, common


@click.command()
@click.option("--executor", metavar="NAME", help="Also check every node of this executor's cluster.")
@click.option(
    "--set", "settings", metavar="executor.KEY=VALUE", multiple=True, help="A setting of the executor."
)
@common
def doctor(session: Session, executor: str | None, settings: tuple[str, ...]) -> int:
    """Check versions, extras and how to install them, the database, the machine's noise and clock, and the nodes of a cluster."""
    from assay.execute.environment import environment
    from assay.report.documents.answers import machine_document, sandbox_document

    # The same probe that every run makes, so that what is shown here is what results will be stored with.
    found = environment(Path.cwd(), packages=False)
    nodes = None if executor is None else _nodes(session, executor, settings)
    document = machine_document(found, _database(session), sandbox_document(), nodes)
    if session.is_json:
        session.emit(document)
    else:
        _print(document)
        session.next("assay run noop", "assay list")
    # Everything but the database is optional, or only limits what can be measured; nodes are what was asked about.
    is_fine = document["database"]["ok"] and all(node["ok"] for node in document.get("nodes", ()))
    return 0 if is_fine else 2


def _nodes(session: Session, executor: str, settings: Sequence[str]) -> list[dict[str, Any]]:
    """What the executor finds out about the nodes of its cluster; PlanError where it has none."""
    from assay.errors import PlanError
    from assay.plugin import lookup
    from assay.plugin.executor import CheckedExecutor

    kind = lookup.find("executors", executor)
    if not isinstance(kind, CheckedExecutor):
        raise PlanError(f"The executor '{executor}' has no nodes to check.")
    own = session.settings.executors.get(executor, {})
    return kind.check_nodes({**own, **read_executor_settings(settings)})


def _database(session: Session) -> dict[str, Any]:
    """Whether the database can be opened, with its facts or the reason why not.

    This creates it if it does not exist, as any command would.
    """
    from assay.errors import AssayError
    from assay.report.documents.answers import database_document

    try:
        with session.store() as store:
            return database_document(store.info())
    except AssayError as error:
        return database_document(error=str(error))


def _print(document: dict[str, Any]) -> None:
    """A row for each fact: ✓ if it is fine, – if it is missing or limits what can be measured."""
    from assay.execute.noise import Noise

    facts = document["environment"]
    _row("assay", document["assay"], True)
    for key in ("os", "python", "cpu", "memory", "clock"):
        _row(key, _format_facts(key, facts.get(key)), True)
    noise = facts.get("noise")
    _row("noise", _format_facts("noise", noise), not (noise and Noise(**noise).is_noisy))
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
            f"installed ({extra['for']})"
            if extra["installed"]
            else f"not installed ({extra['for']}): {extra['install']}",
            extra["installed"],
        )
    for node in document.get("nodes", ()):
        _row("node", _format_node(node), node["ok"])
    for warning in document["warnings"]:
        echo(style_text("  ! ", fg="yellow"), warning)


def _format_node(node: Mapping[str, Any]) -> str:
    if node["problems"]:
        return f"{node['name']}: {'; '.join(node['problems'])}"
    offset, error = 1000 * node["clock_offset_s"], 1000 * node["clock_error_s"]
    return (
        f"{node['name']}, {node['slots']} slots, Assay {node['assay']}, Python {node['python']}, Ray {node['ray']}, "
        f"clock {offset:+.0f} ms (± {error:.0f} ms)"
    )


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
                f"times of identical work vary by {units.percent(value['spread'])}, "
                f"{units.percent(value['lost'])} of the time went to other programs"
            )
