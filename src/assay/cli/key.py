"""`assay key`: keys for the server, kept as hashes in the database that it serves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from assay.cli.output import echo
from assay.cli.session import Session, common


@click.group()
def key() -> None:
    """Create, list and revoke keys of the server."""


@key.command()
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(["read", "run", "admin"]),
    default="read",
    show_default=True,
    help="read: results. run: also start and cancel runs. admin: everything.",
)
@click.option(
    "--days", type=click.IntRange(1, 36500), metavar="N", help="Expire after N days; default: never."
)
@common
def create(session: Session, name: str, scope: str, days: int | None) -> None:
    """Create a key and print it; it cannot be shown again. NAME says what it is for.

    The key gives access only to the workspace in which it is created (--workspace).

    Once a key exists, every request needs one: Authorization: Bearer KEY
    """
    from assay.model.access import Scope
    from assay.model.codec import to_plain

    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with session.store() as store:
        new_key, token = store.create_key(name, Scope(scope), expires)
    if session.is_json:
        session.emit({**to_plain(new_key), "key": token})
        return
    echo(token)
    session.say("Copy it now: only its hash is stored, so it cannot be shown again.")
    session.next("assay key list", f"assay key revoke {new_key.prefix}")


@key.command("list")
@common
def list_keys(session: Session) -> None:
    """List the keys of the workspace: what each may do, until when, and when it was last used."""
    from assay.model.codec import to_plain

    with session.store() as store:
        found = store.keys()
    if session.is_json:
        session.emit(to_plain(found))
        return
    now = datetime.now(UTC)
    for key in found:
        state = "revoked" if key.revoked else "valid" if key.is_valid(now) else "expired"
        used = f"used {key.last_used:%Y-%m-%d %H:%M}" if key.last_used else "never used"
        echo(f"{key.prefix}  {key.scope:<5}  {state:<7}  {used}  {key.name}")
    session.next("assay key create NAME --scope read")


@key.command()
@click.argument("prefix")
@common
def revoke(session: Session, prefix: str) -> None:
    """Revoke the key with this PREFIX."""
    from assay.model.codec import to_plain

    with session.store() as store:
        revoked = store.revoke_key(prefix)
    session.answer(to_plain(revoked), f"The key {prefix} ({revoked.name}) is revoked.", "assay key list")
