"""`assay plugin new` writes a package; tests/test_plugin_package.py installs one of each kind."""

from __future__ import annotations

import ast
import tomllib

import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.cli.plugin import KINDS, group_of


def test_without_a_kind_it_writes_an_agent_and_names_the_next_commands(assay_inline: AssayInline) -> None:
    document = assay_inline("plugin", "new", "my-agent", "--json").json

    assert document == {
        "folder": "my-agent",
        "files": [
            "pyproject.toml",
            "README.md",
            "src/my_agent/__init__.py",
            "src/my_agent/agent.py",
            "tests/test_agent.py",
        ],
        "next": ["pip install -e my-agent", "assay list agents", "pytest my-agent"],
    }
    assert all((assay_inline.folder / "my-agent" / file).is_file() for file in document["files"])


def test_people_read_what_was_written_and_what_to_do_next(
    assay_inline: AssayInline, wording: Wording
) -> None:
    done = assay_inline("plugin", "new", "my-scorer", "--kind", "scorer")

    assert "src/my_scorer/scorer.py" in done.out
    assert "pip install -e my-scorer" in done.err
    wording(done.out + done.err)


def test_one_package_may_hold_every_kind(assay_inline: AssayInline) -> None:
    chosen = [word for kind in KINDS for word in ("--kind", kind)]
    files = assay_inline("plugin", "new", "tools", *chosen, "--out", "a folder", "--json").json["files"]

    folder = assay_inline.folder / "a folder" / "tools"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {
        f"assay.{group_of(kind)}": {"tools": f"tools.{kind}:Tools{kind.capitalize()}"} for kind in KINDS
    }
    for file in files:
        text = (folder / file).read_text()
        assert "template" not in text.lower()
        if file.endswith(".py"):
            ast.parse(text)


def test_the_readme_explains_only_the_kinds_that_were_written(assay_inline: AssayInline) -> None:
    assay_inline("plugin", "new", "my-scorer", "--kind", "scorer")

    readme = (assay_inline.folder / "my-scorer" / "README.md").read_text()
    assert [line for line in readme.splitlines() if line.startswith("## ")] == ["## scorer"]


@pytest.mark.parametrize(
    "name", ["My-Agent", "1st", "a--b", "-x-", "../up", "a.b", "", "class", "json", "pytest", "nötig"]
)
def test_a_name_that_cannot_work_is_refused_in_one_line(
    assay_inline: AssayInline, wording: Wording, name: str
) -> None:
    refusal = assay_inline("plugin", "new", "--", name).refusal

    assert f"'{name}'" in refusal
    assert refusal.strip().count("\n") == 0
    assert list(assay_inline.folder.iterdir()) == []
    wording(refusal)


def test_a_plug_in_of_that_name_is_not_shadowed(assay_inline: AssayInline, wording: Wording) -> None:
    refusal = assay_inline("plugin", "new", "exact", "--kind", "scorer").refusal

    assert "assay list scorers" in refusal
    wording(refusal)


def test_a_folder_that_exists_is_never_overwritten(assay_inline: AssayInline, wording: Wording) -> None:
    kept = assay_inline.write("mine/pyproject.toml", "kept")

    refusal = assay_inline("plugin", "new", "mine").refusal

    assert kept.read_text() == "kept"
    wording(refusal)
