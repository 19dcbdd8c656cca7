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
from assay.plugin.experiment import find_trait, has_trait
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


def find_ignored_settings(trial: TrialReport) -> list[str]:
    """Params that were ignored: the thing under test reports a different value. Each is a sentence; None requests nothing."""
    applied = read_back(trial)
    return [
        f"The setting '{name}' was ignored: '{value}' was requested, but '{applied[name]}' is in effect."
        for name, value in _build_asked_params(trial).items()
        if value is not None and applied.get(name) is not None and not _agree(value, applied[name])
    ]


def find_unreported_settings(trial: TrialReport) -> list[str]:
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


def find_identical_arms(trials: Iterable[TrialReport]) -> list[Arms]:
    """Groups of arms that were meant to differ but report the same settings.

    An axis may leave its trace under other names (a profile shows in the options that it sets) or leave none (a number of
    records). So arms count as identical when no trace differs in the whole sweep, or when along one axis that does leave
    traces some arms share theirs. An axis that was read back under its own name is judged by that, and one that says how much
    work there is, or which agent does it, is no treatment.
    """
    # An arm that only failed has reported nothing that could tell it from others.
    usable = [trial for trial in trials if trial.ok or not trial.failures]
    arms = [trial for trial in usable if trial.stored.trial.axes and _trace(trial) != same_value({})]
    benchmarks = _group_by(arms, lambda arm: arm.stored.trial.benchmark)
    return [group for benchmark in benchmarks for group in _find_identical(benchmark)]


def find_twin(arms: Arms) -> TrialReport:
    """Find the identical arm that shows best what should have distinguished it from the first: it differs in little else."""
    first, unread = arms[0], _find_unread(arms)
    others = [arm for arm in arms if _values(arm, unread) != _values(first, unread)]
    return min(others, key=lambda arm: len(differing_params(first, arm)))


def describe_incomparable_arms(a: TrialReport, b: TrialReport) -> str:
    """Why two arms cannot be compared, as a sentence; empty if they can."""
    for trial in (a, b):
        if wrong := find_ignored_settings(trial):
            return f"{trial.name}: {wrong[0]}"
    differing = differing_params(a, b)
    if not differing:
        return ""
    known = {name for trial in (a, b) for name in read_back(trial)} | _no_treatments(a) | _no_treatments(b)
    told_apart = any(_is_name_of(name, known_name) for name in differing for known_name in known)
    if told_apart or _trace(a) == same_value({}) or _trace(a) != _trace(b):
        return ""
    return f"The arms are identical: {alike_but_for(a, b)}"


def describe_redefinition(a: TrialReport, b: TrialReport) -> str:
    """Why two trials were not asked the same, as a sentence; empty if they were, or if that is unknown."""
    if not (a.definition and b.definition) or a.definition == b.definition:
        return ""
    first, second = (trial.stored.trial for trial in (a, b))
    if (first.suite, first.benchmark) != (second.suite, second.benchmark):
        return (
            f"A ran '{first.benchmark}' of suite '{first.suite}', B '{second.benchmark}' of suite '{second.suite}': "
            "cases with the same name may be different questions."
        )
    return (
        f"The benchmark '{second.benchmark}' was changed between A and B (definition {a.definition[:8]}, then "
        f"{b.definition[:8]}): a case may no longer be the same question. Run both with the current suite."
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
    """The groups of identical arms among those of one benchmark; see `find_identical_arms`."""
    unread = _find_unread(arms)
    if len(_group_by(arms, _trace)) == 1:
        return [arms] if _is_meant_to_differ(arms, unread) else []
    identical: list[Arms] = []
    for axis in unread:

        def other_axes(arm: TrialReport, axis: str = axis) -> str:
            return same_value({name: value for name, value in arm.stored.trial.axes.items() if name != axis})

        # A line has the arms that differ in this axis alone. They are identical where they share a trace although the
        # axis leaves different traces on this line.
        lines = [_group_by(line, _trace) for line in _group_by(arms, other_axes)]
        identical += [
            group for line in lines if len(line) > 1 for group in line if _is_meant_to_differ(group, unread)
        ]
    return identical


def _group_by(arms: Iterable[TrialReport], key: Callable[[TrialReport], str]) -> list[Arms]:
    groups: dict[str, Arms] = {}
    for arm in arms:
        groups[key(arm)] = (*groups.get(key(arm), ()), arm)
    return list(groups.values())


def _trace(arm: TrialReport) -> str:
    """What was read back that no axis or param asked for by name, without facts: only that can tell what a setting did."""
    trial = arm.stored.trial
    requested = {
        *trial.axes,
        *(name for name, value in _build_asked_params(arm).items() if value is not None),
    }
    facts = find_trait(trial.experiment, "facts", ())
    return same_value(
        {
            name: value
            for name, value in read_back(arm).items()
            if name not in facts and not any(_is_name_of(asked_name, name) for asked_name in requested)
        }
    )


def _find_unread(arms: Arms) -> list[str]:
    """The axes that are treatments, and that no arm reports under their own names."""
    reported = {name for arm in arms for name in read_back(arm)}
    no_treatments = {name for arm in arms for name in _no_treatments(arm)}
    axes = dict.fromkeys(axis for arm in arms for axis in arm.stored.trial.axes)
    return [
        axis for axis in axes if axis not in no_treatments and not any(_is_name_of(axis, n) for n in reported)
    ]


def _no_treatments(arm: TrialReport) -> set[str]:
    """Params that say how much work there is or which agent does it: arms that differ in them are never the same."""
    experiment = arm.stored.trial.experiment
    agent = {"agent"} if has_trait(experiment, "params_of") else set()
    return {*find_trait(experiment, "workload_params", ()), *agent}


def _is_meant_to_differ(arms: Arms, axes: list[str]) -> bool:
    return len({_values(arm, axes) for arm in arms}) > 1


def _values(arm: TrialReport, axes: list[str]) -> str:
    return same_value({axis: arm.stored.trial.axes.get(axis) for axis in axes})


def _is_name_of(axis: str, name: str) -> bool:
    """An axis of a team is read back for each of its agents, with the agent's name before it.

    >>> _is_name_of("num_ctx", "insight.num_ctx"), _is_name_of("num_ctx", "insight.top_k")
    (True, False)
    """
    return axis == name or ("." in name and axis.rpartition(".")[2] == name.rpartition(".")[2])


def _agree(requested: object, reported: object) -> bool:
    """Whether two values are the same setting; upper case, '1' for 1 and 'on' for True make no difference."""
    if same_value(requested) == same_value(reported):
        return True
    first, second = _plain(requested), _plain(reported)
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
