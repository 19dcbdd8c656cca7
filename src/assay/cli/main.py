"""Entry point: the commands, the exit codes, and the one place where the user's mistakes are caught.

Exit codes: 0 fine · 1 found (a trial without one ok execution, a regression) · 2 the request could not be done.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from assay import __version__
from assay.errors import AssayError, SpecError, did_you_mean

COMMANDS = {
    "init": ("assay.cli.init:init", "Start a project: settings, an experiment, a spec, a CI workflow."),
    "list": ("assay.cli.list:list_", "What there is: experiments, instruments, specs, runs, …"),
    "validate": ("assay.cli.validate:validate", "Check spec files; tell every mistake at once."),
    "run": ("assay.cli.run:run", "Carry out a spec, a Python file or an experiment."),
    "show": ("assay.cli.show:show", "One run: estimates with intervals, warnings, environment."),
    "report": (
        "assay.cli.report:report",
        "Write documents from a stored run: html, md, json, csv, png, junit.",
    ),
    "team": (
        "assay.cli.team:team",
        "Agents working at the same time: true speedup, efficiency, contention.",
    ),
    "compare": ("assay.cli.compare:compare", "Is B better than A, or is it noise?"),
    "power": ("assay.cli.power:power", "How much must be run to find an effect, and what does that cost?"),
    "noise": ("assay.cli.noise:noise", "What do results differ by though nothing changes?"),
    "load": ("assay.cli.load:load", "How much does it bear? A load against a server or an agent."),
    "stress": (
        "assay.cli.stress:stress",
        "How does it stand pressure? Eight scenarios, and how resilient it is.",
    ),
    "sim-llm": ("assay.cli.sim_llm:sim_llm", "A simulated LLM server with known timing, faults and skill."),
    "leaderboard": ("assay.cli.leaderboard:leaderboard", "Who leads, and who is really apart?"),
    "matrix": ("assay.cli.matrix:matrix", "Every agent on every dimension, with ranks; head to head."),
    "rescore": ("assay.cli.rescore:rescore", "Judge stored outputs again, without running."),
    "agent": ("assay.cli.agent:agent", "Register agents, and list those that can be named."),
    "suite": ("assay.cli.suite:suite", "Register, list or check suites."),
    "runs": ("assay.cli.runs:runs", "List, tag or delete stored runs."),
    "baseline": ("assay.cli.baseline:baseline", "Give a run a name to compare with."),
    "gate": ("assay.cli.gate:gate", "May this run pass? Exit 1 only on evidence that it is worse."),
    "detect": ("assay.cli.detect:detect", "Where does a series of numbers shift?"),
    "regressions": ("assay.cli.regressions:regressions", "What got worse with an agent, and since when?"),
    "schema": ("assay.cli.schema:schema", "JSON schema of a file format, for editors."),
    "db": ("assay.cli.db:db", "The store: upgrade, info, prune, export."),
    "doctor": ("assay.cli.doctor:doctor", "This machine: versions, extras, database, noise, clock."),
    "record": ("assay.cli.record:record", "Run a program and record its LLM traffic in a cassette."),
    "replay": ("assay.cli.record:replay", "Run a program with its LLM traffic answered from a cassette."),
    "completion": ("assay.cli.completion:completion", "Shell completion for bash, zsh or fish."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS) or "See: assay --help"
            raise click.UsageError(f"There is no command '{args[0]}'. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="assay")
def assay() -> None:
    """Measure agents and code the way engineers measure engines.

    Start here: assay init my-project · assay run noop · assay doctor
    """


def main(arguments: list[str] | None = None) -> None:
    # Loading modules makes objects that stay; looking for garbage among them costs a fifth of the start.
    gc.set_threshold(100_000, 20, 20)
    sys.exit(_exit_code(arguments))


def _exit_code(arguments: list[str] | None) -> int:
    output = sys.stdout
    try:
        answer = assay.main(args=arguments, prog_name="assay", standalone_mode=False, color=_color())
        if sys.stdout is not None:
            sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except AssayError as error:
        _tell(error)
        return 2
    except SystemExit:
        # Click's way out when the reader has gone away: it replaces standard output and exits with 1.
        if sys.stdout is output:
            raise
        _let_go_of_output()
        return 0
    except OSError as error:
        if error.errno == errno.EPIPE:
            _let_go_of_output()
            return 0
        if error.errno != errno.ENOSPC:
            raise
        _let_go_of_output()
        click.echo(f"Error: The output cannot be written: {error.strerror}.", err=True)
        return 2
    return answer if isinstance(answer, int) else 0


def _let_go_of_output() -> None:
    """What is still to be written at exit would fail as well."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]


def _color() -> bool | None:
    """None leaves it to click, which colours terminals only."""
    return False if os.environ.get("NO_COLOR") else None


def _tell(error: AssayError) -> None:
    if isinstance(error, SpecError) and len(error.mistakes) > 1:
        heading = click.style(f"{len(error.mistakes)} mistakes:", fg="red") + "\n"
    else:
        heading = click.style("Error: ", fg="red")
    click.echo(heading + str(error), err=True, color=_color())


if __name__ == "__main__":
    main()
