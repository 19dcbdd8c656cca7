"""The option `--sandbox` of commands that score code.

Code that an agent wrote is run to judge it. By default it runs confined or not at all: whoever wants it unconfined has to say
so, and reports then say it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def sandbox_option(command: Command) -> Command:
    """Add the option `--sandbox`. It decides where scorers run code, in this process and in its workers, until the command ends."""
    return click.option(
        "--sandbox",
        type=click.Choice(["auto", "bubblewrap", "none"]),
        expose_value=False,
        callback=_choose,
        help="Where the scorer `code` runs code. auto: in bubblewrap, and refuse to run if it is missing; none: unconfined, as you. "
        "Default: ASSAY_SANDBOX, or auto.",
    )(command)


def _choose(context: click.Context, parameter: click.Parameter, choice: str | None) -> None:
    """Choose the sandbox for the time of the command. Click leaves the context at its end, also after an error."""
    if choice is not None:
        from assay.execute.sandbox import chosen_sandbox

        context.with_resource(chosen_sandbox(choice))
