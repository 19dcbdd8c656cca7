"""What every command has in common: the options --db, --workspace, --json, --quiet and --verbose, and the `Session` made from them.

A command is decorated with `@common` and gets a session as its first argument. Through it the command opens the store,
emits its JSON document, and talks to people. Results go to standard output; messages, warnings and hints go to standard
error, so that output can be piped.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from assay.cli.output import echo, style_text

if TYPE_CHECKING:
    from rich.console import Console

    from assay.spec.settings import Settings
    from assay.store.store import Store

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Session:
    """The options that every command takes, and what follows from them."""

    db: str | None
    is_json: bool
    is_quiet: bool
    db_retry: float | None = None
    """Seconds that a run waits for a database that cannot be reached; None where the settings decide."""
    chosen_workspace: str | None = None
    """Of --workspace; None where the settings decide."""
    _redirection: contextlib.ExitStack | None = None

    @property
    def settings(self) -> Settings:
        from assay.spec.settings import find_settings

        return find_settings(Path.cwd())

    @property
    def workspace(self) -> str | None:
        """The part of the database that the command works in; None is the one that every database has."""
        return self.chosen_workspace or self.settings.workspace

    def store(self, workspace: str | None = None) -> Store:
        """Open the database: that of --db, else that of ASSAY_DB or the settings. It is made if it does not exist.

        It is bound to the given workspace, else to that of the options or the settings, which must exist.
        """
        from assay.store.store import Store

        settings = self.settings
        retry = settings.db_retry if self.db_retry is None else self.db_retry
        within = workspace or self.chosen_workspace or settings.workspace
        return Store.open(self.db or settings.db, workspace=within, retry_seconds=retry)

    @contextlib.contextmanager
    def store_when_needed(self) -> Iterator[Callable[[], Store]]:
        """Yields a function that opens the store when it is first called; the store is closed at the end.

        If opening may fail, it is opened at once, before anything that costs time or money.
        """
        from assay.store.revisions import will_open

        # Importing SQLAlchemy would delay the first request of a load, and a SQLite file can be checked without it.
        with contextlib.ExitStack() as until_done:

            @functools.cache
            def open_store() -> Store:
                return until_done.enter_context(self.store())

            if self.workspace or not will_open(self.db or self.settings.db):
                open_store()
            yield open_store

    @contextlib.contextmanager
    def output_reserved(self) -> Iterator[None]:
        """With --json, whatever is printed goes to standard error, except what `emit` writes.

        Agents and experiments of the user run in this process too, and any `print` of theirs would break the document.
        """
        if not self.is_json:
            yield
            return
        self._reserve_output()
        try:
            yield
        finally:
            self._release_output()

    def _reserve_output(self) -> None:
        from assay.plugin.output import printing_to_stderr

        self._redirection = contextlib.ExitStack()
        self._redirection.enter_context(printing_to_stderr())

    def _release_output(self) -> bool:
        """Give standard output back; returns whether it was reserved, so that the caller can reserve it again."""
        redirection, self._redirection = self._redirection, None
        if redirection is not None:
            redirection.close()
        return redirection is not None

    def emit(self, document: Any) -> None:
        """Write the JSON document of a command with --json, without secrets. It is the only text on standard output."""
        from assay.model.redaction import known_secrets

        # One line for programs, indented for people. Secrets are looked for in the text first, which is quick; only where one
        # may be is the document walked through, since replacing within JSON text could break its escapes.
        was_reserved = self._release_output()
        indent = 2 if sys.stdout.isatty() else None
        written = json.dumps(document, indent=indent, allow_nan=False, default=str)
        if known_secrets().may_be_in(written):
            written = json.dumps(known_secrets().redact(json.loads(written)), indent=indent)
        echo(written)
        if was_reserved:
            self._reserve_output()

    def answer(self, document: Any, said: str, *next_commands: str) -> None:
        """The answer of a command that changes something: its document with --json, else a message and the next commands."""
        if self.is_json:
            self.emit(document)
        else:
            self.say(said)
            self.next(*next_commands)

    def say(self, text: str) -> None:
        """A message for people, on standard error so that it never mixes with results."""
        if not self.is_quiet:
            echo(text, err=True)

    def warn(self, text: str) -> None:
        """A warning, which is also shown with --quiet."""
        echo(f"Warning: {text}", err=True)

    def next(self, *commands: str) -> None:
        """Suggest the next useful commands, but not with --json or --quiet: on one line if they fit, else one below the other."""
        if self.is_json or self.is_quiet:
            return
        fits = len("Next: " + " · ".join(commands)) <= shutil.get_terminal_size().columns
        between = style_text(" · ", dim=True) if fits else "\n      "
        parts = [part for command in commands for part in (between, command)]
        echo(style_text("Next: ", bold=True), *parts[1:], err=True)

    def console(self) -> Console:
        from assay.cli.terminal import QuietTerminal, Terminal

        return (QuietTerminal if self.is_quiet else Terminal)(highlight=False, soft_wrap=False)

    def error_console(self) -> Console:
        from assay.report.console.safe_console import SafeConsole

        return SafeConsole(stderr=True, highlight=False)


def common(command: Command) -> Command:
    """Give a command the common options, and hand it a Session as its first argument."""

    @click.option(
        "--db", metavar="URL", help="Database; default: ASSAY_DB, assay.toml, or sqlite:///.assay/assay.db"
    )
    @click.option(
        "--workspace",
        metavar="NAME",
        help="Part of the database; default: ASSAY_WORKSPACE, assay.toml, or 'default'.",
    )
    @click.option("--json", "is_json", is_flag=True, help="Print one JSON document on standard output.")
    @click.option(
        "--quiet",
        "-q",
        "is_quiet",
        is_flag=True,
        help="Print only results, warnings and errors; `run` prints one line.",
    )
    @click.option(
        "--verbose",
        "-v",
        "is_verbose",
        is_flag=True,
        help="Write a log to standard error (or set LOG_LEVEL=DEBUG, INFO, …).",
    )
    @functools.wraps(command)
    def wrapper(
        *args: Any,
        db: str | None,
        workspace: str | None,
        is_json: bool,
        is_quiet: bool,
        is_verbose: bool,
        **kwargs: Any,
    ) -> Any:
        # `logging` is imported only where somebody wants log lines, which keeps the start of all other commands fast. The last
        # condition: an earlier command of this process was verbose, and this one is not.
        if is_verbose or "LOG_LEVEL" in os.environ or "assay.cli.logs" in sys.modules:
            from assay.cli.logs import configure_logging

            configure_logging(is_verbose)
        session = Session(db, is_json, is_quiet, chosen_workspace=workspace)
        # With --lines a command answers line by line, on standard output itself.
        with contextlib.nullcontext() if kwargs.get("lines") else session.output_reserved():
            return command(session, *args, **kwargs)

    return wrapper  # type: ignore[return-value]
