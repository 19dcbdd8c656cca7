"""Teams that really work: legs, failures, permits, resuming, and the files of a run."""

from __future__ import annotations

import itertools
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay, AssayInline
from tests.execute.carrying import eventually
from tests.execute.running import LONG, Running
from tests.teams.teams import LOCAL, local_team, server_team
from tests.wording import Wording

from assay.simulator import SimOptions, SimServer


def executions(document: dict[str, Any], leg: str) -> list[dict[str, Any]]:
    (trial,) = [trial for trial in document["trials"] if trial["axes"]["leg"] == leg]
    return [one for one in trial["iteration_metrics"] if one["phase"] == "measured"]


def shown(assay: Assay, run: str = "last") -> dict[str, Any]:
    document: dict[str, Any] = assay("show", run, "--json", "--executions").json
    return document


def spans(execution: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """From the first start of each agent to its last end."""
    found: dict[str, tuple[float, float]] = {}
    for stint in execution["output"]["stints"]:
        start, end = found.get(stint["agent"], (stint["start"], stint["end"]))
        found[stint["agent"]] = min(start, stint["start"]), max(end, stint["end"])
    return found


@pytest.fixture
def project(assay: Assay) -> Assay:
    assay.write("agents.py", LOCAL)
    return assay


def test_one_leg_is_one_after_the_other_and_one_is_all_at_once(project: Assay) -> None:
    project.write("team.json", local_team())
    done = project("team", "team.json", "--json")
    assert done.code == 0, done.err
    (team,) = done.json["teams"]
    assert (team["team"], team["at_once"], team["pairs"]) == ("pair", 2, 3)
    assert team["simulated"] is False
    assert team["figures"]["speedup"]["interval"] is not None
    assert {agent["requests"] for agent in team["agents"]} == {6}
    document = shown(project)
    for one in executions(document, "sequential"):
        (first, second) = sorted(spans(one).values())
        assert first[1] <= second[0]
        assert one["duration_s"] == pytest.approx(second[1], abs=1e-5)
    for one in executions(document, "concurrent"):
        (first, second) = sorted(spans(one).values())
        assert (one["applied"]["leg"] == "concurrent") == (second[0] < first[1])
        assert one["duration_s"] == pytest.approx(max(end for _, end in spans(one).values()), abs=1e-5)
        assert one["metrics"]["skew_seconds"] >= 0
        assert one["output"]["answers"]["first"] == {"a": "A!", "b": "B!"}


def test_the_order_of_agents_and_legs_is_drawn_by_the_seed_and_the_same_in_both_legs(project: Assay) -> None:
    project.write("team.json", local_team(iterations={"warmup": 0, "measured": 8}))
    assert project("team", "team.json", "-q").code == 0
    document = shown(project)
    orders = {
        leg: [tuple(one["output"]["order"]) for one in executions(document, leg)]
        for leg in ("sequential", "concurrent")
    }
    assert orders["sequential"] == orders["concurrent"]
    assert len(set(orders["sequential"])) == 2
    firsts = set()
    for pair in range(8):
        started = {leg: executions(document, leg)[pair]["started"] for leg in orders}
        firsts.add(min(started, key=lambda leg: started[leg]))
    assert firsts == {"sequential", "concurrent"}


def test_permits_limit_how_many_work_at_once(project: Assay) -> None:
    agents = [{"name": f"a{n}", "type": "python", "target": "agents.py:answer"} for n in range(4)]
    project.write("team.json", local_team(agents=agents, permits=2, iterations={"warmup": 0, "measured": 2}))
    (team,) = project("team", "team.json", "--json").json["teams"]
    assert team["at_once"] == 2
    for one in executions(shown(project), "concurrent"):
        stints = one["output"]["stints"]
        busiest = max(sum(s["start"] <= t["start"] < s["end"] for s in stints) for t in stints)
        assert busiest <= 2
        assert len(stints) == 8
        assert any(s.get("waited") for s in stints)


def test_with_one_permit_nobody_works_beside_another(project: Assay) -> None:
    project.write("team.json", local_team())
    assert project("team", "team.json", "-q", "--permits", "1").code == 0
    for one in executions(shown(project), "concurrent"):
        stints = sorted(one["output"]["stints"], key=lambda stint: stint["start"])
        assert all(before["end"] <= after["start"] for before, after in itertools.pairwise(stints))


def test_a_warm_up_asks_each_agent_its_first_case(project: Assay) -> None:
    project.write("team.json", local_team(iterations={"warmup": 2, "measured": 1}))
    assert project("team", "team.json", "-q").code == 0
    warm = [
        one
        for trial in shown(project)["trials"]
        for one in trial["iteration_metrics"]
        if one["phase"] == "warmup"
    ]
    assert len(warm) == 4
    assert all([stint["case"] for stint in one["output"]["stints"]] == ["a", "a"] for one in warm)


def test_an_agent_that_fails_fails_its_leg_and_the_rest_is_kept(project: Assay) -> None:
    project.write("agents.py", LOCAL + "\ndef fail(request):\n    raise ValueError('no such thing')\n")
    agents = [
        {"name": "first", "type": "python", "target": "agents.py:answer"},
        {"name": "second", "type": "python", "target": "agents.py:fail"},
    ]
    project.write("team.json", local_team(agents=agents))
    done = project("team", "team.json")
    assert done.code == 1
    told = " ".join(done.out.split())
    assert "'second'" in told
    assert "ValueError: no such" in told
    document = shown(project)
    assert [team["pairs"] for team in document["teams"]] == [0]
    (failed, *_) = executions(document, "concurrent")
    assert failed["status"] == "failed"
    assert {stint["agent"] for stint in failed["output"]["stints"]} == {"first", "second"}
    # An agent that fails at once works beside nobody, which is not the fault of the leg.
    assert "leg" not in (failed["applied"] or {})


def test_an_agent_whose_process_dies_is_reported_and_nobody_waits_for_it(
    project: Assay, wording: Wording
) -> None:
    project.write("agents.py", LOCAL + "\nimport os\ndef die(request):\n    os.kill(os.getpid(), 9)\n")
    agents = [
        {"name": "first", "type": "python", "target": "agents.py:answer"},
        {"name": "second", "type": "python", "target": "agents.py:die"},
    ]
    project.write("team.json", local_team(agents=agents, permits=1, iterations={"warmup": 0, "measured": 1}))
    done = project("team", "team.json")
    assert done.code == 1
    told = " ".join(done.out.split())
    (failed,) = executions(shown(project), "concurrent")
    error = failed["error"].splitlines()[0]
    assert "'second'" in error
    assert " -9" in error
    assert error.removeprefix("AgentError: ") in told
    wording(error)


def test_an_agent_whose_program_ends_at_once_is_reported_with_its_name(project: Assay) -> None:
    agents = [
        {"name": "first", "type": "python", "target": "agents.py:answer"},
        {"name": "second", "type": "command", "command": ["false"]},
    ]
    project.write("team.json", local_team(agents=agents, iterations={"warmup": 0, "measured": 1}))
    done = project("team", "team.json")
    assert done.code == 1
    assert "Agent 'second'" in done.out


def test_a_killed_team_resumes_and_ends_up_with_exactly_what_was_planned(tmp_path: Path) -> None:
    running = Running(tmp_path)
    (tmp_path / "agents.py").write_text(LOCAL)
    (tmp_path / "team.json").write_text(local_team(iterations={"warmup": 1, "measured": 4}))
    process = running.start("team", "team.json")
    eventually(lambda: len(running.executions) >= 3 or process.poll() is not None, LONG)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = len(running.executions)
    done = running("run", "--resume", "last")
    assert done.returncode == 0, done.stderr
    planned = sorted(
        (trial, process, phase, 0, "ok")
        for trial in range(2)
        for process in range(4)
        for phase in ("warmup", "measured")
    )
    assert sorted(running.executions) == planned
    assert 3 <= before < len(planned)
    (team,) = json.loads(done.stdout)["teams"]
    assert team["pairs"] == 4
    assert running.state == "completed"


@pytest.mark.real_starts  # How long agents take is the subject, and the memory of a fork is copied while they work.
@pytest.mark.slow
def test_slots_of_the_server_are_the_truth_that_is_found(assay: Assay) -> None:
    """Four agents on a server for one at a time gain nothing; on one for four nearly all that there is to gain."""
    found = {}
    for slots in (1, 4):
        with SimServer(SimOptions(ttft=1.5, itl=0.0, tokens=4, slots=slots)) as server:
            assay.write("team.json", server_team(server.url, 4, iterations={"warmup": 0, "measured": 2}))
            (team,) = assay("team", "team.json", "--json").json["teams"]
            found[slots] = team
    assert all(team["simulated"] for team in found.values())
    assert found[1]["figures"]["speedup"]["value"] < 2 < found[4]["figures"]["speedup"]["value"]
    assert {team["contention"]["requests"] for team in found.values()} == {8}
    assert found[1]["contention"]["events"] >= 6
    slower = {
        slots: [a["figures"]["slowdown"]["value"] for a in team["agents"]] for slots, team in found.items()
    }
    assert sum(slower[1]) > sum(slower[4])


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[AssayInline, str]:
    """A simulated team, run once, and what the console said of it."""
    assay = AssayInline(tmp_path_factory.mktemp("reported"))
    with SimServer(SimOptions(ttft=0.02, itl=0.001, tokens=4)) as server:
        assay.write("team.json", server_team(server.url, 2, iterations={"warmup": 1, "measured": 6}))
        done = assay("team", "team.json", "--report", "team,html,md,json", "--out", "out")
    assert done.code == 0, done.err
    return assay, done.out


def test_the_console_tells_speedup_agents_timeline_and_targets(reported: tuple[AssayInline, str]) -> None:
    out = reported[1]
    for told in ("shared  2 agents, all at once · 6 pairs of legs  simulated", "speedup ", "efficiency ", "naive speedup",
                 "blind to contention", "agent0 (m)", "sequential agent0", "concurrent agent0", "█", "Targets "):  # fmt: skip
        assert told in out


def test_the_files_of_seed_002_hold_true_figures_and_name_its_own(
    reported: tuple[AssayInline, str], wording: Wording
) -> None:
    folder = reported[0].folder / "out"
    for number in range(1, 7):
        names = {path.name for path in (folder / f"run_{number}").iterdir()}
        assert names == {"metrics.json", "agent0_report.md", "agent1_report.md", "combined_report.md"}
    run = json.loads((folder / "run_2" / "metrics.json").read_text())
    assert set(run) == {"agent0", "agent1", "run_number", "scenario", "simulated", "summary"}
    assert (run["run_number"], run["scenario"], run["simulated"]) == (2, "shared", True)
    assert set(run["agent0"]) >= {"config", "execution_time_s", "result"}
    assert run["agent0"]["config"]["model"] == "m"
    assert run["agent0"]["config"]["prompt"]
    summary = run["summary"]
    assert summary["sequential_estimated_s"] == summary["sequential_wall_time_s"]
    true = summary["sequential_wall_time_s"] / summary["concurrent_wall_time_s"]
    assert summary["concurrency_speedup"] == pytest.approx(true)
    assert summary["efficiency_percent"] == pytest.approx(50 * true)
    seed = summary["as_seed_002_computed_it"]
    durations = run["agent0"]["execution_time_s"] + run["agent1"]["execution_time_s"]
    assert seed["concurrency_speedup"] == pytest.approx(
        durations / summary["concurrent_wall_time_s"], rel=1e-3
    )
    assert summary["ttft_delta_ms"] == pytest.approx(summary["agent0_ttft_ms"] - summary["agent1_ttft_ms"])
    assert summary["delta_sign"]
    whole = json.loads((folder / "summary.json").read_text())
    speedups = [one["concurrency_speedup"] for one in whole["runs"]]
    assert whole["aggregate"]["average_concurrency_speedup"] == pytest.approx(sum(speedups) / 6)
    assert {"average_efficiency", "average_throughput_delta", "average_ttft_delta_ms"} <= set(
        whole["aggregate"]
    )
    page = (folder / "summary.md").read_text()
    assert "(simulated)" in page
    wording(summary["delta_sign"])
    # Measured times are on the page too; only its fixed lines are compared.
    wording(page, near="Naive speedup |")
    wording(page, near="The last column")


def test_every_format_has_the_team(reported: tuple[AssayInline, str]) -> None:
    assay = reported[0]
    folder = assay.folder / "out"
    page = (folder / "report.html").read_text()
    for told in ("true speedup", "parallel efficiency", "simulated figures", "pairs of legs", "What it is"):
        assert told in page
    assert "| speedup |" in (folder / "report.md").read_text()
    from assay.report.documents.schema import Result

    result = Result.model_validate(json.loads((folder / "result.json").read_text()))
    assert result.teams is not None
    assert result.teams[0].figures["speedup"].pairs == 6
    assert [run["name"] for run in assay("runs", "list", "--json").json] == ["shared"]
    estimate = result.trials[0].metrics["seconds"]
    assert estimate.kind == "simulated"


def test_charts_show_the_speedup_and_who_worked_when(reported: tuple[AssayInline, str]) -> None:
    from vl_convert import vegalite_to_svg

    from assay.pipeline.report import report_of
    from assay.store.store import Store

    with Store.open(f"sqlite:///{reported[0].folder}/.assay/assay.db") as store:
        finding = report_of(store, "last").findings["team"]
        charts = [chart for section in finding.sections(with_charts=True) for chart in section.charts()]
    assert [chart.name for chart in charts] == ["team-speedup", "team-timeline-shared"]
    for chart, told in zip(charts, ("True speedup", "sequential · agent0"), strict=True):
        assert told in vegalite_to_svg(chart.spec)
    bars = charts[1].spec["layer"][0]["data"]["values"]
    assert [(bar["lane"], bar["case"]) for bar in bars] == [
        (f"{leg} · {bar['agent']}", "a")
        for leg, bar in zip(["sequential"] * 2 + ["concurrent"] * 2, bars, strict=True)
    ]


def test_png_has_the_pictures_of_a_team(reported: tuple[AssayInline, str]) -> None:
    files = [Path(name) for name in reported[0]("report", "last", "--format", "png", "--json").json["files"]]
    assert {"team-speedup.png", "team-timeline-shared.png"} <= {file.name for file in files}


def test_a_run_without_a_team_has_no_files_of_one(assay_inline: AssayInline) -> None:
    assert assay_inline("run", "noop", "--repetitions", "2", "-q").code == 0
    assert "has no team" in assay_inline("report", "last", "--format", "team").refusal


def test_two_runs_of_a_team_are_compared_like_any_others(reported: tuple[AssayInline, str]) -> None:
    answer = reported[0]("compare", "last", "last", "--json").json
    assert {one["verdict"] for one in answer["comparisons"] if one["verdict"]} == {"same"}
    assert {one["trial_a"] for one in answer["comparisons"]} == {
        "shared[leg=sequential]",
        "shared[leg=concurrent]",
    }


def test_agents_whose_names_the_files_of_seed_002_use_otherwise_are_not_lost(
    assay_inline: AssayInline,
) -> None:
    agents = [{"name": name, "type": "stub", "answer": "x"} for name in ("summary", "combined")]
    document = {"team": "t", "agents": agents, "cases": [{"id": "a", "input": "A"}], "sweep": {"answer": ["x", "y"]},
                "iterations": {"warmup": 0, "measured": 1}}  # fmt: skip
    done = assay_inline(
        "team", assay_inline.write("t.json", json.dumps(document)), "--report", "team", "--out", "out"
    )
    assert done.code == 0, done.err
    folders = sorted(path.parent for path in (assay_inline.folder / "out").glob("*/run_1"))
    assert len(folders) == 2
    run = json.loads((folders[0] / "run_1" / "metrics.json").read_text())
    assert {"summary", "summary_agent", "combined_agent"} <= set(run)
    assert (folders[0] / "run_1" / "combined_agent_report.md").is_file()
