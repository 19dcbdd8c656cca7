"""Options that several commands share, and how those of a run become the keys of a spec.

Each command says in its own words what an option does there; name, type and placeholder are the same everywhere. Mistakes in
what was given come back with keys of a spec; `naming_flags` gives them the names of the options.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.session import Command

if TYPE_CHECKING:
    from assay.errors import Mistake

EXECUTOR = "executor."
"""Begins the keys of --set that are settings of the executor."""
_FLAGS = {
    "params": "--set",
    "sweep": "--sweep",
    "iterations.measured": "--repetitions",
    "iterations.warmup": "--warmup",
    "output_dir": "--out",
    "tags": "--label",
    "until": "--until-decided",
}
_COUNT = {"type": click.IntRange(min=1), "metavar": "N"}
_SHARED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "--set": ("settings", {"metavar": "KEY=VALUE", "multiple": True}),
    "--sweep": ("axes", {"metavar": "KEY=V1,V2", "multiple": True}),
    "--repetitions": ("repetitions", _COUNT),
    "--warmup": ("warmup", {"type": click.IntRange(min=0), "metavar": "N"}),
    "--limit": ("limit", _COUNT),
    "--seed": ("seed", {"type": click.IntRange(0, 2**32 - 1), "metavar": "N"}),
    "--load": ("load", {"metavar": "FILE.py", "multiple": True}),
    "--report": ("formats", {"metavar": "FMT,…", "multiple": True}),
    "--out": ("out", {"metavar": "DIR", "type": click.Path(path_type=Path)}),
    "--metric": ("metrics", {"metavar": "M", "multiple": True}),
}
"""Flag to the name of its argument and what else click takes."""


def shared_option(flag: str, help: str, **more: Any) -> Callable[[Command], Command]:
    name, traits = _SHARED[flag]
    return click.option(flag, name, **{**traits, "help": help, **more})


label_option = click.option(
    "--label",
    metavar="TEXT",
    multiple=True,
    help="Label the run; may be repeated. All labels become tags of the run, and the first is its title in lists and reports.",
)
"""Of the commands that make runs."""
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would run, and exit.")
set_option = shared_option("--set", "A param of the experiment, or an option of the agent; may be repeated.")
load_option = shared_option(
    "--load", "Python file whose experiments, agents and scorers can be used by name."
)


def read_changes(options: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a spec that the options stand for."""
    from assay.cli.values import axis, setting, share_of
    from assay.plan.target import build_changes

    tolerance = options.get("tolerance")
    return build_changes(
        {
            **options,
            "params": dict(setting(text) for text in options["settings"] if not text.startswith(EXECUTOR)),
            "sweep": dict(axis(text) for text in options["axes"]),
            "tolerance": None if tolerance is None else share_of(tolerance, "--tolerance") or None,
        }
    )


def read_executor_settings(texts: Sequence[str]) -> dict[str, Any]:
    """What `--set executor.KEY=VALUE` says: settings of the executor, not of what is measured."""
    from assay.cli.values import setting

    return dict(setting(text.removeprefix(EXECUTOR)) for text in texts if text.startswith(EXECUTOR))


def read_formats(options: Mapping[str, Any]) -> list[str]:
    """The formats of --report. An unknown one is an error now, not after an hour of running."""
    from assay.plugin import lookup

    names = [name.strip() for text in options["formats"] for name in text.split(",") if name.strip()]
    for name in names:
        lookup.find("reporters", name)
    return names


@contextlib.contextmanager
def naming_flags(target: str) -> Iterator[None]:
    """Mistakes that come from the command line name the option, or the target, instead of the key of a spec."""
    from assay.errors import SpecError
    from assay.spec.read import REQUEST

    try:
        yield
    except SpecError as error:
        raise SpecError(_name_flag(m, target) if m.file == REQUEST else m for m in error.mistakes) from None


def _name_flag(mistake: Mistake, target: str) -> Mistake:
    """`params.size` becomes `--set: size`; keys without an entry in _FLAGS have an option of the same name."""
    # A mistake about the experiment is one about the target, which is where the user named it.
    top, _, rest = mistake.key.partition(".")
    if top in ("experiment", "experiments"):
        return replace(mistake, file=target, key="")
    if mistake.key in _FLAGS:
        return replace(mistake, file=_FLAGS[mistake.key], key="")
    return replace(mistake, file=_FLAGS.get(top, f"--{top}"), key=rest)
