"""Entry point: the commands, the exit codes, and the one place where the user's mistakes are caught.

Exit codes: 0 fine · 1 found (a trial without one ok execution, a regression) · 2 the request could not be done ·
3 an internal error, which says nothing about what was measured.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
import threading
from importlib import import_module
from typing import Any, NoReturn

import click

from assay import __version__
from assay.cli.crash import ThreadWatch, describe_os_error, is_fault_of_system, report_crash
from assay.cli.output import discard, echo, prepare_streams, style_text, use_color
from assay.errors import AssayError, SpecError, did_you_mean
from assay.plugin.import_check import check_imports

COMMANDS = {
    "init": "Create a sample project with a suite, agents and a CI workflow.",
    "list": "List agents, scorers, experiments, specs, runs and plug-ins.",
    "validate": "Check suite, spec and agent files without running them.",
    "run": "Run a suite, a spec, a Python file or an experiment.",
    "show": "Show a run: results with intervals, warnings, environment.",
    "report": "Write a run as HTML, Markdown, JSON, CSV, PNG or JUnit.",
    "team": "Measure speedup and contention of agents working in parallel.",
    "compare": "Compare runs or agents: is B better than A, or is it noise?",
    "power": "Estimate how many cases or processes are needed to detect an effect.",
    "noise": "Measure run-to-run noise (an A/A run).",
    "load": "Load-test a server or an agent.",
    "stress": "Stress-test an agent in eight scenarios; score its resilience.",
    "profile": "Profile an agent: phases, bottlenecks, tokens, and what could be saved.",
    "sim-llm": "Run a simulated LLM server with known timing, faults and skill.",
    "leaderboard": "Rank agents; agents that do not differ significantly share a rank.",
    "matrix": "Show every agent on every dimension, and head to head.",
    "serve": "Serve the dashboard and the REST API of this project.",
    "key": "Create, list and revoke keys of the server.",
    "workspace": "Create and list workspaces of a database.",
    "cost": "Show what agents cost, which are worth it, and where to save.",
    "rescore": "Score stored outputs again without running any agent.",
    "label": "Label answers as pass or fail, to check the scorers.",
    "agent": "Register and list agents.",
    "suite": "Register, list, show or check suites.",
    "runs": "List, tag or delete stored runs.",
    "baseline": "Name a run to compare later runs with.",
    "gate": "Check a run against a baseline; exit 1 if it got worse.",
    "detect": "Find change points in a series of numbers.",
    "regressions": "Find what got worse in an agent's history, and since when.",
    "plugin": "Write a plug-in: a package with code, entry point and tests.",
    "schema": "Print the JSON schema of a file format, for editors.",
    "db": "Manage the database: info, upgrade, prune, export, copy.",
    "doctor": "Check this machine: versions, extras, database, noise, clock.",
    "record": "Run a program and record its LLM calls in a cassette.",
    "replay": "Run a program and answer its LLM calls from a cassette.",
    "completion": "Print shell completion for bash, zsh or fish.",
}
"""Each is the function of its name in the module of its name, except where `_ELSEWHERE` says another place."""
_ELSEWHERE = {"list": "list:list_", "replay": "record:replay"}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    The help text of the group comes from `COMMANDS`, so that `assay --help` imports no command at all.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one command that was called, and nothing of the others."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module, _, function = _ELSEWHERE.get(name, f"{name}:{name}").partition(":")
        command: click.Command = getattr(import_module(f"assay.cli.{module}"), function)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command, with a message of our own for one that does not exist."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS) or "See: assay --help"
            raise click.UsageError(f"There is no command '{args[0]}'. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="assay")
def assay() -> None:
    """Benchmark AI agents and code, and tell real differences from noise.

    Start here: assay init my-project
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command of `arguments`, or of the command line, and exit with its code."""
    # Loading modules makes objects that stay; looking for garbage among them costs a fifth of the start. A run that loads
    # everything and measures little makes about 150,000, so it ends before Python looks for the first time.
    gc.set_threshold(200_000, 20, 20)
    # Nor is it worth looking when the process ends.
    atexit.register(gc.freeze)
    prepare_streams()
    check_imports()
    code = _exit_code(arguments)
    _flush()
    if arguments is None and threading.active_count() == 1:
        _end_process(code)
    sys.exit(code)


def _end_process(code: int) -> NoReturn:
    """End without taking every module and object apart, which takes 9 ms after a run.

    Functions that were registered for the end are called. A process with other threads ends Python's way: it waits for them.
    """
    atexit._run_exitfuncs()
    _flush()
    os._exit(code)


def _flush() -> None:
    """Flush here and not at exit, where Python would print a traceback for a pipe that is closed and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            discard(stream)


def _exit_code(arguments: list[str] | None) -> int:
    """Run the command, and turn each kind of error into a message and an exit code. No other place does this."""
    # The order of the clauses matters: click's errors and ours are the user's, an OSError may be either, and whatever is left
    # is a bug. SystemExit is caught because code that the user loads may call sys.exit, which would look like success.
    threads = ThreadWatch()
    try:
        with threads:
            answer = _run(arguments)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        echo(text.getvalue().rstrip("\n"), err=True)
        return 2
    except AssayError as error:
        return _refuse(error)
    except OSError as error:
        # `assay runs list | head` closes the pipe when it has seen enough. That is no error of anybody.
        if error.errno == errno.EPIPE:
            discard(sys.__stdout__)
            return 0
        if not is_fault_of_system(error):
            return report_crash(error, arguments)
        return _refuse(AssayError(describe_os_error(error)))
    except SystemExit as end:
        return _refuse(AssayError(f"Imported code called sys.exit({end.code!r})."))
    except BaseException as error:
        return report_crash(error, arguments)
    return report_crash(threads.error, arguments) if threads.error is not None else answer


def _run(arguments: list[str] | None) -> int:
    """Run the command with click. A command returns its exit code, or None for 0."""
    output = sys.stdout
    try:
        answer = assay.main(args=arguments, prog_name="assay", standalone_mode=False, color=use_color())
        sys.stdout.flush()
    except SystemExit:
        # Click's way out when the reader has gone away: it replaces standard output and exits with 1. Code that the user loaded
        # may exit as well, and leaves standard output as it was; that is not caught here.
        if sys.stdout is output:
            raise
        discard(sys.__stdout__)
        return 0
    return answer if isinstance(answer, int) else 0


def _refuse(error: AssayError) -> int:
    """Print what the user has to put right; the exit code is 2.

    Several mistakes are counted and listed, one below the other.
    """
    if isinstance(error, SpecError) and len(error.mistakes) > 1:
        echo(style_text(f"{len(error.mistakes)} mistakes:", fg="red"), f"\n{error}", err=True)
    else:
        echo(style_text("Error: ", fg="red"), str(error), err=True)
    return 2


if __name__ == "__main__":
    main()
