from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import numpy
import psutil
import pytest

from assay import __version__
from assay.execute.environment import doubts_about, environment
from assay.model import Environment

QUIET = {"spread": 0.1, "lost": 0.01}


@pytest.fixture(autouse=True)
def patient_with_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.execute.environment._GIT_SECONDS", 60.0)


@pytest.fixture(scope="module")
def here() -> Environment:
    return environment(Path(__file__).parent)


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--initial-branch", "trunk")
    (tmp_path / "kept.txt").write_text("one")
    git(tmp_path, "add", "kept.txt")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


def test_the_facts_are_those_of_this_machine(here: Environment):
    facts = here.facts
    assert facts["assay"] == __version__
    assert facts["os"]["system"] == os.uname().sysname  # type: ignore[index]
    assert facts["cpu"]["cores_logical"] == os.cpu_count()  # type: ignore[index]
    assert facts["memory"]["total_bytes"] > facts["memory"]["available_bytes"] > 0  # type: ignore[index]
    assert facts["python"]["executable"].startswith("python")  # type: ignore[index]
    assert facts["packages"]["numpy"] == numpy.__version__  # type: ignore[index]


def test_facts_that_are_read_from_files_are_those_that_psutil_tells(here: Environment):
    cpu, memory = here.facts["cpu"], here.facts["memory"]
    assert cpu["cores_physical"] == psutil.cpu_count(logical=False)  # type: ignore[index]
    assert memory["total_bytes"] == psutil.virtual_memory().total  # type: ignore[index]
    battery = getattr(psutil, "sensors_battery", lambda: None)()
    assert here.facts["on_battery"] is (battery is not None and not battery.power_plugged)


def test_every_fact_could_be_told(here: Environment):
    may_be_none = {"container", "virtual_machine", "on_battery"}
    assert [name for name, fact in here.facts.items() if fact is None and name not in may_be_none] == []


def test_the_facts_are_plain_data(here: Environment):
    assert json.loads(json.dumps(here.facts)) == here.facts


def test_no_variable_no_home_and_no_user_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("ASSAY_TEST_SECRET", "xyzzy-very-secret")
    monkeypatch.setenv("PYTHONHASHSEED", "31415926")
    monkeypatch.setenv("LOGNAME", "somebody-unmistakable")
    text = json.dumps(environment(tmp_path).facts)
    assert "xyzzy-very-secret" not in text
    assert "31415926" not in text
    assert str(Path.home()) + "/" not in text
    assert "somebody-unmistakable" not in text


def test_packages_may_be_left_out(tmp_path: Path):
    assert "packages" not in environment(tmp_path, packages=False).facts


def test_it_is_quick(tmp_path: Path):
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        environment(tmp_path)
        times.append(time.perf_counter() - begin)
    assert min(times) < 1.5


def test_the_clock_is_measured(here: Environment):
    clock = here.facts["clock"]
    assert clock["monotonic"] is True  # type: ignore[index]
    assert 0 < clock["step_s"] < 1e-3  # type: ignore[index]
    assert 1e-9 < clock["cost_s"] < 1e-4  # type: ignore[index]


def test_the_commit_is_that_of_the_repository_that_holds_the_folder(repository: Path):
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    head = git(repository, "rev-parse", "HEAD")
    assert environment(inner).vcs == {"commit": head, "branch": "trunk", "dirty": False}


def test_a_changed_file_makes_it_dirty_and_a_result_beside_it_does_not(repository: Path):
    (repository / "results.json").write_text("{}")
    assert environment(repository).vcs["dirty"] is False
    (repository / "kept.txt").write_text("two")
    assert environment(repository).vcs["dirty"] is True


def test_a_detached_head_has_no_branch(repository: Path):
    git(repository, "checkout", "--detach")
    vcs = environment(repository).vcs
    assert vcs["branch"] is None
    assert vcs["commit"] == git(repository, "rev-parse", "HEAD")


def test_a_repository_without_a_commit_has_none(tmp_path: Path):
    git(tmp_path, "init", "--initial-branch", "trunk")
    assert environment(tmp_path).vcs == {"commit": None, "branch": "trunk", "dirty": False}


def test_variables_of_a_git_hook_do_not_lead_elsewhere(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    outside = tmp_path_factory.mktemp("outside")
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    assert environment(outside).vcs == {}


@pytest.mark.parametrize("place", ["outside", "missing"])
def test_outside_a_repository_nothing_is_said(tmp_path: Path, place: str):
    folder = tmp_path if place == "outside" else tmp_path / "missing"
    assert environment(folder).vcs == {}


def test_without_git_nothing_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert environment(repository).vcs == {}


def test_a_quiet_machine_raises_no_doubt():
    cpu = {"cores_logical": 4, "governor": "performance"}
    assert doubts_about({"noise": QUIET, "load": [1.9, 1, 1], "cpu": cpu, "on_battery": False}) == ()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"noise": {"spread": 4.3, "lost": 0.0}}, ["noisy", "430 %"]),
        ({"noise": {"spread": 0.1, "lost": 0.5}}, ["noisy", "50 %"]),
        (
            {"noise": QUIET, "load": [3.1, 1, 1], "cpu": {"cores_logical": 4}},
            ["load 3.1 on 4 cores", "above 2"],
        ),
        ({"noise": QUIET, "cpu": {"governor": "powersave"}}, ["governor", "'powersave'"]),
        ({"noise": QUIET, "on_battery": True}, ["battery"]),
    ],
)
def test_each_reason_for_doubt_is_reported_with_its_number(facts: dict[str, object], words: list[str]):
    (doubt,) = doubts_about(facts)
    assert [word for word in words if word not in doubt] == []


def test_only_what_is_beyond_its_bound_is_reported():
    (doubt,) = doubts_about({"noise": {"spread": 0.5, "lost": 0.3}})
    assert "30 %" in doubt
    assert "spread" not in doubt


def test_facts_that_could_not_be_told_raise_no_doubt():
    assert doubts_about({"noise": None, "load": None, "cpu": None}) == ()


def test_the_machine_class_ignores_what_changes_between_runs():
    cpu = {"model": "Example 9", "cores_logical": 8, "mhz": 1200.0}
    facts = {"cpu": cpu, "os": {"system": "Linux", "release": "6.1"}, "machine": "x86_64", "load": [0.1]}
    later = {**facts, "cpu": {**cpu, "mhz": 3600.0}, "load": [5.0], "hostname": "other"}
    expected = "Example 9, 8 cores, Linux x86_64"
    assert Environment(facts).machine_class == Environment(later).machine_class == expected


def test_another_processor_is_another_class():
    one, other = (Environment({"cpu": {"model": "E", "cores_logical": cores}}) for cores in (4, 8))
    assert one.machine_class != other.machine_class


def test_a_class_can_be_told_of_an_environment_without_facts():
    nothing = "?, ? cores, ? ?"
    assert Environment({}).machine_class == nothing
