"""The option `--sandbox` of commands that run commands or code of models.

By default what a model wrote runs confined or not at all: a user who wants it unconfined has to say so, and reports then say
it, too.
"""

from __future__ import annotations

import click

from assay.cli.session import Command


def sandbox_option(command: Command) -> Command:
    """Add the option `--sandbox`. It decides where code of models runs, in this process and in its workers, until the command ends."""
    return click.option(
        "--sandbox",
        metavar="NAME",
        expose_value=False,
        callback=_choose,
        help="Sandbox for commands and code that a model wrote; see assay list sandboxes. auto: use bubblewrap, and refuse to run "
        "without it; none: run unconfined, with your permissions. Default: ASSAY_SANDBOX, or auto.",
    )(command)


def _choose(context: click.Context, parameter: click.Parameter, choice: str | None) -> None:
    """Choose the sandbox for the time of the command. Click leaves the context at its end, also after an error."""
    if choice is not None:
        from assay.plugin import lookup
        from assay.plugin.sandbox import AUTO, chosen_sandbox

        if choice != AUTO:
            lookup.find("sandboxes", choice)
        context.with_resource(chosen_sandbox(choice))
