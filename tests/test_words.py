"""Names from the history of single features appear only where those features are used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command import AssayInline

ROOT = Path(__file__).parent.parent
WORDS = re.compile(r"seed[ -]?00\d|chimera|specification", re.IGNORECASE)
OWN_PAGES = {"teams.md", "serving.md"}
CITED = "in the specification of distributions"
"""Title of a paper."""
OWN_MODULES = re.compile(r"team|serving|reporters")
OF_VEGA = {"vega.py", "charts.py"}
"""There a specification is a chart of Vega-Lite."""


def pages() -> list[Path]:
    found = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]
    return [page for page in found if page.name not in OWN_PAGES]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_of_other_features_do_not_mention_them(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").replace(CITED, "").splitlines()
    assert [line[:200] for line in lines if WORDS.search(line)] == []


def texts_in(module: Path) -> Iterator[str]:
    """Texts of a module that a user may see: not docstrings, which stand alone, but anything that is used."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def test_messages_of_other_features_do_not_mention_them() -> None:
    found = [
        f"{module.relative_to(ROOT)}: {text[:100]}"
        for module in (ROOT / "src" / "assay").rglob("*.py")
        if not OWN_MODULES.search(str(module.relative_to(ROOT))) and module.name not in OF_VEGA
        for text in texts_in(module)
        if WORDS.search(text) and "specification/" not in text
    ]
    assert found == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        *(["list", kind, "--params"] for kind in ("agents", "scorers", "experiments", "instruments")),
        ["list", "specs"],
        ["schema", "suite"],
        ["schema", "spec"],
        ["schema", "result"],
        ["run", "no_such_thing"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_commands_of_other_features_do_not_mention_them(
    assay_inline: AssayInline, arguments: list[str]
) -> None:
    done = assay_inline(*arguments)
    assert WORDS.findall(done.out + done.err) == []


def test_teams_that_ship_are_listed_with_a_description(assay_inline: AssayInline) -> None:
    listed = {team["name"]: team["description"] for team in assay_inline("list", "teams", "--json").json}
    assert "chimera_homo" in listed
    assert all(listed.values())
    assert [name for name, text in listed.items() if WORDS.search(text)] == []


def test_a_team_that_is_misspelt_is_still_suggested(assay_inline: AssayInline) -> None:
    assert "'chimera_homo'?" in assay_inline("run", "chimera_hom").refusal
