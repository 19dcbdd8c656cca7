"""Checks the treatment: whether each arm of a sweep or comparison really ran with the settings it was given.

An experiment or agent may report the settings that it applied. If a setting was ignored, or two arms that were meant to
differ report the same settings, a comparison of them would be about nothing, so it is refused or doubted. Params and settings may
be lists and mappings; `same_value` makes them comparable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping

from assay.model import TrialReport
from assay.plugin.experiment import has_trait
from assay.plugin.finding import finding_class

Arms = tuple[TrialReport, ...]

_YES = frozenset({"true", "on", "yes", "1"})
_NO = frozenset({"false", "off", "no", "0"})


def read_back(trial: TrialReport) -> Mapping[str, object]:
    """The settings that the thing under test reported as applied, without the mark of a simulation, which is no setting."""
    return {name: value for name, value in trial.applied.items() if name != "simulated"}


def select_compared_params(trial: TrialReport) -> Mapping[str, object]:
    """The params by which trials are matched and compared; a finding leaves out what says nothing about the work, such as an address.

    The agent that an experiment tests is told apart by its name, as everywhere, and not by its definition.
    """
    experiment, params = trial.stored.trial.experiment, trial.stored.trial.params
    member = finding_class(experiment)
    if member is not None:
        return member.compared_params(params)
    if "agent" in params and has_trait(experiment, "params_of"):
        return {name: value for name, value in params.items() if name != "agent"}
    return params


def settings_not_taken(trial: TrialReport) -> list[str]:
    """Params that were ignored: the thing under test reports another value. Each is a sentence; None requests nothing."""
    applied = read_back(trial)
    return [
        f"The setting '{name}' was ignored: '{value}' was requested, but '{applied[name]}' is in effect."
        for name, value in _build_asked_params(trial).items()
        if value is not None and applied.get(name) is not None and not _agree(value, applied[name])
    ]


def settings_not_told(trial: TrialReport) -> list[str]:
    """Params that were requested, but the thing under test does not say whether they are in effect."""
    applied = read_back(trial)
    return [
        name
        for name, value in _build_asked_params(trial).items()
        if value is not None and name in applied and applied[name] is None
    ]


def _build_asked_params(trial: TrialReport) -> Mapping[str, object]:
    """The requested params, by the names under which they are read back: for a team, the options of its agents."""
    member = finding_class(trial.stored.trial.experiment)
    params = select_compared_params(trial)
    return params if member is None else member.asked_settings(params)


def identical_arms(trials: Iterable[TrialReport]) -> list[Arms]:
    """Groups of arms that were meant to differ but report the same settings.

    An axis may leave its trace under other names (a profile shows in the options that it sets) or leave none (a number of
    records). So arms count as identical when no trace differs in the whole sweep, or when along one axis that does leave
    traces some arms share theirs.
    """
    # An arm that only failed has reported nothing that could tell it from others.
    shown = [trial for trial in trials if trial.ok or not trial.failures]
    arms = [trial for trial in shown if trial.stored.trial.axes and _trace(trial) != same_value({})]
    benchmarks = _group_by(arms, lambda arm: arm.stored.trial.benchmark)
    return [group for benchmark in benchmarks for group in _find_identical(benchmark)]


def treatment_failure(a: TrialReport, b: TrialReport) -> str:
    """Why two arms cannot be compared, as a sentence; empty if they can."""
    for trial in (a, b):
        if wrong := settings_not_taken(trial):
            return f"{trial.name}: {wrong[0]}"
    differing, first, second = differing_params(a, b), read_back(a), read_back(b)
    told_apart = not first or not differing or any(name in first for name in differing)
    if told_apart or same_value(dict(first)) != same_value(dict(second)):
        return ""
    return f"The arms are identical: {alike_but_for(a, b)}"


def describe_redefinition(a: TrialReport, b: TrialReport) -> str:
    """Why two trials were not asked the same, as a sentence; empty if they were, or if that is unknown."""
    if not (a.definition and b.definition) or a.definition == b.definition:
        return ""
    first, second = (trial.stored.trial for trial in (a, b))
    if (first.suite, first.benchmark) != (second.suite, second.benchmark):
        return (
            f"A was asked '{first.benchmark}' of suite '{first.suite}', B '{second.benchmark}' of suite '{second.suite}': "
            "cases with the same name may be different questions."
        )
    return (
        f"The benchmark '{second.benchmark}' was changed between A and B (definition {a.definition[:8]}, then "
        f"{b.definition[:8]}): a case may no longer be the same question. Run both with the suite as it is now."
    )


def alike_but_for(a: TrialReport, b: TrialReport) -> str:
    names = ", ".join(f"'{name}'" for name in differing_params(a, b))
    settings = ", ".join(f"{name} = {value}" for name, value in read_back(a).items())
    return f"they should differ in {names}, but both report {settings}."


def differing_params(a: TrialReport, b: TrialReport) -> list[str]:
    first, second = _build_asked_params(a), _build_asked_params(b)
    names = dict.fromkeys([*first, *second])
    return [name for name in names if same_value(first.get(name)) != same_value(second.get(name))]


def _find_identical(arms: Arms) -> list[Arms]:
    """The groups of identical arms among those of one benchmark; see `identical_arms`."""
    if len(_group_by(arms, _trace)) == 1:
        return [arms] if len(_group_by(arms, _unread)) > 1 else []
    axes = dict.fromkeys(axis for arm in arms for axis in arm.stored.trial.axes if not _is_read(axis, arm))
    identical: list[Arms] = []
    for axis in axes:

        def other_axes(arm: TrialReport, axis: str = axis) -> str:
            return same_value({name: value for name, value in arm.stored.trial.axes.items() if name != axis})

        # A line has the arms that differ in this axis alone. They are identical where they share a trace although the
        # axis leaves different traces on this line.
        lines = [_group_by(line, _trace) for line in _group_by(arms, other_axes)]
        identical += [
            group for line in lines if len(line) > 1 for group in line if len(_group_by(group, _unread)) > 1
        ]
    return identical


def _group_by(arms: Iterable[TrialReport], key: Callable[[TrialReport], str]) -> list[Arms]:
    groups: dict[str, Arms] = {}
    for arm in arms:
        groups[key(arm)] = (*groups.get(key(arm), ()), arm)
    return list(groups.values())


def _trace(arm: TrialReport) -> str:
    """What was read back under other names than those of the axes."""
    axes = arm.stored.trial.axes
    return same_value(
        {
            name: value
            for name, value in read_back(arm).items()
            if not any(_is_name_of(axis, name) for axis in axes)
        }
    )


def _unread(arm: TrialReport) -> str:
    """The axes that were not read back under their own names."""
    return same_value(
        {axis: value for axis, value in arm.stored.trial.axes.items() if not _is_read(axis, arm)}
    )


def _is_read(axis: str, arm: TrialReport) -> bool:
    return any(_is_name_of(axis, name) for name in read_back(arm))


def _is_name_of(axis: str, name: str) -> bool:
    """An axis of a team is read back for each of its agents, with the agent's name before it.

    >>> _is_name_of("num_ctx", "insight.num_ctx"), _is_name_of("num_ctx", "insight.top_k")
    (True, False)
    """
    return axis == name or ("." in name and axis.rpartition(".")[2] == name.rpartition(".")[2])


def _agree(asked: object, read: object) -> bool:
    """Whether two values are the same setting; upper case, '1' for 1 and 'on' for True make no difference."""
    if same_value(asked) == same_value(read):
        return True
    first, second = _plain(asked), _plain(read)
    if first == second or {first, second} <= _YES or {first, second} <= _NO:
        return True
    try:
        return math.isclose(float(first), float(second), rel_tol=1e-9)
    except ValueError:
        return False


def _plain(value: object) -> str:
    return str(value).strip().casefold()


def same_value(value: object) -> str:
    """A text that is equal for equal values, so that it can be a key; the order of mappings does not matter.

    >>> same_value({"b": 1, "a": [2]}) == same_value({"a": [2], "b": 1})
    True
    """
    return json.dumps(value, sort_keys=True, default=str)
