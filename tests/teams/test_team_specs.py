"""Team files: what they are planned as, and what is wrong with them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.teams.teams import LOCAL, local_team
from tests.wording import Wording

from assay.execute.jobs import Assignment, jobs
from assay.model import Plan
from assay.plan.target import Registry, RunRequest, plan_target
from assay.spec.files import builtin_teams
from assay.spec.settings import Settings


def planned(target: str | Path, **changes: object) -> Plan:
    return plan_target(RunRequest(str(target), changes), Settings(Path.cwd(), "sqlite://"), Registry())


def agents_of(plan: Plan) -> list[dict[str, Any]]:
    agents: Any = plan.trials[0].params["agents"]
    return list(agents)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents.py").write_text(LOCAL)
    return tmp_path


def written(folder: Path, **keys: object) -> Path:
    path = folder / "team.json"
    path.write_text(local_team(**keys))
    return path


def test_a_team_is_two_trials_a_point_one_for_each_leg(folder: Path) -> None:
    plan = planned(written(folder))
    assert [trial.name for trial in plan.trials] == ["pair[leg=sequential]", "pair[leg=concurrent]"]
    assert [trial.processes for trial in plan.trials] == [3, 3]
    assert plan.trials[0].params["permits"] == 2


def test_options_with_a_name_are_for_that_agent_and_others_for_all() -> None:
    plan = planned("chimera_homo", params={"num_ctx": 2048, "insight.temperature": 1.0})
    collector, insight = agents_of(plan)
    assert collector["options"]["params"]["num_ctx"] == insight["options"]["params"]["num_ctx"] == 2048
    assert (collector["options"]["params"]["temperature"], insight["options"]["params"]["temperature"]) == (
        0.8,
        1.0,
    )


def test_cases_go_to_the_agents_that_they_name(folder: Path) -> None:
    cases = [{"id": "a", "input": "A", "agent": "first"}, {"id": "b", "input": "B"}]
    agents = agents_of(planned(written(folder, cases=cases)))
    asked = {agent["name"]: [case["id"] for case in agent["cases"]] for agent in agents}
    assert asked == {"first": ["a", "b"], "second": ["b"]}


def test_the_same_agent_twice_is_two_agents(folder: Path) -> None:
    own = {"name": "one", "type": "python", "target": "agents.py:answer"}
    agents = agents_of(planned(written(folder, agents=[own, "one", "one"])))
    assert [agent["name"] for agent in agents] == ["one#1", "one#2", "one#3"]


def test_the_legs_of_a_pair_run_next_to_each_other_in_an_order_drawn_by_the_seed(folder: Path) -> None:
    path = written(folder, iterations={"measured": 40}, sweep={"timeout": [1, 2]}, agents=[
        {"name": name, "type": "http", "url": "http://127.0.0.1:1/ask"} for name in ("first", "second")
    ])  # fmt: skip
    plan = planned(path)
    folders = {trial.index: str(folder) for trial in plan.trials}
    order = [(job.trial, job.process) for job in jobs(Assignment(plan, "r", folders, {}), set())]
    assert order == [(job.trial, job.process) for job in jobs(Assignment(plan, "r", folders, {}), set())]
    firsts = set()
    for one, two in zip(order[::2], order[1::2], strict=True):
        assert one[1] == two[1]
        assert {one[0] // 2} == {two[0] // 2}
        firsts.add(one[0] % 2)
    assert firsts == {0, 1}
    assert sorted(order) == sorted((trial, process) for trial in range(4) for process in range(40))


def test_other_plans_are_drawn_as_before() -> None:
    """Grouping legs must not change the order of runs that have none: seeds are promises."""
    from assay.execute.jobs import _side_by_side

    plan = planned("pragma_profile_sweep")
    chance, again = random.Random(7), random.Random(7)
    groups = _side_by_side(plan.trials)
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    again.shuffle([*plan.trials])
    assert chance.random() == again.random()


def test_the_sweep_of_seed_002_has_thirty_configurations_in_three_phases() -> None:
    plan = planned("team_sweep")
    points: dict[str, set[str]] = {}
    for trial in plan.trials:
        points.setdefault(trial.benchmark, set()).add(
            str({k: v for k, v in trial.axes.items() if k != "leg"})
        )
    phases = {
        phase: sum(len(found) for name, found in points.items() if name.startswith(phase))
        for phase in ("phase1", "phase2", "phase3")
    }
    assert phases == {"phase1": 18, "phase2": 9, "phase3": 3}
    assert all(trial.processes == 5 for trial in plan.trials)


@pytest.mark.parametrize("name", sorted(builtin_teams()))
def test_a_shipped_team_can_be_planned(name: str) -> None:
    plan = planned(name)
    assert {trial.axes["leg"] for trial in plan.trials} == {"sequential", "concurrent"}
    assert len(agents_of(plan)) == 2


def test_the_runtimes_are_four_of_the_same_client() -> None:
    assert {trial.axes["runtime"] for trial in planned("runtimes").trials} == {
        "asyncio",
        "uvloop",
        "threads",
        "compiled",
    }


MISTAKES = {
    "an unknown key": ("permit: 1", "permit: is an unknown key. Did you mean 'permits'?", 5),
    "too many permits": ("permits: 3", "permits: is 3, but the team has only 2 agents.", 5),
    "no permits": ("permits: 0", "permits: ", 5),
    "an option of nobody": ("params: {secnd.model: m}", "params.secnd.model: There is no agent 'secnd' in this team. Did you mean 'second'?", 5),
    "an axis without values": ("sweep: {num_ctx: []}", "sweep.num_ctx: has no values.", 5),
    "text for a number": ("iterations: {measured: many}", "iterations.measured: ", 5),
}  # fmt: skip


@pytest.mark.parametrize("which", MISTAKES)
def test_a_mistake_is_reported_with_file_line_and_key(assay_inline: AssayInline, which: str) -> None:
    line, told, number = MISTAKES[which]
    assay_inline.write(
        "team.yaml",
        "team: pair\n"
        "agents:\n"
        "  - {name: first, type: nop}\n"
        "  - {name: second, type: nop}\n"
        f"{line}\n"
        "cases: [{input: A}]\n",
    )
    refusal = assay_inline("team", "team.yaml").refusal
    assert f"team.yaml:{number}: {told}" in refusal


def test_every_mistake_is_reported_at_once(assay_inline: AssayInline) -> None:
    assay_inline.write("prompts.jsonl", '{"input": "A"}\n{"input": "B", "agent": "thrid"}\nnonsense\n')
    assay_inline.write(
        "team.yaml",
        "team: pair\nagents: [first, {name: second, type: nop, answer: 1}]\ncases: prompts.jsonl\npermits: 9\n",
    )
    refusal = assay_inline("team", "team.yaml").refusal
    for told in (
        "Unknown agent 'first'",
        "'answer' is not an option of 'nop'",
        "prompts.jsonl:2: agent: There is no agent 'thrid' in this team.",
        "prompts.jsonl:3: is not JSON",
        "permits: is 9, but the team has only ",
    ):
        assert told in refusal


def test_a_team_of_one_and_a_file_that_is_none_are_refused(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write("one.yaml", "team: one\nagents: [nop]\ncases: [{input: A}]\n")
    alone = assay_inline("team", "one.yaml").refusal
    assert "one.yaml:2: agents:" in alone
    experiment = assay_inline("team", "noop").refusal
    assert "'noop'" in experiment
    assert "assay run noop" in experiment
    useless = assay_inline("run", "chimera_homo", "--agent", "nop").refusal
    assert "--agent" in useless
    for refusal in (alone, experiment, useless):
        wording(refusal)


def test_an_agent_that_cannot_be_made_is_reported_before_anything_runs(
    assay_inline: AssayInline, wording: Wording
) -> None:
    assay_inline.write(
        "team.yaml",
        "team: pair\nagents: [nop, {name: b, type: openai, model: m, base_url: '${NOWHERE}'}]\ncases: [{input: A}]\n",
    )
    refusal = assay_inline("team", "team.yaml").refusal
    assert "'NOWHERE'" in refusal
    wording(refusal)
    assert assay_inline("runs", "list", "--json").json == []


def test_validate_checks_team_files_and_lists_name_them(assay_inline: AssayInline) -> None:
    assay_inline.write("team.yaml", "team: pair\nagents: [nop, nop]\ncases: [{input: A}]\n")
    assert "valid, 2 trials" in assay_inline("validate", "team.yaml").out
    names = {entry["name"] for entry in assay_inline("list", "teams", "--json").json}
    assert {"baseline_vs_chimera", "chimera_hetero", "chimera_homo", "team_sweep", "runtimes"} <= names


def test_editors_get_a_schema_that_takes_what_ships(assay_inline: AssayInline) -> None:
    from jsonschema import Draft202012Validator

    from assay.spec.document import read_document

    validator = Draft202012Validator(assay_inline("schema", "team").json)
    for path in builtin_teams().values():
        assert [error.message for error in validator.iter_errors(read_document(path).value)] == []
    assert list(validator.iter_errors({"team": "pair", "agents": [], "cases": [], "permit": 1}))


def test_values_that_are_the_same_are_one_point(folder: Path) -> None:
    fixed = planned("team_sweep", params={"num_gpu": 60})
    points = [(trial.benchmark, str(trial.axes)) for trial in fixed.trials]
    assert 2 < len(points) == len(set(points)) < 60
