"""The treatment is checked: what each arm read back against what it was to be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from assay.analysis.same import same_value
from assay.model import TrialReport
from assay.model.team import options_asked

Arms = tuple[TrialReport, ...]

_YES = frozenset({"true", "on", "yes", "1"})
_NO = frozenset({"false", "off", "no", "0"})


def read_back(trial: TrialReport) -> Mapping[str, object]:
    """Settings that the thing under test reported; that it is a simulation is none of them."""
    return {name: value for name, value in trial.applied.items() if name != "simulated"}


def compared_params(trial: TrialReport) -> Mapping[str, object]:
    """What was asked. Of a load not where: an address says nothing about the requests, and a server may get another port."""
    params = trial.stored.trial.params
    if trial.stored.trial.experiment != "load":
        return params
    target = params.get("target")
    if isinstance(target, str) and "://" in target:
        params = {**params, "target": urlsplit(target).path}
    if isinstance(more := params.get("more_targets"), Sequence):
        params = {**params, "more_targets": [urlsplit(str(url)).path for url in more]}
    # Its name is the target; how it is defined, with its address, is what its versions differ in.
    return {name: value for name, value in params.items() if name not in ("agent", "allow_host")}


def settings_not_taken(trial: TrialReport) -> list[str]:
    """Params that the thing under test reports with another value, each as a sentence; None asks for nothing."""
    applied = read_back(trial)
    return [
        f"The setting '{name}' did not take: '{asked}' was asked for, '{applied[name]}' was read back."
        for name, asked in _asked(trial).items()
        if asked is not None and applied.get(name) is not None and not _agree(asked, applied[name])
    ]


def settings_not_told(trial: TrialReport) -> list[str]:
    """Params that were asked for and of which the thing under test does not say whether they took."""
    applied = read_back(trial)
    return [
        name
        for name, asked in _asked(trial).items()
        if asked is not None and name in applied and applied[name] is None
    ]


def _asked(trial: TrialReport) -> Mapping[str, object]:
    """Params; those of a team say what its agents are, of which the options can be read back."""
    params = compared_params(trial)
    agents = params.get("agents")
    if trial.stored.trial.experiment != "team" or not isinstance(agents, Sequence):
        return params
    return {**{name: value for name, value in params.items() if name != "agents"}, **options_asked(agents)}


def identical_arms(trials: Iterable[TrialReport]) -> list[Arms]:
    """Groups of arms that were to differ but read back the same.

    An axis may leave its trace under other names (a profile, in the options that it sets) or leave none (a number of
    records). So arms count as identical when no trace differs in the whole sweep, or when along one axis that does leave
    traces some arms share theirs.
    """
    # What only failed has shown nothing that could tell arms apart.
    shown = [trial for trial in trials if trial.ok or not trial.failures]
    arms = [trial for trial in shown if trial.stored.trial.axes and _trace(trial) != same_value({})]
    return [group for benchmark in _grouped(arms, _benchmark) for group in _identical(benchmark)]


def treatment_failure(a: TrialReport, b: TrialReport) -> str:
    """Why two arms cannot be compared, as a sentence; empty when nothing speaks against it."""
    for trial in (a, b):
        if wrong := settings_not_taken(trial):
            return f"{trial.name}: {wrong[0]}"
    differing, first, second = differing_params(a, b), read_back(a), read_back(b)
    told_apart = not first or not differing or any(name in first for name in differing)
    if told_apart or same_value(dict(first)) != same_value(dict(second)):
        return ""
    return f"The arms are identical: {alike_but_for(a, b)}"


def redefined(a: TrialReport, b: TrialReport) -> str:
    """Why what two trials were asked is not the same; empty where it is, or nobody knows."""
    if not (a.definition and b.definition) or a.definition == b.definition:
        return ""
    first, second = (trial.stored.trial for trial in (a, b))
    if (first.suite, first.benchmark) != (second.suite, second.benchmark):
        return (
            f"A was asked '{first.benchmark}' of suite '{first.suite}', B '{second.benchmark}' of suite '{second.suite}': "
            "cases of one name need not be one question."
        )
    return (
        f"The benchmark '{second.benchmark}' was changed between A and B (definition {a.definition[:8]}, then "
        f"{b.definition[:8]}): a case need not be the same question any more. Run both with the suite as it is."
    )


def alike_but_for(a: TrialReport, b: TrialReport) -> str:
    asked = ", ".join(f"'{name}'" for name in differing_params(a, b))
    read = ", ".join(f"{name} = {value}" for name, value in read_back(a).items())
    return f"they were to differ in {asked}, but both read back {read}."


def differing_params(a: TrialReport, b: TrialReport) -> list[str]:
    first, second = _asked(a), _asked(b)
    names = dict.fromkeys([*first, *second])
    return [name for name in names if same_value(first.get(name)) != same_value(second.get(name))]


def _identical(arms: Arms) -> list[Arms]:
    if len(_grouped(arms, _trace)) == 1:
        return [arms] if len(_grouped(arms, _unread)) > 1 else []
    axes = dict.fromkeys(axis for arm in arms for axis in arm.stored.trial.axes if not _is_read(axis, arm))
    return [group for axis in axes for group in _alike_along(axis, arms)]


def _alike_along(axis: str, arms: Arms) -> list[Arms]:
    """Among arms that differ in this axis alone: those that share a trace where the axis leaves different ones."""
    lines = [_grouped(line, _trace) for line in _grouped(arms, lambda arm: _axes_but(axis, arm))]
    return [group for line in lines if len(line) > 1 for group in line if len(_grouped(group, _unread)) > 1]


def _grouped(arms: Iterable[TrialReport], key: Callable[[TrialReport], str]) -> list[Arms]:
    groups: dict[str, Arms] = {}
    for arm in arms:
        groups[key(arm)] = (*groups.get(key(arm), ()), arm)
    return list(groups.values())


def _benchmark(arm: TrialReport) -> str:
    return arm.stored.trial.benchmark


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


def _axes_but(axis: str, arm: TrialReport) -> str:
    return same_value({name: value for name, value in arm.stored.trial.axes.items() if name != axis})


def _agree(asked: object, read: object) -> bool:
    """Leniently: case of letters, '1' for 1 and 'on' for True do not matter."""
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
