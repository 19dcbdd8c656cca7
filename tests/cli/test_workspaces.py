"""Commands work in one workspace of the database, which the user chooses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.command import AssayInline


@pytest.fixture
def two(assay_inline: AssayInline) -> AssayInline:
    """A run in the workspace `default` and another in `team-a`."""
    assert assay_inline("workspace", "create", "team-a", "--json").json == {
        "name": "team-a",
        "runs": 0,
        "is_chosen": False,
    }
    assay_inline("run", "noop", "--label", "mine", "--json")
    assay_inline("run", "noop", "--label", "theirs", "--workspace", "team-a", "--json")
    return assay_inline


def labels(assay: AssayInline, *options: str, variable: str = "") -> list[str]:
    listed = assay("runs", "list", "--json", *options, ASSAY_WORKSPACE=variable).json
    return [run["label"] for run in listed]


def test_a_workspace_is_chosen_by_option_then_variable_then_settings(two: AssayInline) -> None:
    assert labels(two) == ["mine"]
    two.write("assay.toml", '[assay]\nworkspace = "team-a"\n')
    assert labels(two) == ["theirs"]
    assert labels(two, "--workspace", "default") == ["mine"]
    assert labels(two, variable="default") == ["mine"]
    assert labels(two, "--workspace", "team-a", variable="default") == ["theirs"]


def test_workspaces_are_listed_with_their_runs_and_the_chosen_one(two: AssayInline) -> None:
    assert two("workspace", "list", "--workspace", "team-a", "--json").json == [
        {"name": "default", "runs": 1, "is_chosen": False},
        {"name": "team-a", "runs": 1, "is_chosen": True},
    ]
    lines = two("workspace", "list").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["*", "default"], ["team-a", "1"]]


@pytest.mark.parametrize("command", [["runs", "list"], ["run", "noop"], ["load", "http://127.0.0.1:9"]])
def test_an_unknown_workspace_is_refused_with_the_nearest_name(
    two: AssayInline, wording: Any, command: list[str]
) -> None:
    done = two(*command, "--workspace", "team")
    assert done.code == 2
    assert "'team-a'" in done.refusal
    assert "assay workspace create team" in done.refusal
    wording(done.refusal)


def test_the_workspace_that_the_settings_name_can_be_created(assay_inline: AssayInline) -> None:
    assay_inline.write("assay.toml", '[assay]\nworkspace = "new"\n')
    assert "'new'" in assay_inline("runs", "list").refusal
    assert assay_inline("workspace", "create", "new", "--json").json["is_chosen"]
    assert labels(assay_inline) == []


def test_a_name_that_is_taken_or_no_name_is_refused(two: AssayInline, wording: Any) -> None:
    for name in ("team-a", "a b"):
        refusal = two("workspace", "create", name).refusal
        assert f"'{name}'" in refusal
        wording(refusal)


def test_the_settings_take_a_name(assay_inline: AssayInline, wording: Any) -> None:
    assay_inline.write("assay.toml", "[assay]\nworkspace = 3\n")
    refusal = assay_inline("runs", "list").refusal
    assert "assay.toml:2: assay.workspace" in refusal
    wording(refusal)


def test_keys_are_listed_and_revoked_in_their_workspace(two: AssayInline) -> None:
    made = two("key", "create", "ci", "--workspace", "team-a", "--json").json
    assert made["workspace"] == "team-a"
    assert two("key", "list", "--json").json == []
    assert made["prefix"] in two("key", "revoke", made["prefix"]).refusal
    assert [key["prefix"] for key in two("key", "list", "--workspace", "team-a", "--json").json] == [
        made["prefix"]
    ]
    assert two("key", "revoke", made["prefix"], "--workspace", "team-a", "--json").json["revoked"]


def test_info_prune_and_export_say_of_which_workspace_they_speak(two: AssayInline) -> None:
    facts = two("db", "info", "--workspace", "team-a", "--json").json
    assert (facts["workspace"], facts["rows"]["runs"]) == ("team-a", 1)
    table = two("db", "export", "all.jsonl", "--workspace", "team-a", "--json").json
    assert table["workspace"] == "team-a"
    copied = two("db", "export", "copy.db", "--workspace", "team-a")
    assert "'team-a'" in copied.err
    copy = f"sqlite:///{two.folder / 'copy.db'}"
    assert labels(two, "--db", copy, "--workspace", "team-a") == ["theirs"]
    assert labels(two, "--db", copy) == []
    pruned = two("db", "prune", "--keep", "0", "--workspace", "team-a", "--json").json
    assert (pruned["workspace"], len(pruned["deleted"])) == ("team-a", 1)
    assert labels(two) == ["mine"]
