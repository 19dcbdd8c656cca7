"""`assay completion`: tell the shell what can follow.

Click makes the script; commands and options come from the same declarations as the help, so nothing has to be kept up to date.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: eval "$(assay completion bash)"
    zsh:  eval "$(assay completion zsh)"
    fish: assay completion fish | source
    """
    from assay.cli.main import assay

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(assay, {}, "assay", "_ASSAY_COMPLETE").source())
