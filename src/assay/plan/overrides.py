"""Which experiments or agents a `--set` or `--sweep` reaches.

`KEY` reaches every experiment of a spec that has such a param, `EXPERIMENT.KEY` one of them, `agent.KEY` means an
option of the agent under test. In a suite, `KEY` and `agent.KEY` reach every agent, `AGENT.KEY` one of them. After its
agent, a key may reach into a mapping: `AGENT.headers.X-Team`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import AssayError, Mistake, PlanError, SpecError, did_you_mean, format_unknown_name
from assay.model import AgentUse
from assay.plugin import lookup
from assay.plugin.params import list_params, param_model
from assay.spec.read import REQUEST, EntryChanges, LocatedEntry, OwnChanges, Spec

SECTIONS = ("params", "sweep")
_AGENT = "agent"


def assign_overrides(spec: Spec, changes: Mapping[str, Any], agents: Iterable[str]) -> OwnChanges:
    """The part of `params` and `sweep` in the request that is meant for each experiment, by its place in the spec.

    SpecError names every key that no experiment has, and every key that is ambiguous.
    """
    # Every experiment that has the param is reached: in a spec of five variants of one function, `--set size=10` is meant for
    # all of them.
    targets = [_target(located, spec.folder) for located in spec.entries]
    own: dict[int, dict[str, Any]] = {target.index: {} for target in targets}
    mistakes: list[Mistake] = []
    for section in SECTIONS:
        for key, value in changes.get(section, {}).items():
            try:
                name, reached = _find_targets(key, targets, {_AGENT, *agents})
            except PlanError as error:
                mistakes.append(Mistake(REQUEST, None, section, str(error)))
                continue
            for target in reached:
                own[target.index].setdefault(section, {})[name] = value
    if mistakes:
        raise SpecError([*spec.mistakes, *mistakes])
    return {
        target.index: EntryChanges(own[target.index], target.find_replaced(own[target.index]))
        for target in targets
    }


@dataclass(frozen=True, slots=True)
class _Target:
    """An experiment of a spec: the names that it goes by, and its params; None where any name is taken."""

    index: int
    names: frozenset[str]
    params: frozenset[str] | None
    written: frozenset[str]
    """The params and axes that the spec gives it."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Names under which it takes lists of values of a param, each with that param."""

    def has(self, param: str) -> bool:
        return self.params is None or param in self.params

    def find_replaced(self, own: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
        """What the spec gives of the same params, where either of them uses a name for lists."""
        given = {name for section in own.values() for name in section}
        params = {self.lists.get(name, name) for name in given}
        return frozenset(
            name
            for name in self.written
            if self.lists.get(name, name) in params and (name in self.lists or name not in given)
        )


def _target(located: LocatedEntry, folder: Path) -> _Target:
    """An experiment may be named as written, by the part after the file or module, or by its slug."""
    written, prefix = located.entry.experiment, located.origin.prefix
    index = int(prefix[1]) if prefix else 0
    given = frozenset((*located.entry.params, *located.entry.sweep))
    names = {written, written.split("::")[-1], written.rpartition(":")[-1]}
    file, separator, name = written.partition("::")
    reference = f"{(folder / file).resolve()}::{name}" if separator else written
    try:
        member = lookup.find("experiments", reference)
        model, lists = param_model(member), list_params(member)
    except AssayError:  # Planning reports what is wrong with it.
        return _Target(index, frozenset(names), None, given)
    names.add(str(getattr(member, "slug", None) or written))
    is_open = model.model_config.get("extra") == "allow"
    params = None if is_open else frozenset({*model.model_fields, *lists})
    return _Target(index, frozenset(names), params, given, lists)


def _find_targets(key: str, targets: Sequence[_Target], agents: set[str]) -> tuple[str, list[_Target]]:
    """The param that a key names, and the experiments it is meant for."""
    # The longest name that fits: experiment `cache` and experiment `cache.lru` may both be in one spec.
    experiments = {name for target in targets for name in target.names}
    scopes = sorted((name for name in experiments if key.startswith(f"{name}.")), key=len)
    if scopes:
        scope = scopes[-1]
        if scope in agents:
            raise PlanError(
                f"'{key}' is ambiguous: '{scope}' is the name of an experiment and of an agent. Rename one of them."
            )
        return key.removeprefix(f"{scope}."), [target for target in targets if scope in target.names]
    if (agent := key.partition(".")[0]) in agents - {_AGENT}:
        raise PlanError(
            f"'{key}' names the agent '{agent}', but --set reaches only the params of an experiment here. "
            "Change the option where the agent is defined."
        )
    name = key.removeprefix(f"{_AGENT}.")
    reached = [target for target in targets if target.has(name)]
    if not reached and len(targets) == 1 and "." not in name:
        # Planning says which params the only experiment has instead.
        return name, list(targets)
    if not reached and targets:
        raise PlanError(_unknown(name, targets))
    return name, reached


def _unknown(name: str, targets: Sequence[_Target]) -> str:
    """The message for a key that reaches nothing: the experiments that there are, or their params."""
    scope, dot, _ = name.partition(".")
    if dot:
        return format_unknown_name(
            scope, "experiments of this spec", {name for target in targets for name in target.names}
        )
    known = {param for target in targets for param in target.params or ()}
    has = "; ".join(
        f"{min(target.names, key=len)} has {', '.join(sorted(target.params or ())) or 'none'}"
        for target in targets
    )
    return f"No experiment has a param '{name}': {has}. {did_you_mean(name, known)}".strip()


def options_for(use: AgentUse, agents: Sequence[AgentUse], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are meant for one of the agents of a suite; PlanError for a name that no agent has."""
    options: dict[str, Any] = {}
    # The longest name first: one agent may be called like the beginning of another.
    names = sorted({agent.name for agent in agents}, key=len, reverse=True)
    for key, value in given.items():
        scope = next((name for name in names if key.startswith(f"{name}.")), None)
        option = key.removeprefix(f"{scope}.") if scope is not None else key.removeprefix(f"{_AGENT}.")
        if scope is None and "." in key and not key.startswith(f"{_AGENT}."):
            raise PlanError(format_unknown_name(option.partition(".")[0], "agents of this run", names))
        if scope in (None, use.name):
            options[option] = value
    return options
